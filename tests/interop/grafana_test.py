#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What Grafana asks, in the shapes of its sources, and whether it can make sense of the answers:

  - its data source (a plugin in Go): Connect in protobuf over HTTP/1.1, gzip accepted;
  - the browser part of Profiles Drilldown, through Grafana's proxy: JSON, and the older endpoints.

Flame graphs are turned into trees in the way the data source does it: box by box, each below the first box above it
that has room; every box must find its place.  Skips without Google's protobuf library.
"""
import base64
import gzip
import json
import os
import pathlib
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE / "otlp"), str(HERE.parent / "support")]
import peers  # noqa: E402
import pyroscope as p  # noqa: E402
import pyroscope_proto  # noqa: E402
from checks import check, exit_code  # noqa: E402
from kiln_server import KilnServer  # noqa: E402

PROFILE = pathlib.Path(os.environ.get("KILN_SOURCE_DIR", ".")) / "examples/checkout.pb.gz"
CPU = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"


# ---- the data source ----

class DataSource:
    """As connect-go sends it."""
    headers = {"Content-Type": "application/proto", "Connect-Protocol-Version": "1", "Accept-Encoding": "gzip",
               "User-Agent": "connect-go/1.19.1 (go1.25.0)", "Connect-Timeout-Ms": "30000"}

    def __init__(self, url, messages):
        self.url, self.messages = url, messages

    def call(self, method, fields, answer=None, **headers):
        request = self.messages[f"{method}Request"](**fields)
        with urllib.request.urlopen(urllib.request.Request(self.url + p.QUERIER + method, request.SerializeToString(),
                                                           self.headers | headers), timeout=60) as got:
            body = got.read()
            if got.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            check(f"{method}: in protobuf", got.headers["Content-Type"] == "application/proto", got.headers)
        return self.messages[answer or f"{method}Response"].FromString(body)


def levels_to_tree(levels, names):
    """Nodes [start, value, self, name, children], and how many boxes found no place."""
    root = [0, levels[0].values[1], levels[0].values[2], names[levels[0].values[0]], []]
    parents, lost = [root], 0
    for level in levels[1:]:
        here, at, offset, i = [], 0, 0, 0
        while i < len(level.values):
            start, value, own, name = level.values[i] + offset, *level.values[i + 1:i + 4]
            while at < len(parents) and not (parents[at][0] <= start and start + value <= parents[at][0] + parents[at][1]):
                at += 1
            if at == len(parents):
                lost += (len(level.values) - i) // 4
                break
            node = [start, value, own, names[name], []]
            parents[at][4].append(node)
            here.append(node)
            offset, i = start + value, i + 4
        parents = here
    return root, lost


def is_sound(node):
    """What a node spends is its own and its children's."""
    return node[1] == node[2] + sum(child[1] for child in node[4]) and all(map(is_sound, node[4]))


def shown(source, name, fields):
    flame = source.call("SelectMergeStacktraces", fields).flamegraph
    tree, lost = levels_to_tree(flame.levels, flame.names)
    check(f"{name}: every box has its place", lost == 0, lost)
    check(f"{name}: totals are sums", is_sound(tree) and tree[3] == "total" and tree[1] == flame.total, tree[:4])
    return tree


def data_source(url, messages, base_s):
    source = DataSource(url, messages)
    times = {"start": (base_s - 60) * 1000, "end": (base_s + 600) * 1000}
    shop = times | {"profile_typeID": CPU, "label_selector": '{service_name="shop"}'}
    check("health check: no types in 1970", len(source.call("ProfileTypes", {"start": 1000, "end": 4000}).profile_types) == 0)
    types = source.call("ProfileTypes", times).profile_types
    check("types for the picker", any((t.ID, f"{t.name} - {t.sample_type}") == (CPU, "process_cpu - cpu") for t in types), types)
    names = [n for n in source.call("LabelNames", times | {"matchers": ['{service_name="shop"}']}).names
             if not n.startswith("__")]
    check("label names", {"pod", "service_name"} <= set(names), names)
    names = list(source.call("LabelNames", times | {"matchers": [""]}, Accept="*/*; allow-utf8-labelnames=true").names)
    check("label names that are no words, for who takes them", "service.name" in names, names)
    values = list(source.call("LabelValues", times | {"name": "pod", "matchers": ['{service_name="shop"}']}).names)
    check("label values", values == ["p0", "p1"], values)
    series = source.call("SelectSeries", shop | {"step": 15.0, "group_by": ["pod"], "exemplar_type": 1}).series
    check("metrics by pod", [s.labels[0].value for s in series] == ["p0", "p1"] and
          all(point.timestamp % 15000 == times["start"] % 15000 and point.value > 0 for s in series for point in s.points), series)
    series = source.call("SelectSeries", shop | {"step": 15.0, "limit": 1, "exemplar_type": 2}).series
    ids = {e.profile_id for s in series for point in s.points for e in point.exemplars}
    check("exemplars lead to profiles", ids == set(p.IDS[:2]), ids)
    whole = shown(source, "flame graph", shop | {"max_nodes": 16384})
    check("flame graph: both profiles", whole[1] == 2 * shown(source, "one profile", shop | {"profile_id_selector": [p.IDS[0]]})[1])
    shown(source, "cut flame graph", shop | {"max_nodes": 10})
    top = max(whole[4], key=lambda node: node[1])
    below = shown(source, "from a call site", shop | {"max_nodes": 16384, "stack_trace_selector": {"call_site": [{"name": top[3]}]}})
    check("from a call site: what is below it", below[1] == top[1], (below[:4], top[:4]))
    check("spans: none is linked", shown(source, "spans", shop | {"span_selector": ["00" * 7 + "01"]})[1] == 0)
    slots = [slot for s in source.call("SelectHeatmap", shop | {"step": 15.0, "query_type": 1, "exemplar_type": 2}).series
             for slot in s.slots]
    check("heatmap", sum(sum(slot.counts) for slot in slots) == 2 and all(len(slot.y_min) == len(slot.counts) == 20
                                                                         for slot in slots), slots)
    try:
        source.call("SelectSeries", shop | {"step": 15.0, "label_selector": "{"})
        check("a bad selector is an error", False)
    except urllib.error.HTTPError as error:
        said = json.loads(error.read())
        check("a bad selector is an error of Connect", error.code == 400 and said["code"] == "invalid_argument", said)


# ---- Profiles Drilldown ----

def root(ask, chosen):
    """The function below "total" that has most."""
    flame = ask(p.QUERIER + "SelectMergeStacktraces", chosen)["flamegraph"]
    boxes = [int(value) for value in flame["levels"][1]["values"]]
    return flame["names"][max(zip(boxes[1::4], boxes[3::4]))[1]]


def drilldown(url, base_s):
    times = {"start": (base_s - 60) * 1000, "end": (base_s + 600) * 1000}
    headers = {"X-Grafana-Org-Id": "1", "X-Grafana-Device-Id": "x"}

    def ask(service, message, status=200):
        answer = p.call(url, service, message, headers)
        check(f"Drilldown {service}: {status}", answer.status == status, answer.body[:300])
        return answer.json or {}

    series = ask(p.QUERIER + "Series", times | {"matchers": [], "labelNames": ["service_name", "__profile_type__"]})
    pairs = {tuple(sorted((l["name"], l["value"]) for l in s["labels"])) for s in series["labelsSet"]}
    check("Drilldown: services and their types", (("__profile_type__", CPU), ("service_name", "cart")) in pairs, pairs)
    matchers = [f'{{__profile_type__="{CPU}", service_name="shop"}}']
    check("Drilldown: labels", "pod" in ask(p.QUERIER + "LabelNames", times | {"matchers": matchers})["names"])
    check("Drilldown: values", ask(p.QUERIER + "LabelValues", times | {"name": "pod", "matchers": matchers})["names"] ==
          ["p0", "p1"])
    check("Drilldown: is there data?", ask(p.QUERIER + "GetProfileStats", {})["dataIngested"] is True)
    impact = ask(p.QUERIER + "AnalyzeQuery", times | {"query": f'{CPU}{{service_name="shop"}}'})
    check("Drilldown: what a query costs", int(impact["queryImpact"]["totalQueriedSeries"]) > 0, impact)
    shop = times | {"profileTypeID": CPU, "labelSelector": '{service_name="shop"}'}
    rows = ask(p.QUERIER + "SelectMergeStacktraces", shop | {"format": "PROFILE_FORMAT_FUNCTIONS", "maxNodes": 5})["functions"]
    check("Drilldown: top functions, whole total", len(rows["functions"]) == 5 and int(rows["total"]) > 0, rows)
    first = rows["functions"][0]["name"]
    halves = ask(p.QUERIER + "SelectMergeStacktraces", shop | {"format": "PROFILE_FORMAT_SANDWICH", "sandwichFunction": first,
                                                             "maxNodes": 16384})["sandwich"]
    check("Drilldown: sandwich", all(halves["names"][halves[half].get("nameIndex", 0)] == first for half in
                                     ("callers", "callees")) and halves["total"] == rows["functions"][0]["total"], halves["total"])
    pairs = ask(p.QUERIER + "Diff", {"left": shop, "right": shop | {"labelSelector": "{}"}, "maxNodes": 3,
                                    "format": "PROFILE_FORMAT_FUNCTIONS"})["functions"]
    check("Drilldown: functions of a diff", len(pairs["functions"]) == 3 and pairs["leftTotal"] == rows["total"], pairs)
    stacks = ask(p.QUERIER + "SelectMergeProfile", shop | {"stackTraceSelector": {"callSite": [{"name": root(ask, shop)}]}})
    check("Drilldown: lines for the code panel", stacks.get("sample") and any(
        int(line.get("line", 0)) > 0 for location in stacks["location"] for line in location["line"]), str(stacks)[:300])
    drilldown_older(url, times, headers)
    drilldown_uploads(ask)
    setting = {"name": "pluginSettings", "value": json.dumps({"collapsedFlamegraphs": False, "maxNodes": 16384})}
    ask("/settings.v1.SettingsService/Set", {"setting": setting | {"modifiedAt": int(time.time() * 1000)}})
    kept = ask("/settings.v1.SettingsService/Get", {})["settings"]
    check("Drilldown: settings are kept", kept[0]["name"] == "pluginSettings" and kept[0]["value"] == setting["value"], kept)
    ask("/capabilities.v1.FeatureFlagsService/GetFeatureFlags", {})
    for path in ("/settings.v1.RecordingRulesService/ListRecordingRules", "/vcs.v1.VCSService/GithubApp"):
        check(f"Drilldown {path}: unimplemented", ask(path, {}, 501)["code"] == "unimplemented")


def drilldown_uploads(ask):
    """The view for files: upload, another type, two of them."""
    service = "/adhocprofiles.v1.AdHocProfileService/"
    profile = {"name": "checkout.pb.gz", "profile": base64.b64encode(PROFILE.read_bytes()).decode(), "maxNodes": 1000}
    uploaded = ask(service + "Upload", profile)
    flame = json.loads(uploaded["flamebearerProfile"])
    nodes = p.tree(flame["flamebearer"])
    check("Drilldown: an upload is a flame graph", nodes[()][0] == flame["flamebearer"]["numTicks"] > 0 and
          flame["metadata"]["name"] == uploaded["profileType"], uploaded["profileType"])
    for kind in uploaded["profileTypes"]:
        got = ask(service + "Get", {"id": uploaded["id"], "profileType": kind, "maxNodes": 1000})
        check(f"Drilldown: the upload's {kind}", got["profileType"] == kind and got["name"] == profile["name"], got["name"])
    pair = json.loads(ask(service + "Diff", {"leftId": uploaded["id"], "rightId": uploaded["id"]})["flamebearerProfile"])
    check("Drilldown: an upload is as itself", all(left == right for left, right in p.diff_tree(pair["flamebearer"]).values()))
    check("Drilldown: uploads are listed", [u["id"] for u in ask(service + "List", {})["profiles"]] == [uploaded["id"]])


def drilldown_older(url, times, headers):
    query = f'{CPU}{{service_name="shop"}}'
    words = {"query": query, "from": times["start"], "until": times["end"], "format": "dot", "max-nodes": 100}
    answer = p.call(url, "/pyroscope/render?" + urllib.parse.urlencode(words), headers=headers)
    check("Drilldown: a graph for the assistant", answer.body.startswith(b"digraph "), answer.body[:100])
    words = {"leftQuery": query, "leftFrom": times["start"], "leftUntil": times["end"], "rightQuery": f"{CPU}{{}}",
             "rightFrom": times["start"], "rightUntil": times["end"], "max-nodes": 16384}
    answer = p.call(url, "/pyroscope/render-diff?" + urllib.parse.urlencode(words), headers=headers).json
    nodes = p.diff_tree(answer["flamebearer"])
    check("Drilldown: a diff", answer["metadata"]["format"] == "double" and
          nodes[()][0][0] == answer["leftTicks"] and nodes[()][1][0] == answer["rightTicks"], answer["metadata"])


def main():
    try:
        peers.install_protobuf()
    except peers.Absent as why:
        print(f"skipped: {why}")
        return 77
    base_s = (int(time.time()) - 1200) // 60 * 60
    with KilnServer() as server:
        url = f"http://127.0.0.1:{server.http}"
        p.fill(url, PROFILE.read_bytes(), base_s)
        data_source(url, pyroscope_proto.load(), base_s)
        drilldown(url, base_s)
    return exit_code()


if __name__ == "__main__":
    sys.exit(main())
