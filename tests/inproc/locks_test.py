#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Waits for locks in profiles of libkiln: as many and as long as they were, with who waited, and who let them."""
import json
import math
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(os.environ.get("KILN_SOURCE_DIR", ".")).resolve() / "tests/support"))
from checks import check, exit_code  # noqa: E402
from time_kit import PROGRAMS, Preloaded  # noqa: E402

RATE_NS = 1000000
SETTINGS = {"KILN_PROFILES": "lock", "KILN_LOCK_NS": str(RATE_NS), "KILN_SEED": "7"}
SIGMAS = 5


def check_sum(what, got, truth, variance, unsure=0):
    """Within what chance explains, and a hundredth for what measuring costs."""
    bound = SIGMAS * math.sqrt(variance) + truth / 100 + unsure
    check(f"{what}: {got:.0f} of {truth:.0f}, give or take {bound:.0f}", abs(got - truth) <= bound)


def role(name):
    return "--label", f"kiln.lock.role={name}"


def check_truth(kind, profile, function):
    with Preloaded(PROGRAMS / "lock_truth", kind, 250, RATE_NS, 1, **SETTINGS) as run:
        check(f"{kind}: ends well", run.code == 0, run.err)
        truth = json.loads(run.out)
        words = ("--focus", f"^{function}$", *(role("waiter") if profile == "mutex" else ()))
        check_sum(f"{kind}: waits", run.functions(profile, "contentions", *words)[""], truth["waits"],
                  truth["variance_waits"], truth["preempted"])
        check_sum(f"{kind}: nanoseconds", run.functions(profile, "delay", *words)[""], truth["waited_ns"],
                  truth["variance_ns"], truth["preempted_ns"])
        if kind in ("mutex", "c11", "write"):
            check_sum(f"{kind}: nanoseconds of the holder", run.functions(profile, "delay", *role("holder"))[""],
                      truth["held_ns"], truth["variance_ns"], truth["giving_ns"] + truth["preempted_ns"])
        if profile == "mutex":
            others = run.functions(profile, "delay", "--label", "kiln.lock.kind!~mutex|rwlock_.*")[""]
            check(f"{kind}: the kind of lock is told", others == 0, others)


def check_convoy(*words):
    with Preloaded(PROGRAMS / "lock_convoy", 60, *words, **SETTINGS) as run:
        check(f"convoy {words}: ends well", run.code == 0, run.err)
        for name, function in ("waiter", "read_balance"), ("holder", "write_journal"):
            functions = run.functions("mutex", "delay", *role(name))
            check(f"convoy {words}: the {name} is {function}", functions.get(function, 0) > functions[""] * 0.8 > 0,
                  functions)


def check_storm():
    with Preloaded(PROGRAMS / "lock_storm", 100000, KILN_PROFILES="all", KILN_LOCK_NS="1000") as run:
        check("everything at once is counted right", run.code == 0 and run.out == "all counted\n", (run.code, run.out, run.err))


for a_kind, a_profile, a_function in (("mutex", "mutex", "wait_mutex"), ("c11", "mutex", "wait_c11"),
                                      ("read", "mutex", "wait_read"), ("write", "mutex", "wait_write"),
                                      ("semaphore", "block", "wait_semaphore"),
                                      ("condition", "block", "wait_condition"),
                                      ("c11_condition", "block", "wait_c11_condition")):
    check_truth(a_kind, a_profile, a_function)
check_convoy()
check_convoy("rwlock")
check_storm()
sys.exit(exit_code())
