#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: readers_writers_test.py [SECONDS]

Eight readers ask every endpoint while a fleet and a ledger write, below a memory limit, while heads are cut and blocks are merged.

  ledger   profiles of a known value, one after the other: at any moment a total is at least what was acknowledged before the question
           and at most what was sent before its answer
  fleet    `kiln loadgen`, whose requests are the same for the same seed: at the end every total is what the same requests in files have

Nothing may be refused, no answer may break, memory stays below its limit.  15 seconds in `make test`, minutes in `make soak`.
"""
import json
import os
import pathlib
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from drawn_otlp import PERIOD_NS, Drawn  # noqa: E402
from kiln_server import KILN, KilnServer  # noqa: E402

SECONDS = int(sys.argv[1]) if len(sys.argv) > 1 else int(os.environ.get("KILN_SOAK_SECONDS", 15))
READERS = 8
LIMIT_MB = 256
RATE = 20  # requests of the fleet a second
CPU = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
LEDGER = CPU + '{service_name="ledger"}'
LEDGER_TEXT = "main;credit 60\nmain;debit 30\nmain 10\n"
problems = []


def problem(text):
    problems.append(text)
    print("FAILED:", text[:1000], flush=True)


class Ledger:
    """Counts what was sent and what was acknowledged, in units of one profile."""

    def __init__(self, server):
        self.server, self.sent, self.acknowledged = server, 0, 0

    def write(self, until):
        while time.monotonic() < until:
            drawn = Drawn()
            drawn.profile({"service.name": "ledger", "service.version": f"1.{self.sent // 100}"}, time.time_ns(),
                          LEDGER_TEXT.replace("\n", f" @ {self.sent + 1:032x}/{self.sent + 1:016x}\n"), seconds=1)
            self.sent += 1
            drawn.send(self.server)
            self.acknowledged += 1
            time.sleep(0.02)


def native(path, **params):
    return f"/api/v1/{path}?{urllib.parse.urlencode(params)}", None


def connect(method, **message):
    return f"/querier.v1.QuerierService/{method}", message


def endpoints():
    """(path, body) of everything that can be asked, over the last hour."""
    now = int(time.time() * 1000)
    hour = {"start": now - 3_600_000, "end": now + 1000}
    tree = {"profileTypeID": CPU, "labelSelector": '{service_name="ledger"}', **hour}
    old, new = {**tree, "end": now - 5000}, {**tree, "start": now - 5000}
    yield from (native("query", query=LEDGER, format=form) for form in
                ("json", "top", "flamegraph", "series", "pprof", "otlp", "speedscope", "collapsed", "svg", "dot"))
    yield native("query", query=CPU + "{}", format="series", by="service_name", step="15s")
    yield native("query", query=CPU + '{service_name=~".+"}', nodes=1024)
    yield native("query", query=LEDGER, function="credit", limit=10)
    yield native("diff", query=LEDGER, left_until=f"{now - 5000}", right_from=f"{now - 5000}")
    yield from (native(path) for path in ("labels", "labels/service_name/values", "series", "types", "services", "deployments",
                                          "annotations", "findings", "openapi.yaml"))
    yield native("profiles", query=LEDGER, limit=20)
    yield native("spans", query=LEDGER, function="credit", by="trace", limit=20)
    yield native("functions", query=LEDGER, function="debit")
    yield "/api/v1/spans", {"query": LEDGER, "windows": [{"from": "now-10s", "until": "now"}]}
    yield connect("ProfileTypes", **hour)
    yield connect("LabelNames", **hour)
    yield connect("LabelValues", name="service_name", **hour)
    yield connect("Series", matchers=[], labelNames=["service_name"], **hour)
    yield connect("SelectMergeStacktraces", maxNodes=16384, **tree)
    yield connect("SelectMergeProfile", **tree)
    yield connect("SelectSeries", step=15, groupBy=["service_name"], **tree)
    yield connect("Diff", left=old, right=new)
    yield connect("GetProfileStats")
    yield connect("AnalyzeQuery", query=LEDGER, **hour)
    yield "/pyroscope/render?" + urllib.parse.urlencode({"query": LEDGER, "from": "now-1h", "until": "now"}), None
    yield from ((path, None) for path in ("/", "/ready", "/metrics"))


def fetch(server, path, body):
    call = urllib.request.Request(f"http://127.0.0.1:{server.http}{path}", body if body is None else json.dumps(body).encode(),
                                  {} if body is None else {"Content-Type": "application/json"})
    with urllib.request.urlopen(call, timeout=120) as answer:
        return answer.read()


def total_of_ledger(server, ledger):
    """One question whose answer is known: checked against what was acknowledged before and sent after it."""
    least = ledger.acknowledged
    answer = json.loads(fetch(server, *native("query", query=LEDGER, **{"from": "now-1h", "until": "now+10s"})))
    most, unit = ledger.sent, 100 * PERIOD_NS
    if not least * unit <= answer["total"] <= most * unit or answer["total"] % unit:
        problem(f"the ledger has {answer['total'] / unit} profiles, not {least} to {most}")
    rows = {row["name"]: row["self"] for row in answer["top"]["rows"]}
    if answer["total"] and rows != {"credit": answer["total"] * 6 // 10, "debit": answer["total"] * 3 // 10, "main": answer["total"] // 10}:
        problem(f"the functions of the ledger do not add up: {rows} of {answer['total']}")
    return answer["total"]


def read(server, ledger, number, until, counts):
    before = 0
    while time.monotonic() < until and len(problems) < 20:
        questions = list(endpoints())
        for path, body in questions[number * 5 % len(questions):] + questions[:number * 5 % len(questions)]:
            try:
                fetch(server, path, body)
                counts[number] += 1
            except (OSError, urllib.error.HTTPError) as error:
                said = error.read().decode(errors="replace") if isinstance(error, urllib.error.HTTPError) else ""
                problem(f"{path} {body or ''}: {error} {said}")
            if time.monotonic() > until:
                break
        total = total_of_ledger(server, ledger)
        if total < before:
            problem(f"the ledger shrank from {before} to {total}")
        before = total


def fleet_words(n):
    return ["-n", str(n), "--seed", "7", "--shape", "pprof", "--samples", "1500", "--services", "4", "--hosts", "2", "--json"]


def totals_of_files(folder):
    """{service: CPU time} of the requests that the fleet sent, by our own tool box."""
    totals = {}
    for file in sorted(folder.iterdir()):
        for service, value in top_by_service(file).items():
            totals[service] = totals.get(service, 0) + value
    return totals


def top_by_service(file):
    info = json.loads(subprocess.run([KILN, "info", "--json", str(file)], capture_output=True, check=True).stdout)
    totals = {}
    for resource in info["resources"]:
        service = resource["attributes"]["service.name"]
        for profile in resource["profiles"]:
            if profile["type"] == CPU:
                totals[service] = totals.get(service, 0) + profile["total"]
    return totals


def check_fleet(server, account, n):
    if account["acknowledged"] != n or account["failed"] or account["rejected"]:
        problem(f"the fleet: {account}")
    folder = server.folder / "fleet"
    subprocess.run([KILN, "loadgen", "--out", str(folder), *fleet_words(n)], check=True, capture_output=True)
    for service, total in totals_of_files(folder).items():
        answer = json.loads(fetch(server, *native("query", query=f'{CPU}{{service_name="{service}"}}', **{
            "from": "now-2h", "until": "now+10s", "limit": 0})))
        if answer["total"] != total or sum(row["self"] for row in answer["top"]["rows"]) != total:
            problem(f"{service}: {answer['total']} is not {total}")


def peak_mb(server):
    status = pathlib.Path(f"/proc/{server.process.pid}/status").read_text()
    return next(int(line.split()[1]) // 1024 for line in status.splitlines() if line.startswith("VmHWM"))


def main():
    with KilnServer("--memory-limit", f"{LIMIT_MB}M") as server:
        ledger, counts, n = Ledger(server), [0] * READERS, SECONDS * RATE
        until = time.monotonic() + SECONDS
        threading.excepthook = lambda ended: problem(f"a thread ended: {ended.exc_value!r}")
        threads = [threading.Thread(target=ledger.write, args=(until,))]
        threads += [threading.Thread(target=read, args=(server, ledger, i, until, counts)) for i in range(READERS)]
        fleet = subprocess.Popen([KILN, "loadgen", "--server", f"http://127.0.0.1:{server.http}", "--rate", str(RATE), "--timeout",
                                  "60s", *fleet_words(n)], stdout=subprocess.PIPE)
        for thread in threads:
            thread.start()
        for _ in range(3):
            time.sleep(SECONDS / 4)
            subprocess.run([KILN, "store", "compact", "--server", f"http://127.0.0.1:{server.http}"], capture_output=True, check=False)
        for thread in threads:
            thread.join()
        account = json.loads(fleet.communicate()[0])
        if not all(counts) or not ledger.acknowledged:
            problem(f"somebody did nothing: readers {counts}, {ledger.acknowledged} profiles")
        total = total_of_ledger(server, ledger)
        if total != ledger.acknowledged * 100 * PERIOD_NS:
            problem(f"in the end the ledger has {total}, not {ledger.acknowledged} profiles")
        check_fleet(server, account, n)
        peak = peak_mb(server)
        if peak > LIMIT_MB and "san" not in os.environ.get("KILN_BUILD_DIR", ""):
            problem(f"it took {peak} MB, and the limit is {LIMIT_MB}")
        print(f"{sum(counts)} questions, {ledger.acknowledged} profiles of the ledger, {n} of the fleet, {peak} MB at most")
        if server.stop() != 0:
            problem(f"it did not end well: {server.said()}")
    print("all well" if not problems else f"{len(problems)} problems")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
