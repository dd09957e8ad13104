#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The processors `transform`, `filter` and `resource` of `kiln collector` beside those of OpenTelemetry's: the same profiles through
both, with the same settings, become the same, field by field.  Its `attributes` and `redaction` do not take profiles, and none looks at samples.

$OTELCOL_CONTRIB names a Collector with them; "make" has the builder make one, which takes minutes: `make soak` does.
"""
import contextlib
import http.server
import json
import os
import pathlib
import sys
import tempfile
import threading
import urllib.error

HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE / "otlp"), str(HERE.parent / "support")]
import peers  # noqa: E402
from checks import check, exit_code  # noqa: E402
from collector_test import kiln_collector, post, running  # noqa: E402
from ingest_test import made_collector  # noqa: E402
from ports import free_ports  # noqa: E402

BUILDER = "go.opentelemetry.io/collector/cmd/builder@v0.159.0"

# ---- what is sent ----

RESOURCES = (
    ({"service.name": "pay", "host.name": "a-1", "count": 3, "ratio": 0.5, "on": True, "tags": ["x", "y"], "internal.id": "42",
      "internal.zone": "z", "deep": {"k": {"n": 1}}}, "https://example.com/1"),
    ({"service.name": "shop", "host.name": "b-2"}, ""),
)
SCOPES = (("lib", "1.2.3", {"scope.key": "s"}), ("other", "", {}))
SAMPLES = (
    (("main", "serve"), [10], [], {"thread.name": "worker-17", "cpu": 3}),
    (("main", "idle"), [20], [], {"thread.name": "idle-1", "wait": 1.5, "blocked": True}),
    (("main", "gc"), [1, 2], [100, 200], {}),
)


class Maker:
    """A request, whose dictionary grows as it is made."""

    def __init__(self, messages):
        self.request = messages.ExportProfilesServiceRequest()
        self.tables = self.request.dictionary
        self.indices = {}
        self.string("")
        for table in ("mapping", "location", "function", "link", "attribute", "stack"):
            getattr(self.tables, f"{table}_table").add()

    def string(self, text):
        if ("string", text) not in self.indices:
            self.indices["string", text] = len(self.tables.string_table)
            self.tables.string_table.append(text)
        return self.indices["string", text]

    def entry(self, table, key, fill):
        rows = getattr(self.tables, f"{table}_table")
        if (table, key) not in self.indices:
            self.indices[table, key] = len(rows)
            fill(rows.add())
        return self.indices[table, key]

    def attribute(self, key, value):
        def fill(row):
            row.key_strindex = self.string(key)
            set_value(row.value, value)
        return self.entry("attribute", (key, repr(value)), fill)

    def location(self, name):
        function = self.entry("function", name, lambda row: setattr(row, "name_strindex", self.string(name)))
        return self.entry("location", name, lambda row: row.lines.add(function_index=function))

    def stack(self, frames):
        return self.entry("stack", frames, lambda row: row.location_indices.extend(map(self.location, reversed(frames))))

    def profile(self, scope, number):
        profile = scope.profiles.add(time_unix_nano=1_700_000_000_000_000_000 + number, duration_nano=10**10, period=100 + number,
                                     profile_id=bytes([number + 1] * 16), original_payload_format="pprof",
                                     original_payload=b"raw")
        profile.sample_type.type_strindex, profile.sample_type.unit_strindex = self.string("cpu"), self.string("nanoseconds")
        profile.period_type.type_strindex, profile.period_type.unit_strindex = self.string("tick"), self.string("count")
        profile.attribute_indices.extend([self.attribute("kind", f"k{number}"), self.attribute("number", number)])
        for frames, values, times, attributes in SAMPLES:
            profile.samples.add(stack_index=self.stack(frames), values=values, timestamps_unix_nano=times,
                                attribute_indices=[self.attribute(*pair) for pair in attributes.items()])

    def make(self):
        number = 0
        for attributes, schema in RESOURCES:
            resource = self.request.resource_profiles.add(schema_url=schema)
            for key, value in attributes.items():
                set_value(resource.resource.attributes.add(key=key).value, value)
            for name, version, own in SCOPES:
                scope = resource.scope_profiles.add()
                scope.scope.name, scope.scope.version = name, version
                for key, value in own.items():
                    set_value(scope.scope.attributes.add(key=key).value, value)
                self.profile(scope, number)
                number += 1
        return self.request.SerializeToString()


def set_value(into, value):
    if isinstance(value, dict):
        into.kvlist_value.SetInParent()
        for key, inner in value.items():
            set_value(into.kvlist_value.values.add(key=key).value, inner)
    elif isinstance(value, list):
        into.array_value.SetInParent()
        for inner in value:
            set_value(into.array_value.values.add(), inner)
    else:
        kind = {bool: "bool_value", int: "int_value", float: "double_value", str: "string_value"}[type(value)]
        setattr(into, kind, value)


# ---- what comes out ----

def value_of(value):
    kind = value.WhichOneof("value")
    if kind == "kvlist_value":
        return {pair.key: value_of(pair.value) for pair in value.kvlist_value.values}
    if kind == "array_value":
        return [value_of(inner) for inner in value.array_value.values]
    return f"{kind}: {getattr(value, kind)}" if kind else None


def told(pairs):
    return sorted((pair.key, json.dumps(value_of(pair.value), sort_keys=True)) for pair in pairs)


class Reader:
    """All that a request says, without indices."""

    def __init__(self, request):
        self.request, self.tables = request, request.dictionary

    def string(self, index):
        return self.tables.string_table[index]

    def attributes(self, indices):
        rows = [self.tables.attribute_table[index] for index in indices]
        return sorted((self.string(row.key_strindex), json.dumps(value_of(row.value), sort_keys=True)) for row in rows)

    def sample(self, sample):
        locations = [self.tables.location_table[index] for index in self.tables.stack_table[sample.stack_index].location_indices]
        names = [self.string(self.tables.function_table[line.function_index].name_strindex) for at in locations for line in at.lines]
        return {"stack": names, "values": list(sample.values), "timestamps": list(sample.timestamps_unix_nano),
                "attributes": self.attributes(sample.attribute_indices)}

    def type(self, kind):
        return self.string(kind.type_strindex), self.string(kind.unit_strindex)

    def profile(self, profile):
        plain = ("time_unix_nano", "duration_nano", "period", "profile_id", "dropped_attributes_count", "original_payload_format",
                 "original_payload")
        return {name: getattr(profile, name) for name in plain} | {
            "sample_type": self.type(profile.sample_type), "period_type": self.type(profile.period_type),
            "attributes": self.attributes(profile.attribute_indices), "samples": list(map(self.sample, profile.samples))}

    def scope(self, part):
        return {"name": part.scope.name, "version": part.scope.version, "attributes": told(part.scope.attributes),
                "dropped": part.scope.dropped_attributes_count, "schema_url": part.schema_url,
                "profiles": list(map(self.profile, part.profiles))}

    def all(self):
        return [{"attributes": told(part.resource.attributes), "dropped": part.resource.dropped_attributes_count,
                 "schema_url": part.schema_url, "scopes": list(map(self.scope, part.scope_profiles))}
                for part in self.request.resource_profiles]


def differences(ours, theirs, place=""):
    """Where two of these differ, as lines."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return [line for key in ours for line in differences(ours[key], theirs[key], f"{place}.{key}")]
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs) and not place.endswith("attributes"):
        return [line for i, pair in enumerate(zip(ours, theirs)) for line in differences(*pair, f"{place}[{i}]")]
    return [] if ours == theirs else [f"{place}: {ours} where the Collector has {theirs}"]


# ---- between them ----

class Sink:
    """Keeps what comes to /NUMBER/..."""

    def __init__(self):
        self.got = {}
        sink = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                sink.got.setdefault(int(self.path.split("/")[1]), []).append(body)
                self.send_response(200)
                self.send_header("Content-Type", "application/x-protobuf")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


def config(cases, ports, sink):
    """A pipeline for each case: a port, the processor, and a path of the sink."""
    numbers = range(len(cases))
    return {
        "receivers": {f"otlp/{i}": {"protocols": {"http": {"endpoint": f"127.0.0.1:{ports[i]}"}}} for i in numbers},
        "processors": {f"{cases[i][0]}/{i}": cases[i][1] for i in numbers},
        "exporters": {f"otlp_http/{i}": {
            "endpoint": f"http://127.0.0.1:{sink.server.server_address[1]}/{i}", "compression": "none",
            "sending_queue": {"enabled": False}, "retry_on_failure": {"enabled": False}} for i in numbers},
        "service": {"telemetry": {"metrics": {"level": "none"}}, "pipelines": {
            f"profiles/{i}": {"receivers": [f"otlp/{i}"], "processors": [f"{cases[i][0]}/{i}"], "exporters": [f"otlp_http/{i}"]}
            for i in numbers}},
    }


def results(program, folder, cases, request, messages):
    """What each case becomes: a list of requests, or the status that was answered."""
    ports = free_ports(len(cases))
    with Sink() as sink, contextlib.ExitStack() as stack:
        path = folder / f"{ports[0]}.yaml"
        path.write_text(json.dumps(config(cases, ports, sink)))
        names = {f"PORT_{i}": port for i, port in enumerate(ports)}
        stack.enter_context(running(program, folder, names, tuple(names), "--config", str(path)))
        refused = {}
        for number, port in enumerate(ports):
            try:
                post(port, request)
            except urllib.error.HTTPError as error:
                refused[number] = f"refused with {error.code}"
        return [refused.get(i) or [resource for body in sink.got.get(i, []) for resource in
                                   Reader(messages.ExportProfilesServiceRequest.FromString(body)).all()]
                for i in range(len(cases))]


# ---- the cases ----

def transform(*statements, **more):
    return "transform", {"profile_statements": list(statements), **more}


def group(context, *statements, **more):
    return {"context": context, "statements": list(statements), **more}


def filtered(*conditions, **more):
    return "filter", {"profile_conditions": list(conditions), **more}


def resource(*actions):
    return "resource", {"attributes": list(actions)}


CASES = {
    "set an attribute of resources": transform('set(resource.attributes["new"], "v")'),
    "set where": transform('set(resource.attributes["team"], "payments") where resource.attributes["service.name"] == "pay"'),
    "set from another": transform('set(resource.attributes["copy"], resource.attributes["tags"])'),
    "set from what is not there": transform('set(resource.attributes["host.name"], resource.attributes["none"])'),
    "set deep": transform('set(resource.attributes["deep"]["k"]["n"], 7)', 'set(resource.attributes["deep"]["m"], true)'),
    "set an item of a list": transform('set(resource.attributes["tags"][1], "other") where resource.attributes["tags"] != nil'),
    "numbers": transform('set(resource.attributes["sum"], resource.attributes["count"] + 4 * 2) where resource.attributes["count"] > 2'),
    "doubles": transform('set(resource.attributes["half"], resource.attributes["ratio"] / 2.0) where resource.attributes["ratio"] < 1'),
    "delete a key": transform('delete_key(resource.attributes, "host.name")'),
    "delete keys": transform('delete_matching_keys(resource.attributes, "^internal")'),
    "keep keys": transform('keep_keys(resource.attributes, ["service.name", "on"])'),
    "keep matching keys": transform('keep_matching_keys(resource.attributes, "name$$")'),
    "replace a pattern": transform('replace_pattern(resource.attributes["host.name"], "-[0-9]+$$", "")'),
    "replace with groups": transform('replace_pattern(resource.attributes["host.name"], "^([a-z])-([0-9])$$", "$${2}_$${1}")'),
    "replace all values": transform('replace_all_patterns(resource.attributes, "value", "[0-9]", "#")'),
    "replace all keys": transform('replace_all_patterns(resource.attributes, "key", "^internal", "own")'),
    "limit": transform('limit(resource.attributes, 2, ["service.name"])'),
    "limit without first ones": transform('limit(resource.attributes, 3, [])'),
    "truncate": transform('truncate_all(resource.attributes, 2)'),
    "merge upsert": transform('merge_maps(resource.attributes, resource.attributes["deep"], "upsert") where resource.attributes["deep"] != nil'),
    "merge insert": transform('merge_maps(resource.attributes, scope.attributes, "insert")'),
    "scope fields": transform('set(scope.name, "renamed") where scope.version == "1.2.3"', 'set(scope.version, "9")'),
    "scope attributes": transform('set(scope.attributes["a"], 1)', 'delete_key(scope.attributes, "scope.key")'),
    "schema": transform('set(resource.schema_url, "s")', 'set(resource.dropped_attributes_count, 3)'),
    "profile fields": transform('set(profile.period, 5)', 'set(profile.duration_unix_nano, 77)', 'set(profile.time_unix_nano, 99)',
                                'set(profile.original_payload_format, "jfr")', 'set(profile.dropped_attributes_count, 2)'),
    "profile types": transform('set(profile.sample_type.type, "wall")', 'set(profile.sample_type.unit, "ms")',
                               'set(profile.period_type.type, "alarm")'),
    "profile attributes": transform('set(profile.attributes["kind"], "same")', 'set(profile.attributes["added"], profile.period)'),
    "profile id": transform('set(profile.attributes["id"], profile.profile_id.string)',
                            'set(profile.profile_id, ProfileID(0x00112233445566778899aabbccddeeff)) where profile.period == 101'),
    "profile where number": transform('set(profile.attributes["big"], true) where profile.attributes["number"] >= 2'),
    "several contexts": transform('set(resource.attributes["r"], 1)', 'set(scope.attributes["s"], 2)', 'set(profile.attributes["p"], 3)'),
    "converters of text": transform(
        'set(resource.attributes["a"], Concat([resource.attributes["service.name"], resource.attributes["count"], "z"], "-"))',
        'set(resource.attributes["b"], ConvertCase(resource.attributes["service.name"], "upper"))',
        'set(resource.attributes["c"], Substring(resource.attributes["service.name"], 1, 2))',
        'set(resource.attributes["d"], SHA256(resource.attributes["host.name"]))',
        'set(resource.attributes["e"], Len(resource.attributes["service.name"]))'),
    "converters of case": transform('set(resource.attributes["a"], ToUpperCase(resource.attributes["service.name"]))',
                                    'set(resource.attributes["b"], ToLowerCase("ABC"))'),
    "converters of numbers": transform(
        'set(resource.attributes["a"], Int(resource.attributes["internal.id"]))', 'set(resource.attributes["b"], Double("1.5"))',
        'set(resource.attributes["c"], String(resource.attributes["ratio"]))', 'set(resource.attributes["d"], Int(resource.attributes["on"]))',
        'set(resource.attributes["e"], Int(2.9))', 'set(resource.attributes["f"], Double(resource.attributes["count"]))'),
    "converters of lists": transform('set(resource.attributes["a"], String(resource.attributes["tags"]))',
                                     'set(resource.attributes["b"], Len(resource.attributes["tags"]))',
                                     'set(resource.attributes["c"], [1, "x", true])'),
    "what things are": transform(
        'set(resource.attributes["a"], IsString(resource.attributes["service.name"]))', 'set(resource.attributes["b"], IsInt(resource.attributes["count"]))',
        'set(resource.attributes["c"], IsMap(resource.attributes["deep"]))', 'set(resource.attributes["d"], IsList(resource.attributes["tags"]))',
        'set(resource.attributes["e"], IsBool(resource.attributes["on"]))', 'set(resource.attributes["f"], IsDouble(resource.attributes["count"]))'),
    "prefixes": transform('set(resource.attributes["a"], HasPrefix(resource.attributes["host.name"], "a-"))',
                          'set(resource.attributes["b"], HasSuffix(resource.attributes["host.name"], "2"))'),
    "matching numbers": transform('set(resource.attributes["a"], "m") where IsMatch(resource.attributes["count"], "^3$$")',
                                  'set(resource.attributes["b"], "m") where IsMatch(resource.attributes["deep"], "k")'),
    "logic": transform('set(resource.attributes["a"], 1) where not (resource.attributes["on"] == true and resource.attributes["count"] < 3) '
                       'or resource.attributes["none"] != nil'),
    "comparing kinds": transform('set(resource.attributes["a"], 1) where resource.attributes["count"] == 3.0',
                                 'set(resource.attributes["b"], 1) where resource.attributes["count"] == "3"',
                                 'set(resource.attributes["c"], 1) where resource.attributes["service.name"] < "q"'),
    "cache": transform(group("profile", 'set(cache["x"], attributes["kind"])', 'set(attributes["y"], cache["x"])')),
    "an error is passed over": transform('set(resource.attributes["a"], Int(resource.attributes["service.name"]) + 1)',
                                         'set(resource.attributes["b"], "after")'),
    "an error refuses": transform('set(resource.attributes["a"], resource.attributes["service.name"] + 1)', error_mode="propagate"),
    "filter resources": filtered('resource.attributes["service.name"] == "shop"'),
    "filter scopes": filtered('scope.name == "other"'),
    "filter profiles": filtered('profile.attributes["number"] == 1'),
    "filter by two": filtered('profile.period == 100', 'profile.period == 103'),
    "filter all": filtered('profile.period > 0'),
    "filter, the older keys": ("filter", {"profiles": {"profile": ['attributes["kind"] == "k2"']}}),
    "resource insert, update, upsert": resource(
        {"key": "host.name", "value": "no", "action": "insert"}, {"key": "fresh", "value": 5, "action": "insert"},
        {"key": "count", "value": 1.25, "action": "update"}, {"key": "never", "value": "x", "action": "update"},
        {"key": "on", "value": False, "action": "upsert"}),
    "resource from another": resource({"key": "host.id", "from_attribute": "host.name", "action": "insert"},
                                      {"key": "from.list", "from_attribute": "tags", "action": "upsert"}),
    "resource delete": resource({"key": "host.name", "action": "delete"}, {"pattern": r"^internal\.", "action": "delete"}),
    "resource hash": resource({"key": "host.name", "action": "hash"}, {"key": "count", "action": "hash"}, {"key": "on", "action": "hash"},
                              {"key": "ratio", "action": "hash"}),
    "resource hash of lists and maps": resource({"key": "tags", "action": "hash"}, {"key": "deep", "action": "hash"}),
    "resource hash by pattern": resource({"pattern": "^internal", "action": "hash"}),
    "resource extract": resource({"key": "host.name", "pattern": "^(?P<letter>[a-z])-(?P<digit>[0-9])$$", "action": "extract"}),
    "resource convert": resource({"key": "internal.id", "converted_type": "int", "action": "convert"},
                                 {"key": "count", "converted_type": "string", "action": "convert"},
                                 {"key": "ratio", "converted_type": "int", "action": "convert"},
                                 {"key": "on", "converted_type": "int", "action": "convert"},
                                 {"key": "service.name", "converted_type": "double", "action": "convert"}),
    "calculating": transform('set(resource.attributes["a"], resource.attributes["count"] - 10)', 'set(resource.attributes["b"], 1 + 2 * 3 - 4)',
                             'set(resource.attributes["c"], (1 + 2) * 3)', 'set(resource.attributes["d"], resource.attributes["count"] / 2)'),
    "texts of lists and maps": transform(
        'set(resource.attributes["a"], Concat([resource.attributes["tags"], resource.attributes["deep"], resource.attributes["on"]], ","))',
        'set(resource.attributes["b"], String(resource.attributes["deep"]))', 'set(resource.attributes["c"], Len(resource.attributes["deep"]))'),
    "texts that are no numbers": transform('set(resource.attributes["a"], Int("x"))', 'set(resource.attributes["b"], Int("12"))',
                                           'set(resource.attributes["c"], Int("1.5"))'),
    "cases": transform(*(f'set(resource.attributes["{case}"], ConvertCase("some ThingHere_now-or", "{case}"))'
                         for case in ("upper", "lower", "snake", "camel"))),
    "times": transform('set(profile.attributes["a"], UnixNano(profile.time))', 'set(profile.attributes["b"], UnixMilli(profile.time))',
                       'set(profile.attributes["c"], UnixSeconds(profile.time))', 'set(profile.time, Unix(1700000001, 5))'),
    "nothing and nothing": transform('set(resource.attributes["host.name"], nil)', 'set(resource.attributes["a"], 1) where resource.attributes["none"] == nil',
                                     'set(resource.attributes["b"], 1) where resource.attributes["none"] < 3',
                                     'set(resource.attributes["c"], 1) where resource.attributes["none"] != 3'),
    "truths": transform('set(resource.attributes["a"], 1) where resource.attributes["on"] > false',
                        'set(resource.attributes["b"], 1) where resource.attributes["on"] == 1'),
    "maps are the same": transform('set(resource.attributes["a"], 1) where resource.attributes["deep"] == resource.attributes["deep"]'),
    "replacing in what is no text": transform('replace_pattern(resource.attributes["count"], "3", "4")', 'set(resource.attributes["z"], 1)'),
    "limit to none": transform('limit(resource.attributes, 0, [])'),
    "truncate to nothing": transform('truncate_all(resource.attributes, 0)'),
    "keep none": transform('keep_keys(resource.attributes, [])'),
    "keys of a map": transform('delete_key(resource.attributes["deep"]["k"], "n") where resource.attributes["deep"] != nil'),
    "all attributes": transform('set(profile.attributes, resource.attributes)'),
    "a number for a name": transform('set(scope.name, 5)', 'set(scope.version, "x")'),
    "a text for a number": transform('set(profile.period, "x")', 'set(profile.duration_unix_nano, 1)'),
    "conditions of a group": transform(group("profile", 'set(attributes["a"], 1)',
                                             conditions=['attributes["number"] == 1', 'attributes["number"] == 2'])),
    "a group of scopes": transform(group("scope", 'set(attributes["a"], name)', 'set(resource.attributes["b"], name)')),
    "filter by several contexts": filtered('resource.attributes["service.name"] == "pay" and scope.name == "lib"', 'profile.attributes["number"] == 3'),
    "filter what cannot be matched": filtered('IsMatch(profile.attributes["none"], "x")', 'profile.attributes["number"] == 0'),
    "resource, one after the other": resource({"key": "host.name", "action": "delete"}, {"key": "host.name", "value": "again", "action": "insert"},
                                              {"key": "copy", "from_attribute": "host.name", "action": "insert"}),
    "resource extract of what does not match": resource({"key": "host.name", "pattern": "^(?P<letter>q)", "action": "extract"},
                                                        {"key": "count", "pattern": "^(?P<digit>3)", "action": "extract"},
                                                        {"key": "x", "value": 1, "action": "insert"}),
}
CHANGE_NOTHING = {"set from what is not there"}
# What cannot be processed now never will be: whoever sent it is not to try again.
ON_PURPOSE = {"an error refuses": ("refused with 400", "refused with 503")}


def collector_with_processors():
    named = os.environ.get("OTELCOL_CONTRIB")
    return made_collector(HERE / "collector/contrib.yaml", BUILDER) if named == "make" else named


def main():
    contrib = collector_with_processors()
    if not contrib:
        print("skipped: OTELCOL_CONTRIB names no Collector with processors, and making one takes minutes")
        return 77
    peers.install_protobuf()
    from opentelemetry.proto.collector.profiles.v1development import profiles_service_pb2 as messages
    request, cases = Maker(messages).make(), list(CASES.values())
    with tempfile.TemporaryDirectory() as folder:
        programs = kiln_collector(), [contrib, "--feature-gates", "service.profilesSupport"]
        ours, theirs = (results(program, pathlib.Path(folder), cases, request, messages) for program in programs)
    unchanged = Reader(messages.ExportProfilesServiceRequest.FromString(request)).all()
    for name, one, other in zip(CASES, ours, theirs):
        check(f"{name}: the Collector changes something, or not", (other == unchanged) == (name in CHANGE_NOTHING))
        if name in ON_PURPOSE:
            check(f"{name}: not as the Collector's, on purpose", (one, other) == ON_PURPOSE[name], (one, other))
        else:
            check(f"{name}: the same as the Collector's", one == other, "\n  ".join(["", *differences(one, other)][:8]))
    return exit_code()


if __name__ == "__main__":
    sys.exit(main())
