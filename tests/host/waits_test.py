#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Waits of a program that measures its own: sleeping, a lock, a pipe, a poll, and CPU time.

A wait d is taken with p = min(1, d / T) and stands for d / p: of those shorter than T the sum has a variance of
d * (T - d) each.  So is each sum compared with what the program saw, and all of them with its wall time.
"""
import collections
import json
import math
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(os.environ.get("KILN_SOURCE_DIR", ".")).resolve() / "tests/support"))
from checks import check, exit_code  # noqa: E402
from host_kit import KILN, PROGRAMS, Folder, attributes, need_host, record  # noqa: E402

REASONS = {"wait_for_time": "sleep", "wait_for_lock": "futex", "wait_for_pipe": "pipe", "wait_for_poll": "poll"}
SYNCING = """
import os, sys, time
file, end, wall, cpu = os.open(sys.argv[1], os.O_CREAT | os.O_WRONLY), time.monotonic() + 1, 0, 0
while time.monotonic() < end:
    os.pwrite(file, os.urandom(4096), 0)
    before = time.monotonic_ns(), time.thread_time_ns()
    os.fdatasync(file)
    wall, cpu = wall + time.monotonic_ns() - before[0], cpu + time.thread_time_ns() - before[1]
print("sync", wall, cpu)
"""
SLEEPING = """
import time
before = time.monotonic_ns(), time.thread_time_ns()
time.sleep(0.5)
print("sleep", time.monotonic_ns() - before[0], time.thread_time_ns() - before[1])
"""
SIGMAS = 5  # less than once in a million
NS = 1e9

Sample = collections.namedtuple("Sample", "type frames attributes value")


def samples_of(path):
    """Every sample of a file, with names of its frames."""
    done = subprocess.run([KILN, "convert", path, "--to", "otlp-json"], capture_output=True, text=True, check=True)
    data = json.loads(done.stdout)
    tables, found = data["dictionary"], []
    text = tables["stringTable"]
    named = [[text[tables["functionTable"][line.get("functionIndex", 0)].get("nameStrindex", 0)]
              for line in location.get("lines", [])] for location in tables["locationTable"]]
    keys = [{"key": text[a.get("keyStrindex", 0)], "value": a["value"]} if a.get("value") else None
            for a in tables["attributeTable"]]
    for resource in data["resourceProfiles"]:
        for profile in (p for scope in resource["scopeProfiles"] for p in scope["profiles"]):
            kind = text[profile["sampleType"].get("typeStrindex", 0)]
            for sample in profile["samples"]:
                stack = tables["stackTable"][sample.get("stackIndex", 0)]
                frames = [name for i in stack.get("locationIndices", []) for name in named[i]]
                found.append(Sample(kind, frames, attributes([keys[i] for i in sample.get("attributeIndices", [])]),
                                    sum(map(int, sample["values"]))))
    return found


def truth_of(text):
    """What the program printed: name -> (seconds of wall time, of CPU time)."""
    lines = [line.split() for line in text.splitlines() if line.count(" ") == 2 and not line.startswith("{")]
    return {name: (int(wall) / NS, int(cpu) / NS) for name, wall, cpu in lines}


def total(samples, function, **wanted):
    return sum(s.value for s in samples if s.type == "off_cpu" and function in s.frames
               and all(s.attributes.get(key.replace("_", ".")) == value for key, value in wanted.items())) / NS


def check_waits(folder, what, frequency, seconds, each_ms):
    rec = record(folder, PROGRAMS / "waiting", seconds, each_ms, words=("--wall",), frequency=frequency)
    samples, truth = samples_of(rec.path), truth_of(rec.out)
    period = 1 / frequency
    for name, (wall, cpu) in truth.items():
        if name == "all":
            continue
        off, waited = total(samples, name), wall - cpu
        sigma = math.sqrt(waited * period)
        check(f"{what}: {name} waited {waited:.3f} s, sampled {off:.3f} s, sigma {sigma:.3f}",
              abs(off - waited) < SIGMAS * sigma + 0.01, (rec.said, rec.out))
    for name, reason in REASONS.items():
        blocked = total(samples, name, thread_state="blocked")
        check(f"{what}: {name} was blocked for {blocked:.3f} s, all of it by {reason}",
              blocked > 0 and total(samples, name, thread_state="blocked", wait_reason=reason) > 0.97 * blocked,
              [(s.attributes, s.value, s.frames[:6]) for s in samples if name in s.frames and s.type == "off_cpu"][:20])
    return samples, truth, rec


def check_wall(samples, truth, rec, frequency):
    """The thread's wall time is its CPU time and its waits: by the kernel's books, and by samples."""
    wall, cpu = (sum(column) for column in zip(*(v for k, v in truth.items() if k != "all")))
    off = sum(total(samples, name) for name in truth if name != "all")
    check(f"wall {wall:.3f} s = CPU {cpu:.3f} s + off-CPU {off:.3f} s", abs(cpu + off - wall) < 0.02 * wall, rec.out)
    ticks = sum(s.value for s in samples if s.type != "off_cpu" and set(s.frames) & set(truth)) / frequency
    # Where a machine shares its processors, ticks of what others had are missing.
    check(f"wall {wall:.3f} s = {ticks:.3f} s of samples + off-CPU", ticks + off < 1.02 * wall
          and ticks + off > 0.98 * wall - 0.5 * cpu, rec.out)


def check_leaves(samples):
    """A stack begins where the thread waits in the kernel, not in the scheduler or the program that took it."""
    leaves = collections.Counter(s.frames[0] for s in samples if s.type == "off_cpu" and len(s.frames) > 4)
    bad = sum(n for leaf, n in leaves.items() if leaf in ("__schedule", "schedule") or "bpf_" in leaf)
    check("stacks of waits begin where the thread waits", sum(leaves.values()) > 3 and bad == 0, leaves)


def check_off_cpu_alone(folder):
    rec = record(folder, sys.executable, "-c", SLEEPING, words=("--off-cpu",), frequency=97)
    samples, (wall, _) = samples_of(rec.path), truth_of(rec.out)["sleep"]
    slept = sum(s.value for s in samples if s.attributes.get("wait.reason") == "sleep") / NS
    check(f"a sleep of half a second took {wall:.3f} s and is {slept:.3f} s", 0.499 <= slept <= wall, samples)
    check("nothing but waits was recorded", {s.type for s in samples} == {"off_cpu"}, samples)


def check_disk(folder):
    """What is written is waited for, where the folder is on a disk."""
    frequency = 997
    rec = record(folder, sys.executable, "-c", SYNCING, folder / "synced", words=("--wall",), frequency=frequency)
    samples, (wall, cpu) = samples_of(rec.path), truth_of(rec.out)["sync"]
    if wall - cpu < 0.05:
        print("not tried: waits for a disk: there is none below this folder")
        return
    synced = [s for s in samples if any("fdatasync" in frame for frame in s.frames)]
    named = [s._replace(frames=["fdatasync"]) for s in synced]
    off, waited, sigma = total(named, "fdatasync"), wall - cpu, math.sqrt((wall - cpu) / frequency)
    check(f"a disk was waited for {waited:.3f} s, sampled {off:.3f} s, sigma {sigma:.3f}",
          0.95 * waited - SIGMAS * sigma - 0.01 < off < waited + SIGMAS * sigma + 0.01, (rec.said, rec.out))
    blocked = total(named, "fdatasync", thread_state="blocked")
    check(f"blocked for {blocked:.3f} s, all of it by disk",
          total(named, "fdatasync", thread_state="blocked", wait_reason="disk") >= 0.97 * blocked, synced[:10])


def main():
    need_host("waiting")
    with Folder() as folder:
        check_off_cpu_alone(folder)
        check_waits(folder, "waits shorter than the period", 97, 1, 3)
        samples, truth, rec = check_waits(folder, "waits longer than the period", 997, 0.7, 4)
        check_wall(samples, truth, rec, 997)
        check_leaves(samples)
        check_disk(folder)
    return exit_code()


if __name__ == "__main__":
    sys.exit(main())
