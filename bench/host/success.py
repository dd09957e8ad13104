#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How many stacks are complete?  Real programs at work, all at once, recorded by `kiln record -a`.

The target is 99.5 % of samples with a user stack over the mixed load; lost samples count as failures, kernel threads and
32-bit tasks are counted apart, and code that HotSpot made has a line of its own.

usage: success.py [-d SECONDS] [-F HZ] [-v] [NAME...]
"""
import argparse
import collections
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "tests/support"))
from loads import real_loads  # noqa: E402

BUILD = pathlib.Path(os.environ.get("KILN_BUILD_DIR", "build")).resolve()
KILN = os.environ.get("KILN", str(BUILD / "kiln"))
MIXED = ("g++", "python3", "node", "sqlite3", "xz", "going", "rusty", "java")
FAILED = "[incomplete: "


def commands(tmp, names):
    every = real_loads(tmp)
    for program in (BUILD / "programs").glob("*"):
        every[program.name] = [str(program), "100000"]
    return {name: every[name] for name in names if name in every}


def record(tmp, load, args):
    """Runs the load, recorded; the profile as OTLP's JSON, and what was said at the end."""
    running = [subprocess.Popen(c, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True, cwd=tmp)
               for c in load.values()]
    out = tmp / "all.otlp"
    said = subprocess.run([KILN, "record", "-a", "-F", str(args.hz), "-d", f"{args.seconds}s", "--json", "-q", "-o", out],
                          stdout=subprocess.PIPE, text=True, check=True).stdout
    for process in running:
        os.killpg(process.pid, signal.SIGKILL)
    text = subprocess.run([KILN, "convert", out, "--to", "otlp-json", "--max-size", "1G"], stdout=subprocess.PIPE, check=True).stdout
    return json.loads(text), json.loads(said.strip().splitlines()[-1])


class Stacks:
    """Names of frames, by the number of a stack."""

    def __init__(self, dictionary):
        self.dictionary = dictionary

    def frames(self, stack):
        d = self.dictionary
        for location in d["stackTable"][stack].get("locationIndices", []):
            lines = d["locationTable"][location].get("lines", [])
            name = d["stringTable"][d["functionTable"][lines[0].get("functionIndex", 0)].get("nameStrindex", 0)] if lines else ""
            yield name or hex(int(d["locationTable"][location].get("address", 0)))


def tally(profile):
    """program -> reason -> samples; and what is found below the end of stacks that are not complete."""
    stacks = Stacks(profile["dictionary"])
    counts, where = collections.defaultdict(collections.Counter), collections.Counter()
    for resource in profile["resourceProfiles"]:
        attributes = {a["key"]: a["value"].get("stringValue", "") for a in resource["resource"]["attributes"]}
        name = attributes.get("process.executable.name", "?")
        for sample in (s for scope in resource["scopeProfiles"] for p in scope["profiles"] for s in p.get("samples", [])):
            frames = list(stacks.frames(sample.get("stackIndex", 0)))
            n = sum(int(v) for v in sample.get("values", ["1"]))
            if frames and frames[-1].startswith(FAILED):
                reason = frames[-1][len(FAILED):-1]
                where[(name, reason, " <- ".join(frames[-4:-1]))] += n
            else:
                reason = "complete"
            counts[name][reason] += n
    return counts, where


def line(name, counter):
    total = sum(counter.values())
    rest = ", ".join(f"{reason} {n}" for reason, n in counter.most_common() if reason != "complete")
    print(f"{name:20} {total:8} {100 * counter['complete'] / max(total, 1):9.2f} %   {rest}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("-d", dest="seconds", type=int, default=30)
    parser.add_argument("-F", dest="hz", type=int, default=97)
    parser.add_argument("-v", dest="verbose", action="store_true")
    parser.add_argument("names", nargs="*", default=MIXED)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as tmp:
        profile, said = record(pathlib.Path(tmp), commands(pathlib.Path(tmp), args.names), args)
    counts, where = tally(profile)
    kernel, java = counts.pop("kernel", {}), counts.pop("java", collections.Counter())
    total = sum(counts.values(), collections.Counter())
    total["lost"] += said["lost"]
    print(f"{'program':20} {'samples':>8} {'complete':>11}   the others")
    for name, counter in sorted(counts.items(), key=lambda c: -sum(c[1].values())):
        line(name, counter)
    line("all", total)
    line("java", java)
    print(f"{'kernel threads':20} {sum(kernel.values()):8}")
    if args.verbose:
        for (name, reason, frames), n in where.most_common(40):
            print(f"{n:6} {name} {reason}: {frames}")


main()
