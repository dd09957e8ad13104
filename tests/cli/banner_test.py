#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`kiln` on a terminal: what it prints, what can be typed next, and how Ctrl-C ends it, also below make."""
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

ROOT = pathlib.Path(os.environ.get("KILN_SOURCE_DIR", ".")).resolve()
sys.path.insert(0, str(ROOT / "tests/support"))
from checks import check, exit_code  # noqa: E402
from kiln_server import KILN  # noqa: E402
from pty_kit import SEQUENCE, Terminal  # noqa: E402

PROGRAM = str(pathlib.Path(KILN).resolve())
INTERRUPT = "\x03"
STARTED, STOPPING = "Ctrl-C stops Kiln.", "Stopping: writing profiles to "


def environment(folder, **more):
    theirs = re.compile("(?!KILN_USER$)(KILN_|MAKE|MFLAGS|NO_COLOR)")
    ours = {name: value for name, value in os.environ.items() if not theirs.match(name)}
    return ours | {"KILN_DATA_DIR": f"{folder}/data", "KILN_SOCKET": f"{folder}/kiln.sock", "KILN_LISTEN": "127.0.0.1:0",
                   "KILN_OTLP_GRPC": "127.0.0.1:0", "KILN_OTLP_HTTP": "off", "KILN_HOST_PROFILER": "off", "TERM": "xterm"} | more


class Kiln(Terminal):
    """A server on a terminal of its own, in the folder of the sources."""

    def __init__(self, folder, *command, columns=100, **more):
        super().__init__("env", "-i", "-C", ROOT, *(f"{name}={value}" for name, value in environment(folder, **more).items()),
                         *(command or (PROGRAM,)), columns=columns)
        self.wait_for(STARTED)

    def wait_for(self, text, patience_s=60):
        until = time.monotonic() + patience_s
        while text not in self.all and self.process.poll() is None and time.monotonic() < until:
            self.read()
        return text in self.all

    def text(self):
        return SEQUENCE.sub("", self.all).replace("\r\n", "\n")

    def page(self):
        return re.search(r"open (http://127\.0\.0\.1:\d+)", self.text()).group(1)

    def commands(self):
        """The lines that can be typed, without what stands behind them."""
        return [line.split("  ")[1] for line in self.text().partition("Next, ")[2].splitlines() if line.startswith(f"  {PROGRAM}")]


def check_banner(folder):
    with Kiln(folder) as kiln:
        text, page = kiln.text(), kiln.page()
        with urllib.request.urlopen(page + "/ready", timeout=60) as answer:
            check("the address it shows answers", answer.status == 200)
        check("it shows whether it profiles, where data is kept, and for how long",
              "profiler  off: " in text and f"data      {folder}/data, deleted after 14 days\n" in text, text)
        check("it shows what it receives, and where", re.search(r"receives  OTLP on port \d+ \(gRPC\); OTLP, Pyroscope and pprof on "
                                                               rf"port {page.rpartition(':')[2]}\n", text), text)
        check("no line of the log", "level=" not in text and "msg=" not in text, text)
        check("colours", "\x1b[1m" in kiln.all, kiln.all)
        check("commands", len(kiln.commands()) >= 2, text)
        for command in kiln.commands():
            done = subprocess.run(command, shell=True, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
            can_fail = command.endswith(" doctor")  # 1: the profiler cannot run
            check(f"it can be typed: {command}", done.returncode == 0 or (can_fail and done.returncode == 1), done.stderr)
        kiln.press(INTERRUPT)
        check("Ctrl-C ends it well", kiln.end() == 0, kiln.all[-500:])
        check("with one line", kiln.text().partition(STARTED)[2].strip().splitlines()[-1] ==
              f"{STOPPING}{folder}/data. Ctrl-C again stops at once.", kiln.all[-500:])


def check_terminals(folder):
    with Kiln(folder, columns=44, NO_COLOR="1") as kiln:
        wide = [line for line in kiln.text().splitlines() if len(line) > 44 and not any(whole in line for whole in (PROGRAM, "http", folder))]
        check("a narrow terminal", STARTED in kiln.all and not wide, wide)
        check("NO_COLOR", "\x1b" not in kiln.all, kiln.all)
    with Kiln(folder, PROGRAM, "--log-level", "info") as kiln:
        check("the log is readable, where it is wanted", re.search(r"^\d\d:\d\d:\d\d listening; for: everything; address: ", kiln.text(),
                                                                   re.MULTILINE), kiln.text())
    with Kiln(folder, "sh", "-c", f"exec {PROGRAM} 2>{folder}/log") as kiln:
        log = pathlib.Path(f"{folder}/log").read_text(encoding="utf-8")
        check("it is unchanged in a file", re.match(r"time=\S+Z level=info msg=starting version=", log) and STARTED in kiln.all, log)
    with Kiln(folder, "bash", "-c", f"exec -a 'my kiln\x1b[2J' {PROGRAM}") as kiln:
        check("a name that harms no terminal", "\x1b[2J" not in kiln.all and "'my kiln" in kiln.all, kiln.all)


# GNU make 4.3 prints "wait: No child processes" if its child ends before make has handled the same Ctrl-C, which needs a
# make that got no processor while Kiln stopped.  So this child ends when make has no SIGINT pending.
AFTER_MAKE = f"""#!/bin/sh
trap : INT
{PROGRAM}
code=$?
while grep -q 'Pnd:.*[2367abef]$' /proc/$PPID/status; do sleep 0.01; done
exit $code
"""


def check_make(folder):
    """make takes the interrupt too; it has nothing to add."""
    program = pathlib.Path(folder, "after-make")
    program.write_text(AFTER_MAKE, encoding="utf-8")
    program.chmod(0o755)
    with Kiln(folder, "make", "--no-print-directory", "-o", "all", "run", f"KILN={program}", f"DATA={folder}/data") as kiln:
        check("make run", STARTED in kiln.all, kiln.all)
        kiln.press(INTERRUPT)
        code = kiln.end()
        rest = kiln.text().partition(STARTED)[2]
        check("Ctrl-C ends make, by the interrupt", code in (0, 130, -2), code)
        check("without a word of it", "make" not in rest and "***" not in rest and rest.count("Stopping") == 1, rest)


def check_hurry(folder):
    """A request that does not end holds the server back; a second Ctrl-C does not wait for it."""
    with Kiln(folder) as kiln:
        page = kiln.page()
        subprocess.run([PROGRAM, "push", "--time", "now", "--service", "kept", "--server", page, ROOT / "examples/checkout.pb.gz"],
                       stdout=subprocess.DEVNULL, check=True, timeout=60)
        with socket.create_connection(("127.0.0.1", int(page.rpartition(":")[2])), timeout=60) as held:
            held.sendall(b"POST /ingest?name=x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nabc")
            with urllib.request.urlopen(page + "/ready", timeout=60) as answer:  # behind it: that is being read
                answer.read()
            kiln.press(INTERRUPT)
            check("it waits for a request", kiln.wait_for(STOPPING) and kiln.process.poll() is None, kiln.all[-500:])
            kiln.press(INTERRUPT)
            check("but not after a second Ctrl-C", kiln.end() == -2, (kiln.process.poll(), kiln.all[-500:]))
    with Kiln(folder) as kiln:
        done = subprocess.run([PROGRAM, "query", "--services", "--server", kiln.page()], capture_output=True, text=True, check=False, timeout=60)
        check("what was acknowledged is there", "kept" in done.stdout, done)


def check_closed(folder):
    """A server ends when its terminal is closed, and frees its ports."""
    with Kiln(folder) as kiln:
        os.close(kiln.ours)
        kiln.ours, silent = os.pipe()
        check("a terminal that is closed ends it", kiln.end() == 0, kiln.process.poll())
        os.close(silent)


where = tempfile.mkdtemp(prefix="kiln-test-")
try:
    check_banner(where)
    check_terminals(where)
    check_make(where)
    check_hurry(where)
    check_closed(where)
finally:
    shutil.rmtree(where, ignore_errors=True)
sys.exit(exit_code())
