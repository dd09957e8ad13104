# SPDX-License-Identifier: Apache-2.0
"""What speaks Pyroscope's API in tests: calls, profiles with another time, and flame graphs taken apart.

    answer = call(url, "/querier.v1.QuerierService/LabelNames", {"start": ..., "end": ...})
    answer.status, answer.json
    tree(answer.json["flamegraph"])       # {("main", "parse"): (total, self)}
    functions(tree)                       # {"parse": (total, self)}, recursion counted once
"""
import base64
import gzip
import json
import struct
import urllib.error
import urllib.request
from types import SimpleNamespace

QUERIER = "/querier.v1.QuerierService/"


def call(url, path, message=None, headers=(), timeout=120):
    """POST of a message in JSON, or GET without one."""
    data = None if message is None else json.dumps(message).encode()
    request = urllib.request.Request(url + path, data, dict(headers))
    if data is not None:
        request.add_header("Content-Type", "application/json")
    try:
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            status, body, kind = answer.status, answer.read(), answer.headers.get("Content-Type", "")
    except urllib.error.HTTPError as error:
        status, body, kind = error.code, error.read(), error.headers.get("Content-Type", "")
    parsed = json.loads(body) if kind.startswith("application/json") and body else None
    return SimpleNamespace(status=status, body=body, type=kind, json=parsed)


# ---- protobuf, as far as a time in a pprof goes ----

def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7f) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def put_varint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7f | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


def fields(data):
    """(number, wire type, value, bytes as they stand) of each field of a message."""
    at = 0
    while at < len(data):
        start = at
        tag, at = varint(data, at)
        kind = tag & 7
        if kind == 0:
            value, at = varint(data, at)
        elif kind == 1:
            value, at = data[at:at + 8], at + 8
        elif kind == 5:
            value, at = data[at:at + 4], at + 4
        else:
            n, at = varint(data, at)
            value, at = data[at:at + n], at + n
        yield tag >> 3, kind, value, data[start:at]


def at_time(profile, time_ns):
    """A pprof, gzip or not, with another time_nanos (field 9); gzip."""
    raw = gzip.decompress(profile) if profile[:2] == b"\x1f\x8b" else profile
    rest = b"".join(whole for number, _, _, whole in fields(raw) if number != 9)
    return gzip.compress(rest + put_varint(9 << 3) + put_varint(time_ns), 1)


# ---- what Pyroscope does to Go's profiles ----

SHAPE = "[go.shape."
TAIL, OVERLAP = 24, 16


def without_shapes(name):
    """A function without its type parameters: x[go.shape.int].f is x.f."""
    at = name.find(SHAPE)
    while at >= 0:
        depth, end = 0, at
        while end < len(name):
            depth += {"[": 1, "]": -1}.get(name[end], 0)
            end += 1
            if depth == 0:
                break
        if depth:
            break
        name = name[:at] + name[end:]
        at = name.find(SHAPE, at)
    return name


def missing_roots(stacks):
    """What Pyroscope would add at the root of each stack (leaf first, numbers of locations).

    Go cuts deep stacks.  Stacks with the same outer 24 frames are a group; where the outer 16 of one are found further
    inside of another, what the other has outside of them is taken for what was cut, and so on from group to group.
    """
    order = sorted((struct.pack(f"<{TAIL}Q", *s[-TAIL:]), i) for i, s in enumerate(stacks) if len(s) >= TAIL)
    samples = [i for _, i in order]
    starts = [k for k in range(len(order)) if k == 0 or order[k][0] != order[k - 1][0]]
    ends = starts[1:] + [len(starts)]  # as it is there: of the last group too little
    first = [stacks[samples[k]] for k in starts]
    inside = {}  # frames -> (how far from the root, group): the furthest
    for g, stack in enumerate(first):
        if ends[g] - starts[g] < 1:
            continue
        for far in range(1, TAIL - OVERLAP + 1):
            key = tuple(stack[len(stack) - OVERLAP - far:len(stack) - far])
            if far > inside.get(key, (0, 0))[0]:
                inside[key] = far, g
    after = [inside.get(tuple(stack[-OVERLAP:])) for stack in first]
    after = [None if a and a[1] == g else a for g, a in enumerate(after)]
    added = {}
    for g, next_one in enumerate(after):
        far, at, steps = 0, g, 0
        while next_one:
            far, at, steps = far + next_one[0], next_one[1], steps + 1
            next_one = after[at]
            if steps > 56:
                return added
        if 0 < far < len(first[at]):
            added.update((samples[k], first[at][-far:]) for k in range(starts[g], min(ends[g], len(samples))))
    return added


def ids_of(sample):
    """The locations of a pprof sample, packed or not."""
    ids = []
    for number, kind, value, _ in fields(sample):
        if number == 1 and kind == 2:
            at = 0
            while at < len(value):
                id, at = varint(value, at)
                ids.append(id)
        elif number == 1:
            ids.append(value)
    return ids


def as_pyroscope_takes_it(profile):
    """A pprof of Go as Pyroscope stores it: type parameters dropped, stacks that Go cut completed by guessing."""
    raw = gzip.decompress(profile) if profile[:2] == b"\x1f\x8b" else profile
    parts = list(fields(raw))
    strings = [v.decode() for number, _, v, _ in parts if number == 6]
    kinds = {strings[varint(v, 1)[0]] for number, _, v, _ in parts if number == 1}
    stacks = [ids_of(v) for number, _, v, _ in parts if number == 2]
    deepest = max(map(len, stacks), default=0)
    heap = kinds & {"alloc_objects", "alloc_space", "inuse_objects", "inuse_space"}
    cut = 28 <= deepest < 33 if heap else "cpu" in kinds and deepest >= 60
    added = missing_roots(stacks) if cut else {}
    out, i = [], 0
    for number, _, value, whole in parts:
        if number == 6:
            value = without_shapes(value.decode()).encode()
            whole = put_varint(6 << 3 | 2) + put_varint(len(value)) + value
        elif number == 2:
            if i in added:
                ids = b"".join(put_varint(id) for id in stacks[i] + added[i])
                rest = b"".join(w for n, _, _, w in fields(value) if n != 1)
                value = put_varint(1 << 3 | 2) + put_varint(len(ids)) + ids + rest
                whole = put_varint(2 << 3 | 2) + put_varint(len(value)) + value
            i += 1
        out.append(whole)
    return gzip.compress(b"".join(out), 1)


# ---- sending ----

def push(url, labels, profile, id=None, headers=()):
    sample = {"rawProfile": base64.b64encode(profile).decode()} | ({"ID": id} if id else {})
    series = {"labels": [{"name": n, "value": v} for n, v in labels.items()], "samples": [sample]}
    answer = call(url, "/push.v1.PusherService/Push", {"series": [series]}, headers)
    if answer.status != 200:
        raise RuntimeError(f"Push answers {answer.status}: {answer.body[:500]}")


IDS = [f"00000000-0000-4000-8000-00000000000{i}" for i in range(1, 4)]


def fill(url, profile, base_s):
    """The same pprof three times, a minute apart: pods p0 and p1 of "shop", p2 of "cart"; their ids are IDS."""
    for i, service in enumerate(("shop", "shop", "cart")):
        push(url, {"__name__": "process_cpu", "service_name": service, "pod": f"p{i}"},
             at_time(profile, (base_s + 60 * i) * 10**9), id=IDS[i])


# ---- flame graphs ----

def boxes(levels, names, sides=1):
    """{path: [(total, self) of each side]} of levels of boxes, x as distances from the box before."""
    size = sides * 3 + 1
    found, above = {}, [(0, 0, ())]
    for depth, level in enumerate(levels):
        values = [int(v) for v in (level["values"] if isinstance(level, dict) else level)]
        here, ends = [], [0] * sides
        for i in range(0, len(values), size):
            box = values[i:i + size]
            numbers, spans = [], []
            for k in range(sides):
                x = ends[k] + box[3 * k]
                ends[k] = x + box[3 * k + 1]
                numbers.append((box[3 * k + 1], box[3 * k + 2]))
                spans.append((x, ends[k]))
            if depth == 0:
                here.append((spans, ()))
                found[()] = numbers
                continue
            path = parent_of(above, spans) + (names[box[-1]],)
            found[path] = [(a + c, b + d) for (a, b), (c, d) in zip(found[path], numbers)] if path in found else numbers
            here.append((spans, path))
        above = here
    return found


def parent_of(above, spans):
    """The box above that holds all these spans; a side of nothing says nothing."""
    for outer, path in above:
        if all(a <= x and end <= b for (x, end), (a, b) in zip(spans, outer) if end > x) and \
                any(end > x for x, end in spans):
            return path
    raise ValueError(f"a box at {spans} has none above it")


def tree(flame):
    """{path: (total, self)} of a FlameGraph, or of a flamebearer."""
    return {path: sides[0] for path, sides in boxes(flame["levels"], flame["names"]).items()}


def diff_tree(flame):
    """{path: ((total, self) left, (total, self) right)}."""
    return {path: tuple(sides) for path, sides in boxes(flame["levels"], flame["names"], 2).items()}


def functions(nodes):
    """{function: (total, self)}; a function that recurses counts once in its total."""
    sums = {}
    for path, (total, own) in nodes.items():
        if path:
            before = sums.get(path[-1], (0, 0))
            sums[path[-1]] = before[0] + (0 if path[-1] in path[:-1] else total), before[1] + own
    return sums


def tree_of_bytes(data):
    """The same of the bytes of TREE: a node, then the subtrees of its children, the last first."""
    nodes, at, open_nodes = {}, 0, [[(), 1]]
    if not data:
        return {(): (0, 0)}
    while at < len(data):
        path = open_nodes[-1][0]
        open_nodes[-1][1] -= 1
        size, at = varint(data, at)
        name, at = data[at:at + size].decode(), at + size
        own, at = varint(data, at)
        children, at = varint(data, at)
        here = path + (name,) if size else ()
        nodes[here] = nodes.get(here, 0) + own
        open_nodes.append([here, children])
        while open_nodes and open_nodes[-1][1] == 0:
            open_nodes.pop()
    totals = dict.fromkeys(nodes, 0)
    for path, own in nodes.items():
        for n in range(len(path) + 1):
            totals[path[:n]] += own
    return {path: (totals[path], nodes[path]) for path in nodes}


def pprof_functions(profile):
    """The same of a pprof in protobuf's JSON: of its only sample type."""
    strings = profile.get("stringTable", [""])
    names = {f["id"]: strings[int(f.get("name", 0))] for f in profile.get("function", [])}
    lines = {l["id"]: [names[x["functionId"]] for x in l.get("line", [])] for l in profile.get("location", [])}
    sums = {}
    for sample in profile.get("sample", []):
        stack = [name for id in sample["locationId"] for name in lines[id]]
        value = int(sample["value"][0])
        for name in set(stack):
            total, own = sums.get(name, (0, 0))
            sums[name] = total + value, own + (value if name == stack[0] else 0)
    return sums
