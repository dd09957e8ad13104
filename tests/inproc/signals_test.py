#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Signals of the profiler, and programs that would notice: those that sleep in system calls, which must not end early,
and those that use SIGPROF themselves.

KILN_SLEEPERS_S has seconds of CPU time for the sleepers, 400 are 100,000 ticks at 250 a second."""
import json
import os
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(os.environ.get("KILN_SOURCE_DIR", ".")).resolve() / "tests/support"))
from checks import check, exit_code  # noqa: E402
from time_kit import PROGRAMS, Preloaded  # noqa: E402

SECONDS = os.environ.get("KILN_SLEEPERS_S", "0.6")
OFTEN = {"KILN_CPU_HZ": "1000"}
TICK_NS = 4_000_000  # of most kernels: shorter ones would be one signal for several

PYTHON = """
import signal, time, threading
ticks = 0
def count(*_):
    global ticks
    ticks += 1
signal.signal(signal.SIGPROF, count)
signal.setitimer(signal.ITIMER_PROF, 0.01, 0.01)
end = time.process_time() + 0.3
while time.process_time() < end:
    pass
signal.setitimer(signal.ITIMER_PROF, 0)
began = time.monotonic()
time.sleep(0.05)
print(ticks >= 10, time.monotonic() - began >= 0.05, signal.getsignal(signal.SIGPROF) is count)
"""


def check_sleepers():
    plain = json.loads(subprocess.run([PROGRAMS / "sleepers", "0.2", "wall"], capture_output=True, text=True,
                                      check=True).stdout)
    check("a timer of the wall clock interrupts calls", sum(ended for _, ended in plain.values()) > 0, plain)
    with Preloaded(PROGRAMS / "sleepers", SECONDS, timeout=7200, KILN_PROFILES="cpu",
                   KILN_CPU_HZ=str(1_000_000_000 // TICK_NS)) as run:
        calls = json.loads(run.out)
        ticks = run.functions("process_cpu", "cpu")[""] // TICK_NS
    check(f"{ticks} ticks in {sum(n for n, _ in calls.values())} calls interrupted none",
          not any(ended for _, ended in calls.values()), calls)
    check("there were ticks", ticks * TICK_NS / 1e9 > 0.5 * float(SECONDS), ticks)


def check_users():
    with Preloaded(PROGRAMS / "prof_user", KILN_PROFILES="all", **OFTEN) as run:
        for line in run.out.splitlines():
            word, _, what = line.partition(": ")
            check(f"with SIGPROF of its own: {what}", word == "ok", run.err)
        check("it ends well", run.code == 0, (run.code, run.err))
        check("and was sampled meanwhile", run.functions("process_cpu", "cpu")[""] > 0.5e9)
    with Preloaded("python3", "-c", PYTHON, KILN_PROFILES="all", **OFTEN) as run:
        check("python3 has its own timer", run.out.split() == ["True", "True", "True"], run.out + run.err)


def check_cancelled():
    with Preloaded(PROGRAMS / "cancelled", KILN_PROFILES="all", **OFTEN) as run:
        for line in run.out.splitlines():
            word, _, what = line.partition(": ")
            check(f"a thread leaves a call for ever: {what}", word == "ok", run.err)
        check("the program goes on", run.code == 0, (run.code, run.err))


def check_node():
    """V8 samples itself with SIGPROF, which it sends to its own threads."""
    node = shutil.which("node")
    if not node:
        print("skipped: there is no node")
        return
    script = "const end = Date.now() + 300; let n = 0; while (Date.now() < end) n += Math.sqrt(n + 1);"
    with Preloaded(node, "--prof", "--no-logfile-per-isolate", "--logfile=-", "-e", script, KILN_PROFILES="all",
                   **OFTEN) as run:
        check("node ends well", run.code == 0, run.err)
        check("V8's profiler has its ticks", run.out.count("\ntick,") > 10, run.out[-300:])


def main():
    check_sleepers()
    check_users()
    check_cancelled()
    check_node()
    return exit_code()


if __name__ == "__main__":
    sys.exit(main())
