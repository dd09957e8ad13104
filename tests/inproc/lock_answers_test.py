#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Functions of threads answer the same with libkiln before them: errors, cancellation, errno, locks of C++."""
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(os.environ.get("KILN_SOURCE_DIR", ".")).resolve() / "tests/support"))
from checks import check, exit_code  # noqa: E402

PROGRAMS = pathlib.Path(os.environ["KILN_BUILD_DIR"]) / "inproc"


def answers(program, **environment):
    done = subprocess.run([PROGRAMS / program], capture_output=True, text=True, check=False,
                          env={**os.environ, **environment})
    return done.returncode, done.stdout.splitlines()


def check_program(program):
    alone = answers(program)
    check(f"{program}: ends well", alone[0] == 0 and alone[1], alone)
    # Sampling everything there is, and nothing.
    for profiles in "all", "none":
        with_kiln = answers(program, LD_PRELOAD=os.environ["LIBKILN"], KILN_PROFILES=profiles,
                            KILN_LOCK_NS="1000")
        differ = [pair for pair in zip(alone[1], with_kiln[1]) if pair[0] != pair[1]]
        check(f"{program}: the same with {profiles}", alone == with_kiln, differ or with_kiln)


check_program("lock_answers")
check_program("lock_answers_cpp")
sys.exit(exit_code())
