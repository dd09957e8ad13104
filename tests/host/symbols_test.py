#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Inlined functions and lines: from the program itself, from a debug file, from one that only another root has."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

SOURCE = pathlib.Path(os.environ.get("KILN_SOURCE_DIR", ".")).resolve()
sys.path.insert(0, str(SOURCE / "tests/support"))
from checks import check, exit_code  # noqa: E402
from host_kit import KILN, PROGRAMS, Folder, has_chain, need_host, record, skip  # noqa: E402

CHAIN = ("spin_[i]", "burn_inlined_[i]", "middle_inlined_[i]", "outer", "main")
SECONDS = "2"


def known(frames):
    return has_chain(frames, CHAIN)


def lines_of(path):
    """Which lines of inlined.c each function was seen at."""
    done = subprocess.run([KILN, "convert", path, "--to", "otlp-json"], capture_output=True, text=True, check=True)
    tables = json.loads(done.stdout)["dictionary"]
    texts, found = tables["stringTable"], {}
    for location in tables["locationTable"]:
        for line in location.get("lines", []):
            function = tables["functionTable"][line.get("functionIndex", 0)]
            if texts[function.get("filenameStrindex", 0)].endswith("/inlined.c"):
                found.setdefault(texts[function["nameStrindex"]], set()).add(int(line.get("line", 0)))
    return found


def true_lines():
    text = (SOURCE / "tests/host/programs/inlined.c").read_text().splitlines()
    here = [number for number, line in enumerate(text, 1) if "/* here */" in line]
    return dict(zip(("burn_inlined", "middle_inlined", "outer"), here))


def check_deep(what, rec):
    seen = rec.count(known)
    check(f"{what}: {seen} of {rec.total} samples have the functions that were inlined",
          rec.total > 20 and seen >= 0.9 * rec.total, (rec.said, rec.worst(known)))
    found = lines_of(rec.path)
    for function, line in true_lines().items():
        check(f"{what}: {function} is at line {line}", line in found.get(function, ()), found)


def strip(program, stripped, debug, link=False):
    """Its debug information goes to a file of its own."""
    debug.parent.mkdir(parents=True, exist_ok=True)
    stripped.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["objcopy", "--only-keep-debug", program, debug], check=True)
    subprocess.run(["objcopy", "--strip-all", *(["--remove-section=.note.gnu.build-id"] if link else []), program,
                    stripped], check=True)
    if link:
        subprocess.run(["objcopy", f"--add-gnu-debuglink={debug}", stripped], check=True)


def build_id(program):
    notes = subprocess.run(["readelf", "-n", program], capture_output=True, text=True, check=True).stdout
    return re.search(r"Build ID: (\w+)", notes)[1]


def check_link(folder):
    program = folder / "linked"
    strip(PROGRAMS / "inlined", program, folder / ".debug/linked.debug", link=True)
    check_deep("a debug file that is linked to", record(folder, program, SECONDS))
    with open(folder / ".debug/linked.debug", "ab") as debug:
        debug.write(b"changed")
    rec = record(folder, program, SECONDS)
    check("a debug file whose CRC is wrong is not believed", rec.total > 20 and rec.count(known) == 0, rec.worst(known))


def check_root(folder):
    """The program and its debug file are only there for who is in that root."""
    root = folder / "root"
    wanted = build_id(PROGRAMS / "inlined")
    strip(PROGRAMS / "inlined", root / "bin/inlined",
          root / f"usr/lib/debug/.build-id/{wanted[:2]}/{wanted[2:]}.debug")
    check_deep("a debug file in another root", record(folder, "chroot", root, "/bin/inlined", SECONDS))
    shutil.rmtree(root / "usr")
    rec = record(folder, "chroot", root, "/bin/inlined", SECONDS)
    check("without it there are no names", rec.total > 20 and rec.count(known) == 0, rec.worst(known))


def main():
    need_host("inlined")
    os.environ["KILN_SYMBOL_CACHE"] = "off"  # which would know what debug files said once
    if not shutil.which("objcopy") or not shutil.which("readelf"):
        skip("binutils are not here")
    with Folder() as folder:
        check_deep("a program with debug information", record(folder, PROGRAMS / "inlined", SECONDS))
        check_link(folder)
        check_root(folder)
    return exit_code()


if __name__ == "__main__":
    sys.exit(main())
