#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`kiln live --server`: what agents sent, once and on a terminal; a server that is away, or goes away."""
import json
import os
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(os.environ.get("KILN_SOURCE_DIR", ".")).resolve() / "tests/support"))
from checks import check, exit_code  # noqa: E402
from drawn_otlp import Drawn  # noqa: E402
from kiln_server import KILN, KilnServer  # noqa: E402
from pty_kit import DOWN, END, ENTER, ESCAPE, LEAVE, Terminal  # noqa: E402

FIRST = 4
ENTERED = "\x1b[?1049h"


def wait_for(terminal, text, begin=0, patience_s=60):
    """Whether the text comes to be written, behind a place."""
    until = time.monotonic() + patience_s
    while text not in terminal.all[begin:] and time.monotonic() < until:
        terminal.read()
    return text in terminal.all[begin:]


def fill(server):
    request, now = Drawn(), time.time_ns() - 20 * 10**9
    request.profile({"service.name": "shop", "process.pid": "11", "process.executable.name": "shopd", "host.name": "a"}, now, """
        main;serve;parse 300
        main;serve;draw 100
    """)
    request.profile({"service.name": "jobs", "process.pid": "12", "process.executable.name": "worker", "host.name": "b"}, now, """
        start;hash 600
    """)
    request.send(server)


def once(server, *words):
    return subprocess.run([KILN, "live", "--server", f"http://127.0.0.1:{server.http}", "--once", *words], capture_output=True,
                          text=True, check=False, timeout=60)


def check_once(server):
    done = once(server, "--json", "--span", "5m")
    page = json.loads(done.stdout or "{}")
    check("it answers", done.returncode == 0 and page, done.stderr)
    check("functions of all services", [(one["name"], one["self"]["cpu_seconds"]) for one in page["functions"]][:3] ==
          [("hash", 6), ("parse", 3), ("draw", 1)], page["functions"])
    check("processes of all hosts", [(one["name"], one["pid"], one["host"], one["total"]["cpu_seconds"])
                                     for one in page["processes"]] == [("worker", 12, "b", 6), ("shopd", 11, "a", 4)],
          page["processes"])
    check("services", [(one["name"], one["processes"]) for one in page["services"]] == [("jobs", 1), ("shop", 1)], page["services"])
    check("stacks", page["stacks"][1]["frames"] == ["main", "serve", "parse"], page["stacks"])
    check("a table", "worker" in once(server, "--pane", "processes", "--span", "5m").stdout)
    check("nobody draws all the time", once(server, "-i", "0").returncode == 2)
    done = once(server, "-p", "11")
    check("-p is for this host", done.returncode == 2 and "Enter" in done.stderr, done.stderr)


def check_page(server):
    with Terminal(KILN, "live", "--server", f"http://127.0.0.1:{server.http}", "--span", "5m") as page:
        check("a page of a server", page.wait(lambda lines: "hash" in lines[FIRST]), page.page())
        page.press("3")
        check("services", page.wait(lambda lines: "jobs" in lines[FIRST] and "shop" in lines[FIRST + 1]), page.page())
        page.press(DOWN, ENTER)
        check("the server answers for one of them alone",
              page.wait(lambda lines: "only shop" in lines[2] and "parse" in lines[FIRST] and "75.0%" in lines[FIRST]), page.page())
        page.press(ESCAPE)
        check("and for all again", page.wait(lambda lines: "only" not in lines[2] and "jobs" in lines[FIRST]), page.page())
        page.press("2", ENTER)
        check("a process", page.wait(lambda lines: "only worker (12)" in lines[2] and "100.0%" in lines[FIRST]), page.page())
        page.press("o")
        check("nothing waits that nobody looked at", page.wait(lambda lines: "nothing is known of what waits" in "".join(lines)),
              page.page())
        server.kill()
        page.press("c", "1", "+")
        check("a server that is gone is said to be", page.wait(lambda lines: "connection refused" in lines[-1]), page.page())
        page.press("q")
        check("it leaves at once", page.end() == 0 and page.is_restored(), page.page())


def check_news(server):
    """What is shown does not hold on to what an answer replaced, whether or not it is time for a new page."""
    with Terminal("env", "MALLOC_PERTURB_=165", KILN, "live", "--server", f"http://127.0.0.1:{server.http}", "--span", "1m", "-i", "10m",
                  "--pane", "stacks") as page:
        check("stacks of a server", page.wait(lambda lines: "hash" in lines[FIRST]), page.page())
        request = Drawn()
        request.profile({"service.name": "late", "process.pid": "13", "process.executable.name": "lated", "host.name": "c"},
                        time.time_ns() - 10**9, "begin;linger 900")
        request.send(server)
        check("an answer is shown when it comes", page.wait(lambda lines: "linger" in lines[FIRST] and "hash" in lines[FIRST + 1]), page.page())
        page.press("q")
        check("and the page leaves well", page.end() == 0, page.page())


def check_suspended(server):
    with Terminal("bash", "--norc", "-i") as shell:
        shell.press(f"{KILN} live --server http://127.0.0.1:{server.http} --span 5m\r")
        check("a page below a shell", shell.wait(lambda lines: "hash" in lines[FIRST]), shell.all[-500:])
        shell.press("\x1a")
        check("Ctrl-Z gives the terminal back", wait_for(shell, "Stopped") and shell.all.rfind(LEAVE) > shell.all.rfind(END),
              shell.all[-500:])
        stopped = len(shell.all)
        shell.press("fg\r")
        check("and fg takes it again", shell.wait(lambda _: "hash" in shell.all[stopped:]) and ENTERED in shell.all[stopped:],
              shell.all[stopped:])
        shell.press("q")
        check("q ends it", wait_for(shell, LEAVE, stopped), shell.all[-500:])
        shell.press("exit $?\r")
        check("well", shell.end() == 0, shell.all[-500:])


with KilnServer() as kiln:
    fill(kiln)
    check_once(kiln)
    check_suspended(kiln)
    check_page(kiln)
    check("a server that is away", once(kiln).returncode == 4)
with KilnServer() as kiln:
    fill(kiln)
    check_news(kiln)
sys.exit(exit_code())
