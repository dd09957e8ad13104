#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files that lie, and an agent that is killed: nothing crashes, nothing is believed, nothing stays behind."""
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(os.environ.get("KILN_SOURCE_DIR", ".")).resolve() / "tests/support"))
from checks import check, exit_code  # noqa: E402
from host_kit import (KILN, PROGRAMS, Folder, has_chain, need_host, record, record_running, resources_of,  # noqa: E402
                      skip, wait_for)

CHAIN = ("burn_leaf", "middle_a", "outer", "main")
MAPPER = """
import mmap, os, sys
maps = []
for name in sorted(os.listdir(sys.argv[1])):
    fd = os.open(os.path.join(sys.argv[1], name), os.O_RDONLY)
    maps.append(mmap.mmap(fd, 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_EXEC))
print(len(maps), flush=True)
while True:
    sum(range(10000))
"""

# Damaged copies have the build id of the whole program: what is read of them must not be kept for it.
os.environ["KILN_SYMBOL_CACHE"] = "off"


def sections(data):
    """Offsets and sizes of what a program does not need to run: section headers, and what only they lead to."""
    shoff = int.from_bytes(data[40:48], "little")
    count = int.from_bytes(data[60:62], "little")
    yield shoff, len(data) - shoff
    for i in range(count):
        header = data[shoff + 64 * i:shoff + 64 * i + 64]
        kind, flags = int.from_bytes(header[4:8], "little"), int.from_bytes(header[8:16], "little")
        offset, size = int.from_bytes(header[24:32], "little"), int.from_bytes(header[32:40], "little")
        if kind != 8 and not flags & 2 and size:  # neither .bss nor loaded
            yield offset, size


def damaged(data, seed):
    """The same program, with rubbish where only readers of its names and tables look."""
    chance, out = random.Random(seed), bytearray(data)
    for offset, size in sections(data):
        for _ in range(max(size // 16, 1)):
            out[chance.randrange(offset, offset + size)] = chance.choice((0, 0x7f, 0x80, 0xff, chance.randrange(256)))
    return bytes(out)


def garbage(data, seed):
    """Something that begins like an ELF file."""
    chance = random.Random(seed)
    out = bytearray(data[:chance.randrange(64, len(data))])
    for _ in range(chance.randrange(1, 400)):
        out[chance.randrange(16, len(out))] = chance.randrange(256)
    return bytes(out)


def damaged_tables(data, seed):
    """The same program, with rubbish in the tables that stacks are walked by: a program that throws nothing runs."""
    chance, out = random.Random(seed), bytearray(data)
    shoff, names = int.from_bytes(data[40:48], "little"), int.from_bytes(data[62:64], "little")
    texts = int.from_bytes(data[shoff + 64 * names + 24:shoff + 64 * names + 32], "little")
    for at in range(shoff, shoff + 64 * int.from_bytes(data[60:62], "little"), 64):
        name = texts + int.from_bytes(data[at:at + 4], "little")
        if data[name:data.index(0, name)] in (b".eh_frame", b".eh_frame_hdr"):
            offset, size = int.from_bytes(data[at + 24:at + 32], "little"), int.from_bytes(data[at + 32:at + 40], "little")
            for _ in range(chance.choice((1, 4, size // 16))):
                out[chance.randrange(offset, offset + size)] = chance.choice((0, 1, 0x7f, 0x80, 0xff, chance.randrange(256)))
    return bytes(out)


def check_tables(folder):
    data = (PROGRAMS / "chain").read_bytes()
    (folder / "torn").mkdir()
    for seed in range(16):
        path = folder / "torn" / f"torn-{seed}"
        path.write_bytes(damaged_tables(data, seed))
        path.chmod(0o755)
    script = "".join(f"{path} 0.15 & " for path in sorted((folder / "torn").iterdir())) + f"{PROGRAMS}/chain 1; wait"
    rec = record(folder, "sh", "-c", script)
    check("programs with rubbish in .eh_frame", rec.code == 0 and rec.total > 20, rec.said)
    check("beside them, a program that is well", rec.count_chain(*CHAIN) > 20, rec.worst(lambda f: has_chain(f, CHAIN)))


NAMES = (b"new\nline", b"esc\x1b[31mred", b"quo\"te'\\", b"inv\xff\xfealid", b"c1\xc2\x9b31m", b"x" * 250)
SECRET = "hunter2"


def check_names(folder):
    """Names of programs that are no names, and arguments and variables that are nobody's business."""
    children = []
    for name in NAMES:
        path = os.fsencode(folder) + b"/" + name
        shutil.copy(PROGRAMS / "chain", path)
        children.append(subprocess.Popen([b"job --password=" + SECRET.encode(), b"60", SECRET.encode()], executable=path,
                                         env={b"SECRET": SECRET.encode(), b"OTEL_SERVICE_NAME": b"svc\x1b[1m\n\xff"}))
    try:
        rec = record_running(folder, *(child.pid for child in children))
    finally:
        for child in children:
            child.kill()
            child.wait()
    check("programs with names that are none", rec.code == 0 and rec.total > 20, rec.said)
    for words in (("top",), ("info",), ("tree",), ("convert", "--to", "collapsed"), ("convert", "--to", "otlp-json")):
        done = subprocess.run([KILN, *words, rec.path], capture_output=True, check=False)
        text = done.stdout.decode("utf-8")  # or it throws
        odd = [c for c in text if c != "\n" and (ord(c) < 32 or (0x7f <= ord(c) < 0xa0 and "otlp-json" not in words))]
        check(f"kiln {' '.join(words)}: nothing that moves a cursor", done.returncode == 0 and not odd, (odd, done.stderr))
        check(f"kiln {' '.join(words)}: no secrets", SECRET not in text, text)
    check("nor in the file", SECRET.encode() not in rec.path.read_bytes())
    commands = {attributes.get("process.command") for attributes, _ in resources_of(rec.path)}
    check("a command is its first word", commands == {"job"}, commands)


def check_programs(folder):
    """Programs that run, and whose tables and names are rubbish; beside one that is well."""
    data = (PROGRAMS / "chain").read_bytes()
    (folder / "bad").mkdir()
    for seed in range(12):
        path = folder / "bad" / f"bad-{seed}"
        path.write_bytes(damaged(data, seed))
        path.chmod(0o755)
    script = "".join(f"{path} 0.15 & " for path in sorted((folder / "bad").iterdir())) + f"{PROGRAMS}/chain 1; wait"
    rec = record(folder, "sh", "-c", script)
    check("programs with rubbish for tables and names", rec.code == 0 and rec.total > 20, rec.said)
    check("a program that is well is seen as ever", rec.count_chain(*CHAIN) > 20, rec.worst(lambda f: has_chain(f, CHAIN)))


def check_mappings(folder):
    """A process that maps files as code which are none."""
    data = (PROGRAMS / "chain").read_bytes()
    (folder / "garbage").mkdir()
    for seed in range(200):
        (folder / "garbage" / str(seed)).write_bytes(garbage(data, seed))
    process = subprocess.Popen([sys.executable, "-c", MAPPER, folder / "garbage"], stdout=subprocess.PIPE, text=True)
    try:
        process.stdout.readline()
        rec = record_running(folder, process.pid)
    finally:
        process.kill()
        process.wait()
    check("a process with 200 mappings of garbage", rec.code == 0 and rec.total > 20, rec.said)
    check(f"its stacks are walked: {rec.summary.get('complete', 0):.1%}", rec.summary.get("complete", 0) > 0.95, rec.said)


class Jit:
    """The program that makes its code, and the line that names it."""

    def __enter__(self):
        self.process = subprocess.Popen([PROGRAMS / "jit", "600"], stdout=subprocess.PIPE, text=True)
        self.line = self.process.stdout.readline()
        self.map = pathlib.Path(f"/tmp/perf-{self.process.pid}.map")
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        if self.map.is_dir():
            self.map.rmdir()
        else:
            self.map.unlink(missing_ok=True)

    def record(self, folder):
        return record_running(folder, self.process.pid, seconds=0.6)


def check_perf_map(folder):
    with Jit() as jit:
        rec = jit.record(folder)
        check("code made at run time, without a map", rec.count_chain("[jit]", "outer", "main") > 0.9 * rec.total and
              rec.total > 20, rec.stacks)
    with Jit() as jit:
        jit.map.write_text(jit.line)
        rec = jit.record(folder)
        check("with a map: its name", rec.count_chain("jitted", "outer", "main") > 0.9 * rec.total, rec.stacks)
    (folder / "target").write_text("")

    def hostile(make, what):
        with Jit() as jit:
            (folder / "target").write_text(jit.line.replace("jitted", "stolen"))
            make(jit)
            rec = jit.record(folder)
            check(f"a map that is {what}: not believed", rec.code == 0 and rec.total > 20 and
                  rec.count(lambda f: "stolen" in f) == 0 and rec.count(lambda f: "outer" in f) > 0.9 * rec.total,
                  (rec.said, rec.stacks))

    hostile(lambda jit: jit.map.symlink_to(folder / "target"), "a link")
    hostile(lambda jit: os.mkfifo(jit.map), "a pipe")
    hostile(lambda jit: jit.map.mkdir(), "a folder")
    hostile(lambda jit: (shutil.copy(folder / "target", jit.map), os.chown(jit.map, 65534, 65534)), "somebody else's")
    hostile(lambda jit: jit.map.write_bytes(random.Random(1).randbytes(1 << 20)), "rubbish")
    hostile(lambda jit: jit.map.write_text("ffffffffffffffff ffffffffffffffff stolen\n0 ffffffffffffffff " +
                                           "x" * 100000 + "\n"), "full of addresses that are none")


def objects():
    """Programs and maps in the kernel, by id."""
    found = set()
    for kind in ("prog", "map"):
        done = subprocess.run(["bpftool", "-j", kind, "list"], capture_output=True, text=True, check=True)
        found |= {(kind, item["id"]) for item in json.loads(done.stdout)}
    return found


def objects_of(pid):
    """Those that a process holds."""
    found = set()
    for path in pathlib.Path(f"/proc/{pid}/fdinfo").iterdir():
        try:
            found |= {(kind, int(number)) for kind, number in re.findall(r"^(prog|map)_id:\s*(\d+)$", path.read_text(), re.M)}
        except OSError:
            pass  # closed meanwhile
    return found


def check_killed(folder):
    if not shutil.which("bpftool"):
        print("skipped: bpftool is not here to look at what is in the kernel")
        return
    pinned = sorted(pathlib.Path("/sys/fs/bpf").rglob("*"))
    process = subprocess.Popen([KILN, "record", "-a", "-o", folder / "killed.otlp"], stderr=subprocess.DEVNULL)
    wait_for(lambda: {kind for kind, _ in objects_of(process.pid)} == {"prog", "map"})
    ours = objects_of(process.pid)
    check("an agent has programs and maps in the kernel", ours and ours <= objects(), ours)
    children = subprocess.run(["ps", "--ppid", str(process.pid), "-o", "pid="], capture_output=True, text=True,
                              check=False).stdout.split()
    process.kill()
    process.wait()
    wait_for(lambda: not objects() & ours and not any(os.path.exists(f"/proc/{pid}") for pid in children))
    check("killed, it leaves none", not objects() & ours, objects() & ours)
    check("nor anything pinned", sorted(pathlib.Path("/sys/fs/bpf").rglob("*")) == pinned, pinned)
    check("nor a child", not any(os.path.exists(f"/proc/{pid}") for pid in children), children)
    check("nor a file", not list(folder.glob("killed*")), list(folder.glob("killed*")))


def main():
    need_host("chain", "jit")
    if os.geteuid() != 0:
        skip("files of somebody else are made by root alone")
    with Folder() as folder:
        check_killed(folder)
        check_programs(folder)
        check_tables(folder)
        check_names(folder)
        check_mappings(folder)
        check_perf_map(folder)
    return exit_code()


if __name__ == "__main__":
    sys.exit(main())
