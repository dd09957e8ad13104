#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs that know how they spent their time, and what libkiln says of it: CPU time, waits, and turns of an event
loop.  Limits are five standard deviations of what chance does."""
import datetime
import json
import math
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(os.environ.get("KILN_SOURCE_DIR", ".")).resolve() / "tests/support"))
from checks import check, exit_code  # noqa: E402
from time_kit import PROGRAMS, Preloaded  # noqa: E402

MS, SIGMAS = 1_000_000, 5
PERIOD, RATE = 10.31 * MS, 4 * MS  # a little longer than a hundredth of a second, which programs may keep to
AT_ONCE = 4  # ticks that come together, on the stack of the last, where a busy kernel seldom finds a thread running when it looks
TRIES = 10
TRUTH = PROGRAMS / "time_truth"


def near(what, got, truth, sigma):
    check(f"{what}: {got / MS:.0f} ms are about {truth / MS:.0f} ms", abs(got - truth) <= SIGMAS * sigma,
          f"more than {SIGMAS * sigma / MS:.0f} ms away")


def check_cpu(*mode):
    with Preloaded(TRUTH, *mode, KILN_PROFILES="cpu") as run:
        truth, told = json.loads(run.out), run.functions("process_cpu", "cpu")
    everything = sum(truth.values())
    for name, ns in truth.items():
        share, n = ns / everything, everything / PERIOD
        near(f"{mode[0]}: CPU time of {name}", told.get(name, 0), ns, PERIOD * math.sqrt(AT_ONCE * n * share * (1 - share) + 4))
    near(f"{mode[0]}: CPU time in all", told[""], everything, PERIOD * 2)


def check_short_threads():
    with Preloaded(TRUTH, "threads", KILN_PROFILES="cpu") as run:
        truth, told = json.loads(run.out), run.functions("process_cpu", "cpu")
    # Two or three ticks each; where the kernel looks too late for one, it is the function that the thread was made for.
    near("CPU time of threads that end soon", told.get("live_shortly", 0), truth["burn_short"],
         PERIOD * math.sqrt(24 / 4) + truth["burn_short"] * 0.01)
    check("most of it is in what they call", told.get("burn_short", 0) > told.get("live_shortly", 0) / 2, told)


def check_narrow():
    """A tick on a stack of 2 KiB would end the program: none comes, and it is told that a thread is not seen."""
    with Preloaded(TRUTH, "narrow", KILN_PROFILES="cpu") as run:
        check("a small alternate stack does no harm", run.code == 0, (run.code, run.err))
        truth, told = json.loads(run.out or "{}"), run.functions("process_cpu", "cpu")
        threads = sum(json.loads(path.read_text())["lost"]["threads"] for path in pathlib.Path(run.folder.name).glob("*.json"))
    for name in ("burn_half", "burn_sixth"):
        near(f"before and after it: CPU time of {name}", told.get(name, 0), truth.get(name, 0), PERIOD * AT_ONCE)
    check("with it there is none", "burn_third" not in told, told)
    check("and that is told", threads >= 2, threads)


def check_waits():
    lengths = {"doze_sleep": (2 * MS, "sleep"), "doze_poll": (5 * MS, "poll"), "doze_pipe": (4 * MS, "pipe"),
               "doze_lock": (3 * MS, "futex")}
    with Preloaded(TRUTH, "waits", KILN_PROFILES="wall", KILN_WAIT_NS=str(RATE)) as run:
        truth, told = json.loads(run.out), run.functions("off_cpu", "off_cpu")
        by_reason = {reason: run.functions("off_cpu", "off_cpu", "-l", f"wait.reason={reason}")
                     for _, reason in lengths.values()}
        check("what blocks is said to be blocked",
              run.functions("off_cpu", "off_cpu", "-l", "thread.state=blocked")[""] == told[""])
    for name, (length, reason) in lengths.items():
        p = min(1, length / RATE)
        sigma = math.sqrt(truth[name] / length * (1 - p) / p) * length + truth[name] * 0.01
        near(f"time in {name}", told.get(name, 0), truth[name], sigma)
        check(f"{name} waits for {reason}", by_reason[reason].get(name, 0) == told.get(name, 0), by_reason[reason])
    check("a program that sleeps uses no CPU time", not run.files("process_cpu"))


def check_loop(profiles):
    """How long the loop is held is measured: all turns, however busy the machine is.  Who holds it is sampled, several times a
    turn, and now and then a tick finds the turn's beginning or its end: not a third of them.  A tick that comes late because
    other programs have the processors may find the end: what is sure is the CPU time."""
    with Preloaded(TRUTH, "loop", KILN_PROFILES=profiles) as run:
        truth, told = json.loads(run.out), run.functions("event_loop", "lag")
    longest, cpu = truth.pop("loop"), truth.pop("hold_loop_cpu")
    least, sure = sum(truth.values()), {"hold_loop": cpu, "doze_in_loop": truth["doze_in_loop"]}
    check(f"{profiles}: the loop is held for {told[''] / MS:.0f} ms", least - MS / 1000 < told[""] <= longest, (least, longest))
    for name, ns in truth.items():
        check(f"{profiles}: by {name} for {told.get(name, 0) / MS:.0f} of {ns / MS:.0f} ms",
              0.7 * sure[name] < told.get(name, 0) <= longest - (least - ns), told)


def length(path):
    """The seconds that a profile is of, by the file beside it."""
    told = json.loads(pathlib.Path(str(path).replace(".pb.gz", ".json")).read_text())
    begin, end = (datetime.datetime.fromisoformat(told[key].rstrip("Z")) for key in ("window_start", "window_end"))
    return (end - begin).total_seconds()


def check_windows():
    """Three tenths of a second, at the beginning: the CPU time after it is not seen.  A tenth may pass on a busy machine
    without any of it for the keeper who is to close the window, and all of them without any for the program: then once more.
    The profile is one of the time in which samples were taken."""
    for _ in range(TRIES):
        with Preloaded(TRUTH, "cpu", "2", KILN_PROFILES="cpu,threads", KILN_CPU_WINDOW_MS="300", KILN_CPU_EVERY_MS="60000") as run:
            truth, told = json.loads(run.out), run.functions("process_cpu", "cpu")
            lengths = {kind: sum(map(length, run.files(kind))) for kind in ("process_cpu", "threads")}
        if told[""]:
            break
    check("samples are taken in windows", 0 < told[""] < 0.6 * sum(truth.values()), told)
    check("the profile is as long as its window", 0 < lengths["process_cpu"] < 0.6 * lengths["threads"], lengths)


def main():
    check_cpu("cpu", "2")
    check_cpu("periodic")
    check_short_threads()
    check_narrow()
    check_waits()
    check_loop("loop")
    check_loop("cpu,wall,loop")
    check_windows()
    return exit_code()


if __name__ == "__main__":
    sys.exit(main())
