#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every real capture, in every two-way format and back: totals of every function stay equal."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

KILN = os.environ["KILN"]
DATA = pathlib.Path(os.environ.get("KILN_TEST_DATA", ""))
FORMATS = ["otlp", "otlp-json", "pprof", "collapsed", "speedscope"]
PATTERNS = ["otlp/*.otlp", "otlp/*/*.otlp", "pprof/*.pb*", "pprof/*/*.pb.gz",
            "pprof/*.gperftools", "jfr/*.gz"]


def kiln(*words):
    return subprocess.run([KILN, *words], capture_output=True, check=True).stdout


def functions(path):
    top = json.loads(kiln("top", "--json", "-n", "0", str(path)))
    rows = ((r["name"], r["self"], r["total"]) for r in top["rows"])
    return top["total"], sorted(rows)


def main():
    files = sorted({f for pattern in PATTERNS for f in DATA.glob(pattern)})
    if not files:
        print("skipped: no captures here")
        return 77
    failures = 0
    with tempfile.TemporaryDirectory() as scratch:
        for file in files:
            expected = functions(file)
            for form in FORMATS:
                out = pathlib.Path(scratch) / form
                kiln("convert", str(file), "--to", form, "-o", str(out))
                if functions(out) != expected:
                    print(f"{file.relative_to(DATA)}: not the same after {form}")
                    failures += 1
    print(f"{len(files)} captures, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except subprocess.CalledProcessError as failed:
        sys.exit(f"{failed.cmd}: {failed.stderr.decode()}")
