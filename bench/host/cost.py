#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What does the whole agent cost?  `kiln agent` at 19 samples a second over real programs at work, and a swarm of short ones.

CPU is of the process and what it starts (Kiln's confined child that finds names), from the scheduler's own clocks, so that other
work on the machine does not count; the programs in the kernel run on the time of whom they sample and are counted apart.
Where OTEL_PROFILER names OpenTelemetry's eBPF profiler, it runs at the same time over the same load, to the same receiver.

usage: cost.py [-d SECONDS] [--idle]
"""
import argparse
import contextlib
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "tests/support"))
BUILD = pathlib.Path(os.environ.get("KILN_BUILD_DIR", "build")).resolve()
KILN = os.environ.setdefault("KILN", str(BUILD / "kiln"))
from kiln_server import KilnServer  # noqa: E402
from loads import forever, real_loads  # noqa: E402

MIXED = ("g++", "python3", "node", "sqlite3", "xz")
SWARM = "sh -c 'ls / | sort | head -1' >/dev/null && sleep 0.05"  # some 80 processes a second
BPF_STATS = pathlib.Path("/proc/sys/kernel/bpf_stats_enabled")
WARM_UP_S = 15


def read(path):
    try:
        return pathlib.Path(path).read_text(errors="replace")
    except OSError:  # it is gone
        return ""


def number(text, name):
    found = re.search(rf"^{name}:\s*(\d+)", text, re.M)
    return int(found[1]) if found else 0


def family(pid):
    """The process and all that it started."""
    parents = {int(stat.parent.name): number(read(stat), "PPid") for stat in pathlib.Path("/proc").glob("[0-9]*/status")}
    found = {pid}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found


class Use:
    """What a profiler has used until now."""

    def __init__(self, pid):
        pids = family(pid)
        tasks = [task for p in pids for task in pathlib.Path(f"/proc/{p}/task").glob("*")]
        self.at = time.monotonic()
        self.cpu_ns = sum(int((read(task / "schedstat").split() or [0])[0]) for task in tasks)
        self.wakes = sum(number(read(task / "status"), "voluntary_ctxt_switches") for task in tasks)
        self.rss_kib = sum(number(read(f"/proc/{p}/status"), "VmRSS") for p in pids)
        infos = {}  # by id: one map may be open more than once
        for p in pids:
            for info in map(read, pathlib.Path(f"/proc/{p}/fdinfo").glob("*")):
                for kind in ("map_id", "prog_id"):
                    if number(info, kind):
                        infos[kind, number(info, kind)] = info
        self.bpf_bytes = sum(number(info, "memlock") for info in infos.values())
        self.run_ns = sum(number(info, "run_time_ns") for info in infos.values())
        self.runs = sum(number(info, "run_cnt") for info in infos.values())


class Cost:
    def __init__(self, begin, end):
        seconds = end.at - begin.at
        runs, run_ns = end.runs - begin.runs, end.run_ns - begin.run_ns
        self.values = {
            "CPU, % of one core": (end.cpu_ns - begin.cpu_ns) / seconds / 1e7,
            "in the kernel, % of one core": run_ns / seconds / 1e7,
            "us a run there": run_ns / max(runs, 1) / 1000,
            "runs a second there": runs / seconds,
            "wake-ups a second": (end.wakes - begin.wakes) / seconds,
            "RSS, MiB": end.rss_kib / 1024,
            "BPF memory, MiB": end.bpf_bytes / 2**20,
        }


@contextlib.contextmanager
def running(commands, tmp):
    """Each in a session of its own, all of which end."""
    with open(tmp / "log", "ab") as log:
        started = [subprocess.Popen(c, stdout=subprocess.DEVNULL, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True, cwd=tmp)
                   for c in commands]
    try:
        yield started
    finally:
        for process in started:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@contextlib.contextmanager
def measured_programs():
    before = BPF_STATS.read_text()
    BPF_STATS.write_text("1")
    try:
        yield
    finally:
        BPF_STATS.write_text(before)


def profilers(server, tmp):
    """name -> command"""
    commands = {"kiln agent": [KILN, "agent", "-F", "19", "--endpoint", f"http://127.0.0.1:{server.otlp_grpc}", "--protocol", "grpc",
                               "--listen", "127.0.0.1:0", "--data-dir", str(tmp / "agent"), "--ready-file", str(tmp / "ready")]}
    if os.environ.get("OTEL_PROFILER"):
        commands["OpenTelemetry's"] = [os.environ["OTEL_PROFILER"], "-collection-agent", f"127.0.0.1:{server.otlp_grpc}", "-disable-tls",
                                       "-samples-per-second", "20"]
    return commands


def metrics(tmp):
    """Of the agent, by name."""
    port = re.search(r'"http":\s*(\d+)', read(tmp / "ready"))
    if not port:
        return {}
    text = subprocess.run(["curl", "-s", f"http://127.0.0.1:{port[1]}/metrics"], stdout=subprocess.PIPE, text=True, check=False).stdout
    return {line.split()[0]: float(line.split()[1]) for line in text.splitlines() if line and line[0] != "#" and "{" not in line}


def measure(args, server, tmp):
    loads = real_loads(tmp)
    load = [] if args.idle else [loads[name] for name in MIXED if name in loads] + [forever(SWARM)]
    commands = profilers(server, tmp)
    with running(load, tmp), running(commands.values(), tmp) as started:
        time.sleep(WARM_UP_S)
        begin, told = [Use(p.pid) for p in started], metrics(tmp)
        time.sleep(args.seconds)
        costs = [Cost(b, Use(p.pid)).values for b, p in zip(begin, started)]
        for name, process in zip(commands, started):
            if process.poll() is not None:
                sys.exit(f"{name} ended with {process.returncode}: {read(tmp / 'log')[-2000:]}")
        now = metrics(tmp)
    return dict(zip(commands, costs)), {name: now[name] - told.get(name, 0) for name in now}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("-d", dest="seconds", type=int, default=60)
    parser.add_argument("--idle", action="store_true", help="no load but what runs anyway")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, measured_programs(), KilnServer() as server:
        costs, told = measure(args, server, pathlib.Path(folder))
    ours, *peers = costs.values()
    print(f"{'':28}" + "".join(f" {name:>16}" for name in costs) + ("   times ours" if peers else ""))
    for name, value in ours.items():
        print(f"{name:28}" + "".join(f" {cost[name]:16.2f}" for cost in costs.values())
              + "".join(f" {peer[name] / value:12.1f}" for peer in peers if value))
    samples = told.get("kiln_host_samples_total", 0)
    print(f"{'raw, % of samples':28} {100 * told.get('kiln_host_raw_samples_total', 0) / max(samples, 1):16.2f}   of {samples:.0f} samples")
    print("kiln agent names functions of native code; " + ("OpenTelemetry's leaves that to whoever receives." if peers else
          "OTEL_PROFILER names no profiler to compare it with."))


main()
