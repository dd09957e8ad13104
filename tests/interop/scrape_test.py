#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Scraping a real Go program with net/http/pprof.

The program allocates on demand and counts every byte, so that the differences that a server kept,
over its own restart, can be compared with what was allocated.
"""
import hashlib
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

SOURCES = pathlib.Path(os.environ.get("KILN_SOURCE_DIR", ".")).resolve()
sys.path.insert(0, str(SOURCES / "tests/support"))
from kiln_server import KILN, KilnServer  # noqa: E402

PROGRAM = SOURCES / "tests/interop/go/pprofserver"
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "kiln"
SIZE = 1024  # bytes of one allocation


def build():
    """The program, built once for its sources; None with a reason where that is not possible."""
    if not shutil.which("go"):
        return None, "Go is not installed"
    digest = hashlib.sha256(b"".join(f.read_bytes() for f in sorted(PROGRAM.iterdir()))).hexdigest()[:16]
    binary = CACHE / f"pprofserver-{digest}"
    if not binary.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as folder:
            done = subprocess.run(["go", "build", "-o", f"{folder}/program", "."], cwd=PROGRAM, capture_output=True,
                                  text=True, check=False, env=os.environ | {"CGO_ENABLED": "0", "GOFLAGS": "-mod=mod"})
            if done.returncode:
                return None, f"the Go program cannot be built: {done.stderr.strip()[-200:]}"
            os.rename(f"{folder}/program", binary)
    return binary, None


class Program:
    def __init__(self, binary, address="127.0.0.1:0"):
        self.process = subprocess.Popen([binary, address], stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline())

    def allocate(self, n):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/allocate?n={n}", timeout=60) as answer:
            answer.read()

    def end(self):
        self.process.kill()
        self.process.wait()


def metric(server, name):
    """The sum over all series of a name that match."""
    with urllib.request.urlopen(f"http://127.0.0.1:{server.http}/metrics", timeout=60) as answer:
        text = answer.read().decode()
    return sum(float(l.rsplit(" ", 1)[1]) for l in text.splitlines() if re.match(name, l))


def wait_for(what, holds, server):
    deadline = time.monotonic() + 90
    while not holds():
        if time.monotonic() > deadline:
            sys.exit(f"FAILED: waited too long until {what}\n{server.said()}")
        time.sleep(0.05)


def fetched(server, profile, more):
    """Waits for `more` further fetches of a profile that went well."""
    name = f'kiln_scrape_total{{job="shop",profile="{profile}",outcome="delivered"'
    wanted = metric(server, re.escape(name)) + more
    wait_for(f"{profile} was fetched {more} times", lambda: metric(server, re.escape(name)) >= wanted, server)


def total(server, sample_type, function=None):
    """The kept sum of a type, or of one function in it."""
    address = f"http://127.0.0.1:{server.http}/api/v1/store/export?service=web"
    with urllib.request.urlopen(address, timeout=60) as answer:
        body = answer.read()
    with tempfile.NamedTemporaryFile(suffix=".otlp") as file:
        file.write(body)
        file.flush()
        done = subprocess.run([KILN, "top", "--json", "-n", "0", "-t", sample_type, file.name], capture_output=True,
                              check=False)
    if done.returncode:
        return 0
    top = json.loads(done.stdout)
    return top["total"] if not function else sum(r["self"] for r in top["rows"] if r["name"] == function)


def check(what, good):
    print(f"{'ok' if good else 'FAILED'}: {what}", flush=True)
    if not good:
        sys.exit(1)


def scrape(server, program, binary):
    program.allocate(1000)  # before the baseline: never counted
    server.start()
    fetched(server, "allocs", 2)
    check("the first reading is a baseline", total(server, "alloc_space", "main.allocate") == 0)
    program.allocate(500)
    fetched(server, "allocs", 2)
    program.allocate(250)
    server.stop()
    program.allocate(125)  # while nobody looks
    server.start()
    fetched(server, "allocs", 2)
    kept = total(server, "alloc_space:bytes", "main.allocate")
    # append() in the same function allocates as well: never less than what was asked for
    check(f"differences add up to what was allocated: {kept}", 875 * SIZE <= kept < 3 * 875 * SIZE)
    objects = total(server, "alloc_objects:count", "main.allocate")
    check(f"and so do objects: {objects}", 875 <= objects < 2 * 875)
    fetched(server, "profile", 1)
    for sample_type in ("cpu:nanoseconds", "goroutine:count", "inuse_space:bytes", "mutex:delay:nanoseconds",
                        "block:delay:nanoseconds"):
        check(f"{sample_type} arrived", total(server, sample_type) > 0)
    check("no counter began anew", metric(server, "kiln_scrape_resets_total") == 0)
    program.end()
    wait_for("the target is down", lambda: metric(server, "kiln_scrape_up") == 0, server)
    check("the reason is in the log", "scrape failed" in server.said())
    again = Program(binary, f"127.0.0.1:{program.port}")
    try:
        again.allocate(10)
        wait_for("the target is up", lambda: metric(server, "kiln_scrape_up") == 1, server)
        fetched(server, "allocs", 2)
        check("a new start is noticed", metric(server, "kiln_scrape_resets_total") > 0)
        more = total(server, "alloc_space:bytes", "main.allocate") - kept
        check(f"and counts from zero: {more}", 10 * SIZE <= more < 875 * SIZE)
    finally:
        again.end()


def main():
    binary, why_not = build()
    if not binary:
        print(f"skipped: {why_not}")
        return 77
    program = Program(binary)
    try:
        with tempfile.TemporaryDirectory() as folder:
            config = pathlib.Path(folder) / "kiln.yaml"
            config.write_text(f"""
scrape:
  - job_name: shop
    scrape_interval: 1s
    profiles: {{profile: {{seconds: 1}}}}
    static_configs:
      - targets: ["127.0.0.1:{program.port}"]
        labels: {{service_name: web}}
""")
            server = KilnServer("--config", str(config))
            try:
                scrape(server, program, binary)
            finally:
                server.__exit__()
    finally:
        program.end()
    return 0


if __name__ == "__main__":
    sys.exit(main())
