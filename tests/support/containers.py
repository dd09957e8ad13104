#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Containers without a container engine: images of tools/image-oci in namespaces, as Docker runs them; for root.

    with Network() as network:
        spec = docker_run("docker run --rm -d --privileged --pid=host -e NAME=value kiln-agent")
        with Container(network, folder, archives, spec) as agent:
            agent.wait_healthy()

Of options and of compose.yaml only what is understood here is accepted: what a test has read is what it tests.
"""
import argparse
import ctypes
import dataclasses
import json
import os
import pathlib
import shlex
import signal
import subprocess
import sys
import tarfile
import time

import yaml

CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC = 0x00020000, 0x04000000, 0x08000000
CLONE_NEWPID, CLONE_NEWNET, CLONE_NEWCGROUP = 0x20000000, 0x40000000, 0x02000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 1, 2, 4, 8, 32, 4096, 16384, 1 << 18
MNT_DETACH, PR_SET_PDEATHSIG, PR_CAPBSET_DROP, SYS_PIVOT_ROOT = 2, 1, 24, {"x86_64": 155, "aarch64": 41}
# What Docker leaves of root's capabilities: chown, dac_override, fowner, fsetid, kill, setgid, setuid, setpcap,
# net_bind_service, net_raw, sys_chroot, mknod, audit_write, setfcap.
DOCKER_CAPABILITIES = {0, 1, 3, 4, 5, 6, 7, 8, 10, 13, 18, 27, 29, 31}
CAPABILITIES = 41
DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
SUBNET = "10.213.77"


# ---- what to run ----

@dataclasses.dataclass
class Spec:
    image: str
    name: str = "container"
    command: list = None  # None: the image's
    env: dict = dataclasses.field(default_factory=dict)
    binds: list = dataclasses.field(default_factory=list)  # (source or name of a volume, target, read-only)
    ports: list = dataclasses.field(default_factory=list)
    aliases: list = dataclasses.field(default_factory=list)
    needs: dict = dataclasses.field(default_factory=dict)  # service: condition
    healthcheck: list = None  # a command; None: the image's
    privileged: bool = False
    pid_host: bool = False


def bind_of(text, base="."):
    source, target, *mode = text.split(":")
    assert mode in ([], ["ro"]), text
    return (str((pathlib.Path(base) / source).resolve()) if source.startswith(("/", ".")) else source, target, bool(mode))


def docker_run(line):
    parser = argparse.ArgumentParser(prog="docker", exit_on_error=False)
    parser.add_argument("run", choices=["run"])
    for flag in ("--rm", "-d", "--privileged"):
        parser.add_argument(flag, action="store_true")
    parser.add_argument("--pid", choices=["host"])
    parser.add_argument("--name", default="container")
    for letter, name in (("-v", "binds"), ("-e", "env"), ("-p", "ports")):
        parser.add_argument(letter, dest=name, action="append", default=[])
    parser.add_argument("image")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    program, *words = shlex.split(line.replace("\\\n", " "))
    assert program == "docker", line
    said = parser.parse_args(words)
    return Spec(said.image, said.name, said.command or None, dict(item.split("=", 1) for item in said.env),
                [bind_of(text) for text in said.binds], said.ports, privileged=said.privileged, pid_host=said.pid == "host")


def service_of(name, said, base):
    known = {"image", "build", "restart", "environment", "ports", "volumes", "networks", "command", "healthcheck",
             "depends_on", "privileged", "pid"}
    assert said.keys() <= known, said.keys() - known
    networks = said.get("networks", {"default": {}})
    assert networks.keys() == {"default"} and said.get("pid") in (None, "host"), said
    test = said.get("healthcheck", {}).get("test")
    assert test is None or test[0] == "CMD", test
    return Spec(said["image"], name, said.get("command"), said.get("environment", {}),
                [bind_of(text, base) for text in said.get("volumes", [])], said.get("ports", []),
                networks["default"].get("aliases", []),
                {other: how["condition"] for other, how in said.get("depends_on", {}).items()},
                test and test[1:], said.get("privileged", False), said.get("pid") == "host")


def compose(path):
    """The services of a compose.yaml in the order in which they are started."""
    file = yaml.safe_load(path.read_text())
    assert file.keys() == {"services", "volumes"}, file.keys()
    specs = {name: service_of(name, said, path.parent) for name, said in file["services"].items()}
    named = {source for spec in specs.values() for source, *_ in spec.binds if "/" not in source}
    assert named == file["volumes"].keys(), named
    ordered = []
    while len(ordered) < len(specs):
        ordered += [spec for name, spec in specs.items() if spec not in ordered and
                    spec.needs.keys() <= {one.name for one in ordered}]
    return ordered


# ---- images ----

def unpack(archive, target):
    """The configuration of the only image in an archive, whose layers are then below the target."""
    with tarfile.open(archive) as tar:
        def blob(descriptor):
            return tar.extractfile("blobs/" + descriptor["digest"].replace(":", "/"))
        (found,) = json.load(tar.extractfile("index.json"))["manifests"]
        manifest = json.load(blob(found))
        target.mkdir(parents=True)
        for layer in manifest["layers"]:
            subprocess.run(["tar", "-xzp", "--numeric-owner", "-C", target], input=blob(layer).read(), check=True)
        return json.load(blob(manifest["config"]))["config"]


# ---- the network ----

class Network:
    """A bridge in a network namespace of its own; containers on it know each other by name."""

    def __init__(self):
        self.addresses = {}

    def __enter__(self):
        self.holder = subprocess.Popen(["unshare", "--net", "sleep", "infinity"])
        while os.readlink(f"/proc/{self.holder.pid}/ns/net") == os.readlink("/proc/self/ns/net"):
            time.sleep(0.01)
        self.ip(self.holder.pid, "link", "set", "lo", "up")
        self.ip(self.holder.pid, "link", "add", "bridge", "type", "bridge")
        self.ip(self.holder.pid, "addr", "add", f"{SUBNET}.1/24", "dev", "bridge")
        self.ip(self.holder.pid, "link", "set", "bridge", "up")
        return self

    def __exit__(self, *_):
        self.holder.kill()
        self.holder.wait()

    @staticmethod
    def ip(pid, *words):
        subprocess.run(["nsenter", "-t", str(pid), "-n", "ip", *words], check=True)

    def address(self, name):
        return self.addresses.setdefault(name, f"{SUBNET}.{len(self.addresses) + 2}")

    def connect(self, pid, name):
        link = f"veth{pid}"
        self.ip(self.holder.pid, "link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", str(pid))
        self.ip(self.holder.pid, "link", "set", link, "master", "bridge", "up")
        self.ip(pid, "link", "set", "lo", "up")
        self.ip(pid, "addr", "add", f"{self.address(name)}/24", "dev", "eth0")
        self.ip(pid, "link", "set", "eth0", "up")

    def run(self, *words):
        """A command beside the containers, on the bridge."""
        return subprocess.run(["nsenter", "-t", str(self.holder.pid), "-n", *map(str, words)], check=False,
                              capture_output=True, text=True)


# ---- a container ----

class Container:
    """One that runs; gone afterwards."""

    def __init__(self, network, folder, archives, spec, hosts=()):
        """hosts: specs whose names it knows beside its own."""
        self.spec, self.network, self.folder = spec, network, folder / spec.name
        self.root = self.folder / "root"
        self.config = unpack(archives[spec.image], self.root)
        self.log = self.folder / "log"
        self.env = dict(item.split("=", 1) for item in self.config["Env"]) | {
            name: str(value) for name, value in spec.env.items()}
        self.user = [int(number) for number in self.config.get("User", "0:0").split(":")]
        names = "".join(f"{network.address(one.name)} {' '.join([one.name, *one.aliases])}\n" for one in (*hosts, spec))
        (self.root / "etc/hosts").write_text("127.0.0.1 localhost\n" + names)
        (self.root / ".dockerenv").touch()
        self.start(folder / "volumes")

    def start(self, volumes):
        plan = {"root": str(self.root), "binds": [self.prepare(volumes, bind) for bind in self.spec.binds], "env": self.env,
                "user": self.user, "privileged": self.spec.privileged, "pid_host": self.spec.pid_host,
                "name": self.spec.name, "words": self.config["Entrypoint"] + (self.spec.command or self.config["Cmd"])}
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen([sys.executable, __file__, json.dumps(plan)], stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE, stderr=log, text=True)
        self.process.stdout.readline()
        self.network.connect(self.process.pid, self.spec.name)
        print("go", file=self.process.stdin, flush=True)
        self.pid = int(self.process.stdout.readline() or 0)

    def prepare(self, volumes, bind):
        """A volume is made where it is not there, with the owner that its folder has in the image."""
        source, target, read_only = bind
        if "/" in source and os.path.exists(source):
            return bind
        volume = volumes / source.strip("/").replace("/", "-")
        if not volume.exists():
            volume.mkdir(parents=True)
            within = self.root / target.strip("/")
            if within.is_dir():
                os.chown(volume, within.stat().st_uid, within.stat().st_gid)
                volume.chmod(within.stat().st_mode & 0o7777)
        return str(volume), target, read_only

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()  # and the program with it
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()

    def said(self):
        return self.log.read_text(errors="replace")

    def run(self, *words):
        """As docker exec."""
        uid, gid = self.user
        return subprocess.run(["nsenter", "-t", str(self.pid), "-m", "-u", "-i", "-n", "-p", "-C", "-S", str(uid), "-G",
                               str(gid), *words], env=self.env, check=False, capture_output=True, text=True)

    def healthy(self):
        test = self.spec.healthcheck or self.config["Healthcheck"]["Test"][1:]
        return self.run(*test).returncode == 0

    def wait_healthy(self, patience_s=60):
        until = time.monotonic() + patience_s
        while time.monotonic() < until and self.process.poll() is None:
            if self.healthy():
                return True
            time.sleep(0.1)
        return False

    def end(self):
        """As docker stop; the status of the program."""
        os.kill(self.pid, signal.SIGTERM)
        return self.process.wait(60)


# ---- its inside ----

def libc_call(name, *arguments):
    if getattr(ctypes.CDLL(None, use_errno=True), name)(*arguments) < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{name}{arguments}: {os.strerror(error)}")


def mount(source, target, kind, flags, data=""):
    libc_call("mount", str(source).encode(), str(target).encode(), kind.encode(), flags, data.encode())


def bind(source, target, read_only):
    target = pathlib.Path(target)
    if os.path.isdir(source):
        target.mkdir(parents=True, exist_ok=True)
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.touch()
    mount(source, target, "", MS_BIND | MS_REC)
    if read_only:
        mount("", target, "", MS_REMOUNT | MS_BIND | MS_RDONLY)


def mount_all(plan):
    root = pathlib.Path(plan["root"])
    mount("", "/", "", MS_REC | MS_PRIVATE)
    bind(root, root, False)
    for name in ("proc", "sys", "dev"):
        (root / name).mkdir(exist_ok=True)
    mount("proc", root / "proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    mount("sysfs", root / "sys", "sysfs", MS_NOSUID | MS_NODEV | MS_NOEXEC | (0 if plan["privileged"] else MS_RDONLY))
    bind("/sys/fs/cgroup", root / "sys/fs/cgroup", not plan["privileged"])
    mount("dev", root / "dev", "tmpfs", MS_NOSUID, "mode=755")
    for name in DEVICES:
        bind(f"/dev/{name}", root / "dev" / name, False)
    for source, target, read_only in plan["binds"]:
        bind(source, root / target.strip("/"), read_only)
    os.chdir(root)
    libc_call("syscall", SYS_PIVOT_ROOT[os.uname().machine], b".", b".")
    libc_call("umount2", b".", MNT_DETACH)
    os.chdir("/")


def become(plan):
    mount_all(plan)
    name = plan["name"].encode()
    libc_call("sethostname", name, len(name))
    if not plan["privileged"]:
        for number in set(range(CAPABILITIES)) - DOCKER_CAPABILITIES:
            libc_call("prctl", PR_CAPBSET_DROP, number, 0, 0, 0)
    uid, gid = plan["user"]
    os.setgroups([])
    os.setgid(gid)
    os.setuid(uid)
    libc_call("prctl", PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    os.execve(plan["words"][0], plan["words"], plan["env"])


def main():
    """In a process of its own: waits until its network is there, then is the container."""
    plan = json.loads(sys.argv[1])
    libc_call("unshare", CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWNET | CLONE_NEWCGROUP |
              (0 if plan["pid_host"] else CLONE_NEWPID))
    print("there", flush=True)
    sys.stdin.readline()
    pid = os.fork()
    if pid == 0:
        os.dup2(os.open("/dev/null", os.O_RDWR), 0)
        os.dup2(2, 1)
        become(plan)
    print(pid, flush=True)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


if __name__ == "__main__":
    sys.exit(main())
