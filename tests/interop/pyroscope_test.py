#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The same profiles into Pyroscope and into Kiln, the same calls to both, the same answers.

The answers of a real Pyroscope, recorded call by call with their inputs, are under $KILN_TEST_DATA/pyroscope; their
times are shifted to now.  Where $PYROSCOPE names a program it is started here and asked as well, with more questions.
Equal are: types, labels and series; self and total of each function; values over time, summed over sample labels; codes
of errors.  Of a flame graph that is cut, ours has the heaviest nodes and exact numbers.
"""
import base64
import json
import os
import pathlib
import sys
import time
import urllib.parse

HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE.parent / "support"), str(HERE.parents[1] / "bench")]
import pyroscope as p  # noqa: E402
import servers  # noqa: E402
from checks import check, exit_code  # noqa: E402
from kiln_server import KilnServer  # noqa: E402
from ports import free_port  # noqa: E402

DATA = pathlib.Path(os.environ.get("KILN_TEST_DATA", "../shared/data"))
RECORDED = DATA / "pyroscope"


def differences(a, b, limit=5):
    """The first keys of which two dictionaries say different things."""
    return [(key, a.get(key), b.get(key)) for key in sorted(a.keys() | b.keys(), key=str)
            if a.get(key) != b.get(key)][:limit]


# ---- filling ----

def fill(url, inputs, base_s):
    for item in inputs["pushes"]:
        profile = p.as_pyroscope_takes_it((DATA / "pprof" / item["file"]).read_bytes())
        p.push(url, item["labels"], p.at_time(profile, (base_s + item["offset_s"]) * 10**9))


# ---- comparing ----

def is_cut(nodes):
    return any("other" in path for path in nodes)


def same_trees(name, theirs, ours, whole, other=None):
    """{path: (total, self)} of both; `whole()` is our tree before it was cut; `other` the other side of a diff."""
    if not is_cut(theirs) and not is_cut(ours):
        a, b = p.functions(theirs), p.functions(ours)
        check(f"{name}: functions", a == b, differences(a, b))
        check(f"{name}: nodes", theirs == ours, differences(theirs, ours))
        return
    exact = whole()
    check(f"{name}: total", theirs[()][0] == ours[()][0] == exact[()][0], (theirs[()], ours[()]))
    kept = {path: numbers for path, numbers in ours.items() if "other" not in path}
    wrong = {path: exact.get(path) for path in kept if exact.get(path) != kept[path]}
    check(f"{name}: what stays is exact", not wrong, differences(wrong, kept, 2))
    lightest = min(max(total, (other or {}).get(path, (0, 0))[0]) for path, (total, _) in kept.items())
    lost = [path for path, (total, _) in exact.items() if total > lightest and path not in kept]
    check(f"{name}: what stays is the heaviest", not lost, lost[:2])
    # Pyroscope cuts the trees of its blocks before it adds them up: it may say too little, never too much.
    more = {path: numbers for path, numbers in theirs.items()
            if "other" not in path and numbers[0] > exact.get(path, (0, 0))[0]}
    check(f"{name}: nowhere less than there", not more, differences(more, exact, 2))


def same_series(name, theirs, ours):
    sums = []
    for answer in (theirs, ours):
        points = {}
        for series in answer.get("series", []):
            labels = tuple(sorted((l["name"], l["value"]) for l in series.get("labels", [])))
            for point in series["points"]:
                key = labels, int(point["timestamp"])
                points[key] = points.get(key, 0) + point.get("value", 0)
        sums.append(points)
    check(f"{name}: points", sums[0] == sums[1], differences(*sums))
    best = [[exemplars(point) for s in answer.get("series", []) for point in s["points"]] for answer in (theirs, ours)]
    check(f"{name}: exemplars", best[0] == best[1], best)


def exemplars(where):
    """What two servers can agree on: the ids of profiles are each one's own."""
    return sorted((e["timestamp"], e["value"], e.get("spanId")) for e in where.get("exemplars", []))


def same_heatmaps(name, theirs, ours):
    """Cells, and what stands for them."""
    labels = lambda s: tuple((l["name"], l["value"]) for l in s.get("labels", []))
    cells = [{(labels(s), slot["timestamp"], i): (slot["yMin"][i], count) for s in answer["series"] for slot in s["slots"]
              for i, count in enumerate(slot["counts"]) if count} for answer in (theirs, ours)]
    check(f"{name}: cells", cells[0] == cells[1], differences(*cells))
    best = [sorted(e for s in answer["series"] for slot in s["slots"] for e in exemplars(slot)) for answer in (theirs, ours)]
    check(f"{name}: exemplars", best[0] == best[1], best)


def same_pairs(name, theirs, ours, whole):
    """Diffs: both sides of each node."""
    a, b = p.diff_tree(theirs), p.diff_tree(ours)
    for side, word in enumerate(("left", "right")):
        one, two, other = ({k: v[i] for k, v in x.items() if v[i][0] or not k} for x, i in
                           ((a, side), (b, side), (b, 1 - side)))
        same_trees(f"{name}: {word}", one, two, lambda: whole()[side], other)


def same_names(name, theirs, ours):
    """Numbers that samples carry are labels here, and nothing there."""
    check(f"{name}: names", [n for n in ours if n != "bytes"] == theirs, (theirs, ours))


def exact_tree(ask, request):
    return p.tree(ask("SelectMergeStacktraces", request | {"max_nodes": 1 << 20, "maxNodes": 1 << 20})["flamegraph"])


def same_answers(name, record, ours, ask):
    """By what is in them; `ask` asks us again."""
    theirs, request = record["answer"], record["request"]
    flame = theirs.get("flamegraph")
    if flame and "left" in request:
        same_pairs(name, flame, ours["flamegraph"], lambda: [exact_tree(ask, request[s]) for s in ("left", "right")])
    elif flame:
        same_trees(name, p.tree(flame), p.tree(ours["flamegraph"]), lambda: exact_tree(ask, request))
    elif "tree" in theirs:
        a, b = (p.tree_of_bytes(base64.b64decode(x["tree"])) for x in (theirs, ours))
        same_trees(name, a, b, lambda: exact_tree(ask, request | {"format": 1}))
    elif "stringTable" in theirs:
        a, b = p.pprof_functions(theirs), p.pprof_functions(ours)
        check(f"{name}: functions of the pprof", a == b, differences(a, b))
    elif "series" in theirs and "queryType" in request:
        same_heatmaps(name, theirs, ours)
    elif "series" in theirs:
        same_series(name, theirs, ours)
    elif "names" in theirs:
        same_names(name, theirs["names"], ours["names"])
    elif "flamebearer" in theirs:
        same_flamebearer(name, record, ours, ask)
    else:
        check(f"{name}: answer", theirs == ours, f"{json.dumps(theirs)[:900]} | {json.dumps(ours)[:900]}")


def same_flamebearer(name, record, ours, ask):
    theirs, words = record["answer"], dict(urllib.parse.parse_qsl(record["path"].partition("?")[2]))
    for key in ("version", "metadata", "timeline", "groups", "leftTicks", "rightTicks"):
        check(f"{name}: {key}", theirs.get(key) == ours.get(key), (theirs.get(key), ours.get(key)))

    def side(query, start, end):
        kind, _, selector = words[query].partition("{")
        return exact_tree(ask, {"profileTypeID": kind, "labelSelector": "{" + selector, "start": int(words[start]),
                                "end": int(words[end])})
    a, b = theirs["flamebearer"], ours["flamebearer"]
    if theirs["metadata"]["format"] == "double":
        same_pairs(name, a, b, lambda: [side(f"{s}Query", f"{s}From", f"{s}Until") for s in ("left", "right")])
    else:
        same_trees(name, p.tree(a), p.tree(b), lambda: side("query", "from", "until"))


# ---- the recorded calls ----

def shifted(value, by_ms):
    """Times of the recording, moved; also in paths."""
    if isinstance(value, dict):
        return {k: str(int(v) + by_ms) if k in ("timestamp",) else v + by_ms if k in ("start", "end")
                else v + by_ms // 1000 if k == "startTime" else shifted(v, by_ms) for k, v in value.items()}
    return [shifted(v, by_ms) for v in value] if isinstance(value, list) else value


def shifted_path(path, by_ms):
    address, _, query = path.partition("?")
    words = [(k, str(int(v) + by_ms) if k.lower().endswith(("from", "until")) else v)
             for k, v in urllib.parse.parse_qsl(query)]
    return address + ("?" + urllib.parse.urlencode(words) if words else "")


# What we tell and Pyroscope did not, when it was asked.
RICHER = {"23-profile-stats", "24-analyze-query"}
# What Pyroscope passes over.
IGNORED = {"20-select-series-function"}


def same_function(name, record, ours, ask):
    """The timeline of a call site adds up to its flame graph."""
    flame = ask("SelectMergeStacktraces", record["request"])["flamegraph"]
    points = sum(point["value"] for series in ours["series"] for point in series["points"])
    check(f"{name}: as in the flame graph", 0 < points == int(flame["total"]), (points, flame.get("total")))


def compare(name, record, answer, ask):
    check(f"{name}: status", answer.status == record["status"], (answer.status, answer.body[:300]))
    theirs = record["answer"]
    if answer.status != record["status"] or name in RICHER:
        return
    if record["status"] != 200:
        check(f"{name}: code", answer.json["code"] == theirs["code"], (theirs, answer.json))
    elif name in IGNORED:
        same_function(name, record, answer.json, ask)
    elif "base64" in theirs:
        check(f"{name}: is a graph", answer.body.startswith(b"digraph ") and
              base64.b64decode(theirs["base64"]).startswith(b"digraph "), answer.body[:100])
    else:
        same_answers(name, record, answer.json, ask)


def recorded(url, by_ms):
    ask = lambda method, request: p.call(url, p.QUERIER + method, request).json
    for file in sorted(RECORDED.glob("[0-9]*.json")):
        record = json.loads(file.read_text())
        record = {"path": shifted_path(record["path"], by_ms), "request": shifted(record["request"], by_ms),
                  "status": record["status"], "answer": shifted(record["answer"], by_ms)}
        compare(file.stem, record, p.call(url, record["path"], record["request"]), ask)


# ---- a real one ----

class Live(servers.Pyroscope):
    """On a free port, and others of its own that have to be free; ready after a minute or so."""

    def __init__(self):
        super().__init__()
        self.port, self.words = free_port(), ()

    def command(self):
        return super().command() + ["-architecture.storage=v2"]


CPU = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"


def questions(start, end):
    """(name, path, message) of everything that is asked of both."""
    times = {"start": start, "end": end}
    stacks = [("{}", CPU), ('{service_name="shop/cart"}', CPU), ('{service_name=~"s.*",version=~".+"}', CPU),
              ('{service_name="shop/cart",pod!="a"}', CPU), ('{service_name!~"shop/.*"}', CPU),
              ('{function="slow"}', CPU), ('{foo="bar"}', CPU), ('{absent="x"}', CPU), ('{absent=""}', CPU)] + \
        [('{service_name="shop/checkout"}', f"memory:{kind}:space:bytes") for kind in
         ("alloc_objects:count", "alloc_space:bytes", "inuse_objects:count", "inuse_space:bytes")]
    for selector, kind in stacks:
        message = times | {"profileTypeID": kind, "labelSelector": selector, "maxNodes": 1 << 20}
        yield f"stacks of {selector} {kind}", "SelectMergeStacktraces", message
        yield f"pprof of {selector} {kind}", "SelectMergeProfile", times | {"profileTypeID": kind, "labelSelector": selector}
        for by, step in (([], 15), (["service_name"], 15), (["pod", "version"], 60), (["function"], 600), (["absent"], 37.5)):
            yield f"series of {selector} {kind} by {by}, {step} s", "SelectSeries", \
                times | {"profileTypeID": kind, "labelSelector": selector, "groupBy": by, "step": step}
    for call_site in (["testing.(*B).launch"], ["testing.(*B).launch", "testing.(*B).runN"], ["runtime.gcBgMarkWorker"],
                      ["testing.(*B).runN"], ["nowhere"]):
        yield f"stacks from {call_site}", "SelectMergeStacktraces", times | {
            "profileTypeID": CPU, "labelSelector": "{}", "maxNodes": 1 << 20,
            "stackTraceSelector": {"callSite": [{"name": name} for name in call_site]}}
    for n in (1, 2, 10, 100):
        yield f"{n} nodes", "SelectMergeStacktraces", times | {"profileTypeID": CPU, "labelSelector": "{}", "maxNodes": n}
    for left, right in (("1.0", "1.1"), ("1.1", "1.0"), ("1.0", "none"), ("none", "none")):
        side = lambda v: times | {"profileTypeID": CPU, "labelSelector": f'{{version="{v}"}}', "maxNodes": 1 << 20}
        yield f"diff of {left} and {right}", "Diff", {"left": side(left), "right": side(right)}
    yield from formats(times)
    yield "types", "ProfileTypes", times
    yield "types of the last century", "ProfileTypes", {"start": 1000, "end": 4000}
    for matchers in ([], ["{}"], ['{service_name="shop/cart"}'], ['{pod="a"}', '{version="1.1"}'], ['{nothing="x"}']):
        yield f"label names {matchers}", "LabelNames", times | {"matchers": matchers}
        yield f"series {matchers}", "Series", times | {"matchers": matchers,
                                                       "labelNames": ["version", "service_name", "pod"]}
        for name in ("service_name", "pod", "__profile_type__", "__name__", "function", "nothing"):
            yield f"values of {name} {matchers}", "LabelValues", times | {"matchers": matchers, "name": name}
    yield from (("error: " + name, method, message) for name, method, message in errors(times))


def formats(times):
    """Other shapes of what was asked already."""
    cart = times | {"profileTypeID": CPU, "labelSelector": '{service_name="shop/cart"}'}
    checkout = cart | {"labelSelector": '{service_name="shop/checkout"}'}
    yield "tree", "SelectMergeStacktraces", cart | {"format": "PROFILE_FORMAT_TREE", "maxNodes": 1 << 20}
    yield "tree of nothing", "SelectMergeStacktraces", cart | {"format": 2, "labelSelector": '{a="b"}'}
    yield "cut tree", "SelectMergeStacktraces", cart | {"format": 2, "maxNodes": 50}
    for spans in (["f73477d9dfd33f64"], ["f73477d9dfd33f64", "f610eeeaf2eaf003"], ["00" * 8]):
        yield f"spans {spans}", "SelectMergeStacktraces", checkout | {"spanSelector": spans}
        yield f"span profile {spans}", "SelectMergeSpanProfile", checkout | {"spanSelector": spans, "maxNodes": 100}
    yield "an id of nobody", "SelectMergeStacktraces", cart | {"profileIdSelector": ["7c9e6679-7425-40de-944b-e07fc1f90ae7"]}
    for by in ([], ["pod"]):
        yield f"heatmap by {by}", "SelectHeatmap", cart | {"step": 60, "queryType": 1, "exemplarType": 2, "groupBy": by}
        yield f"exemplars by {by}", "SelectSeries", cart | {"step": 15, "exemplarType": 2, "groupBy": by}
    yield "two of three series", "SelectSeries", times | {"profileTypeID": CPU, "labelSelector": "{}", "step": 600, "limit": 2,
                                                         "groupBy": ["service_name"]}
    for words in ({}, {"groupBy": "pod"}, {"maxNodes": 1}, {"groupBy": "absent", "max-nodes": 1 << 20}):
        words = {"query": CPU + '{service_name="shop/cart"}', "from": times["start"], "until": times["end"]} | words
        yield f"render {words}", "/pyroscope/render?" + urllib.parse.urlencode(words), None


def errors(times):
    good = times | {"profileTypeID": CPU, "labelSelector": "{}"}
    yield "no times", "SelectMergeStacktraces", {"profileTypeID": CPU, "labelSelector": "{}"}
    yield "no end", "LabelNames", {"start": times["start"]}
    yield "end before start", "Series", {"start": times["end"], "end": times["start"]}
    yield "no type", "SelectSeries", times | {"labelSelector": "{}", "step": 15}
    yield "a type of three parts", "SelectMergeProfile", good | {"profileTypeID": "a:b:c"}
    yield "no step", "SelectSeries", good
    yield "a step too short", "SelectSeries", good | {"step": 0.0001}
    yield "a negative step", "SelectHeatmap", good | {"step": -1}
    yield "nodes below zero", "SelectMergeStacktraces", good | {"maxNodes": -1}
    yield "too many nodes", "SelectMergeStacktraces", good | {"maxNodes": 1 << 21}
    yield "a bad expression", "SelectMergeStacktraces", good | {"labelSelector": '{a=~"("}'}
    yield "a bad matcher", "LabelValues", times | {"name": "a", "matchers": ["{a"]}
    yield "no name", "LabelValues", times
    yield "spans and traces", "SelectMergeStacktraces", good | {"spanSelector": ["00" * 8], "traceIdSelector": ["00" * 16]}
    yield "text for a number", "ProfileTypes", {"start": "soon", "end": 5}
    yield "a list for a text", "LabelValues", times | {"name": ["a"]}
    yield "no method", "Nonsense", {}


def live(kiln, base_s, theirs_url):
    """Everything that there is to ask, of both."""
    def ask(method, request):
        return p.call(kiln, p.QUERIER + method, request).json
    for name, method, message in questions((base_s - 60) * 1000, (base_s + 987) * 1000):
        path = method if method.startswith("/") else p.QUERIER + method
        theirs, ours = (p.call(url, path, message) for url in (theirs_url, kiln))
        record = {"path": path, "request": message, "status": theirs.status, "answer": theirs.json}
        if theirs.status != 200 and not (theirs.json or {}).get("code"):  # a path that it does not have
            check(name, ours.status != 200, ours.body[:300])
        else:
            compare(name, record, ours, ask)


def ask_a_real_one(inputs, kiln, base_s):
    with servers.running(Live) as server:
        print(f"Pyroscope was ready after {server.took:.0f} s", flush=True)
        fill(server.url(), inputs, base_s)
        deadline = time.time() + 60
        times = {"start": (base_s - 60) * 1000, "end": (base_s + 987) * 1000}
        while len(p.call(server.url(), p.QUERIER + "ProfileTypes", times).json.get("profileTypes", [])) < 6:
            if time.time() > deadline:
                raise RuntimeError("Pyroscope does not show what it took")
            time.sleep(0.5)
        live(kiln, base_s, server.url())


def main():
    if not RECORDED.is_dir():
        print("skipped: no recorded answers of Pyroscope")
        return 77
    inputs = json.loads((RECORDED / "inputs.json").read_text())
    base_s = (int(time.time()) - 1200) // 60 * 60
    with KilnServer() as server:
        url = f"http://127.0.0.1:{server.http}"
        fill(url, inputs, base_s)
        recorded(url, (base_s - inputs["base"]) * 1000)
        if servers.PYROSCOPE:
            ask_a_real_one(inputs, url, base_s)
    return exit_code()


if __name__ == "__main__":
    sys.exit(main())
