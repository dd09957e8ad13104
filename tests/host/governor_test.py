#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What waits cost stays within the budget, whatever the load does: two processes that do nothing but wake each other make it
take fewer of them, and look away for most of the time.  (That what it takes stands for the rest is for
tests/unit/host/wait_control_test.c: it needs minutes of looking.)"""
import os
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(os.environ.get("KILN_SOURCE_DIR", ".")).resolve() / "tests/support"))
from agent_kit import Agent  # noqa: E402
from checks import check, exit_code  # noqa: E402
from host_kit import Folder, need_host, wait_for  # noqa: E402

HZ, BUDGET, SECONDS = 97, "0.1%", 4
PING_PONG = """
import os
to, fro = os.pipe(), os.pipe()
child = os.fork()
a, b = (to, fro) if child else (fro, to)
if child:
    print(child, flush=True)
    os.write(a[1], b"x")
while True:
    os.read(b[0], 1)
    os.write(a[1], b"x")
"""


class PingPong:
    """Two processes, of which one waits while the other runs; their pids."""

    def __enter__(self):
        self.parent = subprocess.Popen([sys.executable, "-c", PING_PONG], stdout=subprocess.PIPE, text=True)
        self.child = int(self.parent.stdout.readline())
        return self.parent.pid, self.child

    def __exit__(self, *_):
        self.parent.kill()
        os.kill(self.child, 9)
        self.parent.wait()


def is_there(agent):
    """How long the hook has been there, the switches that it saw, and the waits that it took."""
    return [agent.metric(f"kiln_host_{name}_total") for name in ("wait_hook_seconds", "switches", "waits")]


def main():
    need_host()
    with Folder() as folder, PingPong() as pids, Agent(folder, "--endpoint", "http://127.0.0.1:9", "-F", HZ, "-p", ",".join(map(str, pids)),
                                                       "--cpu-budget", BUDGET) as agent:
        check("too many waits would be taken: a longer period takes fewer",
              wait_for(lambda: agent.metric("kiln_host_wait_period_seconds") > 1.5 / HZ), agent.said())
        there, switches, waits = is_there(agent)
        check(f"of {switches:.0f} switches {waits:.0f} waits were taken", 0 < waits < switches / 20)
        began = time.monotonic()
        time.sleep(SECONDS)  # what this is about: it looks away for most of a while
        passed, after = time.monotonic() - began, is_there(agent)
        # By now it comes for 50 ms each few seconds, at random: for a quarter of the time less than once in a million.
        check(f"{switches / there:.0f} switches a second cost too much: in {passed:.1f} s it looks for {after[0] - there:.3f} s",
              after[0] - there < 0.25 * passed, (there, after))
    return exit_code()


if __name__ == "__main__":
    sys.exit(main())
