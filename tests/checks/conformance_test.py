#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every statement of docs/guide/collector-conformance.md has a test, and every test that it names is there."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "docs/guide/collector-conformance.md"
STATEMENTS = range(40, 82)


def is_there(path, name):
    """Whether the file has a test, or a part of one, of this name."""
    file = ROOT / path
    pattern = rf"TEST\(\w+, {name}\)|^int {name}\(" if file.suffix == ".c" else rf"^ *def {name}\("
    return file.exists() and re.search(pattern, file.read_text(), re.M)


def faults(text):
    rows = re.findall(r"^\| (\d+) \| .+? \| (.+) \|$", text, re.M)
    if [int(number) for number, _ in rows] != list(STATEMENTS):
        yield f"statements {STATEMENTS[0]} to {STATEMENTS[-1]} are not there in order, once each"
    for number, shown in rows:
        for part in shown.split("; "):
            path, *names = re.findall(r"`([^`]+)`", part) or [""]
            if not names:
                yield f"{number}: names no test in '{part}'"
            yield from (f"{number}: {path} has no {name}" for name in names if not is_there(path, name))


def main():
    found = list(faults(PAGE.read_text()))
    for fault in found:
        print(f"{PAGE.relative_to(ROOT)}: {fault}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
