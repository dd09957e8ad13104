# SPDX-License-Identifier: Apache-2.0
"""Profiles drawn as text, as OTLP requests.

    request = Drawn()
    request.profile({"service.name": "shop"}, at_ns, '''
        main;serve;parse 30
        main;serve;draw  10 @ 0af7651916cd43dd8448eb211c80319c/b7ad6b7169203331
    ''')
    request.send(server)

A line is a stack from its root, how often it was seen, and, behind @, the trace and span that it ran under.  A profile is of CPU time
unless it says otherwise: each observation counts one period.
"""
import json
import urllib.request

PERIOD_NS = 10_000_000


class Drawn:
    def __init__(self):
        self.tables = {name: {} for name in ("string", "function", "location", "stack", "attribute", "link")}
        self.string("")
        for name in ("function", "location", "stack", "attribute", "link"):
            self.entry(name, {})
        self.resources = []

    def entry(self, table, value):
        """The index of a value, which is added unless it is there."""
        return self.tables[table].setdefault(json.dumps(value, sort_keys=True), len(self.tables[table]))

    def string(self, text):
        return self.entry("string", text)

    def stack(self, text):
        frames = [self.entry("location", {"lines": [{"functionIndex": self.entry("function", {"nameStrindex": self.string(name)})}]})
                  for name in reversed(text.split(";"))]
        return self.entry("stack", {"locationIndices": frames})

    def sample(self, line, period):
        line, _, link = line.partition("@")
        text, count = line.rsplit(None, 1)
        sample = {"stackIndex": self.stack(text.strip()), "values": [str(int(count) * period)]}
        if link:
            trace, span = link.strip().split("/")
            sample["linkIndex"] = self.entry("link", {"traceId": trace, "spanId": span})
        return sample

    def profile(self, resource, at_ns, text, seconds=10, kind=("cpu", "nanoseconds"), period_ns=PERIOD_NS):
        """Adds a profile of a resource with these attributes."""
        pair = {"typeStrindex": self.string(kind[0]), "unitStrindex": self.string(kind[1])}
        samples = [self.sample(line, period_ns) for line in text.strip().splitlines()]
        profile = {"sampleType": pair, "periodType": pair, "period": str(period_ns), "timeUnixNano": str(at_ns),
                   "durationNano": str(int(seconds * 1e9)), "samples": samples}
        attributes = [{"key": key, "value": {"stringValue": value}} for key, value in resource.items()]
        self.resources.append({"resource": {"attributes": attributes}, "scopeProfiles": [{"profiles": [profile]}]})

    def json(self):
        tables = {f"{name}Table": [json.loads(value) for value in table] for name, table in self.tables.items()}
        return json.dumps({"resourceProfiles": self.resources, "dictionary": tables | {"mappingTable": [{}]}}).encode()

    def send(self, server):
        call = urllib.request.Request(f"http://127.0.0.1:{server.http}/v1development/profiles", self.json(),
                                      {"Content-Type": "application/json"})
        with urllib.request.urlopen(call, timeout=60) as answer:
            said = json.loads(answer.read() or b"{}")
        if said:
            raise RuntimeError(f"not all was taken: {said}")
