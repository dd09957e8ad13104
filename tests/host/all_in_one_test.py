#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`kiln`, and nothing else: a program that is started shows up by itself, function by function."""
import json
import os
import pathlib
import pty
import re
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(os.environ.get("KILN_SOURCE_DIR", ".")).resolve() / "tests/support"))
from checks import check, exit_code  # noqa: E402
from host_kit import KILN, Folder, Running, Served, kiln_for_all, need_host, top, wait_for  # noqa: E402

CHAIN = ["burn_leaf", "middle_a", "outer", "main"]


class AllInOne(Served):
    """`kiln` on a terminal of its own, on free ports, in a folder of its own."""

    def __init__(self, folder, *words, program=KILN, user=None):
        self.ready = folder / "ready.json"
        self.ready.unlink(missing_ok=True)
        self.log = open(folder / "log", "w+", encoding="utf-8")  # read when it has ended
        self.ours, theirs = pty.openpty()
        self.process = subprocess.Popen(
            [program, "--data-dir", folder / "data", "--listen", "127.0.0.1:0", "--otlp-grpc", "off", "--otlp-http", "off",
             "--socket", folder / "sock", "--ready-file", self.ready, *words], stdin=subprocess.DEVNULL, stdout=theirs,
            stderr=self.log, user=user, env=os.environ | {"NO_COLOR": "1"})
        os.close(theirs)
        self.greeting = ""
        while "Ctrl-C" not in self.greeting:
            self.greeting += os.read(self.ours, 4096).decode()
        self.http = json.loads(self.ready.read_text())["http"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.ours)
        self.log.close()

    def services(self):
        return {service["name"] for service in json.loads(self.get("/api/v1/services"))["services"]}

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(60)
        self.log.seek(0)
        return code, self.log.read()


def check_profiles(folder):
    with AllInOne(folder) as kiln:
        check("the greeting says who is profiled, and how often", re.search(
            r"profiler +on: every process on this host, at 19 Hz on \d+ CPUs?", kiln.greeting), kiln.greeting)
        with Running("chain"):
            took = wait_for(lambda: "chain" in kiln.services() and "burn_leaf" in top(kiln.http, "chain"))
            check(f"a program is there with its functions after {took or 99:.1f} s", took is not None, kiln.services())
            for name in CHAIN:
                check(f"{name} is there", f'"{name}"' in top(kiln.http, "chain"), top(kiln.http, "chain")[:500])
            with Running("shares"):
                took = wait_for(lambda: "shares" in kiln.services())
                check(f"another is there by itself, after {took or 99:.1f} s", took is not None, kiln.services())
        with Running("inlined"):
            took = wait_for(lambda: '"burn_inlined"' in top(kiln.http, "inlined"))
            check(f"functions that were inlined are there after {took or 99:.1f} s", took is not None,
                  (top(kiln.http, "inlined")[:500], kiln.metric("kiln_names_shallow_total")))
        check("metrics tell how many samples", (kiln.metric("kiln_host_samples_total") or 0) > 0)
        # of whatever else runs on this machine: a program that makes its code may be there
        check("and how many stacks are complete", 0 < (kiln.metric("kiln_host_unwind_success_ratio") or 0) <= 1)
        code, log = kiln.stop()
        check("it stops in good order", code == 0, log)
        check("it said so in the log", "profiling this host" in log, log)


def check_without(folder):
    with AllInOne(folder, "--no-host") as kiln:
        check("--no-host: nothing is profiled, as the greeting says", "this server only receives profiles" in kiln.greeting and
              kiln.metric("kiln_host_samples_total") is None, kiln.greeting)
    program = kiln_for_all(folder)
    for path in folder.rglob("*"):
        path.chmod(0o777)
    with AllInOne(folder, program=program, user=65534) as kiln:
        check("without privilege: one sentence says what is missing, and how to grant it",
              re.search(r"profiler +off: needs more privileges: (sudo setcap|run as root|docker run)\b", kiln.greeting), kiln.greeting)
        check("and the rest runs", kiln.get("/ready"), "")
        code, log = kiln.stop()
        check("it is one line of the log", code == 0 and log.count("this host is not profiled") == 1, log)
    done = subprocess.run([program, "--host-profiler", "on", "--data-dir", folder / "other", "--listen", "127.0.0.1:0",
                           "--otlp-grpc", "off", "--otlp-http", "off", "--socket", "off"], capture_output=True, text=True,
                          check=False, timeout=60, user=65534)
    check("--host-profiler on: or else it does not start", done.returncode == 4 and "CAP_" in done.stderr, done)


def main():
    need_host("chain", "shares", "inlined")
    with Folder() as folder:
        check_profiles(folder)
        check_without(folder)
    return exit_code()


if __name__ == "__main__":
    sys.exit(main())
