#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How much slower is a program while it is profiled?  The same work on every processor, in short turns without and with a profiler.

A machine's speed drifts by more than any profiler costs, so the turns are short: the profiler is started once and stays, and ten times a
second its clocks (the events it opened, taken over by pidfd_getfd(2)) and its processes are halted or go on, in the order -++- +--+.  What is
compared is processor time of equal pieces of work, four turns each; what interrupts the work counts as its time.  To that comes the processor
time that the profiler itself takes away from the work while it runs; programs in the kernel are counted, to see that it does run.  The bound is the upper end of the 95 % interval of both together.

usage: slowdown.py [--minutes N] [--only NAME]...
"""
import argparse
import bisect
import contextlib
import ctypes
import fcntl
import math
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import profilers
import use

TARGET = 0.5  # %
TURN_S = 0.1
SETTLE_S = 20  # after the first export, for tables and names
ENABLE, DISABLE = 0x2400, 0x2401  # PERF_EVENT_IOC_*
PIDFD_GETFD = 438
LIBC = ctypes.CDLL(None, use_errno=True)


class Switch:
    """Halts a profiler, its clocks and its processes, and lets it go on."""

    def __init__(self, pid):
        self.pids = use.family(pid)
        self.events = [taken for p in self.pids for taken in events_of(p)]
        if not self.events:
            sys.exit("the profiler has opened no events")

    def turn(self, on):
        for event in self.events:
            fcntl.ioctl(event, ENABLE if on else DISABLE, 0)
        for pid in self.pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT if on else signal.SIGSTOP)

    def cpu_ns(self):
        return sum(map(use.cpu_ns, self.pids))

    def close(self):
        self.turn(True)
        for event in self.events:
            os.close(event)


def events_of(pid):
    pidfd = os.pidfd_open(pid)
    for entry in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            if os.readlink(entry) == "anon_inode:[perf_event]":
                taken = LIBC.syscall(PIDFD_GETFD, pidfd, int(entry.name), 0)
                if taken >= 0:
                    yield taken
    os.close(pidfd)


@contextlib.contextmanager
def work(folder):
    """Pieces of work on each processor; the files that they are written to."""
    files, running = [], []
    for cpu in os.sched_getaffinity(0):
        files.append(folder / f"work.{cpu}")
        with open(files[-1], "wb") as out:
            running.append(subprocess.Popen(profilers.end_with_parent(["taskset", "-c", str(cpu), str(profilers.BUILD / "bench_work")]), stdout=out))
    try:
        yield files
    finally:
        for process in running:
            process.kill()
            process.wait()


def turns_of(profiler, minutes):
    """Fours of turns: (on, begin, end) in ns; and the share of one processor that the profiler took while it ran."""
    switch, fours, took, ran = Switch(profiler.process.pid), [], 0, 0
    for four in range(max(2, round(60 * minutes / (4 * TURN_S)))):
        fours.append([])
        for on in (False, True, True, False) if four % 2 else (True, False, False, True):
            switch.turn(on)
            before, began = switch.cpu_ns(), time.monotonic_ns()
            time.sleep(TURN_S)
            ended, used = time.monotonic_ns(), switch.cpu_ns() - before
            fours[-1].append((on, began, ended))
            took, ran = took + used, ran + on * (ended - began)
        profiler.check()
    switch.close()
    return fours, took / ran


def pieces_of(path):
    """(begin, end, processor time) of each but the first."""
    lines = [tuple(map(int, line.split())) for line in path.read_text().splitlines()[:-1]]
    return [(before[0], at, used) for before, (at, used) in zip(lines, lines[1:])]


def ratios_of(fours, files):
    """By fours, how much longer the work took beside the profiler than without: of pieces that lie within one turn as a whole."""
    every, found = [piece for path in files for piece in pieces_of(path)], []
    every.sort()
    starts = [piece[0] for piece in every]
    for turns in fours:
        used = {True: [], False: []}
        for on, began, ended in turns:
            inside = every[bisect.bisect_left(starts, began):bisect.bisect_left(starts, ended)]
            used[on] += [took for _, end, took in inside if end <= ended]
        if used[True] and used[False]:
            found.append(statistics.mean(used[True]) / statistics.mean(used[False]) - 1)
    return found


def measure(kind, folder, minutes):
    """How much longer work takes, by fours of turns; and the share of all processors that the profiler takes."""
    with work(folder) as files, kind(folder) as profiler:
        began = time.monotonic()
        while not profiler.first_export() and time.monotonic() < began + (90 if isinstance(profiler, profilers.Sender) else 5):
            time.sleep(0.1)
        time.sleep(SETTLE_S)
        with use.measured_programs():
            before = use.Use(profiler.process.pid, memory=False).runs
            fours, took = turns_of(profiler, minutes)
            runs = use.Use(profiler.process.pid, memory=False).runs - before
        ran_s = sum(ended - began for four in fours for on, began, ended in four if on) / 1e9
        if isinstance(profiler, profilers.Sender) and runs < 0.9 * profilers.HZ * len(files) * ran_s:
            sys.exit(f"{kind.name} took {runs / ran_s:.1f} samples a second: it was not at work")
        return ratios_of(fours, files), took / len(files)


def show(kind, ratios, taken):
    mean = statistics.mean(ratios)
    most = mean + 1.96 * statistics.stdev(ratios) / math.sqrt(len(ratios))
    said = f"   target {TARGET}: {'met' if 100 * (most + taken) <= TARGET else 'not met'}" if issubclass(kind, profilers.Kiln) else ""
    print(f"{kind.name:20} {100 * mean:12.2f} {100 * taken:12.2f} {100 * (mean + taken):10.2f} {100 * (most + taken):16.2f} {len(ratios):8}{said}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=5, help="of turns for each profiler")
    parser.add_argument("--only", action="append", metavar="NAME", help="only this profiler, as the table names it")
    args = parser.parse_args()
    profilers.with_tracefs()
    print(f"{'slowdown, %':20} {'of the work':>12} {'taken by it':>12} {'together':>10} {'at most (95 %)':>16} {'fours':>8}", flush=True)
    for kind in profilers.all_there(args.only):
        with tempfile.TemporaryDirectory() as name:
            show(kind, *measure(kind, pathlib.Path(name), args.minutes))


main()
