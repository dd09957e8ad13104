#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs of known truth (tests/host/programs/README.md), compiled without frame pointers: every stack that libkiln takes
of them reaches their beginning, by way of whom it should."""
import os
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(os.environ.get("KILN_SOURCE_DIR", ".")).resolve() / "tests/support"))
from checks import check, exit_code  # noqa: E402
from time_kit import Preloaded  # noqa: E402

PROGRAMS = pathlib.Path(os.environ.get("KILN_BUILD_DIR", "build")) / "programs"
# Program, and the functions that nearly all of its time is spent in or below; the last of them begins every stack.
TRUTH = {
    "frames": ["burn_leaf", "with_alloca", "with_array", "aligned", "aligned_with_alloca", "main"],
    "handler": ["outer", "main"],
    "tail": ["burn_leaf", "tail_second", "outer", "main"],
    "throwing": ["catcher", "main"],
    "sorting": ["outer", "main"],
    "stubs": ["call_stubs", "outer", "main"],
    "plugin": ["open_and_burn", "main"],
    "clocks": ["ask_clock", "outer", "main"],
    "jitdump": ["outer", "main"],
    "threads": ["thread_main"],
    "chain-fp": ["outer", "main"],
    "rusty": ["rusty::outer"],
}
SECONDS, MOST, ALL = "0.3", 0.75, 0.9


def check_program(name, functions):
    program = PROGRAMS / name
    if not program.exists():
        print(f"skipped: {name}, whose compiler is not here")
        return
    with tempfile.TemporaryDirectory() as folder, \
            Preloaded(program, SECONDS, *[folder][:name == "jitdump"], KILN_PROFILES="cpu", KILN_CPU_HZ="250") as run:
        check(f"{name} ends well", run.code == 0, run.err)
        told = run.functions("process_cpu", "cpu")
    check(f"{name} is sampled", told[""] > 0)
    for function in functions:
        share = told.get(function, 0) / max(told[""], 1)
        check(f"{name}: {function} is in {share:.0%} of stacks", share >= (ALL if function == functions[-1] else MOST), told)


def check_first_sample():
    """Each allocation is sampled, the first one included, and no stack is cut."""
    with Preloaded(PROGRAMS / "sorting", "0.05", KILN_PROFILES="alloc", KILN_ALLOC_BYTES="1") as run:
        told = run.functions("memory", "alloc_objects")
    check("all that allocates is below main", told[""] > 1000 and told.get("main", 0) >= 0.999 * told[""],
          {name: told.get(name) for name in ("", "main", "_start")})


def check_without_main():
    """The kernel tells nothing of a process by the number of a thread that has ended."""
    made = PROGRAMS.parent / "inproc"
    with Preloaded(made / "main_ends", made / "alloc_plugin.so", KILN_PROFILES="alloc", KILN_ALLOC_BYTES="1000",
                   KILN_ALLOC_RATE="0") as run:
        check("a program whose main thread ends goes on", run.code == 0, run.err)
        told, truth = run.functions("memory", "alloc_space"), int(run.out)
    check("what it loads afterwards has names", told.get("plugin_make") == truth, told)


def check_tails():
    """What a function did last is a jump: it is not on the stack, and is named all the same."""
    made = PROGRAMS.parent / "inproc"
    if os.uname().machine != "x86_64":
        return
    for program in ("tails", "tails_noplt"):
        with Preloaded(made / program, KILN_PROFILES="alloc,lock", KILN_ALLOC_BYTES="20000", KILN_ALLOC_RATE="0") as run:
            check(f"{program} ends well", run.code == 0, run.err)
            made_by, held_by = run.functions("memory", "alloc_objects"), run.functions("mutex", "delay", "-l", "kiln.lock.role=holder")
        for name in ("wrap_malloc", "make_order"):
            check(f"{program}: {name} allocates", 500 < made_by.get(name, 0) < 2000, made_by)
        check(f"{program}: operators of C++ are left out", not any("operator new" in name for name in made_by), made_by)
        check(f"{program}: who does not jump is there once", 500 < made_by.get("take_note", 0) < 2000, made_by)
        check(f"{program}: the function that held the lock is named", held_by.get("write_journal", 0) > 0.9 * held_by[""], held_by)


def main():
    for name, functions in TRUTH.items():
        check_program(name, functions)
    check_first_sample()
    check_without_main()
    check_tails()
    return exit_code()


sys.exit(main())
