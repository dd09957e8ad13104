# SPDX-License-Identifier: Apache-2.0
"""What a profiler has used until now, as the kernel tells it: the process and all that it started."""
import collections
import contextlib
import ctypes
import os
import pathlib
import re
import time

TICK_NS = 10**9 // os.sysconf("SC_CLK_TCK")
MIB = 2**20
BPF_STATS = pathlib.Path("/proc/sys/kernel/bpf_stats_enabled")


def read(path):
    try:
        return pathlib.Path(path).read_text(errors="replace")
    except OSError:  # it is gone
        return ""


def number(text, name):
    found = re.search(rf"^{name}:\s*(\d+)", text, re.M)
    return int(found[1]) if found else 0


def family(pid):
    """The process and all that it started and that still lives."""
    children = collections.defaultdict(list)
    for entry in os.listdir("/proc"):
        stat = read(f"/proc/{entry}/stat") if entry.isdigit() else ""
        if stat:
            children[int(stat.rsplit(")", 1)[1].split()[1])].append(int(entry))
    found, new = [], [pid]
    while new:
        found += new
        new = [child for parent in new for child in children[parent]]
    return found


def cpu_ns(pid):
    """Of all its threads, also those that ended, to the nanosecond; and of children that it waited for, by ticks."""
    try:
        own = time.clock_gettime_ns(ctypes.c_int(~pid << 3 | 2).value)  # a process' clock, as clock_getcpuclockid(3) makes it
    except OSError:
        return 0
    fields = read(f"/proc/{pid}/stat").rsplit(")", 1)[-1].split()
    return own + (int(fields[13]) + int(fields[14])) * TICK_NS if len(fields) > 14 else own


def pss_bytes(pid):
    """What of its memory is its own, without that of BPF maps, which is counted as theirs."""
    total, counts = 0, False
    for line in read(f"/proc/{pid}/smaps").splitlines():
        if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
            counts = "anon_inode:bpf-map" not in line
        elif counts and line.startswith("Pss:"):
            total += int(line.split()[1]) * 1024
    return total


class Use:
    def __init__(self, pid, memory=True):
        pids = family(pid)
        self.at = time.monotonic()
        self.cpu_ns = sum(map(cpu_ns, pids))
        self.wakes = sum(number(read(task / "status"), "voluntary_ctxt_switches")
                         for p in pids for task in pathlib.Path(f"/proc/{p}/task").glob("*"))
        self.pss_bytes = sum(map(pss_bytes, pids)) if memory else 0
        infos = {}  # by id: one map may be open more than once
        for p in pids:
            for info in map(read, pathlib.Path(f"/proc/{p}/fdinfo").glob("*")):
                for kind in ("map_id", "prog_id"):
                    if number(info, kind):
                        infos[kind, number(info, kind)] = info
        self.map_bytes = sum(number(info, "memlock") for (kind, _), info in infos.items() if kind == "map_id")
        self.run_ns = sum(number(info, "run_time_ns") for info in infos.values())
        self.runs = sum(number(info, "run_cnt") for info in infos.values())

    def memory_mib(self):
        return (self.pss_bytes + self.map_bytes) / MIB


@contextlib.contextmanager
def measured_programs():
    before = BPF_STATS.read_text()
    BPF_STATS.write_text("1")
    try:
        yield
    finally:
        BPF_STATS.write_text(before)
