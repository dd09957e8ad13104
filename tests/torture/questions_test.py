#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: questions_test.py [SECONDS [PART...]]

A running `kiln server`, asked what nobody should ask (questions.py).  The parts:

  storm     every endpoint with hostile words, from many askers at once, some of which leave at once or read slowly, while a ledger is
            written, services are deleted and blocks are merged, under 96 MiB; and then killed and started again
  damage    bytes of blocks are flipped while they are read
  bombs     one question each that would take more time or memory than there is
  tenants   whoever may read a never sees b

Nothing may crash, hang, or answer 500; a refusal is a sentence in the caller's words that tells nothing of the inside; the ledger's total
is what was acknowledged; memory stays below its limit (not under sanitizers).  SECONDS is how long the storm lasts.
"""
import collections
import http.client
import json
import os
import pathlib
import random
import re
import socket
import subprocess
import sys
import threading
import time
import urllib.parse

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "support")]
import questions  # noqa: E402
from drawn_otlp import PERIOD_NS, Drawn  # noqa: E402
from kiln_server import KILN, KilnServer  # noqa: E402

CPU = questions.CPU
SANITIZED = "san" in os.environ.get("KILN_BUILD_DIR", "") or "san" in KILN
PATIENCE_S = 120
STATUSES = {200, 201, 204, 400, 404, 405, 409, 413, 415, 422, 429, 431, 499, 501, 503, 504}
INSIDE = re.compile(r"/tmp/|\.c:\d|src/|0x[0-9a-f]{6}|errno|\(null\)")
failures = 0


def check(what, good, detail=""):
    global failures
    failures += not good
    if not good or not what.startswith("asked"):
        print(f"{'ok' if good else 'FAILED'}: {what}{'' if good else ': ' + str(detail)[:1000]}", flush=True)


def ask(port, method, path, body=None, headers=None):
    """(status, type, body) of one request."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    try:
        try:
            connection.request(method, path, body, headers or {})
        except BrokenPipeError:
            pass  # refused before all of the body was there: the answer is
        answer = connection.getresponse()
        return answer.status, answer.headers.get("Content-Type") or "", answer.read(), answer.headers
    finally:
        connection.close()


def get(server, path, headers=None, **params):
    status, _, body, _ = ask(server.http, "GET", f"/api/v1/{path}?{urllib.parse.urlencode(params)}", None, headers)
    return status, json.loads(body) if body else None


# ---- what an answer may be ----

def sentence_of(kind, body, headers):
    """What a refusal says to a person."""
    if "grpc-message" in headers:
        return headers["grpc-message"]
    if not kind.startswith("application/json"):
        return body.decode(errors="replace")
    said = json.loads(body)
    return said["error"]["message"] if isinstance(said.get("error"), dict) else said.get("message", "")


def wrong_with(question, status, kind, body, headers):
    """A sentence, or None."""
    if status not in STATUSES or headers.get("grpc-status") == "13":
        return f"status {status}"
    if any(name.lower() == "set-cookie" for name in headers):
        return "a header was injected"
    if status >= 400:
        said = sentence_of(kind, body, headers)
        if len(said) < 8:
            return f"it says {said!r}"
        if INSIDE.search(said) and not INSIDE.search(urllib.parse.unquote(question[1]) + repr(question[2])):
            return f"it tells of the inside: {said}"
    elif kind.startswith("application/json"):
        json.loads(body.decode())
    return None


def shown(question):
    method, path, body, headers = question
    return f"{method} {path[:400]} {(body or b'')[:400]!r} {headers}"


def store(server, *words):
    """Administration: whether it succeeds does not matter."""
    subprocess.run([KILN, "store", "--server", f"http://127.0.0.1:{server.http}", *words], capture_output=True, check=False)


# ---- askers ----

class Storm:
    def __init__(self, server, seconds):
        self.server, self.until = server, time.monotonic() + seconds
        self.codes, self.slowest = collections.Counter(), (0, None)
        self.deaths = 0  # odd while it is dead

    def running(self):
        return time.monotonic() < self.until and failures < 20

    def ask(self, seed):
        asker = questions.Asker(seed)
        while self.running():
            question, deaths = asker.question(), self.deaths
            began = time.monotonic()
            try:
                status, kind, body, headers = ask(self.server.http, *question)
                wrong = wrong_with(question, status, kind, body, headers)
                self.codes[status] += 1
            except (ValueError, KeyError) as error:
                wrong = f"not what it should be: {error!r} {kind} {body[:300]}"
            except (OSError, http.client.HTTPException) as error:
                wrong = None if self.deaths != deaths or deaths % 2 else f"{error!r}"
            took = time.monotonic() - began if self.deaths == deaths else 0
            if took > self.slowest[0]:
                self.slowest = took, shown(question)
            if wrong:
                check("asked " + shown(question), False, wrong)

    def leave(self, seed):
        """Asks and goes away: at once, in the middle of the head, or after some bytes of the answer."""
        asker, pick = questions.Asker(seed), random.Random(seed)
        while self.running():
            method, path, body, headers = asker.question()
            head = [f"{method} {path} HTTP/1.1", "Host: localhost", f"Content-Length: {len(body or b'')}",
                    *(f"{k}: {v}" for k, v in headers.items())]
            data = "\r\n".join(head).encode() + b"\r\n\r\n" + (body or b"")
            try:
                with socket.create_connection(("127.0.0.1", self.server.http), timeout=PATIENCE_S) as sock:
                    sock.sendall(data if pick.random() < 0.8 else data[:pick.randint(1, len(data))])
                    if pick.random() < 0.5:
                        sock.recv(pick.choice((1, 100, 5000)))
                    if pick.random() < 0.3:
                        time.sleep(pick.random() / 5)
                    if pick.random() < 0.3:
                        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            except OSError:
                pass

    def read_slowly(self):
        """A large answer, taken a little at a time."""
        path = f"/api/v1/query?{urllib.parse.urlencode({'query': CPU + '{}', 'nodes': 1048576, 'limit': 0})}"
        while self.running():
            try:
                with socket.create_connection(("127.0.0.1", self.server.http), timeout=PATIENCE_S) as sock:
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
                    sock.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
                    while self.running() and sock.recv(64):
                        time.sleep(0.01)
            except OSError:
                pass

    def delete(self):
        """Services come and go."""
        while self.running():
            drawn = Drawn()
            for i in range(5):
                drawn.profile({"service.name": "gone"}, time.time_ns() - i, f"main;f{i} 7")
            try:
                drawn.send(self.server)
                store(self.server, "delete", "gone")
                store(self.server, "compact")
            except (OSError, http.client.HTTPException):
                pass
            time.sleep(0.3)


class Ledger:
    """Profiles of one known value; what is acknowledged is there."""

    def __init__(self, server, storm):
        self.server, self.storm, self.sent, self.acknowledged = server, storm, 0, 0

    def write(self):
        while self.storm.running():
            drawn = Drawn()
            drawn.profile({"service.name": "ledger"}, time.time_ns(), "main;credit 6\nmain;debit 4")
            self.sent += 1
            try:
                drawn.send(self.server)
                self.acknowledged += 1
            except (OSError, http.client.HTTPException):
                pass
            time.sleep(0.02)

    def compare(self):
        status, answer = get(self.server, "query", query=CPU + '{service_name="ledger"}', until="now+1m", exact=1)
        total = answer.get("total", 0) / (10 * PERIOD_NS) if status == 200 else answer
        check(f"the ledger has {total} of {self.acknowledged} profiles, {self.sent} were sent", status == 200 and
              self.acknowledged <= total <= self.sent and answer["top"]["rows"][0]["self"] * 10 == answer["total"] * 6, answer)


def peak_mb(server):
    status = pathlib.Path(f"/proc/{server.process.pid}/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status).group(1)) >> 10


def is_in_time(seconds, most):
    """Times are promised of a machine that has nothing else to do: in `make torture`."""
    return seconds < most or not os.environ.get("KILN_TORTURE")


def is_well(server, what, limit):
    check(f"{what}: the server is alive", server.process.poll() is None, server.said())
    if server.process.poll() is None:
        peak = peak_mb(server)
        check(f"{what}: {peak} MiB at most, of {limit}", peak <= limit or SANITIZED)
        began = time.monotonic()
        status = ask(server.http, "GET", "/ready")[0]
        check(f"{what}: it is ready, and answers", status == 200 and get(server, "labels")[0] == 200, status)
        check(f"{what}: at once", is_in_time(time.monotonic() - began, 10), time.monotonic() - began)


def ends_well(server, what):
    code = server.stop()
    said = server.log.read_text(errors="replace")
    bad = re.search(r"(ERROR: \w+Sanitizer|WARNING: ThreadSanitizer|runtime error:)[\s\S]{0,3000}", said)
    check(f"{what}: it ends in good order", code == 0 and not bad, bad.group(0) if bad else said[-2000:])


# ---- parts ----

def part_storm(seconds):
    with KilnServer("--memory-limit", "96M", "--log-level", "error", "--query-timeout", "10s") as server:
        questions.fill(server)
        storm = Storm(server, seconds)
        ledger = Ledger(server, storm)
        threads = [threading.Thread(target=work, args=words) for work, words in [
            *((storm.ask, (seed,)) for seed in range(10)), *((storm.leave, (100 + seed,)) for seed in range(4)),
            (storm.read_slowly, ()), (storm.read_slowly, ()), (storm.delete, ()), (ledger.write, ())]]
        for thread in threads:
            thread.start()
        time.sleep(seconds * 2 / 3)
        is_well(server, "storm", 96)
        storm.deaths += 1
        server.kill()
        server.start()
        storm.deaths += 1
        for thread in threads:
            thread.join()
        print(f"storm: {sum(storm.codes.values())} answers: {dict(sorted(storm.codes.items()))}; slowest {storm.slowest[0]:.1f} s")
        check("storm: most who asked properly were answered, and something was written",
              storm.codes[200] > storm.codes[429] and ledger.acknowledged > 0, storm.codes)
        check("storm: nobody waited for long", is_in_time(storm.slowest[0], 40), storm.slowest)
        is_well(server, "after the storm", 96)
        ledger.compare()
        ends_well(server, "storm")


def flip(block, pick):
    """Some bits of a file, in place, while a server has it open."""
    data = bytearray(block.read_bytes())
    for _ in range(20):
        data[pick.randrange(len(data))] ^= 1 << pick.randrange(8)
    with open(block, "r+b") as file:
        file.write(data)


def part_damage(seconds):
    del seconds
    pick = random.Random(1)
    with KilnServer("--memory-limit", "128M", "--log-level", "error") as server:
        for turn in range(2):
            drawn = Drawn()
            for k in range(50):
                drawn.profile({"service.name": f"shop{turn}", "pod": f"p{k}"}, time.time_ns() - k * 10**9, f"main;f{turn};g{k} 10")
            drawn.send(server)
            questions.fill(server)
            store(server, "compact")
            for block in server.data.rglob("*.kb"):
                flip(block, pick)
            storm = Storm(server, 2)
            threads = [threading.Thread(target=storm.ask, args=(200 + 10 * turn + seed,)) for seed in range(6)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            status, answer = get(server, "query", query=CPU + f'{{service_name="shop{turn}"}}', until="now+1m", exact=1)
            aside = list((server.data / "aside").glob("*"))
            check(f"damage: what is left is answered, {len(aside)} files are set aside", status in (200, 404) and
                  (aside or answer["total"] == 500 * PERIOD_NS), answer)
        is_well(server, "damage", 128)
        ends_well(server, "damage")


# ---- bombs ----

def many_values(server, n, rounds):
    """A label of samples with n * rounds values, in small requests."""
    for i in range(rounds):
        drawn = Drawn()
        drawn.profile({"service.name": "wide"}, time.time_ns() - 60 * 10**9, "\n".join(f"main;f{k % 100} 1" for k in range(n)))
        samples = drawn.resources[-1]["scopeProfiles"][0]["profiles"][0]["samples"]
        for k, sample in enumerate(samples):
            sample["attributeIndices"] = [questions.attribute(drawn, "user", f"user-{i}-{k}")]
        drawn.send(server)


def annotate(server):
    """As many long notes as are kept."""
    note = json.dumps({"text": "x" * 16000, "service": "wide"}).encode()
    while ask(server.http, "POST", "/api/v1/annotations", note, {"Content-Type": "application/json"})[0] == 201:
        pass


def bombs():
    now = int(time.time() * 1000)
    hour = {"profileTypeID": CPU, "labelSelector": "{}", "start": now - 3_600_000, "end": now + 60_000}
    native = lambda path, **params: ("GET", f"/api/v1/{path}?{urllib.parse.urlencode(params)}", None, {})
    connect = lambda method, **more: ("POST", f"/querier.v1.QuerierService/{method}", json.dumps(hour | more).encode(),
                                      {"Content-Type": "application/json"})
    yield "GET", "/pyroscope/render?" + urllib.parse.urlencode({"query": CPU + "{}", "from": "now-1h", "groupBy": "user"}), None, {}
    yield native("query", query=CPU + "{}", format="series", by="user", step="1ms", limit=0)
    yield native("query", query=CPU + "{}", format="series", step="1ms", **{"from": "now-3650d"})
    yield native("query", query=CPU + "{}", nodes=1048576, limit=0)
    yield native("query", query=CPU + "{}", **{"with": "(?i)(a|b|c|d|e)*((x+x+)+y|main)"})
    yield native("query", query=CPU + '{user=~"(u|us|use|user|-|[0-9])*x"}')
    yield native("labels/user/values", limit=0)
    yield native("series", by="user", limit=0)
    yield native("profiles", limit=0)
    yield native("spans", query=CPU + "{}", limit=0, by="trace")
    yield native("annotations")
    yield native("deployments")
    yield native("diff", query=CPU + "{}", nodes=1048576, left_from="now-2h", left_until="now-1m")
    yield connect("SelectSeries", groupBy=["user"], step=0.001)
    yield connect("SelectHeatmap", groupBy=["pod"], step=1, exemplarType="EXEMPLAR_TYPE_INDIVIDUAL", queryType=1)
    yield connect("SelectHeatmap", step=0.001, exemplarType="EXEMPLAR_TYPE_SPAN", queryType=2)
    yield connect("Series")
    yield connect("LabelValues", name="user")
    yield connect("SelectMergeStacktraces", maxNodes=1048576)
    yield connect("SelectMergeStacktraces", stackTraceSelector={"frameFilter": {"excludeFunctionNames": ["x%d" % i for i in range(10000)]}})
    yield connect("SelectMergeProfile", traceIdSelector=["%032x" % i for i in range(9999)])
    yield connect("SelectMergeStacktraces", format="PROFILE_FORMAT_SANDWICH", sandwichFunction="main")


def part_bombs(seconds):
    del seconds
    with KilnServer("--memory-limit", "96M", "--log-level", "error", "--query-timeout", "10s") as server:
        questions.fill(server)
        many_values(server, 2000, 10)
        annotate(server)
        is_well(server, "before the bombs", 96)
        slowest = 0
        for question in bombs():
            answers = []

            def throw(question=question, answers=answers):
                try:
                    status, kind, body, headers = ask(server.http, *question)
                    answers.append((status, len(body), wrong_with(question, status, kind, body, headers)))
                except (OSError, http.client.HTTPException, ValueError) as error:
                    answers.append((0, 0, repr(error)))

            began = time.monotonic()
            threads = [threading.Thread(target=throw) for _ in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            slowest = max(slowest, time.monotonic() - began)
            wrong = [answer for answer in answers if answer[2]]
            largest = max(answer[1] for answer in answers) >> 10
            check(f"{shown(question)[:100]}: {sorted({answer[0] for answer in answers})}, {largest} KiB, {time.monotonic() - began:.1f} s",
                  not wrong and server.process.poll() is None, wrong[:1])
        check("bombs: nothing took longer than it may", is_in_time(slowest, 30), slowest)
        is_well(server, "bombs", 96)
        ends_well(server, "bombs")


# ---- tenants ----

def part_tenants(seconds):
    del seconds
    folder = KilnServer().folder
    tokens = folder / "tokens.yaml"
    tokens.write_text("tokens:\n- {token: reads-a-reads-a-reads, access: [read], tenant: a}\n"
                      "- {token: writes-b-writes-b-w, access: [write], tenant: b}\n"
                      "- {token: writes-a-writes-a-w, access: [write], tenant: a}\n")
    tokens.chmod(0o600)
    with KilnServer("--multitenant", "--tokens", str(tokens), "--log-level", "error") as server:
        for tenant in "ab":
            drawn = Drawn()
            drawn.profile({"service.name": f"secret-{tenant}", "service.version": f"version-{tenant}"}, time.time_ns(),
                          f"main;hidden_{tenant} 7")
            status = ask(server.http, "POST", "/v1development/profiles", drawn.json(), {
                "Content-Type": "application/json", "X-Scope-OrgID": tenant,
                "Authorization": f"Bearer writes-{tenant}-writes-{tenant}-w"})[0]
            check(f"tenants: {tenant} writes", status == 200, status)
        status = ask(server.http, "POST", "/api/v1/annotations", b'{"text":"hidden_b"}', {
            "Content-Type": "application/json", "X-Scope-OrgID": "b", "Authorization": "Bearer writes-b-writes-b-w"})[0]
        check("tenants: b tells", status == 201, status)
        seen = collections.Counter()
        asked = [question for question in bombs()] + [questions.Asker(seed).question() for seed in range(150)]
        paths = ("services", "labels", "types", "series", "profiles", "query", "spans")
        asked += [("GET", f"/api/v1/{path}?query={urllib.parse.quote(CPU + '{}')}", None, {}) for path in paths]
        for name in ("a", "b", "a|b", "b|a", "a|", "|b", "a||b", "a|b|a", "a b", " b", "A|B", "../b", "a/../b", "a%7Cb", "", "*", "a,b"):
            for method, path, body, headers in asked[::1 if name in ("a", "a|b") else 9]:
                try:
                    status, _, said, _ = ask(server.http, method, path, body, headers | {"X-Scope-OrgID": name,
                                                                                      "Authorization": "Bearer reads-a-reads-a-reads"})
                except ValueError:
                    break  # the client will not send it
                seen[status] += 1
                if b"secret-b" in said or b"hidden_b" in said or b"version-b" in said:
                    check(f"tenants: {name!r} does not see b", False, (path, said[:300]))
        check(f"tenants: nobody saw b; answers: {dict(seen)}", seen[200] > 0)
        ends_well(server, "tenants")
    tokens.unlink()
    folder.rmdir()


PARTS = {"storm": part_storm, "damage": part_damage, "bombs": part_bombs, "tenants": part_tenants}


def main():
    seconds = int(sys.argv[1]) if len(sys.argv) > 1 else 6
    threading.excepthook = lambda ended: check("a thread lives", False, repr(ended.exc_value))
    for part in sys.argv[2:] or PARTS:
        PARTS[part](seconds)
    return failures > 0


if __name__ == "__main__":
    sys.exit(main())
