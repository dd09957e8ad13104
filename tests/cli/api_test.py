#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Our own API against docs/openapi.yaml: every path and method answers, answers are as the file says, all that it documents occurs,
and what a stranger may send stays within limits and says so."""
import gzip
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
import unittest
import urllib.error
import urllib.parse
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))
from drawn_otlp import Drawn  # noqa: E402
from debug_files import Invented, profile, small_elf  # noqa: E402
from kiln_server import KilnServer  # noqa: E402

try:
    from openapi import OpenApi
except ImportError:
    print("skipped: python3-yaml is not installed")
    sys.exit(77)

NOW = time.time()
CPU = "process_cpu:cpu:nanoseconds"
ORDERS = CPU + '{service_name="order-service"}'
TRACE, SPAN, PROFILE = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331", "000102030405060708090a0b0c0d0e0f"


class Answer:
    def __init__(self, answer):
        self.status, self.headers, self.body = answer.status, answer.headers, answer.read()
        self.type = self.headers.get_content_type()

    def json(self):
        return json.loads(self.body)


def call(server, path, method="GET", data=None, **params):
    query = urllib.parse.urlencode(params, doseq=True)
    request = urllib.request.Request(f"http://127.0.0.1:{server.http}{path}{'?' if query else ''}{query}", data=data, method=method)
    if hasattr(server, "token"):
        request.add_header("Authorization", "Bearer " + server.token)
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            return Answer(answer)
    except urllib.error.HTTPError as refused:
        return Answer(refused)


def otlp(service, version, at, stacks, linked=False, timed=False):
    """One CPU profile; stacks are "main;parse" -> nanoseconds."""
    strings, functions = ["", "cpu", "nanoseconds"], {}
    for name in sorted({f for s in stacks for f in s.split(";")}):
        functions[name] = len(functions) + 1
        strings.append(name)
    strings.append("/build/shop/main.c")
    rows = [{"stackIndex": i + 1, "values": [str(v)], "linkIndex": int(linked)} for i, v in enumerate(stacks.values())]
    for i, row in enumerate(rows if timed else []):
        row["timestampsUnixNano"] = [str(int(at * 1e9) + 1000000 * (len(rows) - i))]
    dictionary = {
        "mappingTable": [{}], "attributeTable": [{}], "stringTable": strings,
        "functionTable": [{}] + [{"nameStrindex": 2 + i, "filenameStrindex": len(strings) - 1, "startLine": "1"} for i in functions.values()],
        "locationTable": [{}] + [{"lines": [{"functionIndex": i, "line": str(i)}]} for i in functions.values()],
        "stackTable": [{}] + [{"locationIndices": [functions[f] for f in reversed(s.split(";"))]} for s in stacks],
        "linkTable": [{}, {"traceId": TRACE, "spanId": SPAN}]}
    resource = [{"key": "service.name", "value": {"stringValue": service}}, {"key": "service.version", "value": {"stringValue": version}}]
    profile = {"sampleType": {"typeStrindex": 1, "unitStrindex": 2}, "periodType": {"typeStrindex": 1, "unitStrindex": 2},
               "period": "10000000", "timeUnixNano": str(int(at * 1e9)), "durationNano": "10000000000", "samples": rows}
    if linked:
        profile["profileId"] = PROFILE
    return {"resourceProfiles": [{"resource": {"attributes": resource}, "scopeProfiles": [{"profiles": [profile]}]}],
            "dictionary": dictionary}


def push(server, body):
    request = urllib.request.Request(f"http://127.0.0.1:{server.http}/v1development/profiles", data=json.dumps(body).encode(),
                                     headers={"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert answer.status == 200 and answer.read() in (b"{}", b""), answer.status


def waits(service):
    drawn = Drawn()
    drawn.waits({"service.name": service}, (NOW - 600) * 10**9, "main;ask;read 4000 # thread.state=blocked wait.reason=futex")
    return json.loads(drawn.json())


def fill(server):
    push(server, otlp("order-service", "1.0", NOW - 3000, {"main;parse;read": 300000000, "main;parse": 500000000, "main;write": 200000000}))
    push(server, otlp("order-service", "1.1", NOW - 600, {"main;parse;read": 900000000, "main;parse": 500000000}, linked=True))
    push(server, otlp("cart", "7", NOW - 1200, {"main;serve": 60000000, "main": 40000000}, timed=True))
    push(server, waits("bank"))
    push(server, profile([(Invented("ab" * 20), [0x1010, 0x1020])], "unnamed"))


BUILD_ID = "0123456789abcdef0123456789abcdef01234567"
ELF = small_elf(BUILD_ID)
RANGE = {"from": "now-1h", "until": "now"}
WINDOWS = {"query": ORDERS, "limit": 5, "overlap_seconds": 30,
           "windows": [{"from": NOW - 596, "until": NOW - 595, "name": "slow", "trace_id": TRACE, "span_id": SPAN},
                       {"from": "now-50m", "until": "now-49m"}]}
# For each operation: parameters of the path, of the query, a body.
CASES = {
    ("GET", "/api/v1/query"): [
        ({}, {"query": ORDERS, **RANGE}, None), ({}, {"query": ORDERS, "nodes": 2, "limit": 1, "exact": 1, "timeout": "30s"}, None),
        ({}, {"query": CPU, "format": "timeline", "limit": 100}, None),
        ({}, {"query": ORDERS, "format": "series", "step": "1m", "by": ["service.version", "nothing"]}, None),
        ({}, {"query": ORDERS, "format": "series", "by": "service.version", "points": 0}, None),
        ({}, {"query": ORDERS, "function": "read", "with": "pars", "without": "writ", "trace_id": TRACE, "span_id": SPAN,
              "profile_id": PROFILE}, None),
        *(({}, {"query": ORDERS, "format": f}, None)
          for f in ("flamegraph", "top", "timeline", "pprof", "otlp", "otlp-json", "speedscope", "collapsed", "svg", "dot"))],
    ("GET", "/api/v1/diff"): [
        ({}, {"query": ORDERS, "left_until": "now-30m", "right_from": "now-30m", "normalize": "total"}, None),
        ({}, {"query": ORDERS, "left_deployment": "1.0", "right_deployment": "1.1"}, None),
        ({}, {"query": CPU, "left_query": '{service_name="cart"}', "right_query": '{service_name="order-service"}', "limit": 1}, None),
        ({}, {"query": ORDERS, "left_version": "1.0", "right_version": "1.1", "format": "svg"}, None)],
    ("GET", "/api/v1/labels"): [({}, RANGE, None)],
    ("GET", "/api/v1/labels/{name}/values"): [({"name": "service_name"}, {"query": CPU, "limit": 1}, None)],
    ("GET", "/api/v1/series"): [({}, RANGE, None), ({}, {"by": ["service_name", "service.version"]}, None)],
    ("GET", "/api/v1/types"): [({}, RANGE, None)],
    ("GET", "/api/v1/profiles"): [({}, {"query": ORDERS, "order": "largest"}, None)],
    ("GET", "/api/v1/profiles/{id}"): [({"id": PROFILE}, {}, None)],
    ("GET", "/api/v1/spans"): [({}, {"query": ORDERS, "trace_id": TRACE}, None), ({}, {"query": ORDERS, "function": "read", "by": "trace"}, None)],
    ("POST", "/api/v1/spans"): [({}, {"timeout": "30s"}, WINDOWS)],
    ("GET", "/api/v1/gap"): [({}, {"query": ORDERS}, None), ({}, {"query": '{service_name="bank"}', "sort": "self", "limit": "1"}, None)],
    ("GET", "/api/v1/functions"): [({}, {"query": ORDERS, "function": "read", "step": "1m"}, None)],
    ("GET", "/api/v1/source"): [
        ({}, {"query": ORDERS, "function": "parse", **RANGE}, None),
        ({}, {"query": ORDERS, "function": "parse", "file": "/build/shop/main.c", "with": "main", "without": "writ", "trace_id": TRACE,
              "span_id": SPAN, "profile_id": PROFILE, "timeout": "30s"}, None)],
    ("POST", "/api/v1/files"): [
        ({}, {"name": "cpu.folded", "type": "samples", "nodes": 3, "limit": 1, "timeout": "30s"}, b"main;parse;read 3\nmain;write 1\n"),
        *(({}, {"format": f}, gzip.compress(b"main;parse;read 3\n"))
          for f in ("json", "flamegraph", "top", "timeline", "pprof", "otlp", "otlp-json", "speedscope", "collapsed", "svg", "dot"))],
    ("GET", "/api/v1/services"): [({}, {}, None)],
    ("POST", "/api/v1/deployments"): [({}, {}, {"service": "order-service", "version": "1.1", "at": "now-601s", "name": "n", "text": "t"})],
    ("GET", "/api/v1/deployments"): [({}, {"service": "order-service", **RANGE}, None)],
    ("DELETE", "/api/v1/deployments/{id}"): [({"id": "deployments"}, {}, None)],
    ("POST", "/api/v1/annotations"): [({}, {}, {"text": "t", "at": "now-1m", "until": "now", "service": "cart", "tags": ["a"]})],
    ("GET", "/api/v1/annotations"): [({}, {"service": "cart", **RANGE}, None)],
    ("DELETE", "/api/v1/annotations/{id}"): [({"id": "annotations"}, {}, None)],
    ("GET", "/api/v1/findings"): [({}, {"service": "cart", **RANGE}, None)],
    ("PUT", "/api/v1/symbols/{build_id}"): [
        ({"build_id": BUILD_ID}, {"offset": 0, "total": len(ELF), "sha256": hashlib.sha256(ELF).hexdigest(), "name": "shop"}, ELF[:100]),
        ({"build_id": BUILD_ID}, {}, ELF)],
    ("GET", "/api/v1/symbols"): [({}, {}, None), ({}, {"missing": "1", "limit": 10}, None)],
    ("GET", "/api/v1/symbols/{build_id}"): [({"build_id": BUILD_ID}, {}, None)],
    ("DELETE", "/api/v1/symbols/{build_id}"): [({"build_id": BUILD_ID}, {}, None)],
    ("GET", "/api/v1/session"): [({}, {}, None)],
    ("POST", "/api/v1/session"): [({}, {}, {"token": "reader-token"})],
    ("DELETE", "/api/v1/session"): [({}, {}, None)],
    ("GET", "/api/v1/status"): [({}, {}, None)],
    ("GET", "/api/v1/agents"): [({}, {}, None)],
    ("POST", "/api/v1/orders"): [
        ({}, {}, {"kind": "boost", "target": "process", "pid": 7, "host": "web-1", "hz": 97, "duration": "5m", "by": "ann", "why": "slow"}),
        ({}, {"hz": 99, "duration": "1m", "label": "app"}, {"version": "4", "alerts": [{"status": "firing", "labels": {"app": "cart"}}]}),
        ({}, {}, {"version": "4", "alerts": [{"status": "resolved", "labels": {}}]})],
    ("GET", "/api/v1/orders"): [({}, {}, None)],
    ("POST", "/api/v1/agents/{id}"): [({"id": "0123abcd"}, {}, {"id": "0123abcd", "host": "web-1"}), ({"id": "new"}, {}, b"{}")],
    ("DELETE", "/api/v1/orders/{id}"): [({"id": "orders"}, {}, None)],
    ("GET", "/api/v1/openapi.yaml"): [({}, {}, None)],
    ("DELETE", "/api/v1/services/{name}"): [({"name": "cart"}, {}, None)],
}
# What is told of a server that has tokens, a host profiler, and something that it refused.
ABOUT_ITSELF = {"/api/v1/session", "/api/v1/status", "/api/v1/agents"}
# Documented, but nothing of a single small server can show it.
NEVER = {"GET /api/v1/findings.findings[].id", "GET /api/v1/services.services[].tenant",
         # of a profiler that has just begun, or may not
         "GET /api/v1/agents.agents[].drops[].reason", "GET /api/v1/agents.agents[].drops[].count"}


class Documented(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.api = OpenApi()
        cls.source = tempfile.TemporaryDirectory()
        os.chmod(cls.source.name, 0o755)  # of root, and for the server's user to read
        (pathlib.Path(cls.source.name) / "main.c").write_bytes(b"int main(void)\r\n{ /* \xff */\n}\n" + b"x" * 2000 + b"\n")
        cls.server = KilnServer("--source", cls.source.name)
        cls.server.__enter__()
        fill(cls.server)
        cls.folder = tempfile.TemporaryDirectory()
        tokens = pathlib.Path(cls.folder.name) / "tokens.yaml"
        tokens.write_text("- {token: reader-token, access: read}\n")
        cls.guarded = KilnServer("--tokens", str(tokens), "--host-profiler", "auto")
        cls.guarded.__enter__()
        assert call(cls.guarded, "/api/v1/types").status == 401
        cls.guarded.token = "reader-token"

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__()
        cls.source.cleanup()
        cls.guarded.__exit__()
        cls.folder.cleanup()

    def check(self, path, operation, answer):
        """Status, type and content are documented."""
        response = self.api.response(operation, answer.status)
        if "content" not in response:
            self.assertEqual(answer.body, b"", path)
            return
        self.assertIn(answer.type, response["content"], path)
        if answer.type == "application/json" and not answer.body.startswith((b'{"$schema', b'{"resourceProfiles')):
            self.assertIsNone(self.api.wrong(response["content"][answer.type]["schema"], answer.json()), path)

    def test_every_operation_answers_as_documented_and_all_that_is_documented_occurs(self):
        operations = {(method, path): operation for path, method, operation in self.api.operations()}
        self.assertEqual(set(operations), set(CASES))
        made = {}
        for (method, path), cases in CASES.items():  # in their order: what is made is found, then removed
            for inside, params, body in cases:
                with self.subTest(method=method, path=path, params=params):
                    words = {k: made.get(v, v) for k, v in inside.items()}
                    data = json.dumps(body).encode() if body and not isinstance(body, bytes) else body
                    server = self.guarded if path in ABOUT_ITSELF else self.server
                    answer = call(server, path.format(**words), method, data, **params)
                    self.assertLess(answer.status, 300, answer.body)
                    self.assertIn(str(answer.status), operations[method, path]["responses"])
                    self.check(path, operations[method, path], answer)
                    self.assertEqual(answer.headers["X-Content-Type-Options"] or "nosniff", "nosniff")
                    if method == "POST" and answer.status == 201:
                        kind = path.rsplit("/", 1)[1]
                        made[kind] = answer.json().get(kind, [answer.json()])[0]["id"]
        self.check("error", operations["GET", "/api/v1/query"], call(self.server, "/api/v1/query", query="{"))
        unseen = [place for place in self.api.unseen() if place not in NEVER and ".findings[]" not in place]
        self.assertEqual(unseen, [])

    def test_the_parameters_that_are_known_are_those_that_are_documented(self):
        for path, method, operation in self.api.operations():
            if path == "/api/v1/services/{name}":
                continue  # of the administration, which takes none
            with self.subTest(method=method, path=path):
                answer = call(self.server, path.format(name="x", id="x", build_id="x"), method, b"{}" if method == "POST" else None, nonsense=1)
                self.assertEqual(answer.status, 400)
                error = answer.json()["error"]
                self.assertEqual((error["code"], error["where"]), ("unknown_parameter", "nonsense"))
                known = re.search("known are (.*)", error["message"])
                self.assertEqual(set(known.group(1).split(", ")) if known else set(), self.api.query_parameters(operation))

    def test_the_words_of_a_format_are_those_that_are_documented(self):
        for path, method, operation in self.api.operations():
            for parameter in map(self.api.resolve, operation.get("parameters", [])):
                if parameter["in"] != "query" or "enum" not in parameter["schema"]:
                    continue
                if method != "GET":
                    continue
                answer = call(self.server, path.format(id=PROFILE, build_id=BUILD_ID), **({} if "symbols" in path else {"query": ORDERS}), **{parameter["name"]: "nonsense"})
                self.assertEqual(answer.status, 400, answer.body)
                words = re.search("one of (.*)", answer.json()["error"]["message"])
                if path == "/api/v1/profiles/{id}":
                    continue  # shares the words of query
                self.assertEqual(set(words.group(1).split(", ")), set(parameter["schema"]["enum"]), path)

    def test_the_curl_line_of_the_guides_works_as_written(self):
        answer = call(self.server, "/api/v1/query", query='process_cpu:cpu:nanoseconds{service_name="order-service"}', **RANGE).json()
        self.assertEqual(answer["total"], 2400000000)
        self.assertEqual([row["name"] for row in answer["top"]["rows"]][:2], ["read", "parse"])
        self.assertEqual(answer["type"]["id"], "process_cpu:cpu:nanoseconds:cpu:nanoseconds")

    def test_lines_have_their_text(self):
        answer = call(self.server, "/api/v1/source", query=ORDERS, function="parse").json()
        self.assertEqual((answer["file"], answer["total"], answer["self"]), ("/build/shop/main.c", 2200000000, 1000000000))
        self.assertEqual(answer["text"]["lines"][:3], ["int main(void)", "{ /* \ufffd */", "}"])
        self.assertEqual(len(answer["text"]["lines"][3]), 1001)
        self.assertEqual([note["code"] for note in answer["notes"]], ["text_cut"])

    def test_a_timeline_is_in_the_order_of_time(self):
        push(self.server, otlp("clock", "7", NOW - 1200, {"main;serve": 60000000, "main": 40000000}, timed=True))
        push(self.server, otlp("clock", "7", NOW - 1100, {"main;serve": 60000000}))
        answer = call(self.server, "/api/v1/query", query=CPU + '{service_name="clock"}', format="timeline").json()["timeline"]
        self.assertEqual((answer["all"], answer["timed"]), (3, 2))
        paths = []
        for node in answer["node"]:
            path = []
            while node:
                path.insert(0, answer["names"][answer["name"][node]])
                node = answer["parent"][node]
            paths.append(";".join(path))
        self.assertEqual(list(zip(paths, answer["at_ns"], answer["value"], answer["thread"])),
                         [("main", 0, 40000000, 0), ("main;serve", 1000000, 60000000, 0)])

    def test_the_tree_can_be_laid_out_in_one_pass(self):
        tree = call(self.server, "/api/v1/query", query=ORDERS).json()["flamegraph"]
        at = [0] * (max(tree["depth"]) + 2)
        for depth, total, own in zip(tree["depth"], tree["total"], tree["self"]):
            x, at[depth + 1] = at[depth], at[depth]
            at[depth] = x + total
            self.assertGreaterEqual(total, own)
        self.assertEqual(at[0], tree["total"][0])
        self.assertEqual(sum(tree["self"]), tree["total"][0])

    def test_a_head_request_has_no_body(self):
        answer = call(self.server, "/api/v1/types", "HEAD")
        self.assertEqual((answer.status, answer.body), (200, b""))

    def test_nothing_is_said_to_pages_of_other_sites(self):
        request = urllib.request.Request(f"http://127.0.0.1:{self.server.http}/api/v1/types", headers={"Origin": "http://evil.example"})
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                self.assertIsNone(answer.headers["Access-Control-Allow-Origin"])
        except urllib.error.HTTPError as refused:
            self.assertIsNone(refused.headers["Access-Control-Allow-Origin"])

    def test_what_was_told_outlives_the_server(self):
        made = call(self.server, "/api/v1/annotations", "POST", b'{"text":"stays"}').json()
        self.server.kill()
        self.server.start()
        self.assertIn(made, call(self.server, "/api/v1/annotations").json()["annotations"])


def guide_commands():
    """Every curl of docs/guide/api.md that deletes nothing, as one line each."""
    text = (ROOT / "docs" / "guide" / "api.md").read_text(encoding="utf-8")
    blocks = "".join(re.findall(r"^```(?:json)?\n(.*?)^```$", text, re.M | re.S)).replace("\\\n", " ")
    return [c for c in re.findall(r"^curl (?:[^'\n]|'[^']*')*", blocks, re.M) if "DELETE" not in c]


class Guide(unittest.TestCase):
    @unittest.skipUnless(shutil.which("curl"), "curl is not installed")
    def test_the_commands_of_the_guide_work(self):
        with KilnServer() as server, tempfile.TemporaryDirectory() as folder:
            fill(server)
            push(server, otlp("shop", "1.4", NOW - 2400, {"main.main;main.parse": 300000000}))
            push(server, otlp("shop", "1.5", NOW - 600, {"main.main;main.parse": 900000000}, linked=True))
            push(server, waits("shop"))
            commands = guide_commands()
            self.assertGreater(len(commands), 10)
            for command in commands:
                with self.subTest(command=command):
                    done = subprocess.run(["sh", "-c", command + " -f -s -S"], cwd=folder, capture_output=True, check=False, timeout=60,
                                          env=os.environ | {"KILN": f"http://127.0.0.1:{server.http}"})
                    self.assertEqual((done.returncode, done.stderr), (0, b""))


class Hostile(unittest.TestCase):
    """What a stranger may ask of a small server: each is answered, or refused with a reason."""

    @classmethod
    def setUpClass(cls):
        cls.server = KilnServer("--memory-limit", "256M")
        cls.server.__enter__()
        fill(cls.server)
        for batch in range(4):
            body = otlp("many", "1", NOW - 100, {"main;a" + "a" * 60 + "!": 10000000})
            resources = body["resourceProfiles"]
            for i in range(300):
                copy = json.loads(json.dumps(resources[0]))
                copy["resource"]["attributes"].append({"key": "host.name", "value": {"stringValue": f"host-{batch}-{i}"}})
                resources.append(copy)
            push(cls.server, body)

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__()

    def ask(self, path, method="GET", data=None, **params):
        answer = call(self.server, path, method, data, **params)
        self.assertIn(answer.status, (200, 400, 404, 413, 414, 422, 431, 503, 504), (path, params, answer.body[:300]))
        if answer.status != 200:
            self.assertTrue(answer.body, path)
        if answer.status not in (200, 414, 431) and answer.type == "application/json":
            error = answer.json()["error"]
            self.assertTrue(error["code"] and error["message"], answer.body)
        self.assertIsNone(self.server.process.poll())
        return answer

    def test_ten_years(self):
        for words in ({}, {"format": "series"}, {"format": "series", "step": "1ns"}, {"format": "svg"}, {"exact": 1}, {"format": "pprof"}):
            self.ask("/api/v1/query", query=CPU, **{"from": "2016-01-01", "until": "2036-01-01", **words})
        self.ask("/api/v1/functions", query=CPU, function="main", step="1ns", **{"from": "1970-01-02", "until": "2200-01-01"})

    def test_more_series_than_anybody_reads(self):
        found = self.ask("/api/v1/series", query='{service_name="many"}', limit=1000).json()
        self.assertEqual((len(found["series"]), found["truncated"]), (1000, True))
        found = self.ask("/api/v1/query", query=CPU, format="series", by="host.name", limit=7).json()
        self.assertEqual(len(found["series"]["series"]), 7)
        self.assertIn("series_cut", [note["code"] for note in found["notes"]])
        self.ask("/api/v1/query", query=CPU, format="series", by="host.name", limit=0, step="1ms")
        self.ask("/api/v1/labels/host.name/values")
        self.ask("/api/v1/series", by=["host.name", "service_name"] * 8)
        self.ask("/api/v1/profiles", limit=1000000)

    def test_expressions_that_never_end(self):
        bomb = "(a+)+$"
        for params in ({"with": bomb}, {"without": bomb}, {"query": CPU + '{host.name=~"(h+)+(.*)*x"}'}, {"with": "(((((" * 500 + ")))))" * 500},
                       {"with": "a{1000}{1000}"}, {"with": "x" * 4097}, {"query": CPU + '{host.name=~"' + "(.*)*" * 200 + '"}'}):
            self.ask("/api/v1/query", **{"query": CPU, **params})

    def test_numbers_out_of_range_and_lists_without_end(self):
        for name, value in (("nodes", "-1"), ("nodes", "1e9"), ("nodes", str(2**64)), ("limit", "-1"), ("limit", "NaN"), ("step", "-5s"),
                            ("step", "1e300"), ("from", "-1"), ("from", "9" * 40), ("until", "now+9999999999999999h"), ("timeout", "0")):
            answer = self.ask("/api/v1/query", query=CPU, **{name: value})
            self.assertEqual(answer.status, 400, (name, value, answer.body[:200]))
        self.ask("/api/v1/query", query=CPU, trace_id=["0" * 32] * 1500)
        self.ask("/api/v1/query", query=CPU, function=["f"] * 300)
        self.ask("/api/v1/query", query=CPU, by=["b"] * 17)
        self.ask("/api/v1/query", query=CPU + "{" + ",".join(f'a{i}="b"' for i in range(300)) + "}")
        self.ask("/api/v1/query", query="x" * 100000)
        self.assertEqual(self.ask("/api/v1/query", query=CPU, nodes=1048576, limit=0).status, 200)

    def test_bodies_of_garbage(self):
        windows = [{"from": "now-1h", "until": "now"}]
        for body in (b"", b"\x00" * 100, b"[" * 100000, b'{"windows":' * 1000, b'{"windows":[]}', b'{"windows":[[]]}', b"\xff\xfe{}",
                     json.dumps({"query": CPU, "windows": windows * 101}).encode(), json.dumps({"query": "x" * 70000, "windows": windows}).encode(),
                     json.dumps({"query": CPU, "windows": windows, "limit": -1}).encode(), gzip.compress(b"{}")):
            self.assertGreaterEqual(self.ask("/api/v1/spans", "POST", body).status, 400, body[:100])
            self.assertGreaterEqual(self.ask("/api/v1/annotations", "POST", body).status, 400, body[:100])
        self.ask("/api/v1/spans", "POST", json.dumps({"query": CPU, "windows": windows * 100, "limit": 1000, "overlap_seconds": 3600}).encode(), timeout="1s")

    def test_source_text_without_a_directory(self):
        for name in ("/etc/passwd", "../../../etc/passwd", "/proc/self/environ"):
            body = otlp("thief", "1", NOW - 100, {"steal": 1000})
            body["dictionary"]["stringTable"][-1] = name
            push(self.server, body)
            answer = self.ask("/api/v1/source", query=CPU + '{service_name="thief"}', function="steal", file=name).json()
            self.assertEqual((answer["file"], answer["text"]), (name, None))
            self.assertIn("--source DIR", answer["text_problem"])

    def test_files_of_garbage(self):
        bombs = (gzip.compress(b"\0" * (100 << 20)), gzip.compress(gzip.compress(b"a;b 1\n" * (8 << 20))))
        for body in (b"", b"\x00" * 100, b"[" * 100000, b"\x1f\x8b", b"FLR\0" + b"\xff" * 1000, b'{"$schema":"https://www.speedscope.app"' * 100,
                     b"a;" * 1000000 + b"b 1\n", *bombs):
            answer = self.ask("/api/v1/files", "POST", body, format="json")
            self.assertGreaterEqual(answer.status, 400, (body[:40], answer.body[:200]))
        self.assertEqual(self.ask("/api/v1/files", "POST", b"x;y 1\n" * 200000).json()["total"], 200000)

    def test_paths_that_lead_nowhere(self):
        for path in ("/api/v1/profiles/..%2f..", "/api/v1/profiles/" + "0" * 5000, "/api/v1/labels//values", "/api/v1/labels/%00/values"):
            self.ask(path)
        for path in ("/api/v1/annotations/", "/api/v1/annotations/..%2f..%2fx", "/api/v1/deployments/" + "x" * 5000):
            self.ask(path, "DELETE")

    def test_memory_stays_below_the_limit(self):
        self.test_ten_years()
        peak = int(re.search(r"VmHWM:\s+(\d+) kB", pathlib.Path(f"/proc/{self.server.process.pid}/status").read_text()).group(1))
        self.assertLess(peak, 256 << 10)


if __name__ == "__main__":
    unittest.main()
