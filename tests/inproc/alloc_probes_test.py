#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Probes otel_memory:alloc and free, as whoever attaches sees them: found by the notes of the library, counted by its
semaphores, their arguments read by the kernel at each hit.  What they add up to is what the program knows of itself.
Where the machine was too busy for the library's thread to follow, it says so, and the program runs again."""
import math
import mmap
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(os.environ.get("KILN_SOURCE_DIR", ".")).resolve() / "tests/support"))
from checks import check, exit_code  # noqa: E402
from time_kit import lost  # noqa: E402
from uprobe_kit import missing, offset_of, open_probe  # noqa: E402

SCRATCH = tempfile.TemporaryDirectory()
# A copy: a probe is of a file, in whatever process, and other tests have that of the build in front of theirs.
LIBKILN = shutil.copy(os.environ["LIBKILN"], SCRATCH.name)
PROGRAM = pathlib.Path(os.environ["KILN_BUILD_DIR"]) / "inproc/alloc_truth"
MEAN, SIGMAS, PAGES, TRIES = 65536, 5, 512, 5
TID, REGS_USER = 1 << 1, 1 << 12
# In the order in which the kernel writes them.
REGISTERS = "rax rbx rcx rdx rsi rdi rbp rsp rip r8 r9 r10 r11 r12 r13 r14 r15".split()
REGISTER_MASK = 0xff01ff


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def probes(name):
    """(offset of the probe, of its semaphore, its arguments) of each place with this name."""
    text = subprocess.run(["readelf", "-nW", LIBKILN], capture_output=True, text=True, check=True).stdout
    form = rf"Provider: otel_memory\s+Name: {name}\s+Location: (\w+), Base: \w+, Semaphore: (\w+)\s+Arguments: (.*)"
    return [(offset_of(LIBKILN, int(at, 16)), offset_of(LIBKILN, int(semaphore, 16)), arguments.split())
            for at, semaphore, arguments in re.findall(form, text)]


class Reader:
    """One probe on one processor, in all processes: threads that are still to come do not inherit it."""

    def __init__(self, probe, cpu):
        at, semaphore, self.arguments = probe
        try:
            self.fd = open_probe(LIBKILN, at, cpu, semaphore=semaphore, sample_type=TID | REGS_USER, registers=REGISTER_MASK)
        except OSError as error:
            skip(f"no uprobe here: {error}")
        self.ring = mmap.mmap(self.fd, (1 + PAGES) * mmap.PAGESIZE)

    def hits(self, of):
        """The arguments of each in this process."""
        head = struct.unpack_from("<Q", self.ring, 1024)[0]
        data, at, found = self.ring[mmap.PAGESIZE:], 0, []
        check("no hit was lost", head <= len(data), f"{head} of {len(data)} bytes")
        while at < min(head, len(data)):
            kind, _, size = struct.unpack_from("<IHH", data, at)
            if kind == 9 and struct.unpack_from("<I", data, at + 8)[0] == of:
                values = struct.unpack_from(f"<{len(REGISTERS)}Q", data, at + 24)
                found.append([values[REGISTERS.index(argument.split("%")[1])] for argument in self.arguments])
            at += size
        self.ring.close()
        os.close(self.fd)
        return found


def attempt(folder):
    """What the program says, all hits of both probes, and what the library lost."""
    readers = {name: [Reader(probe, cpu) for probe in probes(name) for cpu in range(os.cpu_count())]
               for name in ("alloc", "free")}
    env = {**os.environ, "LD_PRELOAD": LIBKILN, "KILN_PROFILES": "alloc,heap", "KILN_ALLOC_BYTES": str(MEAN),
           "KILN_ALLOC_RATE": "0", "KILN_SEED": "11", "KILN_OUT_DIR": folder, "KILN_SOCKET": "/nowhere", "KILN_EXIT_MS": "20000"}
    child = subprocess.Popen([PROGRAM, "2", "20"], env=env, stdout=subprocess.PIPE, text=True)
    said = child.communicate()[0]
    check("the program ends well", child.returncode == 0, child.returncode)
    hits = {name: [hit for reader in some for hit in reader.hits(child.pid)] for name, some in readers.items()}
    truth = [(name, *map(int, rest)) for name, *rest in map(str.split, said.splitlines())]
    return truth, hits["alloc"], hits["free"], lost(folder)


def run():
    for _ in range(TRIES):
        with tempfile.TemporaryDirectory() as folder:
            *found, n_lost = attempt(folder)
        if n_lost == 0:
            break
    check("nothing was lost", n_lost == 0, n_lost)
    return found


def main():
    if missing():
        skip(missing())
    check("the library has both probes", probes("alloc") and probes("free"), (probes("alloc"), probes("free")))
    truth, allocs, frees = run()
    for name, size, taken, _ in truth:
        p = 1 - math.exp(-size / MEAN) if size else 1
        same_size = sum(n for _, other, n, _ in truth if other == size)
        weights = [weight for _, hit_size, weight in allocs if hit_size == size]
        bound = SIGMAS * size * math.sqrt(same_size * (1 - p) / p) + len(weights)
        check(f"{name}: {taken} of {size} bytes", abs(sum(weights) - same_size * size) <= bound,
              f"{sum(weights)} and not {same_size * size}, within {bound:.0f}")
    strange = {pointer for pointer, in frees} - {pointer for pointer, _, _ in allocs}
    check("what is freed was allocated", not strange, strange)
    check("some is freed, and some is not", 0 < len(frees) < len(allocs), (len(frees), len(allocs)))
    return exit_code()


sys.exit(main())
