#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What do ticks of the CPU clock take, and what does a call that is timed?

The same program (bench_tick) alone and with the library at work; runs take turns.  Of calls each figure is the least of all
runs, in CPU time.  Ticks are too few to be seen in the time of a program: the handler is called in a loop.

  BENCH_TICK_RUNS=5   how many of each
"""
import os
import pathlib
import subprocess
import tempfile

BUILD = pathlib.Path(os.environ["KILN_BUILD_DIR"])
RUNS = int(os.environ.get("BENCH_TICK_RUNS", "5"))
PLACES = {"alone": None, "idle": {"KILN_ENABLED": "0"},
          "at work": {"KILN_PROFILES": "cpu,wall,loop", "KILN_SOCKET": "/nonexistent"}}
SIGNAL_NS = 2500  # the kernel's part


def bench(settings, folder, *words):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("KILN_", "OTEL_", "LD_PRELOAD"))}
    if settings is not None:
        env |= {"LD_PRELOAD": str(BUILD / "libkiln.so"), "KILN_OUT_DIR": folder} | settings
    return subprocess.run([BUILD / "bench_tick", *words], env=env, capture_output=True, text=True, check=True).stdout


def show_calls(folder):
    least = {}
    for _ in range(RUNS):
        for place, settings in PLACES.items():
            for line in bench(settings, folder, "calls").splitlines():
                kind, ns = line.split()
                least[kind, place] = min(float(ns), least.get((kind, place), float(ns)))
    print(f"{'ns of a call':24}{'alone':>12}{'idle':>12}{'at work':>12}{'added':>10}")
    for kind in dict.fromkeys(kind for kind, _ in least):
        alone, idle, at_work = (least[kind, place] for place in PLACES)
        print(f"{kind[:-3]:24}{alone:12.1f}{idle:12.1f}{at_work:12.1f}{at_work - alone:+10.1f}")


def show_ticks(folder):
    ns = min(float(bench(None, folder, "tick").split()[1]) for _ in range(RUNS)) + SIGNAL_NS
    print(f"a tick, with a stack of 40 frames: {ns / 1000:.1f} us; at 100 Hz {ns * 100 / 1e9:.3%} of a processor")


def main():
    with tempfile.TemporaryDirectory() as folder:
        show_calls(folder)
        show_ticks(folder)


if __name__ == "__main__":
    main()
