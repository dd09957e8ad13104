#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: siege_test.py [SECONDS [PART...]]

A running `kiln server`, besieged as a hostile or unlucky world would.  The parts:

  load      fleets of several tenants send more than 128 MiB can take, while abuse.py does its worst
  tenants   more tenants than anybody has
  series    more series than a tenant may have, each of a service of its own
  disk      the disk is full, and then it is not any more (a tmpfs: only where that can be mounted)
  questions hostile ones, many at once, from clients that leave half-way, while profiles come in
  start     killed with a log as large as it gets, and started again
  tokens    every way to be wrong about who one is

In each the server must stay alive and below its memory limit (VmHWM); everything it acknowledged must be in the
store afterwards, once; what it refused it must have refused with 429 or 503 and Retry-After; and when the siege is
over ordinary requests succeed.  SECONDS is how long the load lasts.  What a start takes is printed; in `make torture`
more than two seconds of processor time fail.
"""
import base64
import collections
import concurrent.futures
import http.client
import json
import os
import pathlib
import re
import subprocess
import sys
import threading
import time
import urllib.parse

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "support")]
import abuse  # noqa: E402
from checks import check, exit_code  # noqa: E402
from kiln_server import KILN, KilnServer  # noqa: E402

MIB = 1 << 20
START_CPU_SECONDS_MAX = 2
TEMPLATE = pathlib.Path(os.environ.get("KILN_TEST_DATA", "")) / "pprof/large.cpu.pb.gz"


def peak_bytes(server):
    status = pathlib.Path(f"/proc/{server.process.pid}/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status).group(1)) << 10


def ask(port, method, path, body=None, headers=None):
    """(status, headers, body) of one request."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    try:
        connection.request(method, path, body, headers or {})
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        connection.close()


def send(port, body, tenant=None, **headers):
    headers = {"Content-Type": "application/json", **headers}
    if tenant:
        headers["X-Scope-OrgID"] = tenant
    return ask(port, "POST", abuse.OTLP, body, headers)


def eventually(question, seconds=120):
    """Whether it becomes true in time."""
    until = time.monotonic() + seconds
    while not (answer := question()) and time.monotonic() < until:
        time.sleep(0.1)
    return answer


def is_well(server, what, limit=None):
    alive = server.process.poll() is None
    check(f"{what}: the server is alive", alive, f"{server.process.returncode}: {server.said()}")
    if not alive:
        return
    if limit:
        peak = peak_bytes(server)
        check(f"{what}: {peak / MIB:.0f} MiB at most, of {limit}", peak <= limit * MIB)
    good = eventually(lambda: send(server.http, abuse.otlp_json(["afterwards"]), "afterwards")[0] == 200)
    check(f"{what}: ordinary requests succeed when it is over", good, server.said())
    check(f"{what}: it is ready, and measured", ask(server.http, "GET", "/ready")[0] == 200 and
          ask(server.http, "GET", "/metrics", None, {"X-Scope-OrgID": "afterwards"})[0] == 200)


# ---- load ----

def loadgen(server, name, *words):
    """A load of a tenant; its process."""
    journal = server.folder / f"{name}.journal"
    return subprocess.Popen([KILN, "loadgen", "--server", f"http://127.0.0.1:{server.http}", "--tenant", name, "--json",
                             "--retry", "5s", "-n", "1000000", "--journal", journal, *map(str, words)],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def promised(journal, pushed):
    """{part of an id: how many profiles have it} of what was acknowledged; a push makes UUIDs of them."""
    lines = [line.split() for line in journal.read_text().splitlines()]
    return {line[1][16 if pushed else 0:24]: int(line[2]) for line in lines}


def kept(server, tenant):
    """How often each profile id is in the store of a server that has ended."""
    exported = subprocess.run([KILN, "store", "export", "--data-dir", server.data, "--tenant", tenant, "--format",
                               "otlp-json", "-o", "-"], capture_output=True, check=False)
    if exported.returncode:
        return exported.stderr.decode()
    return collections.Counter(re.findall(rb'"profileId":\s*"([0-9a-fA-F]{32})"', exported.stdout))


def compare(server, tenant, pushed=False):
    wanted, found = promised(server.folder / f"{tenant}.journal", pushed), kept(server, tenant)
    if isinstance(found, str):
        check(f"load: what {tenant} sent can be exported", False, found)
        return
    twice = [name for name, n in found.items() if n > 1 and not pushed]
    have = collections.Counter()
    for name, n in found.items():
        have[(name[-8:] if pushed else name[:24]).decode().lower()] += n
    lost = [name for name, n in wanted.items() if have[name] != n]
    check(f"load: all of {sum(wanted.values())} acknowledged profiles of {tenant} are kept, once",
          not lost and not twice,
          f"{len(lost)} requests lost ({lost[:3]}), {len(twice)} profiles twice ({twice[:3]})")


class Abusers:
    """Everything in abuse.py, over and over, beside the load."""

    def __init__(self, port):
        self.port, self.stopping, self.codes, self.wrong = port, False, collections.Counter(), []
        self.threads = [threading.Thread(target=self.run, args=(one,)) for one in abuse.ALL]
        for thread in self.threads:
            thread.start()

    def run(self, one):
        while not self.stopping:
            try:
                self.codes.update(one(self.port))
            except AssertionError as error:
                self.wrong.append(str(error))
            except OSError:
                pass  # turned away
            time.sleep(0.2)

    def stop(self):
        self.stopping = True
        for thread in self.threads:
            thread.join()


def refusals(port, counted, stop):
    """Sends ordinary requests beside the load, and looks at how they are refused."""
    body = abuse.otlp_json(["bystander"], depth=20)
    while not stop.is_set():
        try:
            status, headers, _ = send(port, body, "bystander")
            counted[status, "retry-after" in headers] += 1
        except (OSError, http.client.HTTPException):
            counted["turned away"] += 1
        time.sleep(0.01)


def askers(port, counted, stop):
    """Asks for everything there is, again and again."""
    tenant = {"X-Scope-OrgID": "hosts-1"}
    while not stop.is_set():
        try:
            for path in ("/api/v1/store/export", "/api/v1/store/stats", "/metrics"):
                counted[path, ask(port, "GET", path, None, tenant)[0]] += 1
        except (OSError, http.client.HTTPException):
            counted["turned away"] += 1
        time.sleep(0.05)


def part_load(seconds, limit=128):
    pprof = ["--template", TEMPLATE] if TEMPLATE.exists() else ["--samples", 5000]
    pprof += ["--retry", "20s"]  # a busy machine tries each but a few times in five: some are taken when the rest is over
    counted, asked, stop = collections.Counter(), collections.Counter(), threading.Event()
    with KilnServer("--memory-limit", f"{limit}M", "--multitenant", "--log-level", "error") as server:
        loads = {
            "hosts-1": ["--churn", 85, "-j", 16, "--seed", 1],
            "hosts-2": ["--churn", 85, "-j", 8, "--seed", 2, "--protocol", "otlp-grpc", "--compression", "zstd"],
            "pprof-1": ["--shape", "pprof", *pprof, "-j", 16, "--seed", 3],
            "pprof-2": ["--shape", "pprof", *pprof, "-j", 16, "--seed", 4, "--protocol", "pyroscope"],
        }
        senders = {name: loadgen(server, name, "--duration", f"{seconds}s", *words) for name, words in loads.items()}
        abusers = Abusers(server.http)
        others = [threading.Thread(target=refusals, args=(server.http, counted, stop))]
        others += [threading.Thread(target=askers, args=(server.http, asked, stop)) for _ in range(2)]
        for thread in others:
            thread.start()
        for name, sender in senders.items():
            said, why = sender.communicate()
            account = json.loads(said) if said.startswith("{") else {}
            print(f"{name}: {account.get('acknowledged')} acknowledged, {account.get('refused')} refused, "
                  f"{account.get('failed')} failed, {account.get('tried_again')} tried again {why.strip()[:200]}")
            check(f"load: something of {name} was taken", account.get("acknowledged", 0) > 0, said + why)
        stop.set()
        for thread in others:
            thread.join()
        abusers.stop()
        print(f"answers to abuse {dict(abusers.codes)}, to a bystander {dict(counted)}, to questions {dict(asked)}")
        check("load: no request is taken for two", not abusers.wrong, abusers.wrong)
        check("load: refusals are 429 or 503, with Retry-After",
              all(key in ("turned away", (200, False), (429, True), (503, True)) for key in counted), dict(counted))
        check("load: abuse gets no 500", not abusers.codes[500], dict(abusers.codes))
        is_well(server, "load", limit)
        check("load: it ends in good order", server.stop() == 0, server.said())
        for name in loads:
            compare(server, name, "pyroscope" in loads[name])
        checked = subprocess.run([KILN, "store", "check", "--data-dir", server.data], capture_output=True, text=True)
        check("load: the store is whole", checked.returncode == 0, checked.stdout + checked.stderr)


# ---- tenants and series ----

def part_tenants(seconds, limit=128):
    tenants = 11000 if seconds > 30 else 1500
    with KilnServer("--memory-limit", f"{limit}M", "--multitenant", "--log-level", "error") as server:
        for name in ("../x", "..", ".", "a/b", "a\\b", "", "x" * 151, "a b", "%2e%2e", "t\xe9nant", "a:b", "~"):
            status, _, _ = send(server.http, abuse.otlp_json(), name or "\t")
            check(f"tenants: {name[:20]!r} is no tenant", status in (400, 401), status)
        answers = collections.Counter()
        connection = http.client.HTTPConnection("127.0.0.1", server.http, timeout=60)
        body = abuse.otlp_json(["one"])
        for i in range(tenants):
            connection.request("POST", abuse.OTLP, body, {"Content-Type": "application/json", "X-Scope-OrgID": f"t{i}"})
            answer = connection.getresponse()
            answer.read()
            answers[answer.status] += 1
        print(f"{tenants} tenants: {dict(answers)}")
        check("tenants: the first 1,000 are taken", answers[200] >= min(tenants, 1000), dict(answers))
        is_well(server, "tenants", limit)
        outside = [path for path in server.folder.rglob("*") if path.is_dir() and path.name in ("x", "etc")]
        check("tenants: nothing is outside of the store", not outside, outside)
        began = time.monotonic()
        server.kill()
        server.start()
        print(f"starts again in {time.monotonic() - began:.2f} s, {server.cpu_seconds():.2f} s of processor time")
        is_well(server, "tenants, again", limit)


def part_series(seconds, limit=128):
    requests = 1000 if seconds > 30 else 100
    answers = collections.Counter()

    def insist(body):
        until = time.monotonic() + 60
        while time.monotonic() < until:
            status, headers, _ = send(server.http, body)
            answers[status, "retry-after" in headers] += 1
            if status == 200:
                return
            time.sleep(0.1)

    with KilnServer("--memory-limit", f"{limit}M", "--log-level", "error") as server:
        bodies = (abuse.otlp_json([f"service-{1000 * i + k}" for k in range(1000)]) for i in range(requests))
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            list(pool.map(insist, bodies))
        print(f"{1000 * requests} series: {dict(answers)}")
        check("series: too many are no reason to refuse", answers[200, False] == requests and
              all(key in ((200, False), (429, True), (503, True)) for key in answers), dict(answers))
        is_well(server, "series", limit)
        server.kill()
        server.start()
        is_well(server, "series, again", limit)


# ---- questions ----

CPU = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
SELECTORS = ('{}', '{service_name="checkout"}', '{service_name=~"(a+)+b"}', '{service_name=~"(.*)*(.*)*(.*)*x"}',
             '{service_name!~".*' + "a?" * 200 + '"}', "{" + ",".join(f'a{i}=""' for i in range(500)) + "}",
             '{service_name=~"' + "x" * 50000 + '"}', "{service_name=~\"((((((((\"}", "{", "\x00")
TIMES = (("now-10y", "now"), ("0", "now"), ("now-1h", "now"), ("now", "now-1h"), ("1", "99999999999999999999"))
MORE = ("", "&nodes=1048576", "&nodes=1", "&format=series&step=1s", "&format=series&step=1ns&by=host_name", "&format=pprof",
        "&format=svg", "&format=top&limit=1000000", "&format=collapsed", "&format=dot", "&function=.*")


def hostile(n):
    """The n-th of all hostile questions: method, path, body, headers."""
    quote = urllib.parse.quote
    start, end = TIMES[n % len(TIMES)]
    selector = SELECTORS[n // len(TIMES) % len(SELECTORS)]
    if n % 3 == 0:
        body = json.dumps({"profileTypeID": CPU, "labelSelector": selector, "start": 1, "end": 2 ** 53, "maxNodes": 2 ** 31,
                           "step": 1e-9, "groupBy": ["host_name"] * 50})
        method = ("SelectMergeStacktraces", "SelectSeries", "Series", "LabelNames", "SelectMergeProfile")[n // 3 % 5]
        return "POST", f"/querier.v1.QuerierService/{method}", body, {"Content-Type": "application/json"}
    if n % 3 == 1:
        return "GET", f"/pyroscope/render?query={quote(CPU + selector)}&from={start}&until={end}&maxNodes=9999999", None, {}
    more = MORE[n % len(MORE)]
    return "GET", f"/api/v1/query?query={quote(CPU + selector)}&from={start}&until={end}{more}", None, {}


def question_askers(port, first, counted, stop):
    """Asks one after the other; every fifth time it leaves before the answer can be there."""
    n = first
    while not stop.is_set():
        method, path, body, headers = hostile(n)
        n += 8
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        try:
            connection.request(method, path, body, headers)
            if n % 5:
                answer = connection.getresponse()
                answer.read()
                counted[answer.status] += 1
                if answer.status in (500, 502):
                    counted[f"{method} {path[:200]}"] += 1
        except (OSError, http.client.HTTPException) as error:
            counted[type(error).__name__] += 1
        finally:
            connection.close()


def part_questions(seconds, limit=256):
    counted, stop = collections.Counter(), threading.Event()
    pprof = ["--template", TEMPLATE] if TEMPLATE.exists() else ["--samples", 5000]
    with KilnServer("--memory-limit", f"{limit}M", "--query-timeout", "5s", "--log-level", "error") as server:
        loadgen(server, "anonymous", "--shape", "pprof", *pprof, "-n", 60, "--services", 1, "-j", 2).communicate()
        load = loadgen(server, "hosts", "--churn", 85, "--duration", f"{seconds}s", "--rate", 20, "-j", 4)
        askers_ = [threading.Thread(target=question_askers, args=(server.http, i, counted, stop)) for i in range(8)]
        for thread in askers_:
            thread.start()
        said, why = load.communicate()
        account = json.loads(said) if said.startswith("{") else {}
        stop.set()
        for thread in askers_:
            thread.join()
        print(f"answers to questions {dict(counted)}; profiles beside them: {account.get('acknowledged')} acknowledged, "
              f"{account.get('failed')} failed, {account.get('tried_again')} tried again")
        check("questions: they are answered or refused, and none fails",
              set(counted) <= {200, 400, 404, 413, 414, 422, 429, 431, 503, 504}, dict(counted))
        check("questions: some are answered", counted[200] > 0, dict(counted))
        check("questions: profiles come in meanwhile", account.get("acknowledged", 0) > 0 and not account.get("failed"),
              said + why)
        is_well(server, "questions", limit)
        status = ask(server.http, "GET", f"/api/v1/query?query={urllib.parse.quote(CPU)}&from=now-1h&until=now")[0]
        check("questions: an ordinary one is answered when it is over", status == 200, status)
        check("questions: it ends in good order", server.stop() == 0, server.said())


# ---- a full disk ----

def fill(path):
    """Writes until not one more page fits."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for size in (MIB, 4096):
        try:
            while os.write(fd, bytes(size)):
                pass
        except OSError:
            pass
    os.close(fd)


def part_disk(seconds):
    del seconds
    server = KilnServer("--memory-limit", "128M", "--log-level", "error")
    server.data.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=160m", "kiln", server.data], capture_output=True)
    if mounted.returncode:
        print(f"not tried: disk: {mounted.stderr.decode().strip()}")
        server.__exit__()
        return
    filler = server.data / "filler"
    try:
        server.start()
        check("disk: with room, it takes", send(server.http, abuse.otlp_json(["before"]))[0] == 200)
        load = loadgen(server, "anonymous", "--churn", 85, "--duration", "6s", "-j", 4)
        time.sleep(1)
        fill(filler)
        status, headers, said = eventually(lambda: (a := send(server.http, abuse.otlp_json(["full"])))[0] != 200 and a)
        check("disk: full, it says so", status == 503 and "retry-after" in headers and b"disk is full" in said,
              (status, dict(headers), said))
        check("disk: full, it answers", ask(server.http, "GET", "/ready")[0] in (200, 503) and
              ask(server.http, "GET", "/metrics")[0] == 200 and ask(server.http, "GET", "/healthz")[0] == 200)
        stats = subprocess.run([KILN, "store", "stats", "--server", f"http://127.0.0.1:{server.http}", "--json"],
                               capture_output=True, text=True)
        check("disk: full, what is kept can be asked for", stats.returncode == 0, stats.stderr)
        load.communicate()
        server.kill()
        fill(filler)  # what the kill let go of
        server.start()
        check("disk: full, it starts", ask(server.http, "GET", "/healthz")[0] == 200 and
              send(server.http, abuse.otlp_json(["full"]))[0] == 503)
        filler.unlink()
        is_well(server, "disk", 128)
        check("disk: it ends in good order", server.stop() == 0, server.said())
        compare(server, "anonymous")
    finally:
        if server.process and server.process.poll() is None:
            server.kill()
        subprocess.run(["umount", server.data])
        server.__exit__()


# ---- start ----

def part_start(seconds):
    pprof = ["--template", TEMPLATE] if TEMPLATE.exists() else []
    for name, words in {"hosts": ["--churn", 85], "pprof": ["--shape", "pprof", *pprof, "--churn", 85]}.items():
        worst = 0
        for moment in (1, 3) if seconds <= 30 else range(1, 11):
            with KilnServer("--log-level", "error") as server:
                load = loadgen(server, "anonymous", "-j", 8, "--duration", f"{1300 * moment}ms", *words)
                load.communicate()
                log = sum(path.stat().st_size for path in (server.data / "wal").glob("*"))
                server.kill()
                took = server.start()
                worst = max(worst, server.cpu_seconds())
                print(f"start: {log / MIB:.0f} MiB of log of {name}: {took:.2f} s, {server.cpu_seconds():.2f} s of "
                      f"processor time")
                server.stop()
                compare(server, "anonymous")
        if os.environ.get("KILN_TORTURE"):
            check(f"start: a log of {name} takes less than {START_CPU_SECONDS_MAX} s of processor time",
                  worst < START_CPU_SECONDS_MAX, worst)


# ---- tokens ----

def part_tokens(seconds):
    del seconds
    folder = KilnServer().folder
    tokens = folder / "tokens.yaml"
    tokens.write_text("tokens:\n- {token: writes-writes-writes, access: [write], tenant: a}\n"
                      "- {token: reads-reads-reads, access: [read]}\n")
    tokens.chmod(0o600)
    basic = lambda text: "Basic " + base64.b64encode(text.encode()).decode()
    wrong = ("", "Bearer", "Bearer ", "Bearer x", "bearer writes-writes-write", "Bearer writes-writes-writesX",
             "Bearer  ", "writes-writes-writes", "Basic", "Basic !!!", "Basic " + "A" * 20000, basic("a"), basic(":"),
             basic("writes-writes-writes:"), basic("a:b:writes-writes-writes"), "Digest writes-writes-writes",
             "Bearer " + "x" * 30000, "Bearer writes-writes-writes, Bearer x", "Bearer\twrites-writes-writes",
             "Bearer \xff\xfe")
    with KilnServer("--multitenant", "--tokens", str(tokens), "--log-level", "error") as server:
        body = abuse.otlp_json()
        for header in wrong:
            status = send(server.http, body, "a", Authorization=header)[0]
            check(f"tokens: {header[:30]!r} is refused", status in (400, 401, 431), status)
        for what, status in {
            "who may write, writes": send(server.http, body, "a", Authorization="Bearer writes-writes-writes")[0]
                                     == 200,
            "who has a password, writes": send(server.http, body, "a", Authorization=basic("x:writes-writes-writes"))[0]
                                          == 200,
            "nobody writes for another": send(server.http, body, "b", Authorization="Bearer writes-writes-writes")[0]
                                         == 403,
            "who may read, does not write": send(server.http, body, "a", Authorization="Bearer reads-reads-reads")[0]
                                            == 403,
            "who writes, does not delete": ask(server.http, "DELETE", "/api/v1/services/odd", None,
                                               {"Authorization": "Bearer writes-writes-writes"})[0] == 403,
            "anybody may see that it is ready": ask(server.http, "GET", "/ready")[0] == 200,
        }.items():
            check(f"tokens: {what}", status)
        check("tokens: the server is alive", server.process.poll() is None, server.said())
    tokens.unlink()
    folder.rmdir()


def main():
    seconds = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    parts = {"load": part_load, "tenants": part_tenants, "series": part_series, "disk": part_disk,
             "questions": part_questions, "start": part_start, "tokens": part_tokens}
    for name in sys.argv[2:] or parts:
        began = time.monotonic()
        parts[name](seconds)
        print(f"---- {name}: {time.monotonic() - began:.0f} s", flush=True)
    return exit_code()


if __name__ == "__main__":
    sys.exit(main())
