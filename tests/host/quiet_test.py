#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Who is not sampled, or more often, and why: orders for one process, one container or a host, on the agent's socket; times
between windows; a budget that is spent.  The agent says which of them it is, and the rest is sampled as before."""
import json
import os
import pathlib
import re
import socket
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(os.environ.get("KILN_SOURCE_DIR", ".")).resolve() / "tests/support"))
from agent_kit import Agent, spooled  # noqa: E402
from checks import check, exit_code  # noqa: E402
from host_kit import KILN, Folder, Running, attributes, need_host, wait_for  # noqa: E402

NOWHERE = "--endpoint", "http://127.0.0.1:9"
CONTAINER = os.urandom(32).hex()
BASE_HZ, BOOST_HZ = 49, 499


def kiln(folder, *words):
    done = subprocess.run([KILN, *map(str, words), "-s", f"unix:{folder}/agent.sock"], capture_output=True, text=True, check=False)
    check(" ".join(map(str, words)), done.returncode == 0, done.stdout + done.stderr)


def told(folder):
    """What the agent says of itself, asked as anybody can."""
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(30)
        s.connect(str(folder / "agent.sock"))
        s.sendall(b"GET /v1/self HTTP/1.1\r\nHost: agent\r\nConnection: close\r\n\r\n")
        answer = b"".join(iter(lambda: s.recv(1 << 16), b""))
    return json.loads(answer.partition(b"\r\n\r\n")[2])["agent"]


def profiles(folder, requests):
    """Of every profile: whose it is, what a sample stands for in ns, and how many there are."""
    found = []
    for request in requests:
        path = folder / "one.otlp"
        path.write_bytes(request)
        done = subprocess.run([KILN, "convert", path, "--to", "otlp-json"], capture_output=True, text=True, check=True)
        for resource in json.loads(done.stdout)["resourceProfiles"]:
            pid = int(attributes(resource["resource"]["attributes"]).get("process.pid", 0))
            found += [(pid, int(profile.get("period", 0)), sum(int(value) for sample in profile["samples"] for value in sample["values"]))
                      for scope in resource["scopeProfiles"] for profile in scope["profiles"]]
    return found


def newer(folder, agent, pids):
    """The rates of each process in what comes from now on; waits, which have none, are "waits"."""
    had = len(spooled(agent))
    wait_for(lambda: agent.metric("kiln_export_spool_files") >= had + 4)
    seen = {pid: set() for pid in pids}
    for pid, period, samples in profiles(folder, spooled(agent)[had + 1:]):  # the first may have begun before
        if pid in seen and samples:
            seen[pid].add(round(1e9 / period) if period else "waits")
    return seen


def are_as(seen, *rates):
    """Whether processes are sampled at these rates; 0: nothing of it, not even a wait."""
    return all(one - {"waits"} == {hz} if hz else not one for one, hz in zip(seen.values(), rates))


class Group:
    """A control group that is called like a container's."""

    def __init__(self):
        mounts = [line.split() for line in pathlib.Path("/proc/self/mounts").read_text().splitlines()]
        self.mount = next((pathlib.Path(words[1]) for words in mounts if words[2] == "cgroup2"), None)

    def __enter__(self):
        self.path = self.mount / f"docker-{CONTAINER}.scope"
        self.path.mkdir(exist_ok=True)
        return self.path

    def __exit__(self, *_):
        wait_for(lambda: not (self.path / "cgroup.procs").read_text(), 10)
        self.path.rmdir()


def check_one(folder, agent, whom, one, other):
    """`one` is what the order is for."""
    kiln(folder, "boost", *whom, "-F", BOOST_HZ, "-d", "5m")
    check("it is sampled more often", wait_for(lambda: agent.metric("kiln_host_boosted_processes") == 1), agent.said())
    seen = newer(folder, agent, (one, other))
    check("and nobody else", are_as(seen, BOOST_HZ, BASE_HZ), seen)
    kiln(folder, "pause", *whom, "-d", "5m")
    check("it is left alone", wait_for(lambda: agent.metric("kiln_host_paused_processes") == 1), agent.said())
    seen = newer(folder, agent, (one, other))
    check("and nobody else is", are_as(seen, 0, BASE_HZ), seen)
    check("what is not taken by order is no loss", told(folder)["state"] == "running" and not told(folder)["drops"], told(folder))
    kiln(folder, "resume", *whom)
    kiln(folder, "boost", *whom, "--end")
    check("then all is as before", wait_for(lambda: agent.metric("kiln_host_paused_processes") == 0 ==
                                            agent.metric("kiln_host_boosted_processes")), agent.said())


def check_host(folder, agent):
    """A pause of this host; then the agent is killed."""
    kiln(folder, "pause", "--host", socket.gethostname(), "-d", "5m", "--why", "a test")
    check("the clocks stand", wait_for(lambda: agent.metric("kiln_host_clock_hertz") == 0), agent.said())
    check("it says that it is paused", wait_for(lambda: told(folder)["state"] == "paused"), told(folder))
    agent.process.kill()
    agent.process.wait()


def check_restart(folder, agent):
    check("one that is started again is paused, too", wait_for(lambda: agent.metric("kiln_host_clock_hertz") == 0) and
          told(folder)["state"] == "paused" and "why=\"a test\"" in agent.said(), agent.said())
    kiln(folder, "resume", "--host", socket.gethostname())
    check("until it is told to go on", wait_for(lambda: agent.metric("kiln_host_samples_total") > 2 * BASE_HZ) and
          told(folder)["state"] == "running", agent.said())
    check("it ends in good order", agent.end() == 0, agent.said())


def check_service(folder, agent, pids):
    kiln(folder, "pause", "--service", "till", "-d", "5m")
    check("a service is paused", wait_for(lambda: agent.metric("kiln_host_paused_processes") == 1), agent.said())
    kiln(folder, "resume", "--service", "till")
    check("and resumed", wait_for(lambda: agent.metric("kiln_host_paused_processes") == 0 and
                                  re.search("has ended here.* kind=pause", agent.said())), agent.said())
    seen = newer(folder, agent, pids)
    check("all are sampled again", are_as(seen, BASE_HZ, BASE_HZ), seen)


def check_orders(folder):
    group = Group()
    words = *NOWHERE, "-F", BASE_HZ
    with Running("chain", env={"OTEL_SERVICE_NAME": "till"}) as (one,), Running("chain") as (other,):
        with Agent(folder, *words, "-p", f"{one},{other}") as agent:
            wait_for(lambda: agent.metric("kiln_host_samples_total") > 20)
            check_one(folder, agent, ("--pid", one), one, other)
            check_service(folder, agent, (one, other))
            check_host(folder, agent)
        with Agent(folder, *words, "-p", f"{one},{other}") as agent:
            check_restart(folder, agent)
    if not group.mount or os.getuid():
        print("not tried: a container: no unified hierarchy of control groups here")
        return
    with group as path, Running("chain", group=path) as (one,), Running("chain") as (other,), \
            Agent(folder, *words, "-p", f"{one},{other}") as agent:
        wait_for(lambda: agent.metric("kiln_host_samples_total") > 20)
        check_one(folder, agent, ("--container", CONTAINER[:12]), one, other)


def check_states(folder):
    """Nothing is sampled, and nobody has ordered it."""
    with Running("chain"), Agent(folder, *NOWHERE, "--window", "1s/1h") as agent:
        check("between two windows it waits", wait_for(lambda: told(folder)["state"] == "waiting"), told(folder))
        check("and takes nothing", agent.metric("kiln_host_rate_hertz") == 0)
    with Running("chain"), Agent(folder, *NOWHERE, "-F", "1", "--cpu-budget", "0.001%") as agent:
        check("above its budget at the lowest rate it has stopped", wait_for(lambda: told(folder)["state"] == "stopped"), told(folder))
        check("and says why", "processor time" in told(folder)["problem"], told(folder))


def main():
    need_host("chain")
    for part in check_orders, check_states:
        with Folder() as folder:
            part(folder)
    return exit_code()


if __name__ == "__main__":
    sys.exit(main())
