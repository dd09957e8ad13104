#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Allocations and live heap of programs that know their own, by function, as the files of the library tell them.

A block of S bytes is sampled with p = 1 - exp(-(S + 1) / R) and stands for 1 / p of them: n of them have a variance
of n * (1 - p) / p.  Seeds are fixed, bounds are five deviations.  Where the machine was too busy for the library's thread to
follow, it says so, and the program runs again.
"""
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(os.environ.get("KILN_SOURCE_DIR", ".")).resolve() / "tests/support"))
from checks import check, exit_code  # noqa: E402
from time_kit import lost  # noqa: E402

KILN = os.environ["KILN"]
LIBKILN = pathlib.Path(os.environ["LIBKILN"])
WITH_OPERATORS = LIBKILN.parent / "new/libkiln.so"
PROGRAMS = pathlib.Path(os.environ["KILN_BUILD_DIR"]) / "inproc"
MEAN, SIGMAS, TRIES = 65536, 5, 5
TYPES = ("alloc_objects", "alloc_space", "inuse_objects", "inuse_space")
MIB = 1 << 20


def run(folder, preload, command, profiles="alloc,heap"):
    """What the program says; its profile is in the folder."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("KILN_", "OTEL_"))}
    env |= {"LD_PRELOAD": preload, "KILN_PROFILES": profiles, "KILN_ALLOC_BYTES": str(MEAN), "KILN_ALLOC_RATE": "0",
            "KILN_SEED": "7", "KILN_OUT_DIR": str(folder), "KILN_SOCKET": "/nowhere",
            "KILN_EXIT_MS": "20000"}
    done = subprocess.run([str(word) for word in command], env=env, capture_output=True, text=True, check=False, timeout=300)
    check("the program ends well", done.returncode == 0, done.stderr)
    return done.stdout


def sums(folder, share, types=TYPES):
    """(function, type) -> what is its own (self), or with all that it calls (total)."""
    files = sorted(str(path) for path in folder.glob("*-memory-*.pb.gz"))
    check("one profile of memory is written", len(files) == 1, files)
    found = {}
    for kind in types:
        done = subprocess.run([KILN, "top", "--json", "-n", "0", "-t", kind, *files], capture_output=True, text=True, check=True)
        found |= {(row["name"].split("(")[0], kind): row[share] for row in json.loads(done.stdout)["rows"]}
    return found


def compare(what, size, n, objects, space):
    if size == 0:
        check(f"{what} {n} objects of no bytes: none is sampled", objects == space == 0, (objects, space))
        return
    p = 1 - math.exp(-size / MEAN)
    bound = SIGMAS * math.sqrt(n * (1 - p) / p) + 1
    check(f"{what} {n} objects", abs(objects - n) <= bound, f"{objects}, within {bound:.0f}")
    check(f"{what} {n * size} bytes", abs(space - n * size) <= bound * size, f"{space}, within {bound * size:.0f}")


def attempt(preload, command, share):
    """What the program says, what the library says, and how much of it was lost."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        said = run(folder, preload, command)
        return said, sums(folder, share), lost(folder)


def check_program(preload, *command, share="self"):
    print(f"-- {preload}: {command[0].name}", flush=True)
    for _ in range(TRIES):
        said, found, n_lost = attempt(preload, command, share)
        if n_lost == 0:
            break
    check("nothing was lost", n_lost == 0, n_lost)
    for name, size, taken, kept in (line.split() for line in said.splitlines()):
        objects, space, in_use, in_use_space = (found.get((name, kind), 0) for kind in TYPES)
        compare(f"{name} made", int(size), int(taken), objects, space)
        compare(f"{name} has", int(size), int(kept), in_use, in_use_space)


def check_maps():
    """Mappings of this size are sampled for certain: nothing is left to chance."""
    with tempfile.TemporaryDirectory() as name:
        said = run(pathlib.Path(name), str(LIBKILN), [PROGRAMS / "alloc_maps"], "mmap")
        found = sums(pathlib.Path(name), "total", ("alloc_mmap_space", "inuse_mmap_space"))
    for function, mapped, left in (line.split() for line in said.splitlines()):
        made, in_use = (found.get((function, kind), 0) for kind in ("alloc_mmap_space", "inuse_mmap_space"))
        check(f"{function} maps {mapped} MiB", abs(made - int(mapped) * MIB) < 100, made)
        check(f"{function} has {left} MiB", abs(in_use - int(left) * MIB) < 100, in_use)


def is_installed(allocator):
    """The linker warns of what it cannot preload and goes on."""
    env = {**os.environ, "LD_PRELOAD": allocator}
    return subprocess.run(["/bin/true"], env=env, capture_output=True, check=False).stderr == b""


def check_both(library, library_of_cpp, allocator):
    """The operators of the standard library are functions between ours and the allocator."""
    check_program(" ".join((str(library), *allocator)), PROGRAMS / "alloc_truth", 4, 15)
    check_program(" ".join((str(library_of_cpp), *allocator)), PROGRAMS / "alloc_new", 10, share="total")


def main():
    check_maps()
    check_both(LIBKILN, LIBKILN, [])
    for allocator in ("libjemalloc.so.2", "libtcmalloc.so.4"):
        if is_installed(allocator):
            check_both(LIBKILN, WITH_OPERATORS, [allocator])
        else:
            print(f"{allocator} is not installed: skipped")
    return exit_code()


sys.exit(main())
