#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Samples are linked to the span that their thread worked for: at least 95 in 100 of those within one, none wrongly.

Each way in which a program can have the variable that tells: in a library that is linked or loaded at run time, by
descriptor, pair of words or offset, in a stripped and in a static program, with glibc and with musl; with threads, one
span in another, and across a fork.
"""
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(os.environ.get("KILN_SOURCE_DIR", ".")).resolve() / "tests/support"))
from checks import check, exit_code  # noqa: E402
from host_kit import PROGRAMS, Folder, need_host, record, wait_for  # noqa: E402
from linked import Links, linked_samples  # noqa: E402

DEPTHS = {"burn_outer": 1, "burn_inner": 2, "wait_inner": 2, "burn_outside": 0, "wait_outside": 0}
WAITS = {"wait_inner", "wait_outside"}
WAYS = ("spans-desc", "spans-desc-loaded", "spans-pair", "spans-pair-loaded", "spans-offset", "spans-offset-loaded",
        "spans-stripped", "spans-static", "spans-static-pie", "spans-musl-static", "spans-musl-loaded",
        "spans-musl-pair-loaded")


def truth(sample):
    """Which function burns says how deep the span is, and its id whose it is."""
    depth = next((DEPTHS[name] for name in sample.names if name in DEPTHS), None)
    if depth is None:
        return None
    return f"{int(sample.attributes['thread.id']):08x}{depth:08x}" if depth else ""


ENOUGH = 200  # in spans: a few are of the moment until it is found where a program has its variable


def check_links(what, samples, least=ENOUGH):
    links = Links(samples, truth)
    check(f"{what}: {links}", links.share >= 0.95 and links.right >= 0.95 * least, [s for s in samples if not s.span][:3])
    check(f"{what}: none is linked wrongly", links.wrong == 0 and links.outside > 0, links.examples[:3])


def check_ways(folder):
    """All of them at once; each has had time to publish itself when the recording begins, and is recorded for long enough."""
    ways = [way for way in WAYS if (PROGRAMS / way).exists()]
    running = {way: subprocess.Popen([PROGRAMS / way, "600", "2"]) for way in ways}
    try:
        wait_for(lambda: all(publishes(process.pid) for process in running.values()))
        by_way = record_until(folder, {way: process.pid for way, process in running.items()})
        for way, samples in by_way.items():
            check_links(way, samples)
    finally:
        for process in running.values():
            process.kill()
            process.wait()


def record_until(folder, pids, *words, counts=lambda sample: True):
    """The samples of each process, once enough of all that counts are there; a busy machine may hardly let them run."""
    for seconds in 4, 12, 36:
        rec = record(folder, words=(*words, "-p", ",".join(map(str, pids.values())), "-d", f"{seconds}s"))
        samples = linked_samples(rec.path)
        by_name = {name: [sample for sample in samples if sample.pid == pid] for name, pid in pids.items()}
        links = [Links(filter(counts, some), truth) for some in by_name.values()]
        if all(one.right + one.missing >= ENOUGH for one in links):
            break
    return by_name


def publishes(pid):
    return "OTEL_CTX" in pathlib.Path(f"/proc/{pid}/maps").read_text(encoding="utf-8", errors="replace")


def check_fork(folder):
    rec = record(folder, PROGRAMS / "spans-desc", "1.5", "2", "fork")
    samples = linked_samples(rec.path)
    pids = {sample.pid for sample in samples if sample.span}
    check(f"a child that was forked within a span has its own: {len(pids)} processes", len(pids) == 2, rec.said)
    links = Links(samples, truth)
    check(f"across a fork: {links}", links.wrong == 0 and links.right > 100, links.examples[:3])


def check_waits(folder):
    """A thread that waits works for its span, too."""
    program = subprocess.Popen([PROGRAMS / "spans-pair-loaded", "600", "2"])
    try:
        wait_for(lambda: publishes(program.pid))
        (samples,) = record_until(folder, {"": program.pid}, "--wall", counts=lambda s: s.type != "off_cpu").values()
        check_links("time that was waited, in ns", [s for s in samples if s.type == "off_cpu" and WAITS & set(s.names)])
        check_links("time on the processors beside it", [s for s in samples if s.type != "off_cpu"])
    finally:
        program.kill()
        program.wait()


def main():
    need_host("spans-desc")
    with Folder() as folder:
        check_ways(folder)
        check_fork(folder)
        check_waits(folder)
    return exit_code()


if __name__ == "__main__":
    sys.exit(main())
