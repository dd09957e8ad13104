#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The kernel of this Debian, booted under qemu: 6.1 on Debian 12, the oldest that the host profiler runs on, 6.12 on Debian 13.

Its image is taken from Debian's package (downloaded and unpacked into the build folder once, not installed),
or from $KILN_KERNEL.  The machine has nothing but busybox and what is tested, each with its libraries: the
tests of the program in the kernel and of the side-band, and `kiln record` of a known program.

Debian's kernels refuse perf events to CAP_PERFMON where kernel.perf_event_paranoid is above 2, their default: the
agent runs there as another user than root, with the capabilities of its unit.
"""
import os
import pathlib
import re
import shutil
import stat
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from checks import check, exit_code  # noqa: E402
from host_kit import skip  # noqa: E402

BUILD = pathlib.Path(os.environ["KILN_BUILD_DIR"])
LIMIT_S = 540
INIT = """#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev
mount -t cgroup2 none /sys/fs/cgroup; mount -t tmpfs none /tmp
ln -sf dash /bin/sh
echo 1 > /proc/sys/kernel/printk
echo "RELEASE $(uname -r)"
{commands}
poweroff -f
"""


def tool(name):
    return shutil.which(name) or skip(f"there is no {name}")


def unpack_kernel(folder):
    """The image of the newest kernel package of this release, unpacked."""
    for name in ("apt-cache", "apt-get", "dpkg-deb"):
        tool(name)
    depends = subprocess.run(["apt-cache", "depends", "linux-image-cloud-amd64"], text=True, check=False,
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    package = re.search(r"linux-image-\d[\w.+-]+", depends)
    if not package:
        skip("no package with a kernel is known here")
    with tempfile.TemporaryDirectory() as temporary:
        got = subprocess.run(["apt-get", "download", "-qq", package[0]], cwd=temporary, check=False, timeout=120,
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        files = list(pathlib.Path(temporary).glob("*.deb"))
        if got.returncode or not files:
            skip(f"{package[0]} cannot be downloaded")
        subprocess.run(["dpkg-deb", "-x", files[0], temporary + "/root"], check=True)
        image = next(pathlib.Path(temporary, "root/boot").glob("vmlinuz-*"))
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(image, folder / "vmlinuz.new")
        (folder / "vmlinuz.new").rename(folder / "vmlinuz")


def find_kernel():
    if os.environ.get("KILN_KERNEL"):
        return pathlib.Path(os.environ["KILN_KERNEL"])
    folder = BUILD / "debian_kernel"
    if not (folder / "vmlinuz").exists():
        unpack_kernel(folder)
    return folder / "vmlinuz"


class Archive:
    """A cpio archive as the kernel unpacks it: entries of a header of hexadecimal numbers, name, content."""

    def __init__(self):
        self.bytes = bytearray()
        self.names = set()

    def _entry(self, name, mode, data=b""):
        name = name.encode() + b"\0"
        numbers = [len(self.names) + 1, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name), 0]
        self.bytes += b"070701" + b"".join(b"%08X" % n for n in numbers) + name
        self.bytes += bytes(-len(self.bytes) % 4) + data
        self.bytes += bytes(-len(self.bytes) % 4)

    def folder(self, path):
        for parent in [*reversed(pathlib.PurePath(path).parents), pathlib.PurePath(path)]:
            if str(parent) not in (".", "/") and str(parent) not in self.names:
                self._entry(str(parent), stat.S_IFDIR | 0o755)
                self.names.add(str(parent))

    def file(self, path, data, mode=0o755):
        if path not in self.names:
            self.folder(str(pathlib.PurePath(path).parent))
            self._entry(path, stat.S_IFREG | mode, data)
            self.names.add(path)

    def program(self, path, name=None):
        """A program with the libraries that it is linked to."""
        self.file("bin/" + (name or path.name), path.read_bytes())
        linked = subprocess.run(["ldd", path], text=True, check=False, stdout=subprocess.PIPE,
                                stderr=subprocess.DEVNULL).stdout
        for library in re.findall(r"(/\S+) \(0x", linked):
            self.file(library.lstrip("/"), pathlib.Path(library).read_bytes())

    def finish(self):
        self._entry("TRAILER!!!", 0)
        return bytes(self.bytes)


def make_image(programs, commands):
    archive = Archive()
    for name in ("proc", "sys", "dev", "tmp", "etc", "root"):
        archive.folder(name)
    archive.file("init", INIT.format(commands=commands).encode())
    archive.program(pathlib.Path(tool("busybox")))
    archive.program(pathlib.Path("/bin/dash").resolve(), "dash")
    for program in programs:
        archive.program(program)
    return archive.finish()


def boot(kernel, image):
    with tempfile.NamedTemporaryFile(suffix=".cpio") as file:
        file.write(image)
        file.flush()
        command = [tool("qemu-system-x86_64"), "-accel", "tcg,thread=multi", "-cpu", "max", "-m", "1024", "-smp",
                   "2", "-nographic", "-no-reboot", "-nic", "none", "-kernel", kernel, "-initrd", file.name,
                   "-append", "console=ttyS0 quiet panic=-1"]
        try:
            run = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=False,
                                 stderr=subprocess.STDOUT, timeout=LIMIT_S)
            out = run.stdout
        except subprocess.TimeoutExpired as late:
            out = (late.stdout or b"") + b"\nTOO LATE\n"
    return out.decode("utf-8", "replace").replace("\r", "")


PARANOID = """
ip link set lo up
sysctl -w kernel.perf_event_paranoid=3
cat > /tmp/hotplug << EOF
echo 0 > /sys/devices/system/cpu/cpu1/online; sleep 12; echo 1 > /sys/devices/system/cpu/cpu1/online; sleep 25
EOF
/bin/setpriv {who} kiln doctor --offline > /tmp/doctor; echo RESULT doctor-paranoid $?; grep -A 4 "perf_event_paranoid " /tmp/doctor
/bin/setpriv {without} kiln record -a -d 1s -o /tmp/none.pb; echo RESULT record-paranoid $?
mkdir -m 777 /tmp/agent
chain 120 & /bin/setpriv {who} kiln agent --endpoint http://127.0.0.1:9 --listen 127.0.0.1:4041 --spool off --data-dir /tmp/agent \
    --socket off --symbol-cache /tmp/agent/symbols --cpu-budget off --report-interval 1s > /tmp/agent.log 2>&1 & agent=$!
for i in $(seq 60); do wget -q -O - http://127.0.0.1:4041/metrics | grep -q "^kiln_host_samples_total [1-9]" && break; sleep 1; done
for task in /proc/$agent/task/*; do echo AGENT $(grep -h CapEff $task/status) $(grep -h CapPrm $task/status); done
for child in $(cat /proc/$agent/task/*/children); do echo CHILD $(cat /proc/$child/comm) $(grep -h CapPrm /proc/$child/status); done
wget -q -O - http://127.0.0.1:4041/metrics | grep "^kiln_host_samples_total" | sed "s/^/BEFORE /"
echo BEFORE events $(ls -l /proc/$agent/fd | grep -c perf_event)
sh /tmp/hotplug
wget -q -O - http://127.0.0.1:4041/metrics | grep "^kiln_host_samples_total" | sed "s/^/AFTER /"
echo AFTER events $(ls -l /proc/$agent/fd | grep -c perf_event)
kill $agent; wait $agent; echo RESULT agent-paranoid $?; cat /tmp/agent.log
"""


def unit_capabilities():
    """What the agent's unit grants, in the words of setpriv."""
    unit = pathlib.Path(os.environ.get("KILN_SOURCE_DIR", "."), "packaging/systemd/kiln-agent.service").read_text()
    return re.search(r"^AmbientCapabilities=(.*)$", unit, re.M)[1].lower().replace("cap_", "").split()


def as_nobody(capabilities):
    named = ",".join(["-all", *(f"+{one}" for one in capabilities)])
    return f"--reuid 65534 --regid 65534 --clear-groups --inh-caps {named} --ambient-caps {named} --bounding-set {named}"


def paranoid_commands():
    granted = unit_capabilities()
    return PARANOID.format(who=as_nobody(granted), without=as_nobody([one for one in granted if one != "sys_admin"]))


def check_paranoid(text):
    admin = 1 << 21
    sets = [(int(effective, 16), int(permitted, 16)) for effective, permitted in
            re.findall(r"^AGENT CapEff: (\w+) CapPrm: (\w+)$", text, re.M)]
    children = dict(re.findall(r"^CHILD (\S+) CapPrm: (\w+)$", text, re.M))
    check("the kernel is one of those that ask for CAP_SYS_ADMIN", "RESULT record-paranoid 4" in text and
          "kernel.perf_event_paranoid is above 2" in text and "sysctl kernel.perf_event_paranoid=2" in text, text)
    check("kiln doctor works with the capabilities of the unit", "RESULT doctor-paranoid 0" in text)
    check("and says what overrules the level", "3, which CAP_SYS_ADMIN overrules" in text)
    check("no thread of the agent has CAP_SYS_ADMIN", len(sets) > 2 and not any((e | p) & admin for e, p in sets), sets)
    check("the child that opens events has", int(children.get("kiln-opener", "0"), 16) == admin | 1 << 38, children)
    check("no other child has", all(int(found, 16) == 0 for name, found in children.items() if name != "kiln-opener"), children)
    before, after = (dict(re.findall(rf"^{when} (\w+) (\d+)", text, re.M)) for when in ("BEFORE", "AFTER"))
    check("samples come", int(before.get("kiln_host_samples_total", 0)) > 0, before)
    check("and go on", int(after.get("kiln_host_samples_total", 0)) > int(before.get("kiln_host_samples_total", 0)), after)
    check("a processor that went and came back has its events again", before.get("events") == after.get("events") == "4",
          (before, after))
    check("the agent ends well", "RESULT agent-paranoid 0" in text, text)


def known_shares(text):
    """The total of each function of the known program, as `kiln top` printed it, in percent."""
    return {name: float(share) for share, name in re.findall(r"([\d.]+)% +(\w+) +\S*/chain$", text, re.M)}


def check_recording(text):
    shares = known_shares(text)
    check("kiln record ends well", "RESULT record 0" in text)
    complete = re.search(r"stacks +([\d.]+) % complete", text)
    check("its stacks are complete", complete and float(complete[1]) >= 95, complete and complete[0])
    check("the functions of the known program are named",
          {"main", "outer", "middle_a", "middle_b", "burn_leaf", "burn_other"} <= set(shares), shares)
    check("three quarters are burnt in burn_leaf", 60 < shares.get("burn_leaf", 0) < 90, shares)


def check_waits(text):
    """Waits of the program that measures its own: here the kernel has no hook in the thread that runs again."""
    truth = {name: (int(wall) - int(cpu)) / 1e9 for name, wall, cpu in
             re.findall(r"^(wait_for_\w+) (\d+) (\d+)$", text, re.M)}
    check("kiln record --wall ends well", "RESULT waits 0" in text and len(truth) == 4, truth)
    for name, waited in truth.items():
        found = sum(int(ns) for stack, ns in re.findall(r"^(\S+) (\d+)$", text, re.M) if f";{name};" in stack) / 1e9
        check(f"{name} waited {waited:.2f} s, sampled {found:.2f} s", 0.7 * waited < found < 1.4 * waited)


def main():
    kernel = find_kernel()
    tests = [test for test in (BUILD / "host_kernel", BUILD / "host_sideband") if test.exists()]
    known = BUILD / "programs/chain"
    commands = [f"{test.name}; echo RESULT {test.name} $?" for test in tests]
    programs = [pathlib.Path(os.environ["KILN"]), *tests]
    if known.exists():
        programs.append(known)
        commands += ["kiln record -F 97 -o /tmp/chain.pb /bin/chain 2 2>&1; echo RESULT record $?",
                     "kiln top /tmp/chain.pb | cat"]
    waiting = BUILD / "programs/waiting"
    if waiting.exists():
        programs.append(waiting)
        commands += ["kiln record -F 97 --wall -o /tmp/waits.otlp /bin/waiting 1 40 2>&1; echo RESULT waits $?",
                     "kiln convert /tmp/waits.otlp --to collapsed -t off_cpu | cat"]
    has_setpriv = shutil.which("setpriv") and known.exists()
    if has_setpriv:
        programs.append(pathlib.Path(shutil.which("setpriv")))
        commands.append(paranoid_commands())
    text = boot(kernel, make_image(programs, "\n".join(commands)))
    print(text[text.find("RELEASE"):])
    check("a kernel of Debian ran", re.search(r"RELEASE 6\.\S+-amd64", text), text)
    for test in tests:
        check(f"{test.name} passes there", f"RESULT {test.name} 0" in text)
    if known.exists():
        check_recording(text)
    if waiting.exists():
        check_waits(text)
    if has_setpriv:
        check_paranoid(text)
    return exit_code()


if __name__ == "__main__":
    sys.exit(main())
