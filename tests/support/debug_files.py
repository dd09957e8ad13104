# SPDX-License-Identifier: Apache-2.0
"""Programs whose debug information was split off, and profiles of them that say addresses alone."""
import json
import pathlib
import re
import shutil
import struct
import subprocess
import time
import urllib.request

SOURCE = r"""
#include <stdio.h>
static volatile int sink;
static inline __attribute__((always_inline)) int innermost(int x)
{
    sink = x;
    return x * 3 + sink;
}
static inline __attribute__((always_inline)) int inner(int x)
{
    int y = innermost(x) ^ 5;
    sink += y;
    return y;
}
__attribute__((noinline)) int outer(int x)
{
    int sum = 0;
    for (int i = 0; i < x; i++)
        sum += inner(i);
    return sum;
}
__attribute__((noinline)) int plain(int x)
{
    sink = x;
    return x + sink;
}
int main(int argc, char **argv)
{
    (void)argv;
    printf("%d\n", outer(argc * 1000) + plain(argc));
    return 0;
}
"""
NEEDED = ("gcc", "objcopy", "strip", "eu-strip", "eu-addr2line", "readelf")


def lacking():
    """What is not installed of all this needs."""
    return [tool for tool in NEEDED if not shutil.which(tool)]


def run(*words):
    return subprocess.run([str(w) for w in words], check=True, capture_output=True, text=True).stdout


class Program:
    """folder/NAME (stripped), NAME.full, NAME.debug."""

    def __init__(self, folder, name="shop", flags=("-O2",), compiler="gcc", split="objcopy"):
        folder = pathlib.Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        source = folder / f"{name}.c"
        source.write_text(SOURCE + f"const char made_for[] = \"{name} {' '.join(flags)} {split}\";\n")
        self.path, self.full, self.debug = folder / name, folder / f"{name}.full", folder / f"{name}.debug"
        run(compiler, "-g", *flags, "-Wl,--build-id=sha1", "-o", self.full, source)
        if split == "objcopy":
            run("objcopy", "--only-keep-debug", "--compress-debug-sections", self.full, self.debug)
            run("strip", "-o", self.path, self.full)
        else:
            run("eu-strip", "-f", self.debug, "-o", self.path, self.full)
        self.build_id = re.search(r"Build ID: (\w+)", run("readelf", "-n", self.full)).group(1)
        self.segment = self._segment()

    def _segment(self):
        """Offset, address and size of the code."""
        data = self.path.read_bytes()
        at, = struct.unpack_from("<Q", data, 32)
        size, n = struct.unpack_from("<HH", data, 54)
        for i in range(n):
            kind, flags, offset, address, _, file_size = struct.unpack_from("<IIQQQQ", data, at + i * size)
            if kind == 1 and flags & 1 and file_size:
                return offset, address, file_size
        raise RuntimeError("no code")

    def addresses(self, function):
        """Of every instruction of a function; of objdump's, so that one is as good as another."""
        text = run("objdump", "-d", "--no-show-raw-insn", f"--disassemble={function}", self.full)
        return [int(a, 16) for a in re.findall(r"^\s+([0-9a-f]+):\t", text, re.M)]

    def expected(self, addresses):
        """{address: [(function, file, line), ...] innermost first}, as elfutils has it."""
        said = {}
        for a in addresses:
            lines = run("eu-addr2line", "-f", "-i", "-e", self.full, hex(a)).split("\n")
            frames = []
            for function, place in zip(lines[0::2], lines[1::2]):
                file, line = place.split(":")[:2]
                frames.append((function.split(" ")[0], file, int(line)))
            said[a] = frames
        return said


def small_elf(build_id, code=True, bulk=b""):
    """An ELF file of a build id, made here: an executable, or what looks like its debug file."""
    note = struct.pack("<III4s", 4, len(build_id) // 2, 3, b"GNU") + bytes.fromhex(build_id)
    names = b"\0.note.gnu.build-id\0.text\0.debug_info\0.shstrtab\0"
    parts = [(".note.gnu.build-id", 7, 2, note), (".text", 1 if code else 8, 6, b"\xc3" * 16),
             (".debug_info", 1, 0, b"x" * 16 + bulk), (".shstrtab", 3, 0, names)]
    data, headers = bytearray(64), bytearray(64)
    for name, kind, flags, content in parts:
        headers += struct.pack("<IIQQQQIIQQ", names.index(name.encode()), kind, flags, 0, len(data), len(content), 0, 0, 1, 0)
        data += content if kind != 8 else b""
    data += b"\0" * (-len(data) % 8)
    struct.pack_into("<16sHHIQQQIHHHHHH", data, 0, b"\x7fELF\2\1\1", 3, 62, 1, 0, 0, len(data), 0, 64, 56, 0, 64, len(parts) + 1, len(parts))
    return bytes(data + headers)


class Invented:
    """Enough of a Program for profile()."""

    def __init__(self, build_id, name="invented"):
        self.build_id, self.path, self.segment = build_id, pathlib.Path(name), (4096, 4096, 65536)


def profile(programs, service, at=None):
    """OTLP/JSON: one sample for each address of [(program, addresses)], without any name."""
    at = at or time.time() - 60
    strings = ["", "cpu", "nanoseconds", "process.executable.build_id.gnu"]
    mappings, attributes, locations, stacks = [{}], [{}], [{}], [{}]
    for program, addresses in programs:
        offset, address, size = program.segment
        attributes.append({"keyStrindex": 3, "value": {"stringValue": program.build_id}})
        strings.append(program.path.name)
        mappings.append({"memoryStart": str(address), "memoryLimit": str(address + size), "fileOffset": str(offset),
                         "filenameStrindex": len(strings) - 1, "attributeIndices": [len(attributes) - 1]})
        for a in addresses:
            locations.append({"mappingIndex": len(mappings) - 1, "address": str(a)})
            stacks.append({"locationIndices": [len(locations) - 1]})
    samples = [{"stackIndex": i, "values": ["10000000"]} for i in range(1, len(stacks))]
    return {"resourceProfiles": [{
        "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": service}}]},
        "scopeProfiles": [{"profiles": [{
            "sampleType": {"typeStrindex": 1, "unitStrindex": 2}, "periodType": {"typeStrindex": 1, "unitStrindex": 2},
            "period": "10000000", "timeUnixNano": str(int(at * 1e9)), "durationNano": "10000000000", "samples": samples}]}]}],
            "dictionary": {"mappingTable": mappings, "attributeTable": attributes, "stringTable": strings, "functionTable": [{}],
                           "locationTable": locations, "stackTable": stacks, "linkTable": [{}]}}


def send(server, body, tenant=None):
    headers = {"Content-Type": "application/json"} | ({"X-Scope-OrgID": tenant} if tenant else {})
    request = urllib.request.Request(f"http://127.0.0.1:{server.http}/v1development/profiles", data=json.dumps(body).encode(), headers=headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert answer.status == 200, answer.status


def named(server, service, tenant=None):
    """{address of the file: [(function, file, line), ...] innermost first} of what the store has now."""
    headers = {"X-Scope-OrgID": tenant} if tenant else {}
    query = urllib.request.quote(f'process_cpu:cpu:nanoseconds{{service_name="{service}"}}')
    request = urllib.request.Request(f"http://127.0.0.1:{server.http}/api/v1/query?query={query}&from=now-1h&format=otlp-json", headers=headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        said = json.load(answer)["dictionary"]
    strings, functions = said["stringTable"], said["functionTable"]
    found = {}
    for location in said["locationTable"][1:]:
        mapping = said["mappingTable"][location.get("mappingIndex", 0)]
        place = int(location.get("address", 0)) - int(mapping.get("memoryStart", 0)) + int(mapping.get("fileOffset", 0))
        found[place] = [(strings[functions[line["functionIndex"]].get("nameStrindex", 0)],
                         strings[functions[line["functionIndex"]].get("filenameStrindex", 0)], int(line.get("line", 0)))
                        for line in location.get("lines", [])]
    return found
