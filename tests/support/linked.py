# SPDX-License-Identifier: Apache-2.0
"""Samples of a recording with the spans they are linked to.

    for sample in linked_samples(path):             # tests/host/programs/spans.c knows the truth
        sample.names, sample.thread, sample.span    # leaf first; "" is no span
"""
import collections
import json
import os
import subprocess

KILN = os.environ.get("KILN", "build/kiln")

Sample = collections.namedtuple("Sample", "names attributes trace span value type pid")


class _Dictionary:
    def __init__(self, tables):
        self.strings = tables.get("stringTable", [])
        self.tables = tables

    def attributes(self, indices):
        found = {}
        for index in indices or []:
            entry = self.tables["attributeTable"][index]
            found[self.strings[entry.get("keyStrindex", 0)]] = next(iter(entry.get("value", {}).values()), None)
        return found

    def names(self, stack):
        names = []
        for location in self.tables["stackTable"][stack].get("locationIndices", []):
            for line in self.tables["locationTable"][location].get("lines", []):
                function = self.tables["functionTable"][line.get("functionIndex", 0)]
                names.append(self.strings[function.get("nameStrindex", 0)])
        return names


def linked_samples(path):
    """All samples of a file."""
    done = subprocess.run([KILN, "convert", path, "--to", "otlp-json"], capture_output=True, text=True, check=True)
    data = json.loads(done.stdout)
    dictionary = _Dictionary(data["dictionary"])
    links = data["dictionary"].get("linkTable", [{}])
    found = []
    for resource in data["resourceProfiles"]:
        facts = {item["key"]: next(iter(item["value"].values()), None)
                 for item in resource.get("resource", {}).get("attributes", [])}
        for profile in (p for scope in resource["scopeProfiles"] for p in scope["profiles"]):
            kind = dictionary.strings[profile.get("sampleType", {}).get("typeStrindex", 0)]
            for sample in profile["samples"]:
                link = links[sample.get("linkIndex", 0)]
                found.append(Sample(dictionary.names(sample.get("stackIndex", 0)),
                                    dictionary.attributes(sample.get("attributeIndices")), link.get("traceId", ""),
                                    link.get("spanId", ""), sum(map(int, sample.get("values", ["1"]))), kind,
                                    int(facts.get("process.pid", 0))))
    return found


class Links:
    """How often samples are linked as the truth says: `truth(sample)` is the span, "" for none, None: not known."""

    def __init__(self, samples, truth):
        self.right = self.missing = self.wrong = self.outside = 0
        self.examples = []
        for sample in samples:
            span = truth(sample)
            if span is None:
                continue
            if span != sample.span and sample.span:
                self.wrong += sample.value
                self.examples.append((span, sample))
            elif not span:
                self.outside += sample.value
            elif sample.span:
                self.right += sample.value
            else:
                self.missing += sample.value

    @property
    def share(self):
        return self.right / max(self.right + self.missing, 1)

    def __str__(self):
        return (f"{self.right} of {self.right + self.missing} linked ({self.share:.1%}), {self.outside} outside, "
                f"{self.wrong} wrong")
