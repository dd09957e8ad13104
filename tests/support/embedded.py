# SPDX-License-Identifier: Apache-2.0
"""A program with its source embedded (clang -gembed-source), and profiles that name its lines.

    program = Program(folder)             # None where there is no clang
    program.path, program.debug           # the program; its debug information alone
    program.profile("hot", {6: 30, 7: 10})  # OTLP JSON: samples by line, in a mapping with its build id
"""
import json
import pathlib
import re
import shutil
import subprocess

SOURCE = """#include <stdint.h>

/* What is hot. */
uint64_t hot(uint64_t n)
{
    for (uint64_t i = 0; i < 1000; i++)
        n = n * 31 + i;
    return n;
}

int main(void)
{
    return (int)hot(7);
}
"""


class Program:
    def __init__(self, folder):
        """The source is gone once it is compiled."""
        self.folder = pathlib.Path(folder)
        self.source = self.folder / "built-here" / "hot.c"
        self.path, self.debug, self.stripped = (self.folder / name for name in ("hot", "hot.debug", "hot.stripped"))
        self.source.parent.mkdir()
        self.source.write_text(SOURCE)
        subprocess.run(["clang", "-O1", "-gdwarf-5", "-gembed-source", "-Wl,--build-id", self.source, "-o", self.path],
                       check=True)
        shutil.rmtree(self.source.parent)
        subprocess.run(["objcopy", "--only-keep-debug", self.path, self.debug], check=True)
        subprocess.run(["strip", "-o", self.stripped, self.path], check=True)
        notes = subprocess.run(["readelf", "-n", self.path], stdout=subprocess.PIPE, text=True, check=True).stdout
        self.build_id = re.search(r"Build ID: (\w+)", notes)[1]

    def profile(self, function, lines, at_ns=1_700_000_000_000_000_000, build_id=None):
        strings = ["", "cpu", "nanoseconds", function, str(self.source), str(self.path), "process.executable.build_id.gnu"]
        pair = {"typeStrindex": 1, "unitStrindex": 2}
        places = [{"mappingIndex": 1, "address": str(0x1000 + line),
                   "lines": [{"functionIndex": 1, "line": str(line)}]} for line in lines]
        samples = [{"stackIndex": i + 1, "values": [str(value)]} for i, value in enumerate(lines.values())]
        dictionary = {
            "stringTable": strings,
            "functionTable": [{}, {"nameStrindex": 3, "filenameStrindex": 4}],
            "attributeTable": [{}, {"keyStrindex": 6, "value": {"stringValue": build_id or self.build_id}}],
            "mappingTable": [{}, {"memoryStart": "4096", "memoryLimit": "65536", "filenameStrindex": 5, "attributeIndices": [1]}],
            "locationTable": [{}, *places],
            "stackTable": [{}, *({"locationIndices": [i + 1]} for i in range(len(places)))],
            "linkTable": [{}]}
        profile = {"sampleType": pair, "periodType": pair, "period": "1", "timeUnixNano": str(at_ns),
                   "durationNano": "1000000000", "samples": samples}
        resource = {"attributes": [{"key": "service.name", "value": {"stringValue": "embedded"}}]}
        return json.dumps({"resourceProfiles": [{"resource": resource, "scopeProfiles": [{"profiles": [profile]}]}],
                           "dictionary": dictionary})


def can_embed():
    return all(map(shutil.which, ("clang", "objcopy", "strip", "readelf")))
