#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pyroscope's clients, unmodified, against Kiln:

  - every method over Connect in protobuf and in JSON, over gRPC and gRPC-Web, with Google's protobuf library: the same
    answer four times, and its JSON is exactly what the library makes of its protobuf;
  - profilecli ($PROFILECLI): query profile, series, top, exemplars, cardinality, go-pgo; over all three protocols;
  - pyroscope-go: what it sends comes back out.

A peer that is not there is named and its part left out; without any, the test skips.
"""
import gzip
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import time
import urllib.request

HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE / "otlp"), str(HERE.parent / "support")]
import peers  # noqa: E402
import pyroscope as p  # noqa: E402
import pyroscope_proto  # noqa: E402
from checks import check, exit_code  # noqa: E402
from kiln_server import KILN, KilnServer  # noqa: E402

SOURCES = pathlib.Path(os.environ.get("KILN_SOURCE_DIR", "."))
PROFILE = SOURCES / "examples/checkout.pb.gz"
CPU = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
tried = 0


# ---- Google's protobuf library ----

class Wire:
    """Calls of a server by messages, in four ways."""

    def __init__(self, port):
        from google.protobuf import json_format
        self.url, self.port, self.json_format = f"http://127.0.0.1:{port}", port, json_format
        self.messages = pyroscope_proto.load()

    def post(self, path, kind, body, **headers):
        request = urllib.request.Request(self.url + path, body, {"Content-Type": kind} | headers)
        with urllib.request.urlopen(request, timeout=60) as answer:
            body = answer.read()
            return gzip.decompress(body) if answer.headers.get("Content-Encoding") == "gzip" else body

    def connect(self, path, request):
        return self.post(path, "application/proto", request.SerializeToString())

    def connect_gzip(self, path, request):
        return self.post(path, "application/proto", gzip.compress(request.SerializeToString()),
                         **{"Content-Encoding": "gzip", "Accept-Encoding": "gzip"})

    def grpc_web(self, path, request):
        body = request.SerializeToString()
        answer = self.post(path, "application/grpc-web+proto", struct.pack(">BI", 0, len(body)) + body)
        size = struct.unpack(">I", answer[1:5])[0]
        trailers = answer[5 + size:]
        if trailers[0] != 0x80 or b"grpc-status: 0" not in trailers.lower().replace(b":0", b": 0"):
            raise RuntimeError(f"gRPC-Web trailers {trailers!r}")
        return answer[5:5 + size]

    def grpc(self, path, request):
        import grpc
        with grpc.insecure_channel(f"127.0.0.1:{self.port}",
                                   options=[("grpc.max_receive_message_length", 64 << 20)]) as channel:
            return channel.unary_unary(path, lambda m: m.SerializeToString(), lambda raw: raw)(request, timeout=60)

    def json(self, path, request):
        text = self.json_format.MessageToJson(request)
        return json.loads(self.post(path, "application/json", text.encode()))


def cases(start, end):
    """(path, name of the request, its fields, name of the answer)."""
    times = {"start": start, "end": end}
    cpu = times | {"profile_typeID": CPU, "label_selector": '{service_name="shop"}'}
    querier = p.QUERIER
    for name, fields in (("ProfileTypes", times), ("LabelNames", times | {"matchers": ['{pod="p1"}']}),
                         ("LabelValues", times | {"name": "pod"}), ("Series", times | {"label_names": ["pod", "service_name"]}),
                         ("SelectSeries", cpu | {"step": 15.5, "group_by": ["pod"], "limit": 5, "exemplar_type": 2}),
                         ("SelectSeries", cpu | {"step": 15, "aggregation": 1, "exemplar_type": 3}),
                         ("SelectHeatmap", cpu | {"step": 60, "query_type": 1, "exemplar_type": 2}),
                         ("SelectMergeSpanProfile", cpu | {"span_selector": ["00" * 8]}),
                         ("GetProfileStats", {}), ("AnalyzeQuery", times | {"query": CPU + '{service_name="shop"}'}),
                         ("Diff", {"left": cpu | {"max_nodes": 20}, "right": cpu | {"label_selector": "{}"}})):
        yield querier + name, name + "Request", fields, name + "Response"
    for format in range(5):
        yield querier + "SelectMergeStacktraces", "SelectMergeStacktracesRequest", \
            cpu | {"format": format, "max_nodes": 50}, "SelectMergeStacktracesResponse"
    yield querier + "SelectMergeStacktraces", "SelectMergeStacktracesRequest", cpu | {
        "stack_trace_selector": {"call_site": [{"name": "net/http.(*conn).serve"}]},
        "profile_id_selector": [p.IDS[0]]}, "SelectMergeStacktracesResponse"
    yield querier + "SelectMergeProfile", "SelectMergeProfileRequest", cpu, "Profile"
    yield querier + "SelectMergeProfile", "SelectMergeProfileRequest", cpu | {
        "stack_trace_selector": {"go_pgo": {"keep_locations": 5, "aggregate_callees": True}}}, "Profile"
    yield "/settings.v1.SettingsService/Set", "SetSettingsRequest", \
        {"setting": {"name": "é", "value": '{"a":"\\u0001"}', "modifiedAt": 5}}, "SetSettingsResponse"
    yield "/settings.v1.SettingsService/Get", "GetSettingsRequest", {}, "GetSettingsResponse"
    yield "/capabilities.v1.FeatureFlagsService/GetFeatureFlags", "GetFeatureFlagsRequest", {}, "GetFeatureFlagsResponse"
    yield "/version.v1.Version/Version", "VersionRequest", {}, "VersionResponse"
    yield "/grpc.health.v1.Health/Check", "HealthCheckRequest", {}, "HealthCheckResponse"


def second_opinion(server, base_s):
    global tried
    try:
        peers.install_protobuf()
    except peers.Absent as why:
        print(f"not tried: protobuf: {why}", flush=True)
        return
    tried += 1
    wire = Wire(server.http)
    sys.path.extend(str(place) for place in (peers.CACHE / "python").glob("grpcio-*"))
    try:
        import grpc  # noqa: F401
        ways = (wire.connect_gzip, wire.grpc_web, wire.grpc)
    except ImportError:
        print("not tried: grpcio", flush=True)
        ways = (wire.connect_gzip, wire.grpc_web)
    for path, request_name, fields, answer_name in cases((base_s - 60) * 1000, (base_s + 600) * 1000):
        name = f"{path.rpartition('/')[2]} {({k: v for k, v in fields.items() if k not in ('start', 'end')})}"[:120]
        request = wire.messages[request_name](**fields)
        answer = wire.messages[answer_name].FromString(wire.connect(path, request))
        check(f"{name}: no field is unknown", answer.SerializeToString() == wire.connect(path, request) or
              not unknown_fields(answer), unknown_fields(answer))
        wanted = wire.json_format.MessageToDict(answer)
        got = wire.json(path, request)
        check(f"{name}: JSON is that of the library", got == wanted, f"{json.dumps(wanted)[:600]} | {json.dumps(got)[:600]}")
        for way in ways:
            other = wire.messages[answer_name].FromString(way(path, request))
            check(f"{name}: the same over {way.__name__}", other == answer, other)


def unknown_fields(message):
    from google.protobuf import unknown_fields as u
    found = [f.field_number for f in u.UnknownFieldSet(message)]
    for field, value in message.ListFields():
        if field.message_type:
            for one in [value] if hasattr(value, "ListFields") else value:
                found += unknown_fields(one)
    return found


# ---- profilecli ----

def profilecli(server, base_s):
    global tried
    program = os.environ.get("PROFILECLI")
    if not program:
        print("not tried: profilecli: PROFILECLI does not name one", flush=True)
        return
    tried += 1
    with tempfile.TemporaryDirectory() as folder:
        for protocol in ("connect", "grpc", "grpc-web"):
            profilecli_queries(server, base_s, program, protocol, pathlib.Path(folder))


def profilecli_queries(server, base_s, program, protocol, folder):
    url = f"http://127.0.0.1:{server.http}"
    times = ["--from", str((base_s - 60) * 1000), "--to", str((base_s + 600) * 1000)]

    def query(*words, selector='{service_name="shop"}'):
        done = subprocess.run([program, "query", *words, "--url", url, "--protocol", protocol, *times,
                               *(["--query", selector] if selector else [])], capture_output=True, text=True)
        return done.stdout + (f"\nexit {done.returncode}: {done.stderr}" if done.returncode else "")

    def said(what, text, *parts):
        check(f"profilecli {protocol}: {what}", all(part in text for part in parts), text)

    said("query profile", query("profile"), "PeriodType: cpu nanoseconds", "encoding/json")
    said("query profile, functions only", query("profile", "--function-names-only"), "encoding/json")
    said("query profile of an id", query("profile", "--profile-id", p.IDS[0]), "encoding/json")
    said("query profile from a call site", query("profile", "--stacktrace-selector", "encoding/json"), "encoding/json")
    out = folder / f"{protocol}.pb.gz"
    said("query profile into a file", query("profile", f"--output=pprof={out}"))
    check(f"profilecli {protocol}: what it saved has twice the profile", own_times(out) ==
          {name: 2 * own for name, own in own_times(PROFILE).items()}, own_times(out))
    said("query series", query("series", "--label-names", "service_name", "--label-names", "pod", selector=None), "shop", "cart", "p2")
    said("query label-values-cardinality", query("label-values-cardinality", selector='{service_name=~".+"}'), "pod", "service_name")
    said("query top", query("top", "--label-names", "service_name", selector="{}"), "shop", "cart")
    said("query exemplars profile", query("exemplars", "profile"), p.IDS[0])
    said("query exemplars span", query("exemplars", "span"))
    pgo = folder / f"{protocol}.pgo"
    said("query go-pgo", query("go-pgo", f"--output=pprof={pgo}"))
    deepest = max(len(line.rpartition(" ")[0].split(";")) for line in
                  subprocess.run([KILN, "convert", pgo, "--to", "collapsed"], capture_output=True, text=True)
                  .stdout.splitlines())
    check(f"profilecli {protocol}: go-pgo keeps five locations", 0 < deepest <= 8, deepest)
    done = subprocess.run([program, "ready", "--url", url], capture_output=True, text=True)
    check(f"profilecli {protocol}: ready", done.returncode == 0, done.stderr)


def own_times(path):
    done = subprocess.run([KILN, "top", path, "--json", "-n", "0"], capture_output=True, text=True)
    return {row["name"]: row["self"] for row in json.loads(done.stdout)["rows"]} if done.returncode == 0 else done.stderr


# ---- pyroscope-go ----

PYROSCOPE_GO = {  # type id, a function that must be in it
    "process_cpu:cpu:nanoseconds:cpu:nanoseconds": "main.hotLoop",
    "memory:alloc_space:bytes:space:bytes": "main.allocateMuch",
    "mutex:delay:nanoseconds:contentions:count": "main.waitForLock",
    "goroutines:goroutine:count:goroutine:count": "main.main",
}


def pyroscope_go():
    global tried
    try:
        program = peers.build_go(HERE / "go/pyrosend")
    except peers.Absent as why:
        print(f"not tried: pyroscope-go: {why}", flush=True)
        return
    tried += 1
    with KilnServer() as server:
        url, start = f"http://127.0.0.1:{server.http}", int(time.time()) * 1000 - 60000
        subprocess.run([program, url, "5"], check=True, capture_output=True)
        times = {"start": start, "end": int(time.time()) * 1000 + 60000}
        ask = lambda method, message: p.call(url, p.QUERIER + method, times | message).json
        types = {t["ID"] for t in ask("ProfileTypes", {})["profileTypes"]}
        services = ask("LabelValues", {"name": "service_name"})["names"]
        check("pyroscope-go: its service is there", services == ["pyrosend.app"], services)
        for type_id, function in PYROSCOPE_GO.items():
            message = {"profileTypeID": type_id, "labelSelector": '{service_name="pyrosend.app"}', "maxNodes": 1 << 20}
            flame = ask("SelectMergeStacktraces", message)["flamegraph"]
            points = ask("SelectSeries", message | {"step": 15})
            check(f"pyroscope-go: {function} is in {type_id}", type_id in types and
                  any(name.startswith(function) for name in flame["names"]), flame["names"])
            check(f"pyroscope-go: {type_id} adds up over time", int(flame["total"]) ==
                  sum(point["value"] for s in points["series"] for point in s["points"]), (flame["total"], points))


def main():
    base_s = (int(time.time()) - 1200) // 60 * 60
    with KilnServer() as server:
        p.fill(f"http://127.0.0.1:{server.http}", PROFILE.read_bytes(), base_s)
        second_opinion(server, base_s)
        profilecli(server, base_s)
    pyroscope_go()
    if not tried:
        print("skipped: no peer is there")
        return 77
    return exit_code()


if __name__ == "__main__":
    sys.exit(main())
