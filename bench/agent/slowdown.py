#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How much slower is a program while it is profiled?  The same work on every processor, in turns without and with a profiler.

What is compared is processor time of equal pieces of work: the median of a turn beside the mean of those of the turns without before and
after it; what interrupts the work counts as its time.  The bound is the upper end of the 95 % interval over all pairs.  It says something on a machine that does nothing else.

usage: slowdown.py [--pairs N] [--only NAME]...
"""
import argparse
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import profilers

TARGET = 0.5  # %
PIECES = 40  # of 0.2 s each
T95 = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14, 2.13, 2.12, 2.11, 2.10, 2.09)


def work():
    """The median piece of all processors, in ns."""
    running = [subprocess.Popen(["taskset", "-c", str(cpu), str(profilers.BUILD / "bench_work"), str(PIECES)], stdout=subprocess.PIPE, text=True)
               for cpu in os.sched_getaffinity(0)]
    return statistics.median(int(line) for process in running for line in process.communicate()[0].split())


def work_beside(kind, folder):
    with kind(folder) as profiler:
        began = time.monotonic()
        while not profiler.first_export() and time.monotonic() < began + (30 if isinstance(profiler, profilers.Sender) else 5):
            time.sleep(0.1)
        took = work()
        profiler.check()
        return took


def bound(ratios):
    """Mean and upper bound, in %."""
    mean = statistics.mean(ratios)
    if len(ratios) < 2:
        return 100 * mean, math.inf
    t = T95[min(len(ratios) - 2, len(T95) - 1)]
    return 100 * mean, 100 * (mean + t * statistics.stdev(ratios) / math.sqrt(len(ratios)))


def show(ratios):
    print(f"{'slowdown of the load, %':34} {'mean':>8} {'at most (95 %)':>16} {'turns':>8}")
    for kind, found in ratios.items():
        mean, most = bound(found)
        said = f"   target {TARGET}: {'met' if most <= TARGET else 'not met'}" if issubclass(kind, profilers.Kiln) else ""
        print(f"{kind.name:34} {mean:8.2f} {most:16.2f} {len(found):8}{said}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", type=int, default=12)
    parser.add_argument("--only", action="append", metavar="NAME", help="only this profiler, as the table names it")
    args = parser.parse_args()
    profilers.with_tracefs()
    ratios = {kind: [] for kind in profilers.all_there(args.only)}
    with tempfile.TemporaryDirectory() as name:
        alone = work()
        for turn in range(args.pairs):
            for kind, found in ratios.items():
                beside = work_beside(kind, pathlib.Path(name))
                before, alone = alone, work()
                found.append(2 * beside / (before + alone) - 1)
                print(f"turn {turn + 1} of {args.pairs}: {kind.name} {100 * found[-1]:+.2f} %", file=sys.stderr, flush=True)
    show(ratios)


main()
