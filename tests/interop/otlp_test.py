#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""OTLP between Kiln and real protobuf libraries with the published descriptors, in both directions:

  - what Kiln writes of examples and captures is read by Python's protobuf and says what the input says;
  - messages of every published revision, made by that library, are read by Kiln, which names the revision;
  - fields in odd forms (unpacked, split, unknown, in JSON) and damaged messages are read as it reads them;
  - the OpenTelemetry Collector's own library reads our bytes, and its bytes become ours again;
  - `kiln check` and profcheck, where $PROFCHECK names one, judge alike.

A peer that cannot be installed is named and its part left out; without Python's protobuf nothing is
left to do and the test skips.
"""
import gzip
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE / "otlp"), str(HERE.parent / "support")]
import forms  # noqa: E402
import make  # noqa: E402
import peers  # noqa: E402
import resolve  # noqa: E402
from checks import check, exit_code  # noqa: E402

KILN = os.environ.get("KILN", "build/kiln")
SOURCES = pathlib.Path(os.environ.get("KILN_SOURCE_DIR", "."))
DATA = pathlib.Path(os.environ.get("KILN_TEST_DATA", "../shared/data"))


def absent(what, why):
    print(f"not tried: {what}: {why}", flush=True)


def kiln(*words, stdin=None):
    done = subprocess.run([KILN, *map(str, words)], input=stdin, capture_output=True)
    if done.returncode:
        raise RuntimeError(f"kiln {' '.join(map(str, words))}: {done.stderr.decode()}")
    return done.stdout


def to_otlp(path_or_bytes, *words):
    if isinstance(path_or_bytes, bytes):
        return kiln("convert", "-", "--to", "otlp", *words, stdin=path_or_bytes)
    return kiln("convert", path_or_bytes, "--to", "otlp", *words)


def difference(ours, theirs, path=""):
    """The first place where two resolved things differ."""
    if isinstance(ours, tuple) and isinstance(theirs, tuple) and len(ours) == len(theirs):
        for i, (a, b) in enumerate(zip(ours, theirs)):
            if a != b:
                return difference(a, b, f"{path}.{getattr(ours, '_fields', range(len(ours)))[i]}")
    if isinstance(ours, frozenset) and isinstance(theirs, frozenset):
        return f"{path}: only ours {sorted(ours - theirs)}, only theirs {sorted(theirs - ours)}"
    return f"{path}: {str(ours)[:600]} != {str(theirs)[:600]}"


def same(what, ours, theirs):
    check(what, ours == theirs, difference(ours, theirs))


# ---- what Kiln writes ----

def captures():
    """Every file of the captures that Kiln reads and that is not an answer of a server."""
    found = sorted(SOURCES.glob("examples/*.pb.gz"))
    for folder in ("otlp", "pprof", "jfr"):
        found += sorted(f for f in (DATA / folder).rglob("*") if f.is_file())
    return found


def raw(path):
    data = path.read_bytes()
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


def parse(path, newest):
    """A message in OTLP, by the descriptors of its revision."""
    revision = peers.Revision("1.8") if ".1.8." in path.name else newest
    return resolve.resolve(revision.ProfilesData.FromString(path.read_bytes()))


def theirs_of(path, newest):
    """The totals of a file without the help of our OTLP."""
    if path.suffix == ".otlp":
        return resolve.totals(parse(path, newest))
    if ".pb" in path.name:
        return resolve.pprof_totals(raw(path))
    return resolve.pprof_totals(kiln("convert", path, "--to", "pprof", "--no-compression"))


def test_capture(path, newest):
    name = path.relative_to(DATA) if path.is_relative_to(DATA) else path.relative_to(SOURCES)
    ours = to_otlp(path)
    data = newest.ProfilesData.FromString(ours)
    found = resolve.resolve(data)
    theirs = theirs_of(path, newest)
    same(f"{name}: {len(theirs)} totals by type and stack", tuple(sorted(resolve.totals(found).items())),
         tuple(sorted(theirs.items())))
    again = data.SerializeToString(deterministic=True)
    check(f"{name}: Python writes what we wrote", again == ours, f"{len(again)} bytes, ours {len(ours)}")
    check(f"{name}: and we read that as ours", to_otlp(again) == ours)
    if path.suffix == ".otlp":
        same(f"{name}: everything else", found, parse(path, newest))


def test_json(name, message_bytes, newest):
    """Our JSON read by Python, and Python's JSON read by us; ids are hex in OTLP, base64 in protobuf."""
    from google.protobuf import json_format
    ours = to_otlp(message_bytes)
    parsed = json.loads(kiln("convert", "-", "--to", "otlp-json", stdin=message_bytes))
    message = json_format.ParseDict(forms.with_ids(parsed, forms.base64_of), newest.ProfilesData())
    same(f"{name}: Python reads our JSON as our protobuf", message.SerializeToString(deterministic=True), ours)
    theirs = json_format.MessageToDict(newest.ProfilesData.FromString(message_bytes))
    text = json.dumps(forms.with_ids(theirs, forms.hex_of))
    same(f"{name}: we read Python's JSON as its protobuf", to_otlp(text.encode()), ours)


# ---- what Kiln reads ----

def test_revision(name, newest):
    revision = peers.Revision(name)
    data, expected = make.write(revision)
    wire = data.SerializeToString()
    ours = to_otlp(wire)
    same(f"revision {name}: everything arrives", resolve.resolve(newest.ProfilesData.FromString(ours)), expected)
    info = json.loads(kiln("info", "--json", "-", stdin=wire))
    named = {"1.5": "1.4", "1.11": "1.10"}.get(name, name)
    same(f"revision {name}: is called {named}", info["revision"], named)
    check(f"revision {name}: in pieces", to_otlp(b"".join(forms.in_pieces(data))) == ours)


def test_forms(newest):
    full = make.everything(newest)
    wire = full.SerializeToString()
    expected = resolve.resolve(full)
    ours = to_otlp(wire)
    same("every field: everything arrives", resolve.resolve(newest.ProfilesData.FromString(ours)), expected)
    check("every field: unpacked", to_otlp(forms.unpacked(newest, wire)) == ours)
    check("every field: with unknown fields", to_otlp(forms.with_unknown(newest, wire), "--from", "otlp") == ours)
    pieces = forms.in_pieces(full)
    check("every field: Python joins our pieces", newest.ProfilesData.FromString(b"".join(pieces)) == full)
    check("every field: in pieces", to_otlp(b"".join(pieces)) == ours)
    check("every field: the dictionary first", to_otlp(b"".join(pieces[-2:] + pieces[:-2])) == ours)
    check("every field: zero ids instead of none", to_otlp(with_zero_ids(newest, wire)) == ours)
    test_json("every field", wire, newest)


def with_zero_ids(newest, wire):
    data = newest.ProfilesData.FromString(wire)
    data.dictionary.link_table[0].trace_id, data.dictionary.link_table[0].span_id = bytes(16), bytes(8)
    return data.SerializeToString()


def test_references(newest):
    """Keys and texts of resources, scopes and attributes in the string table."""
    full = make.everything(newest)
    ours = to_otlp(full.SerializeToString())
    expected = resolve.resolve(newest.ProfilesData.FromString(ours))
    make.refer(full, full.dictionary.string_table)
    wire = full.SerializeToString()
    same("by string reference: everything arrives", resolve.resolve(newest.ProfilesData.FromString(to_otlp(wire))),
         expected)
    test_json("by string reference", wire, newest)
    for resource in full.resource_profiles:  # against the rules: then the inline key counts
        for pair in resource.resource.attributes:
            pair.key, pair.key_strindex = full.dictionary.string_table[pair.key_strindex], 1
    same("by string reference: an inline key goes first",
         resolve.resolve(newest.ProfilesData.FromString(to_otlp(full.SerializeToString()))), expected)


def test_loose_json(newest):
    from google.protobuf import json_format
    full = make.everything(newest)
    ours = to_otlp(full.SerializeToString())
    theirs = forms.with_ids(json_format.MessageToDict(full), forms.hex_of)
    check("JSON: as a careless sender writes it", to_otlp(json.dumps(forms.loosened(theirs)).encode()) == ours)
    snakes = forms.with_ids(json_format.MessageToDict(full, preserving_proto_field_name=True), forms.hex_of)
    check("JSON: names with underscores", to_otlp(json.dumps(snakes).encode()) == ours)
    for resource in theirs["resourceProfiles"]:
        for scope in resource["scopeProfiles"]:
            for profile in scope["profiles"]:
                profile["profileId"] = forms.base64_of(profile["profileId"])
    check("JSON: profile ids in base64", to_otlp(json.dumps(theirs).encode()) == ours)


def test_files(newest):
    """Several messages in one file: records with their length before them, and JSON lines."""
    from google.protobuf import json_format
    first, second = make.write(newest)[0], make.everything(newest)
    wires = [message.SerializeToString() for message in (first, second)]
    expected = resolve.totals(resolve.resolve(first)) + resolve.totals(resolve.resolve(second))
    records = b"".join(len(wire).to_bytes(4, "big") + wire for wire in wires)
    lines = "\n".join(json.dumps(forms.with_ids(json_format.MessageToDict(message), forms.hex_of))
                      for message in (first, second))
    for name, data in (("records with lengths", records), ("JSON lines", lines.encode())):
        found = resolve.totals(resolve.resolve(newest.ProfilesData.FromString(to_otlp(data))))
        check(f"{name}: both messages arrive", found == expected, difference(found, expected))


def test_damage(newest, seeds):
    """Of a damaged message Kiln either says so or reads what Python reads."""
    dice = random.Random(4317)
    accepted = 0
    for i in range(300):
        wire = bytearray(dice.choice(seeds))
        for _ in range(dice.randint(1, 3)):
            wire[dice.randrange(len(wire))] = dice.choice([0, 1, 2, 10, 127, 128, 255, dice.randrange(256)])
        done = subprocess.run([KILN, "convert", "-", "--from", "otlp", "--to", "otlp"], input=wire, capture_output=True)
        if done.returncode:
            check(f"damage {i}: is refused in one line", done.returncode == 3 and done.stderr.count(b"\n") == 1,
                  f"{done.returncode}: {done.stderr}")
            continue
        accepted += 1
        same(f"damage {i}: is read as Python reads it", resolve.resolve(newest.ProfilesData.FromString(done.stdout)),
             resolve.resolve(newest.ProfilesData.FromString(bytes(wire))))
    check("damage: some of it is harmless", accepted > 30, accepted)


# ---- the Collector's library, and the official checker ----

def test_collector(messages):
    program = peers.build_go(pathlib.Path(__file__).parent / "go/otlpdata")

    def collector(what, source, target, data):
        done = subprocess.run([program, source, target], input=data, capture_output=True)
        check(f"{what}: the Collector's library reads our {source}", done.returncode == 0, done.stderr.decode())
        return done.stdout

    for name, wire in messages:
        ours = to_otlp(wire)
        theirs = collector(name, "proto", "proto", ours)
        check(f"{name}: its protobuf becomes ours again", to_otlp(theirs) == ours)
        check(f"{name}: it writes another order of fields", theirs != ours)
        json_text = kiln("convert", "-", "--to", "otlp-json", stdin=wire)
        theirs = collector(name, "json", "json", json_text)
        check(f"{name}: its JSON becomes ours again", to_otlp(theirs) == ours)


def verdict(command, path):
    done = subprocess.run([*command, str(path)], capture_output=True, text=True)
    return done.returncode == 0, (done.stdout + done.stderr).strip()


def test_profcheck(messages, folder):
    program = os.environ.get("PROFCHECK")
    if not program:
        raise peers.Absent("PROFCHECK names no program")
    for i, (name, wire) in enumerate(messages):
        path = pathlib.Path(folder) / f"{i}.otlp"
        path.write_bytes(wire)
        for flag in ([], ["-check-dupes"], ["-check-orphans"]):
            ours, said = verdict([KILN, "check", *("-" + word for word in flag)], path)
            theirs, they_said = verdict([program, *flag], path)
            check(f"{name}: kiln check {' '.join(flag)} and profcheck judge alike", ours == theirs,
                  f"{said}\nprofcheck: {they_said}")


def broken(newest):
    """Messages of which each breaks one rule that profcheck knows."""
    def one(name, change):
        data, _ = make.write(newest)
        times, values = data.resource_profiles[0].scope_profiles[0].profiles
        for sample in values.samples:  # each profile in one shape
            sample.ClearField("timestamps_unix_nano")
        for sample in times.samples:
            sample.ClearField("values")
            sample.timestamps_unix_nano[:] = [make.TIME + 3]
        change(data.dictionary, times)
        return name, data.SerializeToString()

    return [
        one("nothing wrong", lambda d, p: None),
        one("stack outside its table", lambda d, p: setattr(p.samples[0], "stack_index", 99)),
        one("negative link", lambda d, p: setattr(p.samples[0], "link_index", -1)),
        one("attribute outside its table", lambda d, p: p.samples[0].attribute_indices.append(77)),
        one("the same key twice", lambda d, p: p.samples[0].attribute_indices.extend(p.samples[0].attribute_indices)),
        one("no zero string", lambda d, p: d.string_table.__setitem__(0, "zero")),
        one("more times than values", lambda d, p: p.samples[1].values.extend([1, 2, 3])),
        one("nothing observed", lambda d, p: p.samples[1].ClearField("timestamps_unix_nano")),
        one("a time before the profile", lambda d, p: p.samples[1].timestamps_unix_nano.__setitem__(0, 5)),
        one("a short trace id", lambda d, p: setattr(d.link_table[1], "trace_id", b"123")),
        one("a line before the first", lambda d, p: setattr(d.location_table[1].lines[0], "line", -3)),
        one("a mapping that ends before it starts", lambda d, p: setattr(d.mapping_table[1], "memory_limit", 1)),
    ]


def test_check(messages):
    """Without profcheck: kiln check finds something in each broken message and nothing in the whole one."""
    for name, wire in messages:
        done = subprocess.run([KILN, "check", "-"], input=wire, capture_output=True)
        good = done.returncode == (0 if name == "nothing wrong" else 1)
        check(f"kiln check: {name}", good, f"exit {done.returncode}: {done.stdout.decode()}{done.stderr.decode()}")


# ---- all of it ----

def part(what, test, *words):
    try:
        test(*words)
    except peers.Absent as why:
        absent(what, why)


def main():
    if not os.access(KILN, os.X_OK):
        print("skipped: no program to test:", KILN)
        return 77
    try:
        peers.install_protobuf()
        newest = peers.Newest()
    except (peers.Absent, ImportError) as why:
        print("skipped:", why)
        return 77
    files = captures()
    small = [(f.name, f.read_bytes()) for f in files if f.suffix == ".otlp"]
    messages = [("every field", make.everything(newest).SerializeToString()), *small]
    for test in (test_forms, test_references, test_loose_json, test_files):
        test(newest)
    seeds = [make.write(newest)[0], make.everything(newest)]
    test_damage(newest, [message.SerializeToString() for message in seeds])
    for name in peers.MODULES:
        part(f"revision {name}", test_revision, name, newest)
    for path in files:
        part(path.name, test_capture, path, newest)
    for path in files:
        if path.stat().st_size < 1 << 18:
            test_json(path.name, to_otlp(path), newest)
    part("the Collector's library", test_collector, messages)
    test_check(broken(newest))
    with tempfile.TemporaryDirectory() as folder:
        part("profcheck", test_profcheck, broken(newest) + small, folder)
    return exit_code()


if __name__ == "__main__":
    sys.exit(main())
