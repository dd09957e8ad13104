#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""References to the empty attribute, by which some senders mean "no attribute": profiles that have them are kept, and so are all
others of their block.  A block of version 0.1 that has them is read."""
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))
from drawn_otlp import Drawn  # noqa: E402
from kiln_server import KILN, KilnServer  # noqa: E402

BLOCK = ROOT / "tests/fixtures/block-v1-empty-attribute.kb"
PLACES = ("sample", "location", "mapping")


def kiln(*words, code=0):
    done = subprocess.run([KILN, *map(str, words)], check=False, capture_output=True, text=True, cwd=ROOT, timeout=120)
    assert done.returncode == code, (words, done)
    return done.stdout


def message(*fields):
    """A protobuf message of (number, bytes or number or float) pairs; a float is a fixed64."""
    def varint(n):
        return bytes([n]) if n < 128 else bytes([n & 127 | 128]) + varint(n >> 7)
    out = b""
    for number, value in fields:
        if isinstance(value, float):
            out += varint(number << 3 | 1) + struct.pack("<Q", int(value))
        elif isinstance(value, int):
            out += varint(number << 3) + varint(value)
        else:
            out += varint(number << 3 | 2) + varint(len(value)) + value
    return out


def request(place, service, attribute):
    """Seven samples of main, by OTLP: `place` refers to the empty attribute in this row of the table."""
    nothing = {one: [(number, bytes([attribute]))] if one == place else []
               for one, number in (("sample", 2), ("location", 4), ("mapping", 5))}
    texts = [b"", b"cpu", b"nanoseconds", b"main", b"a.out"]
    dictionary = message((1, b""), (1, message((4, 4), *nothing["mapping"])), (2, b""),
                         (2, message((1, 1), (2, 4096), (3, message((1, 1))), *nothing["location"])), (3, b""), (3, message((1, 3))),
                         (4, b""), *((5, text) for text in texts), (6, b""), (6, b""), (7, b""), (7, message((1, b"\1"))))
    kind = message((1, 1), (2, 2))
    sample = message((1, 1), *nothing["sample"], (4, b"\7"))
    profile = message((1, kind), (2, sample), (3, time.time() * 1e9), (4, 10**9), (5, kind), (6, 1))
    resource = message((1, message((1, b"service.name"), (2, message((1, service.encode()))))))
    return message((1, message((1, resource), (2, message((2, profile))))), (2, dictionary))


def send(server, body, kind="application/x-protobuf"):
    call = urllib.request.Request(f"http://127.0.0.1:{server.http}/v1development/profiles", body, {"Content-Type": kind})
    with urllib.request.urlopen(call, timeout=60) as answer:
        return answer.status, answer.read()


def json_request(place, service, attribute):
    drawn = Drawn()
    drawn.profile({"service.name": service}, int(time.time() * 1e9), "main 7")
    body = json.loads(drawn.json())
    tables = body["dictionary"]
    tables["attributeTable"] = [{}, {}]
    tables["mappingTable"] = [{}, {"filenameStrindex": 1}]
    tables["locationTable"][1]["mappingIndex"] = 1
    of = {"sample": body["resourceProfiles"][0]["scopeProfiles"][0]["profiles"][0]["samples"][0],
          "location": tables["locationTable"][1], "mapping": tables["mappingTable"][1]}
    of[place]["attributeIndices"] = [attribute]
    return json.dumps(body).encode()


def services(data):
    rows = json.loads(kiln("store", "stats", "--json", "--data-dir", data))["rows"]
    return {row["service"] for row in rows}


class EmptyAttribute(unittest.TestCase):
    def test_profiles_that_refer_to_it_are_kept_with_all_others(self):
        names = {"good"}
        with KilnServer() as server:
            kiln("push", "--server", f"http://127.0.0.1:{server.http}", "--service", "good", "--time", "now", "examples/checkout.pb.gz")
            for place in PLACES:
                for attribute in (0, 1):
                    for kind, make in (("application/x-protobuf", request), ("application/json", json_request)):
                        name = f"{place}-{attribute}-{kind[-4:]}"
                        self.assertEqual(send(server, make(place, name, attribute), kind)[0], 200, name)
                        names.add(name)
            self.assertEqual(server.stop(), 0)
            for _ in range(2):  # as written, and merged
                self.assertEqual(services(server.data), names)
                kiln("store", "check", "--data-dir", server.data)
                for name in sorted(names - {"good"}):
                    line = kiln("store", "export", "--format", "collapsed", "--service", name, "--data-dir", server.data)
                    self.assertEqual(line.split()[0], "main", name)
                self.assertEqual(list((server.data / "aside").glob("*")), [])
                kiln("store", "compact", "--data-dir", server.data)

    def test_a_block_of_version_0_1_with_it_is_read_and_rewritten(self):
        with tempfile.TemporaryDirectory() as name:
            data = pathlib.Path(name)
            (data / "blocks/anonymous").mkdir(parents=True)
            shutil.copy(BLOCK, data / "blocks/anonymous/18e95d291d647f2c780e17bfa8987c01.kb")
            (data / "store.json").write_text('{"format":"kiln store","version":1}\n')
            for _ in range(2):
                self.assertEqual(services(data), {"good1", "unknown_service"})
                self.assertEqual(kiln("store", "export", "--format", "collapsed", "--service", "unknown_service", "--data-dir", data),
                                 "main 10000000\n")
                kiln("store", "check", "--data-dir", data)
                kiln("store", "compact", "--data-dir", data)


if __name__ == "__main__":
    unittest.main()
