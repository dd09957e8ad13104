#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""From a thread that works for a span to the answer of what ran under it: the program, the profiler, the store, and all
who ask: the API, `kiln query`, Pyroscope's API."""
import json
import os
import pathlib
import subprocess
import sys
import time
import urllib.request

sys.path.insert(0, str(pathlib.Path(os.environ.get("KILN_SOURCE_DIR", ".")).resolve() / "tests/support"))
from checks import check, exit_code  # noqa: E402
from host_kit import KILN, PROGRAMS, Folder, Served, need_host, wait_for  # noqa: E402

SELECTOR = 'process_cpu:cpu:nanoseconds{service_name="spans"}'


class Server(Served):
    """A server that profiles this host, on a free port."""

    def __init__(self, folder):
        ready = folder / "ready.json"
        self.process = subprocess.Popen(
            [KILN, "server", "--host-profiler", "on", "--data-dir", folder / "data", "--listen",
             "127.0.0.1:0", "--otlp-grpc", "off", "--otlp-http", "off", "--socket", folder / "sock", "--ready-file", ready],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for(lambda: ready.exists() and ready.read_text())
        self.http = json.loads(ready.read_text())["http"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(60)

    def query(self, *words):
        done = subprocess.run([KILN, "query", "-s", f"http://127.0.0.1:{self.http}", "--json", "--from", "now-10m", *words,
                               SELECTOR], capture_output=True, text=True, check=False)
        return json.loads(done.stdout) if done.stdout.startswith("{") else {"said": done.stderr}

    def pyroscope(self, span):
        """Functions of SelectMergeSpanProfile."""
        body = {"profileTypeID": "process_cpu:cpu:nanoseconds:cpu:nanoseconds", "labelSelector": '{service_name="spans"}',
                "spanSelector": [span], "start": str(int(time.time() - 600) * 1000), "end": str(int(time.time() + 60) * 1000)}
        request = urllib.request.Request(f"http://127.0.0.1:{self.http}/querier.v1.QuerierService/SelectMergeSpanProfile",
                                         json.dumps(body).encode(), {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer).get("flamegraph", {}).get("names", [])


def functions(answer):
    return {row["name"] for row in answer.get("top", {}).get("rows", [])}


def spans_by_depth(server):
    """Ids of spans, with those that are one and two deep told apart."""
    found = {1: [], 2: []}
    for row in server.query("--spans").get("spans", []):
        found[int(row["span_id"][8:], 16)].append(row)
    return found


def check_span(server, depth, row, wanted, unwanted):
    span = row["span_id"]
    names = functions(server.query("--span-id", span))
    check(f"under a span {depth} deep ran {wanted}, and not {unwanted}", wanted in names and not names & unwanted, names)
    names = functions(server.query("--trace-id", row["trace_id"]))
    check(f"its trace has both: {len(names)} functions", {"burn_outer", "burn_inner"} <= names
          and "burn_outside" not in names, names)
    check(f"Pyroscope's API finds {wanted} by the span's id", wanted in server.pyroscope(span), server.pyroscope(span))


def main():
    need_host("spans-desc")
    with Folder() as folder, Server(folder) as server:
        program = subprocess.Popen([PROGRAMS / "spans-desc", "600", "2"])
        try:
            took = wait_for(lambda: all(len(rows) == 2 for rows in spans_by_depth(server).values()))
            found = spans_by_depth(server)
            check(f"four spans of two threads are there after {took or 99:.1f} s", took is not None, found)
            if took is not None:
                check_span(server, 1, found[1][0], "burn_outer", {"burn_inner", "burn_outside"})
                check_span(server, 2, found[2][0], "burn_inner", {"burn_outer", "burn_outside"})
            check("and without a span there is more", "burn_outside" in functions(server.query()))
        finally:
            program.kill()
            program.wait()
    return exit_code()


if __name__ == "__main__":
    sys.exit(main())
