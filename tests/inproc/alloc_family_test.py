#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The malloc family under the library: each function, with every allocator behind it; then threads that free what
others made while the process forks and loads libraries.  The programs check themselves and exit with 1."""
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(os.environ.get("KILN_SOURCE_DIR", ".")).resolve() / "tests/support"))
from checks import check, exit_code  # noqa: E402

LIBKILN = pathlib.Path(os.environ["LIBKILN"])
WITH_OPERATORS = LIBKILN.parent / "new/libkiln.so"
PROGRAMS = pathlib.Path(os.environ["KILN_BUILD_DIR"]) / "inproc"
ALLOCATORS = ["libjemalloc.so.2", "libtcmalloc.so.4", "libtcmalloc_minimal.so.4"]
CHURN = os.environ.get("KILN_ALLOCATIONS", "10000000")


def run(library, allocator, *command, **settings):
    preload = " ".join(str(part) for part in (library, allocator) if part)
    env = {**os.environ, "LD_PRELOAD": preload, "KILN_PROFILES": "alloc,heap", "KILN_SEED": "1", **settings}
    return subprocess.run([str(part) for part in command], env=env, capture_output=True, text=True, timeout=4 * 3600)


def is_there(allocator):
    """The linker warns of what it cannot preload and goes on."""
    return run(None, allocator, "/bin/true").stderr == ""


def check_run(what, done):
    check(what, done.returncode == 0, f"{done.returncode}: {done.stderr}")


def main():
    for mean in ("1", "512", "524288"):
        check_run(f"the C library's, a sample in {mean} bytes",
                  run(LIBKILN, None, PROGRAMS / "alloc_family", "glibc", KILN_ALLOC_BYTES=mean))
    for allocator in ALLOCATORS:
        if not is_there(allocator):
            print(f"{allocator} is not installed: skipped")
            continue
        check_run(allocator, run(LIBKILN, allocator, PROGRAMS / "alloc_family", KILN_ALLOC_BYTES="512"))
        for library in (LIBKILN, WITH_OPERATORS):
            check_run(f"{allocator}, C++, {library.relative_to(LIBKILN.parent)}",
                      run(library, allocator, PROGRAMS / "alloc_new", KILN_ALLOC_BYTES="512"))
    check_run("C++ with operators of the standard library",
              run(WITH_OPERATORS, None, PROGRAMS / "alloc_new", KILN_ALLOC_BYTES="512"))
    check_run(f"{CHURN} allocations with threads, forks and libraries that come and go",
              run(LIBKILN, None, PROGRAMS / "alloc_churn", CHURN, PROGRAMS / "alloc_plugin.so"))
    check_run("a tenth as many, nearly all of them sampled",
              run(LIBKILN, None, PROGRAMS / "alloc_churn", int(CHURN) // 10, PROGRAMS / "alloc_plugin.so",
                  KILN_ALLOC_BYTES="64", KILN_ALLOC_RATE="0"))
    return exit_code()


sys.exit(main())
