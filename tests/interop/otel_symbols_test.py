#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What OpenTelemetry's eBPF profiler sends has no names for native code: a build id and addresses.  Its captures
($KILN_TEST_DATA/otlp/host-mix.1.11) are sent to a server, and its live output, where OTEL_PROFILER names the profiler;
then the files that they name, as far as they are here, are uploaded, and what was stored before has functions, lines and
inlined functions, as addr2line tells them."""
import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request

sys.path[:0] = [str(pathlib.Path(__file__).parent / "symbols"), str(pathlib.Path(__file__).parent.parent / "support")]
import judges  # noqa: E402
import zoo  # noqa: E402
from checks import check, exit_code  # noqa: E402
from kiln_server import KILN, KilnServer  # noqa: E402

DATA = pathlib.Path(os.environ.get("KILN_TEST_DATA", "../shared/data"))
CAPTURE = DATA / "otlp" / "host-mix.1.11"
PROFILER = os.environ.get("OTEL_PROFILER", "")
WHEN = ("2026-11-15T07:50:00Z", "2026-11-15T08:00:00Z")  # it was captured
BUILD_ID = "process.executable.build_id.gnu"
PLACES = {"libc.so.6": "/lib/x86_64-linux-gnu/libc.so.6", "node": "/usr/bin/node",
          "ld-linux-x86-64.so.2": "/lib64/ld-linux-x86-64.so.2", "liblzma.so.5.4.1": "/lib/x86_64-linux-gnu/liblzma.so.5",
          "xz": "/usr/bin/xz", "libgmp.so.10.4.1": "/usr/lib/x86_64-linux-gnu/libgmp.so.10",
          "libpython3.11.so.1.0": "/usr/lib/x86_64-linux-gnu/libpython3.11.so.1.0", "python3.11": "/usr/bin/python3.11"}


def kiln(server, *words):
    return subprocess.run([KILN, *map(str, words)], capture_output=True, text=True, check=False,
                          env=os.environ | {"KILN_SERVER": f"http://127.0.0.1:{server.http}"})


def build_id(path):
    out = subprocess.run(["readelf", "-n", str(path)], capture_output=True, text=True, check=False).stdout
    found = re.search(r"Build ID: ([0-9a-f]+)", out)
    return found[1] if found else None


def debug_file(path):
    identity = build_id(path)
    found = pathlib.Path(f"/usr/lib/debug/.build-id/{identity[:2]}/{identity[2:]}.debug")
    return found if found.exists() else None


def has_names(path):
    """Whether it has a table of its functions, or a debug file beside it; what is exported names few."""
    sections = subprocess.run(["readelf", "-SW", str(path)], capture_output=True, text=True, check=False).stdout
    return ".symtab" in sections or debug_file(path) is not None


class Found:
    """What a server tells of a selection, as OTLP: for each build id, addresses and their lines."""

    def __init__(self, server, folder, selector, since, until):
        path = folder / "found.json"
        done = kiln(server, "query", "--from", since, "--until", until, "--format", "otlp-json", "-o", path, selector)
        if done.returncode:
            raise RuntimeError(done.stderr)
        self.dictionary = json.loads(path.read_text())["dictionary"]
        self.strings = self.dictionary["stringTable"]
        self.lines = {}
        for location in self.dictionary["locationTable"][1:]:
            mapping = self.dictionary["mappingTable"][location.get("mappingIndex", 0)]
            place = self.lines.setdefault(self.attributes(mapping).get(BUILD_ID), {})
            place[int(location.get("address", 0))] = [self.frame(line) for line in location.get("lines", [])]

    def attributes(self, thing):
        rows = [self.dictionary["attributeTable"][i] for i in thing.get("attributeIndices", [])]
        return {self.strings[row.get("keyStrindex", 0)]: row["value"].get("stringValue") for row in rows}

    def frame(self, line):
        function = self.dictionary["functionTable"][line.get("functionIndex", 0)]
        text = [self.strings[function.get(f"{name}Strindex", 0)] for name in ("name", "systemName", "filename")]
        return text[1] or text[0], os.path.normpath(text[2]) if text[2] else "??", int(line.get("line", 0))


def wait_until(what, seconds=90):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        found = what()
        if found:
            return found
        time.sleep(0.2)
    return None


# ---- captures ----

def send_capture(server):
    for path in sorted(CAPTURE.glob("*.otlp")):
        call = urllib.request.Request(f"http://127.0.0.1:{server.http}/v1development/profiles", path.read_bytes(),
                                      {"Content-Type": "application/x-protobuf"})
        with urllib.request.urlopen(call, timeout=60) as answer:
            answer.read()


def functions_agree(found, path):
    """Names of the outermost functions and lines of the innermost, against elfutils or, without lines, the symbol table."""
    program = zoo.Program(path.name, path.resolve(), "large")
    theirs = judges.elfutils(program, sorted(found))
    wrong = []
    for address, frames in found.items():
        expected = [frame for frame in theirs.get(address, []) if frame[0] != "??"]
        if expected and [f[2] for f in frames] != [f[2] for f in expected]:
            wrong.append((hex(address), frames, expected))
    return wrong


def captured(folder):
    with KilnServer() as server:
        send_capture(server)
        files = {name: pathlib.Path(path) for name, path in PLACES.items() if os.path.exists(path)}
        every = '{service_name=~"unknown_service.*"}'
        before = Found(server, folder, every, *WHEN)
        files = {name: path for name, path in files.items() if build_id(path) in before.lines}
        check(f"capture: {len(before.lines)} files are named, of which {len(files)} are here", before.lines)
        if not files:
            return
        named = [name for name, path in files.items() if any(before.lines[build_id(path)].values())]
        check("capture: none of them has names yet", not named, named)
        uploads = [path for file in files.values() for path in (file.resolve(), debug_file(file)) if path]
        done = kiln(server, "symbols", "upload", *uploads)
        check(f"capture: {len(uploads)} files are uploaded", done.returncode == 0, done.stderr + done.stdout)
        for name, path in files.items():
            identity = build_id(path)
            if not has_names(path):
                continue

            def named():
                lines = Found(server, folder, every, *WHEN).lines[identity]
                return lines if sum(bool(frames) for frames in lines.values()) >= 0.9 * len(lines) else None

            lines = wait_until(named)
            check(f"capture: {name}: {len(before.lines[identity])} addresses have names", lines, kiln(server, "symbols", "missing").stdout)
            if lines and debug_file(path):
                wrong = functions_agree(lines, path)
                check(f"capture: {name}: {len(lines)} addresses have the lines that elfutils finds", not wrong, wrong[:3])


# ---- live ----

@contextlib.contextmanager
def running(log, *command):
    with open(log, "wb") as said:
        process = subprocess.Popen([str(word) for word in command], stdout=said, stderr=said)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


# In a mount namespace of its own, with the tracepoints that it attaches to.
WITH_TRACEFS = ["unshare", "-m", "sh", "-c", 'mountpoint -q /sys/kernel/tracing || mount -t tracefs none /sys/kernel/tracing; exec "$@"', "sh"]


def live(folder):
    """A stripped program runs under the profiler, is gone, and only then its debug file comes."""
    program = next(p for p, why in zoo.build_all(folder / "zoo", only=("gcc-build-id",)) if not why)
    identity = build_id(program.path)
    with KilnServer() as server:
        found = {}

        def arrived():
            try:
                found["lines"] = Found(server, folder, f'{{service_name=~".*{program.path.name}.*"}}', "now-10m", "now").lines.get(identity)
            except RuntimeError:
                return None
            return found["lines"]

        log = folder / "profiler.log"
        with running(log, *WITH_TRACEFS, PROFILER, "-collection-agent", f"127.0.0.1:{server.otlp_grpc}", "-disable-tls", "-samples-per-second", "97",
                     "-reporter-interval", "1s") as profiler:
            with running("/dev/null", "bash", "-c", f"while :; do {program.path} $(seq 30000); done"):
                wait_until(lambda: len(arrived() or []) >= 40 or profiler.poll() is not None, 60)
            if profiler.poll() is not None and not found.get("lines"):
                print("skipped: live: the profiler ended:", log.read_text(errors="replace")[-300:])
                return
        check("live: addresses of the program arrive", found.get("lines"), server.said())
        if not found.get("lines"):
            return
        check("live: without names", not any(frames and frames[0][2] for frames in found["lines"].values()), found["lines"])
        done = kiln(server, "symbols", "upload", program.debug)
        check("live: its debug file is uploaded", done.returncode == 0, done.stderr)
        lines = wait_until(lambda: arrived() if any(f and f[0][2] for f in arrived().values()) else None)
        check("live: and what was stored before has lines", lines, kiln(server, "symbols", "missing").stdout)
        if lines:
            theirs = judges.elfutils(program, sorted(lines))
            wrong = [(hex(a), frames, theirs[a]) for a, frames in lines.items() if theirs[a][0][2] and frames != theirs[a]]
            check(f"live: {len(lines)} addresses, frame by frame as elfutils finds them", not wrong, wrong[:3])
            check("live: inlined functions too", any(len(frames) > 1 for frames in lines.values()), lines)


def main():
    if not CAPTURE.is_dir() and not PROFILER:
        print("skipped: no captures in KILN_TEST_DATA, and OTEL_PROFILER names no profiler")
        return 77
    if not shutil.which("eu-addr2line"):
        print("skipped: no eu-addr2line")
        return 77
    with tempfile.TemporaryDirectory() as name:
        if CAPTURE.is_dir():
            captured(pathlib.Path(name))
        if PROFILER and os.geteuid() == 0:
            live(pathlib.Path(name))
        else:
            print("skipped: live: OTEL_PROFILER names no profiler, or no privilege")
    return exit_code()


if __name__ == "__main__":
    sys.exit(main())
