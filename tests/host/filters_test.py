#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Who is sampled: a process with its children, a control group with those below it, threads by name; or all but these."""
import os
import pathlib
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(os.environ.get("KILN_SOURCE_DIR", ".")).resolve() / "tests/support"))
from checks import check, exit_code  # noqa: E402
from host_kit import PROGRAMS, Folder, Running, need_host, record, resources_of, wait_for  # noqa: E402

WORDS = ("-d", "1.5s")


def programs_of(rec):
    return {attributes.get("process.executable.name", "kernel") for attributes, _ in resources_of(rec.path)} \
        if rec.path.exists() else set()


def has_started(pid):
    """Whether it has a child that runs the program."""
    done = subprocess.run(["ps", "--ppid", str(pid), "-o", "comm="], capture_output=True, text=True, check=False)
    return "chain" in done.stdout.split()


def check_pid(folder):
    with Running("chain", "shares") as (chain, shares):
        seen = programs_of(record(folder, words=("-p", chain, *WORDS)))
        check("-p: this process alone", seen == {"chain"}, seen)
        seen = programs_of(record(folder, words=("-p", f"{chain},{shares}", *WORDS)))
        check("-p: two of them", seen == {"chain", "shares"}, seen)
    script = subprocess.Popen(["sh", "-c", f"{PROGRAMS}/chain 60 & wait"], start_new_session=True)
    try:
        wait_for(lambda: has_started(script.pid))
        seen = programs_of(record(folder, words=("-p", script.pid, *WORDS)))
        check("-p: with the children it had already", seen == {"chain"}, seen)
    finally:
        os.killpg(script.pid, signal.SIGKILL)
        script.wait()


def check_comm(folder):
    with Running("chain", "threads"):
        rec = record(folder, words=("--comm", "burner-1", *WORDS))
        seen = programs_of(rec)
        check("--comm: threads of this name alone", seen == {"threads"}, seen)
        seen = programs_of(record(folder, words=("-a", "--exclude-comm", "chain", *WORDS)))
        check("--exclude-comm: all but these", "threads" in seen and "chain" not in seen, seen)


def unified():
    """Where the unified hierarchy of control groups is mounted, or None."""
    for line in pathlib.Path("/proc/self/mounts").read_text().splitlines():
        if line.split()[2] == "cgroup2":
            return pathlib.Path(line.split()[1])
    return None


def check_cgroup(folder):
    mount = unified()
    if mount is None:
        print("skipped: no unified hierarchy of control groups is mounted")
        return
    outer = mount / f"kiln-test-{os.getpid()}"
    inner = outer / "below"
    inner.mkdir(parents=True)
    try:
        with Running("chain", group=inner), Running("shares"):
            name = str(outer.relative_to(mount))
            seen = programs_of(record(folder, words=("--cgroup", name, *WORDS)))
            check("--cgroup: this group and those below, by its name", seen == {"chain"}, seen)
            seen = programs_of(record(folder, words=("--cgroup", outer, *WORDS)))
            check("--cgroup: by its path", seen == {"chain"}, seen)
    finally:
        inner.rmdir()
        outer.rmdir()


def main():
    need_host("chain", "shares", "threads")
    with Folder() as folder:
        check_pid(folder)
        check_comm(folder)
        check_cgroup(folder)
    return exit_code()


if __name__ == "__main__":
    sys.exit(main())
