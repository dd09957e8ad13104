#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A Node program that knows nothing of us stalls its event loop for 50 ms and more: the stall is named with its JavaScript
function, through the map that V8 writes."""
import os
import pathlib
import shutil
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(os.environ.get("KILN_SOURCE_DIR", ".")).resolve() / "tests/support"))
from checks import check, exit_code  # noqa: E402
from time_kit import Preloaded  # noqa: E402

MS = 1_000_000
FLAGS = ["--perf-basic-prof-only-functions", "--interpreted-frames-native-stack"]
STALL = """
function stallTheLoop(ms) {  // of CPU time: on a busy machine for longer
    const end = process.cpuUsage().user + 1000 * ms;
    let x = 0;
    while (process.cpuUsage().user < end)
        for (let i = 0; i < 1000; i++)
            x += Math.sqrt(i);
    return x;
}
"""
MANY = STALL + """
let turns = 0;
const timer = setInterval(() => {
    if (++turns % 5 === 0)
        stallTheLoop(50);
    if (turns >= 40)
        clearInterval(timer);
}, 10);
"""
ONCE = STALL + """
function begin() {  // where the timer is due before the loop has polled at all, there is no turn yet
    if (performance.nodeTiming.idleTime > 0)
        stallTheLoop(%d);
    else
        setTimeout(begin, 10);
}
setTimeout(begin, 10);
"""
LENGTHS = (50, 200, 800, 3200)


def stalls(node, folder, text):
    script = pathlib.Path(folder) / "stall.js"
    script.write_text(text)
    with Preloaded(node, *FLAGS, script, KILN_PROFILES="loop") as run:
        check("node ends well", run.code == 0, run.err)
        told = run.functions("event_loop", "lag")
    return sum(total for name, total in told.items() if "stallTheLoop" in name), told


def check_once(node, folder):
    """Where others leave the thread a moment at a time, the kernel may not find it running for all of 50 ms, and no tick comes.
    Such a stall takes far longer than its CPU time: then it is tried with more of that."""
    for ms in LENGTHS:
        ns, told = stalls(node, folder, ONCE % ms)
        if ns >= ms / 2 * MS or told[""] < 2 * ms * MS:
            break
    check(f"so is one of {ms} ms in the first turn of the loop, which is the last as well", ns >= ms / 2 * MS, told)


def main():
    node = shutil.which("node")
    if not node:
        print("skipped: there is no node")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        ns, told = stalls(node, folder, MANY)
        check(f"eight stalls of 50 ms are named: {ns / MS:.0f} ms of {told[''] / MS:.0f} ms", ns >= 200 * MS, told)
        check_once(node, folder)
    return exit_code()


if __name__ == "__main__":
    sys.exit(main())
