#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What do profilers of a whole host cost, and what do they see?  All at the same time over the same load.

CPU is of the process and what it starts, by the scheduler's own clocks; the programs in the kernel run on the time of whom they sample and
are counted apart (bpf_stats).  Start is from exec to ten seconds after the first export, with no names on disk; warm is minutes 3 to 5.
Memory is PSS without BPF mappings, and what the kernel says of the maps.  Bytes are those on the wire, compressed.  What the stacks are like
is asked in a second, short part, in which OpenTelemetry's says where it failed.

usage: race.py [--quick] [--only NAME]...
"""
import argparse
import contextlib
import pathlib
import sys
import tempfile
import threading
import time

import profilers
import quality
from use import MIB, Use, measured_programs

TARGETS = {"CPU to start, s": 0.5, "CPU when warm, % of one core": 0.2, "memory when warm, MiB": 32.0}


class Start(threading.Thread):
    """Waits for ten seconds behind the first export and keeps what was used until then."""

    def __init__(self, profiler, patience_s):
        super().__init__(daemon=True)
        self.profiler, self.until, self.use, self.after_s = profiler, time.monotonic() + patience_s, None, None
        self.began = time.monotonic()
        self.start()

    def run(self):
        while time.monotonic() < self.until:
            first = self.profiler.first_export()
            if first and time.monotonic() >= first + 10:
                self.use = Use(self.profiler.process.pid)
                self.after_s = first - self.began
                return
            time.sleep(0.05)


def figures(start, begin, end, most, sent):
    seconds, runs, run_ns = end.at - begin.at, end.runs - begin.runs, end.run_ns - begin.run_ns
    return {
        "CPU to start, s": start.use.cpu_ns / 1e9 if start.use else None,
        "first export after, s": start.after_s,
        "CPU when warm, % of one core": (end.cpu_ns - begin.cpu_ns) / seconds / 1e7,
        "in the kernel, % of one core": run_ns / seconds / 1e7,
        "us a run there": run_ns / runs / 1000 if runs else None,
        "runs a second there": runs / seconds,
        "wake-ups a second": (end.wakes - begin.wakes) / seconds,
        "memory when warm, MiB": end.memory_mib(),
        "  of that PSS": end.pss_bytes / MIB,
        "  of that BPF maps": end.map_bytes / MIB,
        "most memory, MiB": most,
        "bytes sent a minute, kB": sent / seconds * 60 / 1000,
    }


def watch(started, most, until):
    """The most memory of each, looked at now and then."""
    while time.monotonic() < until:
        for profiler in started:
            profiler.check()
            most[profiler.name] = max(most.get(profiler.name, 0), Use(profiler.process.pid).memory_mib())
        time.sleep(max(0, min(5, until - time.monotonic())))


def costs(kinds, folder, warm_s, end_s):
    """name -> figures"""
    most = {}
    with contextlib.ExitStack() as stack:
        stack.enter_context(profilers.running(profilers.load(folder), folder))
        began = time.monotonic()
        started = [stack.enter_context(kind(folder)) for kind in kinds]
        starts = [Start(profiler, end_s) for profiler in started]
        watch(started, most, began + warm_s)
        begin, sent = [Use(p.process.pid, memory=False) for p in started], [p.sent() for p in started]
        watch(started, most, began + end_s)
        return {p.name: figures(start, b, Use(p.process.pid), most[p.name], p.sent() - n)
                for p, start, b, n in zip(started, starts, begin, sent)}


def show(title, columns):
    print(f"{title:34}" + "".join(f" {name:>16}" for name in columns))
    for row in next(iter(columns.values())):
        values = [column.get(row) for column in columns.values()]
        print(f"{row:34}" + "".join(" " * 16 + "-" if v is None else f" {v:16.2f}" for v in values)
              + (f"   target {TARGETS[row]}: {'met' if values[0] is not None and values[0] <= TARGETS[row] else 'not met'}"
                 if row in TARGETS else ""))
    print()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="warm is from 40 to 100 s")
    parser.add_argument("--only", action="append", metavar="NAME", help="only this profiler, as the table names it")
    args = parser.parse_args()
    profilers.with_tracefs()
    kinds = profilers.all_there(args.only)
    with tempfile.TemporaryDirectory() as name, measured_programs():
        folder = pathlib.Path(name)
        show("", costs(kinds, folder, *((40, 100) if args.quick else (180, 300))))
        sys.stdout.flush()
        show("what is seen", quality.seen(kinds, folder, 40))
    print("Kiln's agent names functions of native code; OpenTelemetry's and perf leave that to whoever receives.")


main()
