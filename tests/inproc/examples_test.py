#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The programs of examples/libkiln do what their pages say: each page's commands are run as they stand, but for ports."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

SOURCE = pathlib.Path(os.environ.get("KILN_SOURCE_DIR", ".")).resolve()
sys.path.insert(0, str(SOURCE / "tests/support"))
from checks import check, exit_code  # noqa: E402
from ports import free_port  # noqa: E402
from preload_kit import BUILD, KILN, Folder, clean  # noqa: E402

EXAMPLES = SOURCE / "examples/libkiln"
PC = """Name: kiln
Description: the library of this build
Version: 0
Libs: -L{build} -lkiln -Wl,-rpath,{build}
Cflags: -I{source}/include
"""


def run_page(folder, name):
    """Runs the commands of a page in a copy of its folder; all that they print."""
    work = folder / name
    shutil.copytree(EXAMPLES / name, work)
    (folder / "kiln.pc").write_text(PC.format(build=BUILD, source=SOURCE))
    script = "set -eu\nset -m\n" + "\n".join(re.findall(r"^```sh\n(.*?)^```$", (work / "README.md").read_text(), re.M | re.S))
    server, pprof = free_port(), free_port()
    script = script.replace("8080", str(server)).replace("6060", str(pprof))
    env = {"PATH": f"{KILN.parent}:{os.environ['PATH']}", "PKG_CONFIG_PATH": str(folder), "TERM": "dumb", "LC_ALL": "C.UTF-8"}
    done = subprocess.run(["bash", "-c", script], cwd=work, env=clean(env), capture_output=True, text=True, check=False, timeout=200)
    check(f"{name}: its commands run", done.returncode == 0, done)
    return done.stdout


def line_of(name, text):
    return next(i for i, line in enumerate((EXAMPLES / name).read_text().splitlines(), 1) if text in line)


def check_server(folder):
    said = run_page(folder, "server")
    line = line_of("server/server.c", "malloc(sizeof(*visitor))")
    grew = said.partition("Grew:")[2].partition("Shrank:")[0].partition("Within")[0]
    check("server: the leak is named at its line", re.search(rf"\bvisit\b.*server\.c:{line}\b", grew), said)
    page = (EXAMPLES / "server/README.md").read_text()
    check("server: the page shows that line", f"server.c:{line}" in page, line)


def check_cpp(folder):
    said = run_page(folder, "cpp")
    check("cpp: who allocates is named", "split" in said and "words.cpp" in said, said)


def check_python(folder):
    said = run_page(folder, "python")
    check("python: the script does what it does", "60 kept" in said, said)
    check("python: what native code allocates is seen", "Memory allocated" in said and "python" in said.lower(), said)


def check_node(folder):
    if not shutil.which("node"):
        print("skipped: there is no node")
        return
    said = run_page(folder, "node")
    check("node: the script does what it does", "200 requests" in said, said)
    check("node: the function that held up the loop is named", "renderInvoice" in said, said)


def main():
    with Folder() as folder:
        check_server(folder)
        check_cpp(folder)
        check_python(folder)
        check_node(folder)
    return exit_code()


if __name__ == "__main__":
    sys.exit(main())
