#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What does the library add to a lock and its unlock, and to a convoy?

The same program (bench_lock) alone, with the library idle, and with the library at work; runs take turns.  Of pairs each
figure is the least of all runs, in CPU time; of convoys it is the median of critical sections a second.

From a process' second thread on, whoever has it, the C library's locks are atomic: so the program is measured with a thread
that sleeps as well.  What the library adds is counted from there; what its thread adds to a program of one is told beside.

  BENCH_LOCK_RUNS=5   how many of each
"""
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

BUILD = pathlib.Path(os.environ["KILN_BUILD_DIR"])
RUNS = int(os.environ.get("BENCH_LOCK_RUNS", "5"))
TARGET_NS = 2
CONVOYS = ("2 1000", "4 1000", "16 1000", "4 20000")  # threads, and nanoseconds that each holds the lock
PLACES = {"alone": None, "idle": {"KILN_ENABLED": "0"}, "2 threads": None, "at work": {"KILN_PROFILES": "lock,wall,threads"}}
OF_CONVOYS = [place for place in PLACES if place != "2 threads"]


def bench(settings, folder, *words):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("KILN_", "OTEL_", "LD_PRELOAD"))}
    if settings is not None:
        env |= {"LD_PRELOAD": str(BUILD / "libkiln.so"), "KILN_OUT_DIR": folder} | settings
    return subprocess.run([BUILD / "bench_lock", *words], env=env, capture_output=True, text=True, check=True).stdout


def show(title, places, rows, figures, base, put):
    print(f"{title:24}" + "".join(f"{place:>12}" for place in places) + f"{'added':>10}")
    for row in rows:
        put(row, [figures[row, place] for place in places], figures[row, base], figures[row, "at work"])


def show_pairs(folder):
    least = {}
    for _ in range(RUNS):
        for place, settings in PLACES.items():
            for line in bench(settings, folder, "pair", *["thread"][:place == "2 threads"]).splitlines():
                kind, ns = line.split()
                least[kind, place] = min(float(ns), least.get((kind, place), float(ns)))
    kinds = list(dict.fromkeys(kind for kind, _ in least))
    show("ns of a pair", PLACES, kinds, least, "2 threads", lambda kind, all_of_it, base, at_work:
         print(f"{kind:24}" + "".join(f"{ns:12.2f}" for ns in all_of_it) + f"{at_work - base:+10.2f}"))
    added = {place: least["mutex", "at work"] - least["mutex", place] for place in ("2 threads", "alone")}
    print(f"a mutex: {added['2 threads']:+.2f} ns in a program with threads, {added['alone']:+.2f} in one without; "
          f"target <= {TARGET_NS} ns")


def show_convoys(folder):
    each = {(convoy, place): [] for convoy in CONVOYS for place in OF_CONVOYS}
    for _ in range(RUNS):
        for convoy, place in each:
            each[convoy, place].append(float(bench(PLACES[place], folder, "convoy", *convoy.split(), "0.5").split()[0]))
    medians = {key: statistics.median(values) for key, values in each.items()}
    show("sections a second", OF_CONVOYS, CONVOYS, medians, "alone", lambda convoy, all_of_it, base, at_work:
         print(f"{' threads, '.join(convoy.split()) + ' ns':24}" + "".join(f"{n:12.0f}" for n in all_of_it)
               + f"{at_work / base - 1:+10.1%}"))


def main():
    subprocess.run(["cmake", "--build", BUILD, "--target", "bench_lock", "kiln_inproc_shared"], check=True,
                   stdout=subprocess.DEVNULL)
    with tempfile.TemporaryDirectory() as folder:
        show_pairs(folder)
        show_convoys(folder)
    return 0


sys.exit(main())
