#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What does the library add to a lock and its unlock, and to a convoy?

The same program (bench_lock) alone, with the library idle, and with the library at work; runs take turns.  Of pairs each
figure is the least of all runs; of convoys it is the median of critical sections a second.

From a program's second thread on, which may be the library's, the C library's locks are atomic.  So the program is measured with a
thread that sleeps as well, and what the library adds is told of both.  `empty hook` is the same with a library that stands where this one does and only jumps on (preload/empty.c);
`waited` has the library at work, after a thread has waited for a mutex: from then on it is looked up for whom others wait.

Pairs are a lock and its unlock, over and over; `again` is a recursive one that the caller has already.  `lock` and `unlock` are
each by itself, of 256 mutexes in a row.

  BENCH_LOCK_RUNS=5   how many of each
"""
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
BUILD = pathlib.Path(os.environ["KILN_BUILD_DIR"])
LIBKILN = BUILD / "libkiln.so"
RUNS = int(os.environ.get("BENCH_LOCK_RUNS", "5"))
TARGET_NS = 2
CONVOYS = ("2 1000", "4 1000", "16 1000", "4 20000")  # threads, and nanoseconds that each holds the lock
AT_WORK = {"KILN_PROFILES": "lock,wall,threads"}
OF_CONVOYS = {"alone": None, "idle": {"KILN_ENABLED": "0"}, "at work": AT_WORK}


def bench(settings, folder, *words, library=LIBKILN):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("KILN_", "OTEL_", "LD_PRELOAD"))}
    if settings is not None:
        env |= {"LD_PRELOAD": str(library), "KILN_OUT_DIR": folder} | settings
    return subprocess.run([BUILD / "bench_lock", *words], env=env, capture_output=True, text=True, check=True).stdout


def empty_hook(folder):
    library = pathlib.Path(folder) / "empty.so"
    subprocess.run(["cc", "-O2", "-D_GNU_SOURCE", "-fPIC", "-shared", "-o", library, HERE / "preload/empty.c"], check=True)
    return library


def places(folder):
    """Name: what runs all pairs there."""
    def pairs(settings, *words, library=LIBKILN):
        return lambda: bench(settings, folder, "pair", *words, library=library)
    return {place: pairs(settings) for place, settings in OF_CONVOYS.items()} | {
        "2 threads": pairs(None, "thread"), "empty hook": pairs({}, "thread", library=empty_hook(folder)),
        "2 at work": pairs(AT_WORK, "thread"), "waited": pairs(AT_WORK, "thread", "waited")}


def show_pairs(folder):
    least, ways = {}, places(folder)
    for _ in range(RUNS):
        for place, run in ways.items():
            for kind, ns in map(str.split, run().splitlines()):
                least[kind, place] = min(float(ns), least.get((kind, place), float(ns)))
    added = {kind: (least[kind, "at work"] - least[kind, "alone"], least[kind, "2 at work"] - least[kind, "2 threads"])
             for kind, _ in least}
    print(f"{'ns':24}" + "".join(f"{place:>12}" for place in ways) + f"{'added':>10}{'to 2':>10}")
    for kind, (to_one, to_two) in added.items():
        print(f"{kind:24}" + "".join(f"{least[kind, place]:12.2f}" for place in ways) + f"{to_one:+10.2f}{to_two:+10.2f}")
    print(f"a mutex: {added['mutex'][1]:+.2f} ns in a program with threads, {added['mutex'][0]:+.2f} in one without; "
          f"target <= {TARGET_NS} ns")


def show_convoys(folder):
    each = {(convoy, place): [] for convoy in CONVOYS for place in OF_CONVOYS}
    for _ in range(RUNS):
        for convoy, place in each:
            each[convoy, place].append(float(bench(OF_CONVOYS[place], folder, "convoy", *convoy.split(), "0.5").split()[0]))
    medians = {key: statistics.median(values) for key, values in each.items()}
    print(f"{'sections a second':24}" + "".join(f"{place:>12}" for place in OF_CONVOYS) + f"{'added':>10}")
    for convoy in CONVOYS:
        print(f"{' threads, '.join(convoy.split()) + ' ns':24}" + "".join(f"{medians[convoy, place]:12.0f}" for place in OF_CONVOYS)
              + f"{medians[convoy, 'at work'] / medians[convoy, 'alone'] - 1:+10.1%}")


def main():
    subprocess.run(["cmake", "--build", BUILD, "--target", "bench_lock", "kiln_inproc_shared"], check=True,
                   stdout=subprocess.DEVNULL)
    with tempfile.TemporaryDirectory() as folder:
        show_pairs(folder)
        show_convoys(folder)
    return 0


sys.exit(main())
