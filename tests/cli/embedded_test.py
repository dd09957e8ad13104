#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kiln list beside sources that the compiler embedded in a program or its debug file."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from checks import check, exit_code  # noqa: E402
from embedded import SOURCE, Program, can_embed  # noqa: E402

KILN = os.path.abspath(os.environ.get("KILN", "build/kiln"))


def listed(folder, profile, *words):
    done = subprocess.run([KILN, "list", "hot", profile, *map(str, words)], cwd=folder, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False)
    return done.stdout


def check_embedded(folder, program):
    profile, other = folder / "hot.json", folder / "other.json"
    profile.write_text(program.profile("hot", {6: 30, 7: 10}))
    other.write_text(program.profile("hot", {6: 30, 7: 10}, build_id="ab" * 20))
    said = listed(folder, profile)
    check("the program has its source", "embedded" in said and "75.0%" in said and "n = n * 31 + i;" in said, said)
    rows = json.loads(listed(folder, profile, "--json"))["functions"][0]["lines"]
    lines = SOURCE.splitlines()
    check("as JSON too", [(row["line"], row["text"], row["self_share"]) for row in rows] ==
          [(6, lines[5], 0.75), (7, lines[6], 0.25)], rows)
    said = listed(folder, other)
    check("a program of another build id is not asked", "the source was not found" in said, said)
    said = listed(folder, other, "--debug", program.debug)
    check("but one that is named is", "n = n * 31 + i;" in said, said)


def check_elsewhere(folder, program):
    """The text that the profile's path map leads to counts more than what is embedded."""
    profile = folder / "hot.json"
    (folder / "mine").mkdir()
    (folder / "mine/hot.c").write_text(SOURCE.replace("n * 31", "n * 37"))
    said = listed(folder, profile, "--source", f"{program.source.parent}=mine")
    check("where --source says is where it is", "n = n * 37 + i;" in said and "embedded" not in said, said)
    program.path.write_bytes(program.stripped.read_bytes())
    said = listed(folder, profile)
    check("a stripped program has no source, and the end of its name is looked for", "n * 31" not in said, said)
    program.path.write_bytes(b"\x7fELF" + bytes(range(256)) * 40)
    check("a damaged one has none either", "the source was not found" in listed(folder, profile, "--source", "/nowhere"))


def main():
    if not can_embed():
        print("skipped: there is no clang, or no binutils")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as tmp:
        folder = pathlib.Path(tmp)
        program = Program(folder)
        check_embedded(folder, program)
        check_elsewhere(folder, program)
    sys.exit(exit_code())


main()
