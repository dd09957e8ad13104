#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Names as binutils read them: wherever a symbol of type function covers an address, the confined
child of the resolver names it, by one of the names that readelf lists for that place, and nothing
that no symbol covers has a name.  Programs and libraries of the machine, programs made here (packed
symbols, C++, Rust, Go, stubs), and the kernel.

Speaks the child's own protocol (src/symbol/names_wire.h) to `kiln --names-child`.
"""
import bisect
import os
import pathlib
import random
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "support"))
from checks import check, exit_code  # noqa: E402

KILN = os.environ.get("KILN", "build/kiln")
ELF, KERNEL, PERF_MAP = range(3)
SAID_NAMES = 1
MEMORY = 256 << 20
SYMBOLS_MAX = 1500  # asked for in each file, at three addresses each
TYPES = ("FUNC", "IFUNC")
FILES = ["/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2", "/usr/bin/bash",
         "/lib/x86_64-linux-gnu/libm.so.6", "/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
         "/usr/lib/x86_64-linux-gnu/libcrypto.so.3", "/usr/bin/perl", "/usr/bin/python3.11",
         "/usr/lib/x86_64-linux-gnu/libpython3.11.so.1.0", "/usr/bin/node",
         "/usr/lib/x86_64-linux-gnu/libLLVM-14.so.1", "/usr/bin/git", KILN]


class Child:
    """The confined process."""

    def __init__(self):
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket = ours
        self.number = self.id = 0
        # Its socket is descriptor 3.
        command = f'exec 3<&{theirs.fileno()}; exec "$0" --names-child'
        self.process = subprocess.Popen(["bash", "-c", command, KILN], pass_fds=[theirs.fileno()])
        theirs.close()
        greeting = struct.pack("<QQQII", MEMORY, 1000, 0, 60000, 0)
        ours.send(greeting)
        assert ours.recv(len(greeting)) == greeting

    def ask(self, path, addresses, kind=ELF):
        """[(function, system name, file, line, module, begin)] of the addresses; None: no such file."""
        self.id += 1
        found = []
        with open(path, "rb") as file:
            for at in range(0, len(addresses), 512):
                part = self.ask_some(file, addresses[at:at + 512], kind)
                if part is None:
                    return None
                found += part
        return found

    def ask_some(self, file, addresses, kind):
        self.number += 1
        head = struct.pack("<IIQQIIII", self.number, kind, self.id, 1, len(addresses), 0, 0, 0)  # no lines
        body = struct.pack(f"<{len(addresses)}Q", *addresses)
        socket.send_fds(self.socket, [head + body], [file.fileno()])
        found = []
        while len(found) < len(addresses):
            packet = self.socket.recv(1 << 17)
            if not packet:
                raise RuntimeError(f"the child died: {self.process.wait()}")
            what, number, status, first, n, _ = struct.unpack_from("<IIiIII", packet)
            if what != SAID_NAMES:
                continue
            assert number == self.number and first == len(found)
            if status:
                return None
            found += names_of(packet, n)
        return found


def names_of(packet, n):
    """The innermost function of each."""
    at = 24
    for _ in range(n):
        frames, size, _, begin = struct.unpack_from("<HHIQ", packet, at)
        module = packet[at + 16:at + 16 + size].decode()
        at += 16 + size
        found = []
        for _ in range(frames):
            *sizes, _, line, _, _ = struct.unpack_from("<HHHHIII", packet, at)
            at += 20
            texts = []
            for size in sizes:
                texts.append(packet[at:at + size].decode())
                at += size
            found.append((*texts, line))
        function, system, file, line = found[0] if found else ("", "", "", 0)
        yield function, system or function, file, line, module, begin


# ---- what binutils say ----

def run(*command, **more):
    return subprocess.run(command, check=True, capture_output=True, text=True, **more).stdout


def code_ranges(path):
    """Sections with code."""
    ranges = []
    for line in run("readelf", "-SW", path).splitlines():
        row = re.match(r"\s*\[\s*\d+\] (\S+)\s+\S+\s+([0-9a-f]{16}) [0-9a-f]+ ([0-9a-f]+) \S+\s+(\S*)", line)
        if row and "X" in row[4]:
            ranges.append((int(row[2], 16), int(row[2], 16) + int(row[3], 16), row[1]))
    return ranges


def symbols(path):
    """(start, size, name, type) of functions and labels that are in code."""
    code = code_ranges(path)
    found = set()
    for line in run("readelf", "-sW", path).splitlines():
        row = line.split()
        if len(row) < 8 or row[3] not in TYPES + ("NOTYPE",) or row[6] in ("UND", "ABS"):
            continue
        start = int(row[1], 16)
        if any(begin <= start < end for begin, end, _ in code):
            found.add((start, int(row[2], 0), row[7].split("@")[0], row[3]))
    return sorted(found), code




class Truth:
    def __init__(self, path):
        every, self.code = symbols(path)
        self.functions = [s for s in every if s[3] in TYPES and s[1] > 0]
        self.others = [s for s in every if s[1] == 0 or s[3] == "NOTYPE"]
        self.pages = {}
        for start, size, name, _ in self.functions:
            for page in range(start >> 12, (start + size - 1 >> 12) + 1):
                self.pages.setdefault(page, []).append((start, size, name))

    def names(self, address):
        cover = [s for s in self.pages.get(address >> 12, []) if s[0] <= address < s[0] + s[1]]
        last = max((s[0] for s in cover), default=None)
        return {s[2] for s in cover if s[0] == last}

    def addresses(self, rng):
        chosen = self.functions
        if len(chosen) > SYMBOLS_MAX:
            chosen = rng.sample(chosen, SYMBOLS_MAX)
        for start, size, _, _ in chosen:
            yield start
            yield start + size - 1
            yield start + rng.randrange(size)

    def gaps(self, rng):
        """Addresses of code that no function covers, beside stubs and symbols without a size."""
        for _ in range(2000):
            begin, end, section = rng.choice(self.code)
            address = rng.randrange(begin, end) if end > begin else begin
            if not section.startswith(".plt") and not self.names(address):
                yield address


def compare(child, path, rng):
    truth = Truth(path)
    addresses = list(truth.addresses(rng))
    found = child.ask(path, addresses) or []
    wrong = [(hex(address), name, sorted(truth.names(address))[:3])
             for address, name in zip(addresses, found) if name[1] not in truth.names(address)]
    check(f"{path}: {len(addresses)} addresses in {len(truth.functions)} functions",
          found and not wrong, wrong[:5])
    known = {name for _, _, name, _ in truth.others}
    gaps = list(truth.gaps(rng))
    named = [(hex(address), name[1]) for address, name in zip(gaps, child.ask(path, gaps) or [])
             if name[1] and name[1] not in known]
    check(f"{path}: {len(gaps)} addresses that are in none", not named, named[:5])


def beginnings(child, path, rng):
    """Where functions without a name begin, as readelf reads the frames."""
    # It goes on to a file of debug information, where there is one: that has no frames, and it fails.
    done = subprocess.run(["readelf", "-wf", path], check=False, capture_output=True, text=True)
    frames = sorted((int(begin, 16), int(end, 16)) for begin, end in
                    re.findall(r" FDE .*pc=([0-9a-f]+)\.\.([0-9a-f]+)", done.stdout))
    begins = [begin for begin, _ in frames]
    gaps = list(Truth(path).gaps(rng))
    wrong, seen = [], set()
    for address, name in zip(gaps, child.ask(path, gaps)):
        at = bisect.bisect_right(begins, address) - 1
        covered = at >= 0 and address < frames[at][1] and not name[0]
        expected = frames[at][0] if covered else 0
        if name[5] != expected:
            wrong.append((hex(address), name, hex(expected)))
        seen.add(expected)
    check(f"{path}: {len(seen)} beginnings of functions without a name", len(seen) > 50 and not wrong, wrong[:5])


# ---- programs made here ----

PROGRAM = """
static int twice(int x) __attribute__((noinline));
static int twice(int x) { return x * 2 + (x >> 3); }
__attribute__((noinline)) int hidden_one(int x) { return twice(x) + 7; }
int main(int argc, char **argv) { (void)argv; return hidden_one(argc); }
"""

CPP = """
#include <vector>
namespace kiln { template <class T> __attribute__((noinline)) T sum(const std::vector<T> &v) {
  T s{}; for (auto x : v) s += x; return s; } }
int main(int n, char **) { return kiln::sum(std::vector<int>(n, 2)); }
"""

RUST = """
mod inner { #[inline(never)] pub fn add_up(v: &[u64]) -> u64 { v.iter().sum() } }
fn main() { println!("{}", inner::add_up(&std::env::args().map(|a| a.len() as u64).collect::<Vec<_>>())); }
"""

GO = """package main
import "os"
//go:noinline
func addUp(n int) int {
	return n*3 + 1
}
func main() { os.Exit(addUp(len(os.Args))) }
"""


def address_of(path, pattern):
    """The first function whose name matches."""
    for start, size, name, kind in symbols(path)[0]:
        if kind in TYPES and size and re.search(pattern, name):
            return start
    raise LookupError(pattern)


def packed(child, folder):
    """Mini-debuginfo, as Fedora's packages have it."""
    plain = folder / "plain"
    (folder / "p.c").write_text(PROGRAM)
    run("gcc", "-O2", "-o", plain, folder / "p.c")
    wanted = [address_of(plain, "^twice"), address_of(plain, "^hidden_one$")]
    run("objcopy", "--only-keep-debug", plain, folder / "debug")
    run("xz", "-k", folder / "debug")
    run("strip", "-o", folder / "stripped", plain)
    found = child.ask(folder / "stripped", wanted)
    check("stripped: no names", [n[0] for n in found] == ["", ""], found)
    run("objcopy", f"--add-section=.gnu_debugdata={folder}/debug.xz", folder / "stripped", folder / "mini")
    found = child.ask(folder / "mini", wanted)
    check("packed symbols are found", found[0][0].startswith("twice") and found[1][0] == "hidden_one", found)


def stubs(child, path):
    """What objdump calls them; where that is an address, what is there."""
    truth = Truth(path)
    wanted = {}
    out = run("objdump", "-d", *(word for name in (".plt", ".plt.sec", ".plt.got", ".iplt")
                                 for word in ("-j", name)), path)
    for line in out.splitlines():
        row = re.match(r"([0-9a-f]+) <(?:\*ABS\*\+0x([0-9a-f]+)|([^*>]+))@plt>:", line)
        names = row and ({row[3].split("@")[0]} if row[3] else truth.names(int(row[2], 16)))
        if names:
            wanted[int(row[1], 16)] = {name + "@plt" for name in names}
    addresses = sorted(wanted)
    found = child.ask(path, [a + 4 for a in addresses]) if addresses else []
    wrong = [(hex(a), n[1], wanted[a]) for a, n in zip(addresses, found) if n[1] not in wanted[a]]
    check(f"{path}: {len(addresses)} stubs", addresses and not wrong, wrong[:5])


def languages(child, folder):
    (folder / "p.cc").write_text(CPP)
    run("g++", "-O2", "-o", folder / "cpp", folder / "p.cc")
    found = child.ask(folder / "cpp", [address_of(folder / "cpp", "kiln3sum")])
    check("C++", found[0][0] == "kiln::sum<int>" and
          found[0][1].startswith("_ZN4kiln3sum"), found)
    if shutil.which("rustc"):
        (folder / "p.rs").write_text(RUST)
        run("rustc", "-O", "-o", folder / "rust", folder / "p.rs")
        found = child.ask(folder / "rust", [address_of(folder / "rust", "add_up")])
        check("Rust", found[0][0].endswith("inner::add_up"), found)
    if shutil.which("go"):
        (folder / "p.go").write_text(GO)
        run("go", "build", "-o", folder / "go", folder / "p.go", cwd=folder)
        address = address_of(folder / "go", r"^main\.addUp$")
        run("strip", "-o", folder / "go-stripped", folder / "go")
        for name in ("go", "go-stripped"):
            found = child.ask(folder / name, [address])
            check(f"Go: function, file and line of {name}", found[0][0] == "main.addUp" and
                  found[0][2].endswith("p.go") and found[0][3] in (4, 5), found)


def kernel(child):
    rows = [line.split() for line in open("/proc/kallsyms", encoding="ascii")]
    functions = [(int(row[0], 16), row[2], row[3] if len(row) > 3 else "") for row in rows
                 if row[1] in "tTwW" and int(row[0], 16) and row[3:] != ["[bpf]"]]  # which come and go
    if not functions:
        check("a kernel that hides its addresses has no names", child.ask("/proc/kallsyms", [1], KERNEL) is None)
        return
    by_address = {}
    for address, name, module in functions:
        by_address.setdefault(address, set()).add((name, module.strip("[]")))
    addresses = sorted(by_address)
    found = child.ask("/proc/kallsyms", addresses, KERNEL)
    wrong = [(hex(a), n, by_address[a]) for a, n in zip(addresses, found)
             if (n[1], n[4]) not in by_address[a]]
    check(f"kernel: {len(addresses)} functions", not wrong, wrong[:5])


def main():
    if not shutil.which("readelf") or not shutil.which("gcc"):
        print("skipped: no binutils")
        return 77
    rng = random.Random(6)
    child = Child()
    for path in FILES:
        if os.path.exists(path):
            compare(child, path, rng)
    beginnings(child, "/usr/bin/bash", rng)
    beginnings(child, "/lib/x86_64-linux-gnu/libc.so.6", rng)
    stubs(child, "/usr/bin/bash")
    stubs(child, "/usr/bin/git")
    stubs(child, "/lib/x86_64-linux-gnu/libc.so.6")
    with tempfile.TemporaryDirectory() as folder:
        packed(child, pathlib.Path(folder))
        run("gcc", "-O2", "-static", "-o", f"{folder}/static", f"{folder}/p.c")
        compare(child, f"{folder}/static", rng)
        begin = next(row[0] for row in code_ranges(f"{folder}/static") if row[2] == ".plt")
        found = child.ask(f"{folder}/static", [begin, begin + 7, begin + 8])
        check("stubs of a static program", all(n[0].endswith("@plt") for n in found) and
              found[0] == found[1] != found[2], found)
        languages(child, pathlib.Path(folder))
    kernel(child)
    child.socket.close()
    check("the child ends when nobody asks any more", child.process.wait(10) == 0)
    return exit_code()


if __name__ == "__main__":
    sys.exit(main())
