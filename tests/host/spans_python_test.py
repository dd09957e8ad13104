#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Spans of OpenTelemetry's SDK for Python, through bridges/python: with a line of code, and with a variable of the
environment alone.  At least 95 in 100 samples within a span are linked to it, none wrongly: in threads, and in tasks of
an event loop that take turns."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(os.environ.get("KILN_SOURCE_DIR", ".")).resolve()
sys.path[:0] = [str(SOURCE / "tests/support"), str(SOURCE / "tests/interop/otlp")]
import peers  # noqa: E402
from checks import check, exit_code  # noqa: E402
from host_kit import PROGRAMS, Folder, need_host, record_running, skip, wait_for  # noqa: E402
from linked import Links, linked_samples  # noqa: E402

SDK = "opentelemetry-sdk==1.30.0"
LIBRARY = PROGRAMS.parent / "libkiln.so"


def pip(what, place):
    """Installs a package for tests alone, once."""
    if place.is_dir():
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent) as scratch:
        made = pathlib.Path(scratch) / "made"
        done = subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--target", str(made), what],
                              capture_output=True, text=True, check=False)
        if done.returncode:
            raise peers.Absent(f"pip cannot install {what}: {peers.last_line(done.stderr)}")
        made.rename(place)


def truth(sample):
    """burn_T_D: an id that begins so; D 0 is none."""
    name = next((n for n in sample.names if re.fullmatch(r"burn_\d_\d", n)), None)
    if name is None:
        return None
    who, deep = map(int, name[5:].split("_"))
    wanted = f"{who + 1:02x}{deep:02x}"
    if not deep:
        return ""
    return sample.span if sample.span.startswith(wanted) else wanted + "************"


def check_program(folder, what, path, env, *words):
    env = {"PYTHONPATH": os.pathsep.join(map(str, path)), "KILN_LIBRARY": str(LIBRARY)} | env
    program = subprocess.Popen([sys.executable, SOURCE / "tests/host/programs/spans.py", PROGRAMS / "libburning.so", *words],
                               env=os.environ | env, stderr=subprocess.PIPE, text=True)
    try:
        published = wait_for(lambda: program.poll() is not None or "OTEL_CTX" in
                             pathlib.Path(f"/proc/{program.pid}/maps").read_text(encoding="utf-8"))
        if not published or program.poll() is not None:
            check(f"{what}: the program publishes itself", False, program.stderr.read() if program.poll() else "")
            return
        rec = record_running(folder, program.pid, seconds=2, least=200)
        links = Links(linked_samples(rec.path), truth)
        check(f"{what}: {links}", links.share >= 0.95 and links.right >= 100, rec.said)
        check(f"{what}: none is linked wrongly", links.wrong == 0 and links.outside > 0, links.examples[:3])
        workers = {sample.span[:2] for sample in linked_samples(rec.path) if sample.span}
        check(f"{what}: {len(workers)} of 7 have been seen", len(workers) == 7, workers)
    finally:
        program.kill()
        program.wait()


def installed_bridge(folder):
    """bridges/python as people install it, from a copy: building leaves files behind."""
    copy = folder / "bridge"
    shutil.copytree(SOURCE / "bridges/python", copy)
    pip(str(copy), folder / "installed")
    return folder / "installed"


def main():
    need_host("libburning.so")
    mark = f"{SDK.replace('==', '-')}-{sys.version_info.major}.{sys.version_info.minor}"
    sdk = peers.CACHE / "python" / mark
    try:
        pip(SDK, sdk)
    except peers.Absent as absent:
        skip(str(absent))
    with Folder() as folder:
        check_program(folder, "install()", [sdk, SOURCE / "bridges/python"], {"PYTHONDONTWRITEBYTECODE": "1"}, "install")
        try:
            check_program(folder, "the variable alone", [installed_bridge(folder), sdk], {"OTEL_PYTHON_CONTEXT": "kiln"})
        except peers.Absent as absent:
            print(f"skipped: {absent}")
    return exit_code()


if __name__ == "__main__":
    sys.exit(main())
