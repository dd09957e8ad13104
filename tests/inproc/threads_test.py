#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Threads by stack: where each of them is, however it sleeps, without one of them being woken for it."""
import json
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(os.environ.get("KILN_SOURCE_DIR", ".")).resolve() / "tests/support"))
from checks import check, exit_code  # noqa: E402
from time_kit import KILN, PROGRAMS, Preloaded  # noqa: E402

# Names of threads, how many there are, and the function that each rests in; beside them there is a spinner.
THREADS = {"sleeper": (1, "sleep_long"), "reader": (2, "read_nothing"), "poller": (1, "poll_nothing"),
           "worker": (3, "wait_for_work"), "blocked": (1, "wait_for_lock"), "raw": (1, "wait_raw"),
           "threads_at_rest": (1, "main")}


def top(path, *words):
    """How many threads, and in which functions how many of them are."""
    done = subprocess.run([KILN, "top", "--json", "-n", "0", *words, path], capture_output=True, text=True, check=False)
    said = json.loads(done.stdout) if done.returncode == 0 else {"total": 0, "rows": []}
    return said["total"], {row["name"]: row["total"] for row in said["rows"]}


def check_spinner(what, paths, is_known):
    """Who runs is known by samples of CPU time alone, of which a busy machine need not let it have any between two profiles."""
    seen = [top(path, "--label", "thread.name=spinner") for path in paths]
    named = [functions.get("spin_for_ever", 0) for _, functions in seen]
    check(f"{what}: one in spin_for_ever", seen[-1][0] == 1 and max(named) >= is_known, seen)


def check_profiles(*profiles):
    settings = {"KILN_PROFILES": ",".join(profiles), "KILN_EXPORT_INTERVAL_MS": "500", "KILN_CPU_HZ": "500"}
    with Preloaded(PROGRAMS / "threads_at_rest", 1300, **settings) as run:
        # The last one is written while the program ends, and its main thread is elsewhere.
        *paths, _ = run.files("threads")
        path = paths[-1]
        check(f"{profiles}: ends well", run.code == 0, run.err)
        total = top(path)[0]
        check(f"{profiles}: none of our own is among them", total == 1 + sum(n for n, _ in THREADS.values()), total)
        for name, (n, function) in THREADS.items():
            seen = top(path, "--label", f"thread.name={name}")
            check(f"{profiles}: {n} in {function}", seen[0] == n and seen[1].get(function, 0) >= n, seen)
        check_spinner(profiles, paths, "cpu" in profiles)
        asleep = top(path, "--label", "kiln.thread.seen=asleep")[0]
        check(f"{profiles}: all but one are asleep", asleep == total - 1, asleep)


check_profiles("threads", "cpu", "wall", "lock")
check_profiles("threads")
sys.exit(exit_code())
