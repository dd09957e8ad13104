#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The code of libkiln's hooks in memory is that of its file, so that probes may be set on them, before a program starts and while it
runs; odd arguments give the same as without libkiln, and stacks are whole."""
import os
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(os.environ.get("KILN_SOURCE_DIR", ".")).resolve() / "tests/support"))
from checks import check, exit_code  # noqa: E402
from preload_kit import (LIBKILN, PROGRAMS, Folder, bare, clean, kiln, preloaded, profiles_of, shared_library,  # noqa: E402
                         under)
from uprobe_kit import Counter, functions, missing  # noqa: E402

PROGRAM = PROGRAMS / "hooks"
NAMES = ("malloc", "calloc", "realloc", "free")
AS_IN_ITS_FILE = {name: "as in its file" for name in NAMES}
NOISY = {"KILN_PROFILES": "alloc,heap", "KILN_ALLOC_BYTES": "64", "KILN_ALLOC_RATE": "0"}
SPINS, PROBED = 5000000, 2000
ONE_ENDS_BY = 60  # seconds


def told(text):
    return dict(line.split(": ") for line in text.decode().splitlines() if ": " in line)


def expect(what, done, alone):
    check(f"{what}: odd arguments give the same", done.returncode == 0 and done.stdout == alone.stdout, (done, alone))
    check(f"{what}: code is as in its file", told(done.stderr) == AS_IN_ITS_FILE, done)


def check_code(folder, alone):
    expect("by default", under(folder / "a", PROGRAM, settings={}), alone)
    expect("where nearly all is sampled", under(folder / "b", PROGRAM, settings=NOISY), alone)
    expect("where nothing is", under(folder / "c", PROGRAM, settings={"KILN_PROFILES": "cpu"}), alone)
    expect("switched off", under(folder / "e", PROGRAM, settings={"KILN_ENABLED": "0"}), alone)
    for library in ("libjemalloc.so.2", "libtcmalloc.so.4"):
        path = shared_library(library)
        if path:
            expect(library, under(folder / library, PROGRAM, settings=NOISY, behind=path), bare(PROGRAM, env={"LD_PRELOAD": path}))


def check_probed(folder, when, at_return):
    """Sets a probe on each of the four, before the program starts or while it runs."""
    library = shutil.copy(LIBKILN, folder / "libkiln.so")
    offsets = functions(library)
    probes = {}

    def set_probes():
        probes.update({name: Counter(library, offsets[name], at_return) for name in NAMES})

    if when == "before":
        set_probes()
    process = subprocess.Popen([PROGRAM, str(PROBED), "wait"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               env=clean(preloaded(folder / "out", NOISY, library=library)))
    check("it starts", process.stdout.readline() == b"ready\n", process.poll())
    if when == "while it runs":
        set_probes()
    out, err = process.communicate(b"\n", timeout=ONE_ENDS_BY)
    hits = {name: probe.hits() for name, probe in probes.items()}
    for probe in probes.values():
        probe.close()
    what = f"probes on {'returns' if at_return else 'entries'}, set {when}"
    check(f"{what}: the program lives", process.returncode == 0, (process.returncode, err))
    check(f"{what}: odd arguments give the same", out == bare(PROGRAM).stdout, out)
    check(f"{what}: each was hit", all(n >= PROBED for n in hits.values()), hits)


def check_probes(folder):
    if missing():
        print(f"skipped: {missing()}")
        return
    for when in ("before", "while it runs"):
        for at_return in (False, True):
            part = folder / f"{when}-{at_return}".replace(" ", "-")  # LD_PRELOAD ends names at blanks
            part.mkdir(parents=True)
            check_probed(part, when, at_return)


def check_stacks(folder):
    """Ticks of the CPU clock come within hooks, too, whose frames are left out: they are their caller's."""
    done = under(folder, PROGRAM, SPINS, settings={"KILN_PROFILES": "cpu", "KILN_CPU_HZ": "1000"})
    check("it spins", done.returncode == 0, done)
    stacks = [line for path in profiles_of(folder) for line in kiln("convert", "--to", "collapsed", path).stdout.splitlines()]
    check("it was seen", any(";main;spin" in stack for stack in stacks), stacks)
    check("hooks were not", not any("libkiln" in stack for stack in stacks), stacks)
    lost = [stack for stack in stacks if not stack.startswith("_start;")]
    check("every tick has found its way to the first function", not lost, lost)


def main():
    with Folder() as folder:
        alone = bare(PROGRAM)
        check("the program ends well alone", alone.returncode == 0 and b"NULL" in alone.stdout, alone)
        check_code(folder, alone)
        check_probes(folder / "probes")
        check_stacks(folder / "stacks")
    return exit_code()


sys.exit(main())
