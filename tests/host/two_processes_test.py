#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`kiln` as root: the server has no privilege, the profiler in a process of its own has seven capabilities; one that dies is
started again, and none outlives the server."""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(os.environ.get("KILN_SOURCE_DIR", ".")).resolve() / "tests/support"))
from checks import check, exit_code  # noqa: E402
from host_kit import KILN, Folder, Running, Served, need_host, wait_for  # noqa: E402

UID = 61040
GRANTS = sum(1 << n for n in (39, 38, 19, 2, 40, 34, 14))  # BPF PERFMON SYS_PTRACE DAC_READ_SEARCH CHECKPOINT_RESTORE SYSLOG IPC_LOCK
SYS_ADMIN = 1 << 21


class Kiln(Served):
    def __init__(self, folder, *words, meanwhile=None):
        self.folder, self.ready, self.log = folder, folder / "ready.json", folder / "log"
        self.ready.unlink(missing_ok=True)
        with open(self.log, "a", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                [KILN, "--data-dir", folder / "data", "--listen", "127.0.0.1:0", "--otlp-grpc", "off", "--otlp-http", "off",
                 "--socket", folder / "sock", "--ready-file", self.ready, *words], stdin=subprocess.DEVNULL, stderr=log)
        if meanwhile:
            meanwhile(self.process.pid)
        wait_for(lambda: self.ready.exists() or self.process.poll() is not None)
        self.http = json.loads(self.ready.read_text())["http"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def said(self):
        return self.log.read_text()

    def agent(self):
        return json.loads(self.get("/api/v1/agents"))["agents"][0]

    def services(self):
        return {service["name"] for service in json.loads(self.get("/api/v1/services"))["services"]}

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


def children(pid):
    found = []
    for path in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, path.read_text().split()):
            found += [child, *children(child)]
    return found


def named(pid, name):
    """The process of that name below another, or None."""
    for child in children(pid):
        try:
            if pathlib.Path(f"/proc/{child}/comm").read_text().strip() == name:
                return child
        except FileNotFoundError:
            pass
    return None


def statuses(pid):
    """Of each thread: uid, capabilities in effect, no_new_privs, seccomp."""
    found = set()
    for path in pathlib.Path(f"/proc/{pid}/task").glob("*/status"):
        fields = dict(re.findall(r"^(\w+):\s*(\S+)", path.read_text(), re.M))
        found.add((int(fields["Uid"]), int(fields["CapEff"], 16), int(fields["NoNewPrivs"]), int(fields["Seccomp"])))
    return found


def exists(pid):
    """Whether it runs: a process that nobody waited for does not."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")")[-1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def check_privileges(kiln):
    pid = kiln.process.pid
    check("each thread of the server is another user, without capabilities, confined", statuses(pid) == {(UID, 0, 1, 2)},
          statuses(pid))
    profiler, starter = named(pid, "kiln-profiler"), named(pid, "kiln-starter")
    check("the profiler keeps seven capabilities, and has the agent's filter",
          wait_for(lambda: statuses(profiler) == {(0, GRANTS, 1, 2)}, 10), statuses(profiler))
    ((uid, caps, privs, _),) = statuses(starter)
    check("who starts it has no others, but what opening perf events takes on some kernels",
          (uid, caps & ~SYS_ADMIN, privs) == (0, GRANTS, 1), statuses(starter))
    check("the store is the server's", {path.stat().st_uid for path in (kiln.folder / "data").rglob("*")} == {UID}, "")
    check("each family of metrics is there once", not duplicates(kiln.get("/metrics")), duplicates(kiln.get("/metrics")))


def duplicates(text):
    types = re.findall(r"^# TYPE (\S+)", text, re.M)
    return sorted({name for name in types if types.count(name) > 1})


def check_deaths(kiln):
    pid = kiln.process.pid
    first = named(pid, "kiln-profiler")
    samples = kiln.agent()["samples"]
    os.kill(first, signal.SIGKILL)
    check("a profiler that dies is shown as failed", wait_for(lambda: "died (signal 9)" in (kiln.agent()["problem"] or "")), kiln.agent())
    second = wait_for(lambda: named(pid, "kiln-profiler")) and named(pid, "kiln-profiler")
    check("and started again", wait_for(lambda: kiln.agent()["state"] == "running"), (kiln.agent(), kiln.said()))
    check("it goes on counting", wait_for(lambda: kiln.agent()["samples"] > samples), (samples, kiln.agent()))
    check("the log says both", "died" in kiln.said() and "runs again" in kiln.said(), kiln.said())
    with Running("chain"):
        check("and profiles", wait_for(lambda: "chain" in kiln.services()) is not None, kiln.services())
    starter = named(pid, "kiln-starter")
    os.kill(starter, signal.SIGKILL)
    os.kill(named(pid, "kiln-profiler") or second or 0, signal.SIGKILL)
    check("without the one who starts it, that is shown, and the server goes on",
          wait_for(lambda: "restart Kiln" in (kiln.agent()["problem"] or "")) is not None, kiln.agent())
    check("it stops in good order", kiln.stop() == 0, kiln.said())


def check_end(folder):
    with Kiln(folder) as kiln:
        below = children(kiln.process.pid)
        check("the profiler is there", named(kiln.process.pid, "kiln-profiler"), below)
        kiln.process.kill()
        kiln.process.wait()
    with Kiln(folder) as kiln:  # at once: what the first one left behind must not hold the lock
        check("the next start works on the same store", "chain" in kiln.services(), kiln.services())
        check("a server that is killed leaves no process behind", wait_for(lambda: not any(map(exists, below))) is not None,
              [one for one in below if exists(one)])
        below = children(kiln.process.pid)
        check("it stops", kiln.stop() == 0, kiln.said())
        check("and all of its processes with it", wait_for(lambda: not any(map(exists, below)), 10) is not None, below)


def kill_profiler(pid):
    os.kill(wait_for(lambda: named(pid, "kiln-profiler")) and named(pid, "kiln-profiler"), signal.SIGKILL)


def check_death_at_start(folder):
    with Kiln(folder, meanwhile=kill_profiler) as kiln:
        check("a profiler that dies before it runs is started again", wait_for(lambda: "runs again" in kiln.said()), kiln.said())
        check("and is shown as running", wait_for(lambda: kiln.agent()["state"] == "running", 10), kiln.agent())
        check("and it stops", kiln.stop() == 0, kiln.said())


def check_as_root(folder):
    with Kiln(folder, "--user", "root") as kiln:
        check("--user root: one process, as before", not named(kiln.process.pid, "kiln-profiler") and
              kiln.agent()["state"] == "running", kiln.agent())
        check("and it stops", kiln.stop() == 0, kiln.said())


def main():
    need_host("chain")
    with Folder() as folder:
        with Kiln(folder) as kiln:
            check_privileges(kiln)
            check_deaths(kiln)
        check_end(folder)
        check_death_at_start(folder)
        check_as_root(folder)
    return exit_code()


if __name__ == "__main__":
    sys.exit(main())
