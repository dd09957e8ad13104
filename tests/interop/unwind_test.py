#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Stacks of programs that really run, walked by our tables and by elfutils' libdw at the same stops.

Programs of known truth (tests/host/programs) and real ones: each is stopped at random moments
(tests/interop/unwind/unwind.c) and both walk; ours must come to the entry point, and frame for frame it
must be what libdw says.  libdw cannot cross code without tables as we do (JIT, V8's builtins): there it stops
early and only its part is compared.

usage: unwind_test.py [STOPS [NAME...]]
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "support"))
from checks import check, exit_code  # noqa: E402
from loads import real_loads  # noqa: E402

BUILD = pathlib.Path(os.environ.get("KILN_BUILD_DIR", "build"))
UNWIND = BUILD / "interop_unwind"
PROGRAMS = BUILD / "programs"
STOPS = sys.argv[1] if len(sys.argv) > 1 else "100"
ONLY = sys.argv[2:]
SECONDS = "60"  # more than it takes: a program is killed when it was stopped often enough

# What libdw gets wrong itself (Go's switches of stacks and its signals, by frames that do not tell of them) or
# cannot do: there ours must only be complete.
NOT_FOR_LIBDW = ("going", "cgoing", "inlining", "go-build", "node")
WITHOUT_TABLES = "spans-musl"  # musl has no unwind information of its own: stacks end in it


def loads(tmp):
    """name -> command; of real programs, those that are installed."""
    commands = {name.name: [str(name), SECONDS] for name in sorted(PROGRAMS.iterdir())
                if name.suffix != ".so" and not name.name.startswith(WITHOUT_TABLES)}
    commands["spawn"] = [str(PROGRAMS / "spawn"), SECONDS, "50", "exec"]
    commands["jitdump"] = [str(PROGRAMS / "jitdump"), SECONDS, str(tmp)]  # which writes a file
    commands |= real_loads(tmp)
    commands.pop("java", None)  # its own code has its own frames: not for tables
    return {name: c for name, c in commands.items() if not ONLY or name in ONLY}


def run(name, command):
    """What unwind says of a program, as numbers."""
    done = subprocess.run([UNWIND, STOPS, *command], stdout=subprocess.PIPE, text=True, timeout=600, check=False)
    line = done.stdout.strip().splitlines()[-1] if done.stdout.strip() else ""
    print(f"{name:16} {line}", flush=True)
    figures = {word: int(n) for n, word in re.findall(r"(\d+) ([a-z-]+)", line)}
    return figures | {word: int(n) for word, n in re.findall(r"([a-z_]+)=(\d+)", line)}


def main():
    if not UNWIND.exists():
        print("skipped: libdw-dev is not installed")
        sys.exit(77)
    sums = {"stops": 0, "complete": 0, "compared": 0, "equal": 0}
    with tempfile.TemporaryDirectory() as tmp:
        for name, command in loads(pathlib.Path(tmp)).items():
            figures = run(name, command)
            check(f"{name}: it was stopped", figures.get("stops", 0) > 0)
            for word in ("stops", "complete"):
                sums[word] += figures.get(word, 0)
            if name not in NOT_FOR_LIBDW:
                sums["compared"] += figures.get("stops", 0)
                sums["equal"] += figures.get("equal", 0)
    for word, of in (("complete", "stops"), ("equal", "compared")):
        share = sums[word] / max(sums[of], 1)
        check(f"{100 * share:.2f} % of {sums[of]} stacks are {word}", share >= 0.995)
    sys.exit(exit_code())


main()
