# SPDX-License-Identifier: Apache-2.0
"""Probes at places of a file, set through perf_event_open as any tracer sets them, in all processes that map the file.

Probe a copy of a library: other tests run the original.
"""
import ctypes
import os
import pathlib
import re
import struct
import subprocess

UPROBE = pathlib.Path("/sys/bus/event_source/devices/uprobe")
PERF_EVENT_OPEN, ATTR_SIZE = 298, 112
libc = ctypes.CDLL(None, use_errno=True)


def missing():
    """Why no probe can be set here; None: one can."""
    return None if os.geteuid() == 0 and (UPROBE / "type").exists() else "setting probes needs root and uprobes"


def offset_of(library, address):
    """Where in the file it is what the library has at this address."""
    text = subprocess.run(["readelf", "-lW", library], capture_output=True, text=True, check=True).stdout
    for line in re.findall(r"LOAD +(0x\w+) (0x\w+) 0x\w+ (0x\w+)", text):
        at, begin, size = (int(word, 16) for word in line)
        if begin <= address < begin + size:
            return address - begin + at
    raise LookupError(hex(address))


def functions(library):
    """Name: offset in the file, of the functions that it exports."""
    text = subprocess.run(["readelf", "--dyn-syms", "-W", library], capture_output=True, text=True, check=True).stdout
    found = re.findall(r"^\s*\d+: (\w+)\s+\d+ FUNC\s+\w+\s+\w+\s+\d+ (\w+)", text, re.MULTILINE)
    return {name: offset_of(library, int(address, 16)) for address, name in found}


def open_probe(library, offset, cpu, at_return=False, semaphore=0, sample_type=0, registers=0):
    """A descriptor of the event, on one processor; reading it gives the number of hits.  With `sample_type` each hit is a sample."""
    path = ctypes.create_string_buffer(str(library).encode())
    attr = struct.pack("<IIQQQQQIIQQQQIiQ", int((UPROBE / "type").read_text()), ATTR_SIZE, semaphore << 32 | at_return,
                       1 if sample_type else 0, sample_type, 0, 0, 0, 0, ctypes.addressof(path), offset, 0, registers, 0, 0, 0)
    fd = libc.syscall(PERF_EVENT_OPEN, attr.ljust(ATTR_SIZE, b"\0"), -1, cpu, -1, 0)
    if fd < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error), str(library))
    return fd


class Counter:
    """Counts how often any process comes to an offset of a file, or returns from the function there."""

    def __init__(self, library, offset, at_return=False):
        self.fds = [open_probe(library, offset, cpu, at_return) for cpu in range(os.cpu_count())]

    def hits(self):
        return sum(struct.unpack("<Q", os.read(fd, 8))[0] for fd in self.fds)

    def close(self):
        for fd in self.fds:
            os.close(fd)
