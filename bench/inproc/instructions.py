#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How many instructions does libkiln add to real programs?

Counted by callgrind, which nobody else on the machine can disturb: whole runs, with the start and the end of libkiln in them, at its
default, forced to work there (it stands aside under valgrind otherwise), without the timers of CPU time, which callgrind has no
clock for.  These programs take less than a second but half a minute under callgrind: profiles are written once, at the end, as they
would be; what libkiln does ten times a second is counted more often than it should be.

  BENCH_INPROC_SCALE=0.5   of the programs' usual length, which is about a second
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from programs import BUILD, LIBKILN, environment, programs, verdict

SCALE = float(os.environ.get("BENCH_INPROC_SCALE", "0.5"))
TARGET = 0.01


def instructions(command, variables, folder):
    counted = folder / "callgrind"
    subprocess.run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={counted}", *map(str, command)], cwd=folder,
                   env=environment(variables | {"PYTHONHASHSEED": "0"}), capture_output=True, check=True)
    with open(counted, encoding="utf-8", errors="replace") as lines:
        return int(next(line for line in lines if line.startswith(("summary:", "totals:"))).split()[1])


def main():
    if not shutil.which("valgrind"):
        print("valgrind is not installed: no instructions")
        return 0
    subprocess.run(["cmake", "--build", BUILD, "--target", "kiln_inproc_shared"], check=True,
                   stdout=subprocess.DEVNULL)
    more = {}
    print(f"{'instructions':14}{'alone':>16}{'with it':>16}{'added':>9}")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        inside = {"LD_PRELOAD": str(LIBKILN), "KILN_OUT_DIR": str(folder / "profiles"), "KILN_FOLLOW": "1", "KILN_FORCE": "1",
                  "KILN_PROFILES": "alloc,heap,lock,wall,threads,loop", "KILN_EXPORT_INTERVAL_MS": "3600000",
                  "KILN_EXIT_MS": "600000"}
        for program, command in programs(folder, SCALE).items():
            if program in ("true", "mix"):
                continue
            alone, with_it = (instructions(command, variables, folder) for variables in ({}, inside))
            more[program] = with_it / alone - 1
            print(f"{program:14}{alone:16,}{with_it:16,}{more[program]:+9.2%}", flush=True)
    worst = max(more.values())
    print(f"on the real programs: {worst:+.2%} at most; target <= {TARGET:.0%}: {verdict(worst <= TARGET)}")
    return 0


sys.exit(main())
