# SPDX-License-Identifier: Apache-2.0
"""Profiles drawn as text, as OTLP requests.

    request = Drawn()
    request.profile({"service.name": "shop"}, at_ns, '''
        main;serve;parse 30
        main;serve;draw  10 @ 0af7651916cd43dd8448eb211c80319c/b7ad6b7169203331
        main;serve;read  10 # thread.state=blocked wait.reason=socket
    ''')
    request.send(server)

A line is a stack from its root, how often it was seen, behind @ the trace and span that it ran under, and behind # its attributes.  A profile is of CPU time
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
        line, _, attributes = line.partition("#")
        line, _, link = line.partition("@")
        text, count = line.rsplit(None, 1)
        sample = {"stackIndex": self.stack(text.strip()), "values": [str(int(count) * period)]}
        if link:
            trace, span = link.strip().split("/")
            sample["linkIndex"] = self.entry("link", {"traceId": trace, "spanId": span})
        if attributes:
            sample["attributeIndices"] = [self.attribute(*pair.split("=")) for pair in attributes.split()]
        return sample

    def attribute(self, key, text):
        return self.entry("attribute", {"keyStrindex": self.string(key), "value": {"stringValue": text}})

    def waits(self, resource, at_ns, text, seconds=10):
        """Adds time off processors, in milliseconds."""
        self.profile(resource, at_ns, text, seconds, ("off_cpu", "nanoseconds"), 1_000_000)
        profile = self.resources[-1]["scopeProfiles"][0]["profiles"][0]
        del profile["periodType"], profile["period"]

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
