#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What does the library add to a malloc() and its free()?

The same program (bench_pair) alone, with the library idle, and with the library at work at its default of a sample in
512 KiB; runs take turns, and each figure is the least of seven.  From a program's second thread on, which may be the library's, the C
library's allocator takes its locks.  So the program is measured with a thread that sleeps, too, and what the library adds is told of
both.  Then
instructions, which do not depend on who else runs: the difference of two runs under callgrind, where the library stands aside, so
that its samples are not in them.

  BENCH_PAIR_RUNS=7   how many of each
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

BUILD = pathlib.Path(os.environ["KILN_BUILD_DIR"])
RUNS = int(os.environ.get("BENCH_PAIR_RUNS", "7"))
TARGET_NS = 1.5
WORK = {  # mode and size: pairs
    "tight 16": 20_000_000, "tight 64": 20_000_000, "batch 64": 10_000_000, "tight 1024": 20_000_000,
    "tight 16384": 5_000_000, "tight 262144": 2_000_000, "mix 0": 1_000_000,
}
SMALL = 4  # so many of them
AT_WORK = {"KILN_PROFILES": "alloc,heap"}
PLACES = {"alone": None, "idle": {"KILN_ENABLED": "0"}, "at work": AT_WORK, "2 threads": None, "2 at work": AT_WORK}


def environment(settings, folder):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("KILN_", "OTEL_", "LD_PRELOAD"))}
    if settings is not None:
        env |= {"LD_PRELOAD": str(BUILD / "libkiln.so"), "KILN_OUT_DIR": folder} | settings
    return env


def pair_ns(work, place, folder):
    more = ["thread"] if place.startswith("2") else []
    done = subprocess.run([BUILD / "bench_pair", *work.split(), str(WORK[work]), *more],
                          env=environment(PLACES[place], folder), capture_output=True, text=True, check=True)
    return float(done.stdout)


def instructions(work, pairs, settings, folder):
    """All that one run takes."""
    counted = pathlib.Path(folder) / "callgrind"
    subprocess.run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={counted}", BUILD / "bench_pair", *work.split(),
                    str(pairs)], env=environment(settings, folder), capture_output=True, check=True)
    return int(next(line for line in counted.read_text().splitlines() if line.startswith(("summary:", "totals:"))).split()[1])


def show_time(folder):
    least = {}
    for _ in range(RUNS):
        for work in WORK:
            for place in PLACES:
                ns = pair_ns(work, place, folder)
                least[work, place] = min(ns, least.get((work, place), ns))
    added = {work: (least[work, "at work"] - least[work, "alone"], least[work, "2 at work"] - least[work, "2 threads"]) for work in WORK}
    print(f"{'ns of a pair':14}" + "".join(f"{place:>11}" for place in PLACES) + f"{'added':>11}{'to 2':>11}")
    for work, (to_one, to_two) in added.items():
        print(f"{work:14}" + "".join(f"{least[work, place]:11.2f}" for place in PLACES) + f"{to_one:+11.2f}{to_two:+11.2f}")
    small = [ns for work in list(WORK)[:SMALL] for ns in added[work]]
    print(f"small blocks: {max(small):+.2f} ns at most, {min(small):+.2f} at least; target <= {TARGET_NS} ns")


def show_instructions(folder):
    if not shutil.which("valgrind"):
        print("valgrind is not installed: no instructions")
        return
    print(f"{'instructions':14}{'alone':>10}{'with it':>10}{'added':>10}")
    for work in ("tight 64", "batch 64", "mix 0"):
        each = []
        for settings in (None, {"KILN_FOLLOW": "1"}):  # through valgrind to the program
            few, many = (instructions(work, n, settings, folder) for n in (100_000, 200_000))
            each.append((many - few) / 100_000)
        print(f"{work:14}{each[0]:10.1f}{each[1]:10.1f}{each[1] - each[0]:+10.1f}")


def main():
    subprocess.run(["cmake", "--build", BUILD, "--target", "bench_pair", "kiln_inproc_shared"], check=True,
                   stdout=subprocess.DEVNULL)
    with tempfile.TemporaryDirectory() as folder:
        show_time(folder)
        show_instructions(folder)
    return 0


sys.exit(main())
