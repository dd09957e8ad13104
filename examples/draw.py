#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the example profiles, in pprof's format, from the drawing in checkout.txt."""

import gzip
import pathlib
import re

HERE = pathlib.Path(__file__).parent
ROOTS = {"go/": "/usr/local/go/src/", "app/": "/src/checkout/", "mod/": "/go/pkg/mod/"}
START_NS = 1763200800 * 10**9
DURATION_NS = 30 * 10**9
PERIOD_NS = 10 * 10**6
OBJECT_BYTES = 128
TYPES = [("samples", "count"), ("cpu", "nanoseconds"), ("alloc_objects", "count"),
         ("alloc_space", "bytes")]


def varint(n):
    out = bytearray()
    while n >= 0x80:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


def field(number, value):
    """One protobuf field: an integer, bytes, or a packed list of integers."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value) if value else b""
    if isinstance(value, list):
        value = b"".join(map(varint, value))
    return varint(number << 3 | 2) + varint(len(value)) + value


class Table:
    """Entries once each, numbered in the order of arrival."""

    def __init__(self, first):
        self.numbers = {}
        self.first = first

    def add(self, entry):
        return self.numbers.setdefault(entry, len(self.numbers) + self.first)


def draw(version):
    strings, functions, locations = Table(0), Table(1), Table(1)
    strings.add("")
    samples, path, label = [], [], None

    def location(lines):
        numbered = []
        for name, file, line in lines:
            function = functions.add((strings.add(name), strings.add(file)))
            numbered.append((function, line))
        return locations.add(tuple(numbered))

    def add_sample(cpu, mb):
        stack, lines = [], []
        for name, file, line, inlined in reversed(path):
            lines.append((name, file, line))
            if not inlined:
                stack.append(location(lines))
                lines = []
        values = [cpu, cpu * PERIOD_NS, mb * 2**20 // OBJECT_BYTES, mb * 2**20]
        labels = field(1, strings.add(label[0])) + field(2, strings.add(label[1]))
        samples.append(field(1, stack) + field(2, values) + field(3, labels))

    for text in (HERE / "checkout.txt").read_text().splitlines():
        if not text or text.startswith("#"):
            continue
        if text.endswith(":"):
            label = text[:-1].split("=")
            continue
        *numbers, indent, plus, name, root, file, line = re.fullmatch(
            r" *(\S+) +(\S+) +(\S+) +(\S+)  ((?:  )*)(\+?)(\S+) (\w+/)(\S+):(\d+)", text).groups()
        counts = [0 if n == "." else int(n) for n in numbers]
        del path[len(indent) // 2:]
        path.append((name, ROOTS[root] + file, int(line), bool(plus)))
        cpu, mb = counts[version - 1], counts[version + 1]
        if cpu or mb:
            add_sample(cpu, mb)

    def value_type(kind, unit):
        return field(1, strings.add(kind)) + field(2, strings.add(unit))

    out = b"".join(field(1, value_type(*t)) for t in TYPES)
    out += b"".join(field(2, s) for s in samples)
    out += field(3, field(1, 1) + field(2, 0x400000) + field(3, 0xA00000)
                 + field(5, strings.add("/usr/local/bin/checkout"))
                 + field(6, strings.add(f"c4ec0074{version:08d}")) + b"".join(
                     field(n, 1) for n in (7, 8, 9, 10)))
    for lines, number in locations.numbers.items():
        out += field(4, field(1, number) + field(2, 1) + field(3, 0x400000 + 64 * number)
                     + b"".join(field(4, field(1, f) + field(2, n)) for f, n in lines))
    for (name, file), number in functions.numbers.items():
        out += field(5, field(1, number) + field(2, name) + field(3, name) + field(4, file))
    tail = field(9, START_NS + (version - 1) * 3600 * 10**9) + field(10, DURATION_NS)
    tail += field(11, value_type("cpu", "nanoseconds")) + field(12, PERIOD_NS)
    tail += field(13, [strings.add(f"checkout version {version}")])
    tail += field(14, strings.add("cpu"))
    out += b"".join(field(6, s.encode()) for s in strings.numbers) + tail
    return out


if __name__ == "__main__":
    for version, name in ((1, "checkout.pb.gz"), (2, "checkout-v2.pb.gz")):
        (HERE / name).write_bytes(gzip.compress(draw(version), 9, mtime=0))
