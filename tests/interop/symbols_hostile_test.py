#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files that mean harm to whoever reads their symbols: loops, bombs, lies, and mutations of good programs.  Each is
answered within the limits, whoever asks goes on, and good files have their names all the same.

KILN_TEST_MUTATIONS: how many mutations (60); KILN_TEST_SEED: the seed of them (8)."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path[:0] = [str(pathlib.Path(__file__).parent / "symbols"), str(pathlib.Path(__file__).parent.parent / "support")]
import hostile  # noqa: E402
import zoo  # noqa: E402
from checks import check, exit_code  # noqa: E402

KILN = os.environ.get("KILN", "build/kiln")
DRIVER = os.path.join(os.environ.get("KILN_BUILD_DIR", "build"), "interop_symbols_hostile")
MUTATIONS = int(os.environ.get("KILN_TEST_MUTATIONS", "60"))
SEED = int(os.environ.get("KILN_TEST_SEED", "8"))
CPU_MS_MOST = 12000  # of one file: its limits, once for the name and once for the lines, on a child that died, twice
PROGRAMS = ("gcc-g", "gcc-dwz", "gcc-gz", "gcc-dwarf4", "clang-g", "gcc-split")


def address_of(path, name):
    out = subprocess.run(["nm", path], check=True, capture_output=True, text=True).stdout
    return next(line.split()[0] for line in out.splitlines() if line.endswith(f" {name}"))


def drive(what, good, files):
    """One resolver for all of them."""
    address = address_of(good, "choose")
    done = subprocess.run([DRIVER, good, address, *map(str, files)], capture_output=True, text=True, check=False)
    rows = [line.split(" ", 3) for line in done.stdout.splitlines()]
    check(f"{what}: {len(files)} files, and who asks is well", done.returncode == 0 and len(rows) == len(files),
          (done.returncode, done.stderr[-500:]))
    hurt = [row[3] for row in rows if row[1] != "well"]
    check(f"{what}: a good file has its names after each", not hurt, hurt[:5])
    slow = [(int(row[2]), os.path.basename(row[3])) for row in rows if int(row[2]) > CPU_MS_MOST]
    check(f"{what}: none takes more than its time", not slow, sorted(slow)[-5:])


def resolve(what, files):
    """The command does not die, and what is wrong with a file's lines does not cost it its names."""
    wrong = []
    for path in files:
        done = subprocess.run([KILN, "symbols", "resolve", "--timeout", "3s", path], input="401000\n401234\n",
                              capture_output=True, text=True, check=False, timeout=120)
        if done.returncode not in (0, 3) or done.stdout.count("0x") != 2 or "\t??\t" in done.stdout:
            wrong.append((os.path.basename(path), done.returncode, done.stdout[-200:], done.stderr[-200:]))
    check(f"{what}: the command answers", not wrong, wrong[:5])


def main():
    if not shutil.which("gcc") or not os.path.exists(DRIVER):
        print("skipped: no gcc, or the driver is not built")
        return 77
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        programs = {p.name: p.path for p, why in zoo.build_all(folder / "zoo", only=PROGRAMS) if not why}
        good = programs["gcc-g"]
        assembled = hostile.assemble(folder)
        drive("assembled", good, assembled)
        resolve("assembled", assembled)
        drive("bombs", good, list(hostile.bombs(good, folder)))
        drive("mutations", good, list(hostile.mutations(list(programs.values()), folder, MUTATIONS, SEED)))
    return exit_code()


if __name__ == "__main__":
    sys.exit(main())
