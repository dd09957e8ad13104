#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Everything on at once: how much CPU time and memory more do real programs take?

CPU 100 Hz, alloc, heap, lock, wall, threads, loop; depth 128; 10,000 samples; every 30 s.  Each program runs alone and with
libkiln in turn, in the other order in every second pair, so that whatever else the machine does falls on both.  CPU time is user
and system of the program and of libkiln's threads in it, start and end included.  A pair gives one ratio; the table has their
median and the interval that has the true one in 19 of 20 cases, which needs no assumption about how they are spread: on a busy
machine it is wide, and the verdict may have to wait for a quiet one.  Rows with x4 are of programs of four times the length, in
which start and end weigh a quarter; what it is that takes the time, parts.py tells.

  BENCH_INPROC_PAIRS=40   of each program; a quarter of the long ones
"""
import math
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

from programs import BUILD, programs, redis_used, used, ways

PAIRS_MIN = 6  # fewer bound nothing
PAIRS = max(PAIRS_MIN, int(os.environ.get("BENCH_INPROC_PAIRS", "40")))
LONG = 4
CPU_TARGET, MIB_TARGET = 0.02, 50e6 / (1 << 20)


def bounds(values):
    """Of the median: as many of the smallest and largest are left out as keep 95 %."""
    ordered, n = sorted(values), len(values)
    outside, out = 0.0, 0
    while out < n // 2 and outside + 2 * math.comb(n, out) / 2**n <= 0.05:
        outside += 2 * math.comb(n, out) / 2**n
        out += 1
    out = max(0, out - 1)
    return ordered[out], ordered[n - 1 - out]


def runs(folder, scale):
    """Name: what runs it in one of the ways, and gives CPU seconds and MiB."""
    everything = ways(folder)["kiln everything"][0]
    found = {name: lambda on, command=command: used(command, everything if on else {}, folder)
             for name, command in programs(folder, scale).items() if name not in ("true", "mix")}
    if shutil.which("redis-benchmark"):
        found["redis"] = lambda on: redis_used(everything if on else {}, [], folder, 300000 * scale)
    return found


def in_pairs(run, n):
    """Alone and with it; the first pair is not counted."""
    pairs = []
    for turn in range(-1, n):
        one = {on: run(on) for on in ((False, True) if turn % 2 else (True, False))}
        pairs.append((one[False], one[True]))
    return pairs[1:]


def verdict(low, high, most):
    return "met" if high < most else "not met" if low > most else "cannot be told here"


def show(program, pairs):
    more = [on[0] / off[0] - 1 for off, on in pairs]
    low, high = bounds(more)
    mib = statistics.median(on[1] for _, on in pairs) - statistics.median(off[1] for off, _ in pairs)
    print(f"{program:14}{statistics.median(off[0] for off, _ in pairs):12.3f}{statistics.median(more):+9.2%}"
          f"{f'{low:+.2%} to {high:+.2%}':>20}{verdict(low, high, CPU_TARGET):>22}{mib:+10.1f}", flush=True)
    if mib > MIB_TARGET:
        print(f"  more than {MIB_TARGET:.1f} MiB: not met")


def main():
    subprocess.run(["cmake", "--build", BUILD, "--target", "kiln_inproc_shared"], check=True, stdout=subprocess.DEVNULL)
    print(f"{'everything on':14}{'CPU s alone':>12}{'more':>9}{'19 of 20 cases':>20}{'target < 2 %':>22}{'MiB more':>10}")
    for scale, n, mark in ((1, PAIRS, ""), (LONG, max(PAIRS_MIN, PAIRS // LONG), f" x{LONG}")):
        with tempfile.TemporaryDirectory() as name:
            for program, run in runs(pathlib.Path(name), scale).items():
                show(program + mark, in_pairs(run, n))
    return 0


sys.exit(main())
