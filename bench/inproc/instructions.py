#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How many instructions does libkiln add to real programs?

Counted by callgrind, which nobody else on the machine can disturb: whole runs, with the start and the end of libkiln in them, at its
default, forced to work there (it stands aside under valgrind otherwise).  These programs take less than a second but half a
minute under callgrind.  All that goes by the clock is to be as it would be in the time that they take alone: profiles are written once, at
the end; threads are stopped, and allocations sampled, as often; waits and turns of an event loop are long when they would be.  What the keeper
does ten times a second it does a hundred times as often there: so its thread is counted apart, and by the share of that time that
the program takes alone.  Of redis the server is counted, twice as many requests as elsewhere, so that it works for as long as the
others: its hash functions are seeded by chance, which alone makes a percent; here by always the same, for which root is needed.  What
it and its allocator do by the clock hardly comes to pass in a second, and is switched off; still one run and the next differ by two
tenths of a percent: each figure is the least of three.

  BENCH_INPROC_ONLY=redis  these alone
  BENCH_INPROC_SCALE=0.5   of the programs' usual length, which is about a second
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

from programs import BUILD, LIBKILN, environment, programs, redis_used, used, verdict

SCALE = float(os.environ.get("BENCH_INPROC_SCALE", "0.5"))
TARGET = 0.01
# By default, of what goes by the clock.
HZ, ALLOC_RATE = 100, 200
LENGTHS_NS = {"KILN_LAG_NS": 20_000_000, "KILN_WAIT_NS": 10_000_000, "KILN_LOCK_NS": 10_000}
REDIS_CLOCK = ("--hz", "1", "--dynamic-hz", "no", "--slowlog-log-slower-than", "-1", "--jemalloc-bg-thread", "no")
JEMALLOC_CLOCK = {"MALLOC_CONF": "dirty_decay_ms:-1,muzzy_decay_ms:-1"}

KEEPER = "kiln_in_pace_turn"  # nobody else calls it


def total(text):
    return int(next(line for line in text.splitlines() if line.startswith(("summary:", "totals:"))).split()[1])


def instructions(run, variables, folder):
    """Of all threads but the keeper, of the keeper, and how many seconds that took."""
    for path in folder.glob("callgrind*"):
        path.unlink()
    began = time.monotonic()
    run(["valgrind", "--tool=callgrind", "--separate-threads=yes", f"--callgrind-out-file={folder / 'callgrind'}"],
        variables | {"PYTHONHASHSEED": "0"})
    took = time.monotonic() - began
    texts = [path.read_text(errors="replace") for path in folder.glob("callgrind-*")]
    return (sum(total(text) for text in texts if KEEPER not in text), sum(total(text) for text in texts if KEEPER in text),
            took)


def same_chance(folder):
    """What comes before a program that is to find the same random numbers each time."""
    chance = folder / "chance"
    chance.write_bytes(bytes(range(256)) * 256)
    prefix = ["unshare", "-m", "sh", "-c", f'mount --bind {chance} /dev/urandom && exec "$@"', "sh"]
    return prefix if subprocess.run([*prefix, "true"], stderr=subprocess.DEVNULL, check=False).returncode == 0 else []


def runs(folder):
    """Name: what runs it behind a prefix, gives its CPU seconds, and how often that is to be done."""
    found = {name: (lambda prefix, variables, command=command: used([*prefix, *command], variables, folder)[0], 1)
             for name, command in programs(folder, SCALE).items() if name not in ("true", "mix")}
    if shutil.which("redis-benchmark"):
        same = same_chance(folder)
        found["redis"] = (lambda prefix, variables: redis_used(
            variables | JEMALLOC_CLOCK, [*same, *prefix], folder, int(200000 * SCALE), REDIS_CLOCK)[0], 3)
    return found


def at_this_pace(slower):
    return ({"KILN_CPU_HZ": str(max(1, round(HZ / slower))), "KILN_ALLOC_RATE": str(max(1, round(ALLOC_RATE / slower)))}
            | {name: str(round(length * slower)) for name, length in LENGTHS_NS.items()})


def compare(run, times, inside, folder):
    """Alone, and with it; the least of so many."""
    seconds = run([], {})
    turns = [instructions(run, {}, folder) for _ in range(times)]
    alone = min(others for others, _, _ in turns)
    slower = max(1, turns[0][2] / seconds)
    with_it = []
    for _ in range(times):
        others, keeper, took = instructions(run, inside | at_this_pace(slower), folder)
        with_it.append(others + int(keeper * min(1, seconds / took)))
    return alone, min(with_it)


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
        only = os.environ.get("BENCH_INPROC_ONLY", "").split()
        for program, (run, times) in runs(folder).items():
            if only and program not in only:
                continue
            alone, with_it = compare(run, times, inside, folder)
            more[program] = with_it / alone - 1
            print(f"{program:14}{alone:16,}{with_it:16,}{more[program]:+9.2%}", flush=True)
    worst = max(more.values())
    print(f"on the real programs: {worst:+.2%} at most; target <= {TARGET:.0%}: {verdict(worst <= TARGET)}")
    return 0


sys.exit(main())
