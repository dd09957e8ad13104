#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Names that only a running program has: code made at run time, told of in a jitdump (by a program of our own, by
node and by Python where they are installed), functions of the vDSO, functions that Go's compiler put into others."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(os.environ.get("KILN_SOURCE_DIR", ".")).resolve() / "tests/support"))
from checks import check, exit_code  # noqa: E402
from host_kit import KILN, PROGRAMS, Folder, has_chain, need_host, plausible, record  # noqa: E402

FIB_JS = """
function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
const end = process.cpuUsage().user + 600000;
while (process.cpuUsage().user < end) fib(22);
"""

FIB_PY = """
import os, sys, time
open(sys.argv[1], "w").write(str(os.getpid()))
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)
end = time.process_time() + 0.6
while time.process_time() < end:
    fib(18)
"""


def lines_of(path, function):
    """(file, {line: self}) of a function."""
    done = subprocess.run([KILN, "list", f"^{function}$", path, "--json"], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        return "", {}
    found = json.loads(done.stdout)["functions"][0]
    return found["file"], {row["line"]: row["self"] for row in found["lines"] if row["self"]}


def check_own(folder):
    """Batches are made while the file grows: what is told later has its name in later ones."""
    rec = record(folder, PROGRAMS / "jitdump", "4", folder)
    hot = rec.count(lambda f: has_chain(f, ("hot", "outer", "main")))
    cold = rec.count(lambda f: has_chain(f, ("cold", "outer", "main")))
    nameless = rec.count(lambda f: has_chain(f, ("[jit]", "outer", "main")))
    made = hot + cold + nameless
    check(f"jitdump: {made} of {rec.total} samples are in code that was made", made >= 0.94 * rec.total - 5,
          rec.stacks.most_common(5))
    check(f"jitdump: {hot} of {made} are in what was told of at once", plausible(hot, made, 0.75, 0.02))
    check(f"jitdump: of the rest {nameless} have no name yet, and then {cold} have", nameless > 0 and cold > 0)
    file, lines = lines_of(rec.path, "hot")
    share = lines.get(12, 0) / max(sum(lines.values()), 1)
    check(f"jitdump: {share:.2f} of it is at line 12 of {file}, the rest at 15",
          file == "/src/made.k" and set(lines) == {12, 15} and plausible(round(hot * share), hot, 0.5, 0.02))


def check_node(folder):
    """It writes in pieces of two megabytes, and what is left when it ends: only then all is there."""
    script = folder / "fib.js"
    script.write_text(FIB_JS)
    rec = record(folder, "env", "-C", folder, "node", "--perf-prof", "--no-logfile-per-isolate", script)
    name = re.compile(rf"JS:[+*]'?fib {re.escape(str(script))}:2(:13)?")  # without a column before Node 20
    named = rec.count(lambda f: any(map(name.fullmatch, f)))
    check(f"node: {named} of {rec.total} samples are in compiled code that has its name", named > 0,
          rec.stacks.most_common(5))


def check_python(folder):
    script = folder / "fib.py"
    script.write_text(FIB_PY)
    rec = record(folder, "python3", "-X", "perf_jit", script, folder / "pid")
    pathlib.Path(f"/tmp/jit-{(folder / 'pid').read_text()}.dump").unlink(missing_ok=True)
    named = rec.count(lambda f: f"py::fib:{script}" in f)
    check(f"python: {named} of {rec.total} samples are below functions that have their names", named > 0,
          rec.stacks.most_common(5))


def knows_perf_jit():
    done = subprocess.run(["python3", "-c", "import sys; print(sys.version_info >= (3, 13))"], stdout=subprocess.PIPE,
                          text=True, check=False)
    return done.stdout.strip() == "True"


def check_vdso(folder):
    rec = record(folder, PROGRAMS / "clocks", "1")
    # The C library's own function has several names, and which one is known depends on its debug information.
    named = rec.count(lambda f: f[0] == "__vdso_clock_gettime" and f[1].endswith("clock_gettime") and
                      has_chain(f[2:], ("ask_clock", "outer", "main")))
    check(f"clocks: {named} of {rec.total} samples are in a function of the vDSO", named > rec.total / 2,
          rec.stacks.most_common(5))
    rows = json.loads(subprocess.run([KILN, "top", rec.path, "--json"], stdout=subprocess.PIPE, text=True,
                                     check=True).stdout)["rows"]
    check("clocks: it is of [vdso]", ("__vdso_clock_gettime", "[vdso]") in {(r["name"], r.get("module")) for r in rows},
          rows[:3])


def check_go(folder):
    rec = record(folder, PROGRAMS / "inlining", "1")
    chain = ("main.burn_[i]", "main.middle_[i]", "main.outer_[i]", "main.main")
    whole = rec.count(lambda f: has_chain(f, chain))
    check(f"inlining: {whole} of {rec.total} samples show functions that were inlined", whole >= 0.8 * rec.total - 5,
          rec.stacks.most_common(5))
    file, lines = lines_of(rec.path, "main.burn")
    check(f"inlining: main.burn is at lines {sorted(lines)} of {file}",
          file.endswith("/inlining.go") and set(lines) & {16, 17} and not set(lines) - {15, 16, 17, 19})


def main():
    need_host("jitdump", "clocks")
    with Folder() as folder:
        check_own(folder)
        check_vdso(folder)
        if (PROGRAMS / "inlining").exists():
            check_go(folder)
        if shutil.which("node"):
            check_node(folder)
        if knows_perf_jit():
            check_python(folder)
    sys.exit(exit_code())


main()
