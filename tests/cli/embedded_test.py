#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sources that the compiler embedded in a program or its debug file, beside what their lines cost: kiln list finds them on this machine,
the server in debug files that were uploaded."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from checks import check, exit_code  # noqa: E402
from embedded import SOURCE, Program, can_embed  # noqa: E402
from kiln_server import KilnServer  # noqa: E402

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


# ---- the server ----

def push(server, body, tenant):
    request = urllib.request.Request(f"http://127.0.0.1:{server.http}/v1development/profiles", data=body.encode(),
                                     headers={"Content-Type": "application/json", "X-Scope-OrgID": tenant})
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert answer.status == 200, answer.status


def source(server, tenant):
    """What the API says of the function: its text, or why there is none."""
    words = urllib.parse.urlencode({"query": "process_cpu:cpu:nanoseconds", "function": "hot", "from": "now-1h", "until": "now"})
    request = urllib.request.Request(f"http://127.0.0.1:{server.http}/api/v1/source?{words}", headers={"X-Scope-OrgID": tenant})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def upload(server, tenant, path):
    done = subprocess.run([KILN, "symbols", "upload", path, "--server", f"http://127.0.0.1:{server.http}", "--tenant", tenant],
                          capture_output=True, text=True, check=False)
    return done.returncode == 0, done.stdout + done.stderr


def check_server(folder, program):
    with KilnServer("--multitenant") as server:
        at_ns = time.time_ns() - 60_000_000_000
        for tenant in ("a", "b"):
            push(server, program.profile("hot", {6: 30, 7: 10}, at_ns=at_ns), tenant)
        answer = source(server, "a")
        check("without a debug file there is no text, and it is said what to do",
              answer["text"] is None and "--source DIR" in answer["text_problem"] and "embedded" in answer["text_problem"], answer)
        check("lines have their shares", [(row["line"], row["self_share"]) for row in answer["lines"]] == [(6, 0.75), (7, 0.25)], answer)
        check("a debug file is taken", *upload(server, "a", program.debug))
        answer = source(server, "a")
        check("a debug file has the text", answer["text"] and answer["text"]["origin"] == "embedded" and
              answer["text"]["path"] == str(program.source) and answer["text"]["lines"] == SOURCE.splitlines(), answer)
        check("another tenant does not see it", source(server, "b")["text"] is None)
        said = subprocess.run([KILN, "query", "process_cpu:cpu:nanoseconds", "--lines", "--function", "hot", "--from", "now-1h",
                               "--server", f"http://127.0.0.1:{server.http}", "--tenant", "a"], capture_output=True, text=True, check=False)
        check("kiln query shows it", re.search(r"^ *10ns +25\.0% +10ns +25\.0% +7 +n = n \* 31 \+ i;$", said.stdout, re.M), said)
        done = subprocess.run([KILN, "symbols", "delete", program.build_id, "--server", f"http://127.0.0.1:{server.http}", "--tenant", "a"],
                              capture_output=True, text=True, check=False)
        check("with the debug file its text goes", source(server, "a")["text"] is None, done)


def check_configured(folder, program):
    """Directories count more; but a file that is too short is another version, and then what ran is shown."""
    (folder / "configured").mkdir()
    text = folder / "configured/hot.c"
    with KilnServer("--source", str(folder / "configured"), "--multitenant") as server:
        push(server, program.profile("hot", {6: 30, 7: 10}, at_ns=time.time_ns() - 60_000_000_000), "a")
        check("a debug file is taken", *upload(server, "a", program.debug))
        text.write_text(SOURCE.replace("n * 31", "n * 37"))
        answer = source(server, "a")["text"]
        check("a configured directory counts more", answer["origin"] == "directory" and answer["path"] == "hot.c", answer)
        text.write_text("int x;\n")
        answer = source(server, "a")["text"]
        check("unless its file is another version", answer and answer["origin"] == "embedded", answer)


def main():
    if not can_embed():
        print("skipped: there is no clang, or no binutils")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as tmp:
        folder = pathlib.Path(tmp)
        program = Program(folder)
        check_embedded(folder, program)
        check_server(folder, program)
        check_configured(folder, program)
        check_elsewhere(folder, program)
    sys.exit(exit_code())


main()
