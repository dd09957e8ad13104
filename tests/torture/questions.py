# SPDX-License-Identifier: Apache-2.0
"""What hostile and unlucky askers ask: a store that is odd, and questions that are odder.

    fill(server)                       # profiles with extreme values, names, labels, links
    asker = Asker(seed)
    asker.question()                   # (method, path, body, headers), any of them, always the same for a seed
"""
import gzip
import json
import random
import struct
import time
import urllib.parse

from drawn_otlp import Drawn

CPU = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
I64 = 2**63 - 1
HTML = "<img src=x onerror=alert(1)>\"'&</script>"
ODD_NAMES = (HTML, "a\r\nset-cookie: x=1", "\x01\x02\x1b[31m", "ü" * 300, "x" * 60_000, "..", "../../etc/passwd", "%s%n%x", "other",
             "total")


# ---- the store ----

def attribute(drawn, key, value):
    return drawn.entry("attribute", {"keyStrindex": drawn.string(key), "value": {"stringValue": value}})


def labelled(drawn, at_ns, service, n, key):
    """A profile of `n` samples, each with a value of its own for a label, and a span of its own."""
    drawn.profile({"service.name": service}, at_ns, "\n".join(f"main;f{i % 50} 1 @ {i + 1:032x}/{i + 1:016x}" for i in range(n)))
    samples = drawn.resources[-1]["scopeProfiles"][0]["profiles"][0]["samples"]
    for i, sample in enumerate(samples):
        sample["attributeIndices"] = [attribute(drawn, key, f"{key}-{i}"), attribute(drawn, f"key-{i % 200}", "x")]


def odd_values(drawn, at_ns):
    """Sums that pass 64 bits, below zero and above."""
    for value in (I64, I64, -I64 - 1, -I64, 0, 1):
        drawn.profile({"service.name": "odd", "service.version": HTML}, at_ns, "main;sums 1", period_ns=1)
        drawn.resources[-1]["scopeProfiles"][0]["profiles"][0]["samples"][0]["values"] = [str(value)]


def rename(drawn, old, new):
    """A text of the table, of which lines could not be drawn, in its place."""
    drawn.tables["string"] = {json.dumps(new) if text == json.dumps(old) else text: i for text, i in drawn.tables["string"].items()}


def fill(server, now_ns=None):
    now_ns = now_ns or time.time_ns()
    minute = 60 * 10**9
    drawn = Drawn()
    odd_values(drawn, now_ns - minute)
    for i, name in enumerate(ODD_NAMES):
        drawn.profile({"service.name": name, "pod": name}, now_ns - minute - i, f"main;name{i};leaf 1")
        rename(drawn, f"name{i}", name)
    drawn.profile({"service.name": "deep"}, now_ns - minute, ";".join(f"d{i}" for i in range(900)) + " 1")
    drawn.profile({"service.name": "shop", "service.version": "1"}, now_ns - 10 * minute, "main;a 5\nmain;b 5")
    drawn.profile({"service.name": "shop", "service.version": "2"}, now_ns - minute, "main;a 9\nmain;b 1")
    drawn.send(server)
    drawn = Drawn()
    labelled(drawn, now_ns - minute, "labels", 3000, "request")
    drawn.send(server)
    drawn = Drawn()
    for i in range(400):
        drawn.profile({"service.name": f"svc-{i % 40}", "pod": f"pod-{i}"}, now_ns - minute - i * 10**8, f"main;work;f{i} {i + 1}")
    drawn.send(server)


# ---- values ----

EVIL_REGEXES = ("(a+)+$", "(.*)*x", "((a{1,50}){1,50}){1,50}", "(?:" * 200 + ")" * 200, "[", "(?<x>", "\\p{L}{1000}", ".*" * 300,
                "(x+x+)+y", "|" * 3000, "(?R)", "(*NO_JIT)(a|a)*b", "\\C", "a{65535}", "(?i)" + "(a?){40}a{40}")
SELECTORS = ("{}", '{service_name="shop"}', CPU + "{}", CPU + '{service_name="labels"}', CPU + '{service_name=~".+"}', "{", "}", "", "\0",
             '{a="\\xff"}', '{service_name!~"s.*"}', "{" + ",".join(f'l{i}!="x"' for i in range(60)) + "}",
             "{" + ",".join(f'l{i}!="x"' for i in range(5000)) + "}", '{service_name="' + "x" * 70_000 + '"}', CPU + "{" * 500,
             '{"' + HTML + '"="' + HTML.replace('"', "") + '"}', ":" * 3000, "cpu", "cpu:nanoseconds", "no:such:type:at:all", "{#\n#\n}",
             CPU + '{service_name="odd"}', CPU + '{service_name="deep"}', CPU + '{request=~"request-.*"}', CPU + '{pod=~"pod-.*7"}')
TIMES = ("now", "now-1h", "now-3650d", "now+3650d", "now-10y", "0", "1", "-1", "99999999999999999999", "18446744073709551615",
         "9223372036854775807",
         "NaN", "inf", "1e300", "now-99999999999999999999y", "2020-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "0000-00-00", "", "x",
         "now-1h;drop", "1772366400", "1772366400000", "now-30d")
NUMBERS = ("0", "1", "-1", "2", "100", "8192", "1048576", "1000000", "4294967295", "4294967296", "18446744073709551616", "NaN", "", "1e9")
STEPS = ("1ms", "1ns", "15s", "0", "-1", "NaN", "inf", "1e-9", "1e300", "0.0015", "10y", "999999999", "", "x", "9223372036854775807ns")
FORMATS = ("json", "flamegraph", "top", "series", "pprof", "otlp", "otlp-json", "speedscope", "collapsed", "svg", "dot", "exe", "")
IDS = ("0" * 32, "f" * 32, "1".zfill(32), "1".zfill(16), "xyz", "", "0" * 31, "-" * 40, "00000000-0000-0000-0000-000000000001")
LABELS = ("service_name", "request", "pod", "key-1", "__profile_type__", "", HTML, "x" * 5000, "\0", "../..", "%")
FUNCTIONS = ("main", "leaf", "work", HTML, "", "x" * 60_000, "\0")
INTS = (0, 1, -1, 8192, 1 << 20, 1 << 31, 1 << 32, I64, -I64 - 1, 2**64 - 1, 10**30, 1.5, "7", "x", None, True, [], {})
DOUBLES = (0, 15, 0.001, 1e-9, -1, 1e308, "NaN", "Infinity", "-Infinity", "1e400", None)


class Asker:
    def __init__(self, seed):
        self.random = random.Random(seed)

    def one(self, *pools):
        return self.random.choice(self.random.choice(pools))

    def some(self, pool, most=5):
        return [self.random.choice(pool) for _ in range(self.random.randint(0, most))]

    # ---- our own API ----

    def params(self):
        pick = self.random
        pools = {"query": SELECTORS, "from": TIMES, "until": TIMES, "format": FORMATS, "nodes": NUMBERS, "limit": NUMBERS, "step": STEPS,
                 "by": LABELS, "function": FUNCTIONS, "with": EVIL_REGEXES, "without": EVIL_REGEXES, "trace_id": IDS, "span_id": IDS,
                 "profile_id": IDS, "exact": ("0", "1", "x"), "order": ("newest", "largest", "x"), "timeout": STEPS,
                 "left_query": SELECTORS, "left_from": TIMES, "left_version": ("1", "2", HTML),
                 "left_deployment": ("-1", "-2", "shop@1", HTML),
                 "right_query": SELECTORS, "right_until": TIMES, "normalize": ("time", "total", "none", "x"), "service": FUNCTIONS,
                 "right_version": ("2", "x"), "right_deployment": ("-1", "9" * 40)}
        return [(name, pick.choice(pools[name])) for name in pick.sample(list(pools), pick.randint(0, 4))]

    def native(self):
        path = self.random.choice(("query", "query", "query", "diff", "labels", "series", "types", "profiles", "spans", "functions",
                                   "services",
                                   "deployments", "annotations", "findings", "profiles/" + self.one(IDS),
                                   "labels/" + urllib.parse.quote(self.one(LABELS), safe="") + "/values"))
        params = self.params()
        if self.random.random() < 0.7:  # often enough, a question that can be answered
            good = {"query": self.random.choice(SELECTORS[1:5]), "from": "now-1h", "until": "now+1m"}
            params = [(k, v) for k, v in params if k not in good] + list(good.items())
        if self.random.random() < 0.05:
            params += [(self.random.choice(("by", "trace_id", "function")), "1".zfill(32))] * 2000
        return "GET", f"/api/v1/{path}?{urllib.parse.urlencode(params)}", None, {}

    def told(self):
        path = self.random.choice(("spans", "annotations", "deployments"))
        body = {"query": self.one(SELECTORS), "windows": [{"from": self.one(TIMES), "until": self.one(TIMES), "trace_id": self.one(IDS)}
                                                           for _ in range(self.random.choice((0, 1, 3, 99, 101)))],
                "limit": self.one(INTS), "overlap_seconds": self.one(DOUBLES)}
        if path != "spans":
            body = {"text": self.one(FUNCTIONS), "service": self.one(FUNCTIONS), "at": self.one(TIMES, INTS), "version": "1",
                    "tags": self.some(FUNCTIONS, 70)}
        for key in self.random.sample(list(body), self.random.randint(0, 2)):
            del body[key]
        if path == "annotations" and self.random.random() < 0.7:
            body.pop("version", None)
        return "POST", f"/api/v1/{path}", self.mangled(json.dumps(body).encode()), {"Content-Type": "application/json"}

    # ---- Pyroscope's ----

    def message(self, method):
        pick, one, some = self.random, self.one, self.some
        now = int(time.time() * 1000)
        good = pick.random() < 0.7
        message = {"start": now - 3_600_000 if good else one(INTS), "end": now + 60_000 if good else one(INTS),
                   "profileTypeID": CPU if good else one(SELECTORS), "labelSelector": one(SELECTORS[:5] if good else SELECTORS),
                   "maxNodes": one(INTS), "format": one(("PROFILE_FORMAT_TREE", "PROFILE_FORMAT_DOT", "PROFILE_FORMAT_PPROF",
                                                         "PROFILE_FORMAT_FUNCTIONS", "PROFILE_FORMAT_SANDWICH", "X"), INTS),
                   "sandwichFunction": one(FUNCTIONS), "matchers": some(SELECTORS), "labelNames": some(LABELS, 30), "name": one(LABELS),
                   "groupBy": some(LABELS), "step": 15 if good else one(DOUBLES), "limit": one(INTS), "aggregation": one(INTS),
                   "exemplarType": one(("EXEMPLAR_TYPE_INDIVIDUAL", "EXEMPLAR_TYPE_SPAN"), INTS), "queryType": one(INTS),
                   "profileIdSelector": some(IDS, 2), "spanSelector": some(IDS, 2), "traceIdSelector": some(IDS, 2),
                   "query": one(SELECTORS), "setting": {"name": one(FUNCTIONS), "value": one(FUNCTIONS), "modifiedAt": one(INTS)},
                   "stackTraceSelector": {"callSite": [{"name": name} for name in some(FUNCTIONS, 3) or
                                                       ["f"] * pick.choice((0, 3000, 20000))],
                                          "goPgo": {"keepLocations": one(INTS), "aggregateCallees": True},
                                          "frameFilter": {"excludeFunctionNameRegexes": some(EVIL_REGEXES, 2)}}}
        keep = [key for key in message if key in ("start", "end", "profileTypeID", "labelSelector", "step", "query") or pick.random() < 0.3]
        message = {key: message[key] for key in keep}
        if method == "Diff":
            message = {"left": message, "right": self.message("")}
        return message

    def connect(self):
        method = self.random.choice(("ProfileTypes", "LabelNames", "LabelValues", "Series", "SelectMergeStacktraces",
                                     "SelectMergeSpanProfile", "SelectMergeProfile", "SelectSeries", "SelectHeatmap", "Diff",
                                     "GetProfileStats", "AnalyzeQuery", "None"))
        path = f"/querier.v1.QuerierService/{method}"
        if self.random.random() < 0.1:
            path = f"/settings.v1.SettingsService/{self.random.choice(('Get', 'Set', 'Delete'))}"
        body = self.mangled(json.dumps(self.message(method)).encode())
        headers = {"Content-Type": "application/json"}
        if self.random.random() < 0.2:
            headers["Connect-Timeout-Ms"] = self.random.choice(("1", "0", "-1", "99999999999", "x"))
        return "POST", path, body, headers

    def protobuf(self):
        """Any fields of any type with any content, as protobuf, Connect's or gRPC's."""
        message = b""
        for _ in range(self.random.randint(0, 12)):
            number, kind = self.random.randint(0, 12), self.random.choice((0, 1, 2, 2, 2, 5, 3))
            message += bytes([number << 3 | kind]) + {0: lambda: self.random.randbytes(self.random.randint(1, 10)), 5: lambda: bytes(4),
                                                      1: lambda: struct.pack("<d", self.random.choice((15.0, float("nan"), 1e-9))),
                                                      3: lambda: b"", 2: self.text_field}[kind]()
        method = self.random.choice(("SelectMergeStacktraces", "SelectSeries", "Series", "Diff", "SelectHeatmap"))
        headers = {"Content-Type": "application/proto"}
        if self.random.random() < 0.3:
            message = bytes([self.random.choice((0, 0, 0, 1, 7))]) + struct.pack(">I", len(message)) + message
            headers = {"Content-Type": "application/grpc", "TE": "trailers"}
        return "POST", f"/querier.v1.QuerierService/{method}", message, headers

    def text_field(self):
        text = self.random.choice((CPU.encode(), b"{}", self.random.randbytes(20), b"\x08" * 60, b"x" * 100))
        return bytes([len(text)]) + text

    def render(self):
        kind = self.random.choice(("render", "render", "render-diff", "label-values"))
        params = {name: self.one(pool) for name, pool in (("query", SELECTORS), ("from", TIMES), ("until", TIMES), ("max-nodes", NUMBERS),
                  ("groupBy", LABELS), ("format", ("json", "dot")), ("leftQuery", SELECTORS), ("rightQuery", SELECTORS), ("label", LABELS))
                  if self.random.random() < 0.6}
        if self.random.random() < 0.6:
            params |= {"query": CPU + "{}", "from": "now-1h", "until": "now"}
        return "GET", f"/pyroscope/{kind}?{urllib.parse.urlencode(params)}", None, {}

    def mangled(self, body):
        """As it is, mostly; else cut, with bytes flipped, or very deep."""
        luck = self.random.random()
        if luck < 0.03:
            return body[:self.random.randint(0, len(body))]
        if luck < 0.06:
            at = self.random.randrange(len(body))
            return body[:at] + self.random.randbytes(1) + body[at + 1:]
        if luck < 0.08:
            return b'{"x":' + b"[" * 100_000
        return body

    def question(self):
        method, path, body, headers = self.random.choice((self.native, self.native, self.connect, self.connect, self.protobuf, self.told,
                                                          self.render))()
        if body and self.random.random() < 0.02:
            body, headers["Content-Encoding"] = gzip.compress(b" " * (200 << 20), 1)[:1 << 20], "gzip"
        elif body and self.random.random() < 0.1:
            body, headers["Content-Encoding"] = gzip.compress(body), "gzip"
        return method, path, body, headers
