#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A program whose handlers jump out of libkiln, thousands of times, is sampled as before once they have stopped; and out of
ticks of the CPU clock they cannot."""
import json
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(os.environ.get("KILN_SOURCE_DIR", ".")).resolve() / "tests/support"))
from checks import check, exit_code  # noqa: E402
from time_kit import PROGRAMS, Preloaded  # noqa: E402

MS = 1_000_000


def run(mode, **settings):
    """What the program says, its run, and whether it has jumped."""
    with Preloaded(PROGRAMS / "jumps", mode, KILN_EXPORT_INTERVAL_MS="3600000", **settings) as done:  # one snapshot, at the end
        check(f"{mode}: the program ends well", done.code == 0 and not done.err, (done.code, done.err))
        truth = json.loads(done.out)
        print(f"{mode}: {truth['jumps']} jumps out of the library")
        return truth, done.functions("memory", "inuse_objects"), done.functions("process_cpu", "cpu")


def check_allocations(profiles):
    truth, blocks, _ = run("allocations", KILN_PROFILES=profiles, KILN_ALLOC_BYTES="64", KILN_ALLOC_RATE="0")
    kept = blocks.get("keep_after", 0)
    check(f"{profiles}: the handler jumps", truth["jumps"] >= 100, truth)
    # Nearly every block is sampled; on a busy machine some count for others.
    check(f"{profiles}: blocks are sampled afterwards: {kept:.0f} of {truth['kept']}",
          0.5 * truth["kept"] < kept < 1.5 * truth["kept"], kept)


def check_ticks():
    truth, _, cpu = run("ticks", KILN_PROFILES="cpu", KILN_CPU_HZ="250")
    burnt = cpu.get("burn_after", 0) / MS
    check("no handler comes into a tick", truth["jumps"] == 0, truth)
    check(f"CPU time is sampled: {burnt:.0f} of {truth['burnt_ms']} ms",
          0.5 * truth["burnt_ms"] < burnt < 1.5 * truth["burnt_ms"], cpu)


def main():
    check_allocations("alloc,heap")
    check_allocations("alloc,heap,wall,lock")
    check_ticks()
    return exit_code()


if __name__ == "__main__":
    sys.exit(main())
