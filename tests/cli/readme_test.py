#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs every ```console block of README.md and docs/**.md and compares what is printed.

A line that begins with `$ ` is a command, what follows is its output; a line `...` stands for any
lines.  `readme_test.py --update` writes the real output into the pages.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.M | re.S)


def run(command, folder):
    env = dict(os.environ, PATH=f"{folder}:{os.environ['PATH']}", LC_ALL="C.UTF-8", TERM="dumb")
    env.pop("COLUMNS", None)
    done = subprocess.run(["bash", "-c", command], cwd=ROOT, env=env, check=False, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.stdout


def matches(expected, real):
    pattern = "".join(r"(?:.*\n)*?" if line == "..." else re.escape(line) + r"\n"
                      for line in expected.splitlines())
    return re.fullmatch(pattern, real) is not None


def check_block(page, block, folder, update):
    """The block as it should be, and what is wrong with the one there is."""
    fresh, problems = "", []
    for part in re.split(r"^(?=\$ )", block, flags=re.M):
        if not part.startswith("$ "):
            continue
        command, _, expected = part.partition("\n")
        real = run(command[2:], folder)
        real = "".join(line.rstrip() + "\n" for line in real.splitlines())
        if not matches(expected, real):
            problems.append(f"{page}: {command}\nexpected:\n{expected}\nreal:\n{real}")
        fresh += f"{command}\n{real if update and not matches(expected, real) else expected}"
    return fresh, problems


def main():
    update = "--update" in sys.argv
    kiln = os.environ.get("KILN", str(ROOT / "build" / "kiln"))
    problems = []
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(kiln, f"{folder}/kiln")
        for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
            text = page.read_text(encoding="utf-8")

            def replace(match, page=page):
                fresh, found = check_block(page.relative_to(ROOT), match[1], folder, update)
                problems.extend(found)
                return f"```console\n{fresh}```"
            fresh = BLOCK.sub(replace, text)
            if update and fresh != text:
                page.write_text(fresh, encoding="utf-8")
    if update:
        return 0
    print("\n".join(problems), end="")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
