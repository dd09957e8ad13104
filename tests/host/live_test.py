#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`kiln live` as a person has it on a terminal: what it shows of a program of known truth, what keys do, sizes, every way out;
and once, for scripts."""
import json
import os
import pathlib
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(os.environ.get("KILN_SOURCE_DIR", ".")).resolve() / "tests/support"))
from checks import check, exit_code  # noqa: E402
from host_kit import KILN, Running, need_host, wait_for  # noqa: E402
from pty_kit import DOWN, ENTER, ESCAPE, Terminal, columns_of  # noqa: E402

FIRST = 4  # line of the first row


def live(*words, **more):
    return Terminal(KILN, "live", "--interval", "300ms", *words, **more)


def check_page(pid):
    with live("-p", pid) as page:
        check("the hottest function is the first", page.wait(lambda lines: "burn_leaf" in lines[FIRST]), page.page())
        check("with its module", "chain" in page.lines()[FIRST], page.page())
        check("and its share", "%" in page.lines()[FIRST], page.page())
        page.press("2")
        check("processes have their pids", page.wait(lambda lines: str(pid) in lines[FIRST] and "chain" in lines[FIRST]),
              page.page())
        check("and what they are busy with", page.wait(lambda lines: "burn_leaf" in lines[FIRST]), page.page())
        page.press("3")
        check("services have their names", page.wait(lambda lines: "service" in lines[3] and "chain" in lines[FIRST]), page.page())
        page.press(ENTER)
        check("one that is entered is looked at alone",
              page.wait(lambda lines: "only chain" in lines[2] and "burn_leaf" in lines[FIRST]), page.page())
        page.press(ENTER)
        check("a function shows who calls it", page.wait(lambda lines: any("called by" in line for line in lines) and
                                                         any("middle_a" in line for line in lines)), page.page())
        page.press(ESCAPE)
        check("Escape goes back", page.wait(lambda lines: "function" in lines[3]), page.page())
        page.press("t")
        check("stacks through a function", page.wait(lambda lines: "through burn_leaf" in lines[2] and
                                                     "burn_leaf ← middle_a ← outer" in lines[FIRST]), page.page())
        page.press(ENTER)
        check("a stack has its frames, the innermost first",
              page.wait(lambda lines: "one stack" in lines[3] and "burn_leaf" in lines[4] and "middle_a" in lines[5]), page.page())
        page.press(ESCAPE)
        check("and back to stacks", page.wait(lambda lines: "stack, innermost" in lines[3]), page.page())
        page.press("1", "/", "m", "i", "d")
        check("a filter works while it is typed", page.wait(lambda lines: "filter: mid" in lines[-1] and "middle_" in lines[FIRST]),
              page.page())
        page.press(ENTER, DOWN)
        check("and stays", page.wait(lambda lines: "filter mid" in lines[2]), page.page())
        page.press("?")
        check("there is help", page.wait(lambda lines: any("this help" in line for line in lines)), page.page())
        page.press("x", " ")
        check("it can be held", page.wait(lambda lines: " paused " in lines[2]), page.page())
        page.press(" ", "q")
        check("q leaves", page.end() == 0, page.page())
        check("and the terminal is as it was", page.is_restored())


def check_sizes(pid):
    with live("-p", pid, columns=200, rows=50) as page:
        check("a wide terminal", page.wait(lambda lines: "burn_leaf" in lines[FIRST]), page.page())
        for columns, rows in ((80, 24), (40, 12), (20, 8), (6, 3), (1, 1), (132, 43)):
            page.resize(columns, rows)
            check(f"{columns} columns and {rows} rows hold the page",
                  page.wait(lambda lines: len(lines) <= rows and all(columns_of(line) <= columns for line in lines), 20),
                  page.page())
        check("and it is whole again", page.wait(lambda lines: "burn_leaf" in lines[FIRST] and len(lines) == 43), page.page())


def check_colours(pid):
    with live("-p", pid) as page:
        page.wait(lambda lines: "burn_leaf" in lines[FIRST])
        check("colours where there may be some", "\x1b[7m" in page.all)
        page.press("\x03")
        check("Ctrl-C leaves", page.end() == 0 and page.is_restored())
    with live("-p", pid, env={"NO_COLOR": "1"}) as page:
        page.wait(lambda lines: "burn_leaf" in lines[FIRST])
        check("none with NO_COLOR", "\x1b[7m" not in page.all and "\x1b[31m" not in page.all)
        check("but the selected row can be seen", page.lines()[FIRST].startswith("▸"), page.page())


def check_ends(pid):
    """Whatever ends it, the terminal is put right: by itself, or by its guard."""
    for name, who, number in (("SIGTERM", "guard", signal.SIGTERM), ("SIGHUP", "guard", signal.SIGHUP),
                              ("SIGTERM", "page", signal.SIGTERM), ("SIGSEGV", "page", signal.SIGSEGV),
                              ("SIGKILL", "page", signal.SIGKILL), ("SIGKILL", "guard", signal.SIGKILL)):
        with live("-p", pid) as page:
            page.wait(lambda lines: "burn_leaf" in lines[FIRST])
            child = page.children()[0]
            os.kill(page.process.pid if who == "guard" else child, number)
            code = page.end()
            good = wait_for(lambda: page.read() or page.is_restored(), 20)
            check(f"{name} to the {who}: the terminal is as it was", good and code is not None, code)
            if number in (signal.SIGSEGV, signal.SIGKILL) and who == "page":
                check("and it says so", code == 4 and f"signal {int(number)}" in page.all, (code, page.all[-300:]))
            check("nobody is left behind", wait_for(lambda: not os.path.exists(f"/proc/{child}"), 20))


def check_once(pid):
    done = subprocess.run([KILN, "live", "--once", "--json", "--span", "1s", "-p", str(pid)], capture_output=True, text=True,
                          check=False, timeout=120)
    page = json.loads(done.stdout or "{}")
    check("once, as JSON", done.returncode == 0 and page.get("functions"), done.stderr)
    hottest = page["functions"][0]
    check("of the same", hottest["name"] == "burn_leaf" and hottest["self"]["cpu_seconds"] > 0, hottest)
    check("processes", [(one["pid"], one["name"], one["hottest"]) for one in page["processes"]] == [(pid, "chain", "burn_leaf")],
          page["processes"])
    check("services", [one["name"] for one in page["services"]] == ["chain"], page["services"])
    check("stacks, root first", page["stacks"][0]["frames"][-2:] == ["middle_a", "burn_leaf"], page["stacks"][0])
    total = sum(one["self"]["cpu_seconds"] for one in page["functions"])
    check("whose parts are the whole", abs(total - page["total"]["cpu_seconds"]) < 1e-6, (total, page["total"]))
    done = subprocess.run([KILN, "live", "--once", "--span", "1s", "-p", str(pid), "-n", "1"], capture_output=True, text=True,
                          check=False, timeout=120)
    check("once, as text", done.returncode == 0 and "burn_leaf" in done.stdout, done.stdout + done.stderr)
    done = subprocess.run([KILN, "live"], capture_output=True, text=True, check=False, timeout=120, stdin=subprocess.DEVNULL)
    check("without a terminal it says what to do", done.returncode == 2 and "--once" in done.stderr, done.stderr)


def check_waits():
    """A shell that waits for children that sleep: two threads' time, none of it on a processor to speak of."""
    with subprocess.Popen(["sh", "-c", "while :; do sleep 0.05; done"], start_new_session=True) as shell:
        try:
            done = subprocess.run([KILN, "live", "--json", "--mode", "off-cpu", "--span", "2s", "-p", str(shell.pid)],
                                  capture_output=True, text=True, check=False, timeout=120)
            page = json.loads(done.stdout or "{}")
            reasons = {one["name"]: one.get("waits_for") for one in page["services"]}
            check("what waits has its reason", len(reasons) == 2 and "sleep" in reasons.values() and "child" in reasons.values(),
                  page["services"])
            waited = page["total"]["blocked_seconds"] + page["total"]["runnable_seconds"]
            check("and its time", 0.5 * page["seconds"] < waited < 3 * page["seconds"], page["total"])
            with live("--mode", "wall", "-p", shell.pid) as shown:
                check("on a page, too", shown.wait(lambda lines: "waits for" in lines[3] and any("child" in one for one in lines)),
                      shown.page())
                shown.press("o", "2")
                check("by process", shown.wait(lambda lines: "waits▾" in lines[3] and "sh" in lines[FIRST]), shown.page())
        finally:
            os.killpg(shell.pid, signal.SIGKILL)


need_host("chain")
check_waits()
with Running("chain") as (chain,):
    check_page(chain)
    check_sizes(chain)
    check_colours(chain)
    check_ends(chain)
    check_once(chain)
sys.exit(exit_code())
