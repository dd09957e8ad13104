#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""With everything on, whose is the CPU time that libkiln takes in a program?

`perf record` looks at each program 4,000 times a second of its CPU time, start and end included; the table has shares of these
looks, of so many runs together.  Shares of one run are hardly changed by what else the machine does, unlike a difference of two.

  hooks     in front of the allocator, locks and calls that sleep; some of it would be waited for without them, one function later
  samples   stacks, tables, rings, on the program's threads
  kernel    calls and page faults of those
  signals   delivery of ticks, and the return from them
  keeper, out   libkiln's threads
  together  with the standard deviation of the count
  moved     what the allocator's own functions of free() have less than in runs without libkiln: mostly the wait for the block's
            address, which comes to be in our function, the first that needs it, and is no cost of ours
  net       together without that

It is not all: in a program of one thread the C library takes locks from libkiln's first thread on, in its own functions, which
everything.py alone tells.
Rows with x4 are of programs of four times the length: what is less there is start and end, the rest comes with the time.

  BENCH_INPROC_RUNS=8   of each program; a quarter of the long ones
"""
import math
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from programs import BUILD, LIBKILN, programs, redis_used, used, ways

RUNS = int(os.environ.get("BENCH_INPROC_RUNS", "8"))
LONG = 4
PARTS = ("hooks", "samples", "kernel", "signals", "keeper", "out")
HELPERS = {"kiln-keeper": "keeper", "kiln-out": "out"}
FREES = ("free", "cfree", "_int_free", "__libc_free")
SIGNALS = ("arch_do_signal_or_restart", "__x64_sys_rt_sigreturn", "__do_sys_rt_sigreturn", "posix_cpu_timers_work")


def exported():
    lines = subprocess.run(["nm", "-D", "--defined-only", LIBKILN], capture_output=True, text=True, check=True).stdout.splitlines()
    return {line.split()[-1].split("@")[0] for line in lines}


def looks(recorded):
    """Of each look: the thread's name, and (function, file) from the innermost frame on."""
    text = subprocess.run(["perf", "script", "-i", recorded, "-F", "comm,ip,sym,dso"], capture_output=True, text=True,
                          check=True).stdout
    for block in text.split("\n\n"):
        head, *frames = block.strip("\n").split("\n")
        if frames:
            yield head.strip(), [(" ".join(words[1:-1]), words[-1].strip("()")) for words in map(str.split, frames)]


def is_ours(frames):
    """Whether libkiln called what runs, with nothing but the kernel and the C library between."""
    for _, file in frames:
        name = pathlib.Path(file).name
        if name.startswith("libkiln.so"):
            return True
        if not name.startswith(("[", "libc.so", "libc-", "ld-linux")):
            return False
    return False


def is_freeing(frames):
    function, file = frames[0]
    return function.split("@")[0] in FREES and "libkiln" not in file


def part_of(thread, frames, hooks):
    function, file = frames[0]
    if thread.startswith("kiln-"):
        return HELPERS.get(thread, "out")
    if any(name in SIGNALS for name, _ in frames):
        return "signals"
    if not is_ours(frames):
        return "program"
    if file.startswith("[") and "vdso" not in file:
        return "kernel"
    return "hooks" if function in hooks and "libkiln" in file else "samples"


def count(run, on, recorded, times):
    """Looks by part, of so many runs; `freeing` are among the program's."""
    hooks, found = exported(), dict.fromkeys((*PARTS, "program", "freeing"), 0)
    for _ in range(times):
        run(["perf", "record", "-q", "-F", "4000", "-e", "cpu-clock", "-g", "-o", str(recorded), "--"], on)
        for thread, frames in looks(recorded):
            if thread not in ("perf", "env"):
                found[part_of(thread, frames, hooks)] += 1
                found["freeing"] += is_freeing(frames)
    return found


def share_of_freeing(found):
    return found["freeing"] / found["program"]


def rows(folder):
    """Name: what runs it behind a prefix, with libkiln or without, and how often."""
    ours = [f"{name}={value}" for name, value in ways(folder)["kiln everything"][0].items()]

    def env(on):
        return ["env", *(ours if on else [])]

    for scale, times, mark in ((1, RUNS, ""), (LONG, max(1, RUNS // LONG), f" x{LONG}")):
        for name, command in programs(folder, scale).items():
            if name not in ("true", "mix"):
                yield name + mark, lambda prefix, on, command=command: used([*prefix, *env(on), *command], {}, folder), times
        if shutil.which("redis-benchmark"):
            yield ("redis" + mark, lambda prefix, on, scale=scale: redis_used({}, [*prefix, *env(on)], folder, 300000 * scale),
                   times)


def main():
    if not shutil.which("perf"):
        print("perf is not installed: no parts")
        return 0
    subprocess.run(["cmake", "--build", BUILD, "--target", "kiln_inproc_shared"], check=True, stdout=subprocess.DEVNULL)
    print(f"{'everything on':14}{'looks':>9}" + "".join(f"{part:>9}" for part in PARTS) + f"{'together':>18}{'moved':>9}{'net':>9}")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for program, run, times in rows(folder):
            alone, found = (count(run, on, folder / "perf.data", times) for on in (False, True))
            ours = sum(found[part] for part in PARTS)
            looked = ours + found["program"]
            moved = share_of_freeing(alone) - share_of_freeing(found)
            print(f"{program:14}{looked:9,}" + "".join(f"{found[part] / looked:9.2%}" for part in PARTS)
                  + f"{f'{ours / looked:.2%} ± {math.sqrt(ours) / looked:.2%}':>18}"
                  + f"{moved:9.2%}{ours / looked - moved:9.2%}", flush=True)
    return 0


sys.exit(main())
