#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `kiln agent` may do: named capabilities suffice, each that is missing costs what its sentence says and nothing else;
of all others, and of most system calls, it has none left."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(os.environ.get("KILN_SOURCE_DIR", ".")).resolve() / "tests/support"))
from agent_kit import Agent, spooled  # noqa: E402
from checks import check, exit_code  # noqa: E402
from host_kit import KILN, PROGRAMS, Folder, Running, need_host, skip, wait_for  # noqa: E402

CAPABILITIES = {"bpf": 39, "perfmon": 38, "sys_ptrace": 19, "dac_read_search": 2, "checkpoint_restore": 40, "syslog": 34,
                "ipc_lock": 14}
NOWHERE = "--endpoint", "http://127.0.0.1:9"


def as_nobody(*capabilities):
    named = ",".join(["-all", *(f"+{one}" for one in capabilities)])
    return ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--inh-caps", named, "--ambient-caps", named,
            "--bounding-set", named]


def statuses(pid):
    """What /proc says of each thread: capabilities in effect and for programs it starts, no_new_privs, seccomp."""
    found = []
    for path in pathlib.Path(f"/proc/{pid}/task").glob("*/status"):
        fields = dict(re.findall(r"^(\w+):\s*(\S+)", path.read_text(), re.M))
        found.append((int(fields["CapEff"], 16), int(fields["CapPrm"], 16), int(fields["CapBnd"], 16),
                      int(fields["NoNewPrivs"]), int(fields["Seccomp"])))
    return found


def children(pid):
    return [int(one) for path in pathlib.Path(f"/proc/{pid}/task").glob("*/children") for one in path.read_text().split()]


def check_gives_up(folder):
    wanted = sum(1 << number for number in CAPABILITIES.values())
    with Running("chain") as (chain,), Agent(folder, *NOWHERE, "-F", "97", "-p", chain) as agent:
        pid = agent.process.pid
        check("started by root, each thread keeps the named capabilities and no system call but those it makes",
              wait_for(lambda: set(statuses(pid)) == {(wanted, wanted, wanted, 1, 2)}, 10), statuses(pid))
        check("what finds names has nothing", wait_for(lambda: any(
            set(statuses(child)) == {(0, 0, 0, 1, 2)} for child in children(pid))), [statuses(one) for one in children(pid)])
        check("samples come all the same", wait_for(lambda: agent.metric("kiln_export_spool_files") >= 2), agent.said())
        check("complete", wait_for(lambda: agent.metric("kiln_host_unwind_success_ratio") > 0.99), agent.said())
        check("nothing is missing, and nothing is said to be", "missing" not in agent.said(), agent.said())
        check("it stops in good order", agent.end() == 0, agent.said())
        check("and functions have names", any(b"burn_leaf" in one for one in spooled(agent)))


def check_needs(folder):
    for lacking in "bpf", "perfmon":
        have = [one for one in CAPABILITIES if one != lacking]
        done = subprocess.run([*as_nobody(*have), KILN, "agent", "--listen", "off", "--spool", "off"],
                              capture_output=True, text=True, check=False, timeout=60)
        check(f"without CAP_{lacking.upper()} one sentence says so", done.returncode == 4 and
              f"needs CAP_{lacking.upper()} (" in done.stderr and done.stderr.count("kiln: ") == 1, done)


def newer_than(*release):
    return tuple(map(int, re.match(r"(\d+)\.(\d+)", os.uname().release).groups())) >= release


class Program:
    """A program of root's that calls the kernel now and then, as a capability is needed for it."""

    def __init__(self, folder, mode=0o755, removed=False):
        self.path = pathlib.Path(shutil.copy(PROGRAMS / "chain", folder / "program"))
        self.path.chmod(mode)
        self.removed = removed

    def __enter__(self):
        self.process = subprocess.Popen([self.path, "600"], env={"OTEL_SERVICE_NAME": "the-service"})
        if self.removed:
            wait_for(lambda: pathlib.Path(f"/proc/{self.process.pid}/exe").resolve() == self.path, 5)
            self.path.unlink()
        self.copying = subprocess.Popen(["dd", "if=/dev/zero", "of=/dev/null", "bs=1M"], stderr=subprocess.DEVNULL)
        return f"{self.process.pid},{self.copying.pid}"

    def __exit__(self, *_):
        for process in self.process, self.copying:
            process.kill()
            process.wait()


def what_is_there(agent):
    """Of what capabilities are for, once it can be told."""
    wait_for(lambda: agent.metric("kiln_host_samples_total") > 40 and agent.metric("kiln_export_spool_files") >= 2)
    hidden, said = agent.metric("kiln_names_kernel_hidden"), agent.said()
    agent.end()
    found = b"".join(spooled(agent))
    return {"names of the program": b"burn_leaf" in found, "its environment": b"the-service" in found,
            "names of the kernel": not hidden}, said


def check_one(folder, lacking, program):
    have = [one for one in CAPABILITIES if one != lacking]
    with program as pids, Agent(folder, *NOWHERE, "-F", "97", "-p", pids, before=as_nobody(*have)) as agent:
        there, said = what_is_there(agent)
    lost = {what for what, is_there in there.items() if not is_there}
    missing = re.findall(r"which=CAP_(\w+)", said)
    if not lacking:
        check("with all of them, and no root, everything is there", not lost and not missing, (lost, said))
        return
    check(f"without CAP_{lacking.upper()} the log says that one, and samples come", missing == [lacking.upper()], said)
    costs = {"dac_read_search": {"names of the program", "its environment"}, "syslog": {"names of the kernel"},
             "checkpoint_restore": {"names of the program"}}.get(lacking, set())
    if lacking == "sys_ptrace" and not newer_than(6, 15):
        costs = {"names of the program", "its environment"}
    check(f"without CAP_{lacking.upper()}: {', '.join(sorted(costs)) or 'nothing of these'} is lost", lost == costs, (lost, said))


def main():
    need_host("chain")
    if os.getuid():
        skip("not root: nothing to give up")
    if subprocess.run(["unshare", "--user", "true"], check=False, stderr=subprocess.DEVNULL).returncode:
        skip("no user namespaces can be made here (a chroot?), by which the child that finds names gives up its bounding set")
    for part in check_gives_up, check_needs:
        with Folder() as folder:
            folder.chmod(0o777)
            part(folder)
    for lacking, how in ((None, {"mode": 0o700, "removed": True}), ("sys_ptrace", {}), ("dac_read_search", {"mode": 0o700}),
                         ("checkpoint_restore", {"removed": True}), ("syslog", {}), ("ipc_lock", {})):
        with Folder() as folder:
            folder.chmod(0o777)
            check_one(folder, lacking, Program(folder, **how))
    return exit_code()


if __name__ == "__main__":
    sys.exit(main())
