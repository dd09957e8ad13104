#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hooks of memory are rewritten where that is safe, and nowhere else; either way programs see the same, and stacks are whole."""
import os
import pathlib
import platform
import shutil
import subprocess
import sys

SOURCES = pathlib.Path(os.environ.get("KILN_SOURCE_DIR", ".")).resolve()
sys.path.insert(0, str(SOURCES / "tests/support"))
from checks import check, exit_code  # noqa: E402
from preload_kit import LIBKILN, PROGRAMS, Folder, bare, kiln, profiles_of, shared_library, skip, under  # noqa: E402

PROGRAM = PROGRAMS / "short_hooks"
NAMES = ("malloc", "calloc", "realloc", "free")
REWRITTEN, AS_IT_WAS = ({name: told for name in NAMES} for told in ("rewritten", "as it was"))
NOISY = {"KILN_PROFILES": "alloc,heap", "KILN_ALLOC_BYTES": "64", "KILN_ALLOC_RATE": "0"}
SPINS = "15000000"


def told(done):
    return dict(line.split(": ") for line in done.stderr.decode().splitlines() if ": " in line)


def expect(what, done, alone, code):
    check(f"{what}: odd arguments give the same", done.returncode == 0 and done.stdout == alone.stdout, (done, alone))
    check(f"{what}: {code['malloc']}", told(done) == code, done)


def check_code(folder, alone):
    expect("by default", under(folder / "a", PROGRAM, settings={}), alone, REWRITTEN)
    expect("where nearly all is sampled", under(folder / "b", PROGRAM, settings=NOISY), alone, REWRITTEN)
    expect("where nothing is", under(folder / "c", PROGRAM, settings={"KILN_PROFILES": "cpu"}), alone, REWRITTEN)
    expect("where it is not wanted", under(folder / "d", PROGRAM, settings=NOISY | {"KILN_SHORT_HOOKS": "0"}), alone, AS_IT_WAS)
    expect("switched off", under(folder / "e", PROGRAM, settings={"KILN_ENABLED": "0"}), alone, AS_IT_WAS)
    if shutil.which("strace"):
        traced = under(folder / "f", "strace", "-o", "/dev/null", PROGRAM, settings={"KILN_FOLLOW": "1"})
        expect("under a debugger", traced, alone, AS_IT_WAS)
    for library in ("libjemalloc.so.2", "libtcmalloc.so.4"):
        path = shared_library(library)
        if path:
            expect(library, under(folder / library, PROGRAM, settings=NOISY, behind=path), bare(PROGRAM, env={"LD_PRELOAD": path}),
                   REWRITTEN)


def check_unwritable(folder, alone):
    """A file system in which nobody finds his own memory, for whom files can still be told apart."""
    if os.geteuid() != 0:
        print("skipped: hiding /proc/self/mem needs root")
        return
    hidden = ["unshare", "-m", "sh", "-c", 'mount --bind /dev/full "/proc/$$/mem" && exec "$@"', "sh"]
    if subprocess.run([*hidden, "true"], stderr=subprocess.DEVNULL, check=False).returncode:
        print("skipped: /proc/self/mem cannot be hidden here")
        return
    expect("where memory cannot be written", under(folder / "g", *hidden, PROGRAM, settings=NOISY | {"KILN_FOLLOW": "1"}), alone,
           AS_IT_WAS)


def check_threads(folder, alone):
    """Somebody else may be executing what would be written."""
    library = pathlib.Path(LIBKILN).parent
    program = folder / "linked"
    subprocess.run(["gcc", "-O2", "-D_GNU_SOURCE", "-fno-builtin", "-rdynamic", f"-I{SOURCES}/include", "-o", program,
                    SOURCES / "tests/inproc/programs/short_hooks.c", "-Wl,--no-as-needed", f"-L{library}", "-lkiln",
                    f"-Wl,-rpath,{library}", "-pthread", "-ldl"], check=True)
    env = {"KILN_OUT_DIR": str(folder / "h"), "KILN_SOCKET": "/nowhere"}
    expect("started by a program with two threads", bare(program, "thread", env=env), alone, AS_IT_WAS)


def check_stacks(folder):
    """Ticks of the CPU clock come within hooks, too, whose frames are left out: they are their caller's."""
    for code, switch in ((REWRITTEN, "1"), (AS_IT_WAS, "0")):
        into = folder / f"stacks{switch}"
        done = under(into, PROGRAM, SPINS, settings={"KILN_PROFILES": "cpu", "KILN_CPU_HZ": "1000", "KILN_SHORT_HOOKS": switch})
        check("it spins", done.returncode == 0 and told(done) == code, done)
        stacks = [line for path in profiles_of(into) for line in kiln("convert", "--to", "collapsed", path).stdout.splitlines()]
        check("it was seen", any(";main;spin " in stack for stack in stacks), stacks)
        lost = [stack for stack in stacks if not stack.startswith("_start;")]
        check("every tick has found its way to the first function", not lost, lost)


def main():
    if platform.machine() != "x86_64" or platform.libc_ver()[0] != "glibc":
        skip("hooks are rewritten on x86-64 with glibc alone")
    with Folder() as folder:
        alone = bare(PROGRAM)
        check("the program ends well alone", alone.returncode == 0 and b"NULL" in alone.stdout, alone)
        check_code(folder, alone)
        check_unwritable(folder, alone)
        check_threads(folder, alone)
        check_stacks(folder)
    return exit_code()


sys.exit(main())
