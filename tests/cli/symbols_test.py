#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Debug files over HTTP: what is refused and how, parts, quota, rights, a full disk's words, and that kill -9 leaves whole files."""
import gzip
import hashlib
import json
import pathlib
import sys
import unittest
import urllib.error
import urllib.parse
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))
from debug_files import small_elf  # noqa: E402
from kiln_server import KilnServer  # noqa: E402

ID, OTHER = "0123456789abcdef0123456789abcdef01234567", "ff" * 20


def call(server, path, method="GET", data=None, headers=None, **params):
    url = f"http://127.0.0.1:{server.http}/api/v1/symbols{path}?{urllib.parse.urlencode(params)}"
    request = urllib.request.Request(url, data=data, method=method, headers=headers or {})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as refused:
        return refused.status, json.load(refused)


def put(server, file, build_id=ID, **params):
    headers = params.pop("headers", {})
    return call(server, "/" + build_id, "PUT", file, headers | {"Content-Type": "application/octet-stream"}, **params)


def files(server, **headers):
    return [(f["build_id"], f["kind"]) for f in call(server, "", headers=headers)[1]["files"]]


class Uploads(unittest.TestCase):
    def refused(self, said, status, code, words):
        self.assertEqual((said[0], said[1]["error"]["code"]), (status, code), said)
        self.assertIn(words, said[1]["error"]["message"])

    def test_garbage(self):
        with KilnServer() as server:
            for body in (b"", b"\0" * 100, b"\x7fELF", b"\x7fELF\2\1\1" + b"\xff" * 500, b"MZ" + b"x" * 10000):
                self.assertEqual(put(server, body)[0], 400, body[:20])
            self.refused(put(server, b"x" * 1000), 400, "bad_body", "no ELF file")
            self.refused(put(server, small_elf(ID), OTHER), 400, "bad_body", ID)
            self.refused(put(server, small_elf(ID)[:-70]), 400, "bad_body", "ends before")
            self.refused(put(server, b"x", headers={"Content-Encoding": "gzip"}), 400, "bad_body", "")
            self.refused(put(server, small_elf(ID), "x" * 300), 400, "bad_parameter", "no build id")
            self.refused(put(server, small_elf(ID), "..%2f..%2fetc"), 400, "bad_body", ID)
            self.refused(call(server, "/" + OTHER), 404, "not_found", "no debug file")
            self.refused(call(server, "/" + OTHER, "DELETE"), 404, "not_found", "no debug file")
            self.assertEqual(files(server), [])
            self.assertEqual([p for p in (server.data / "debug").rglob("*") if p.is_file()], [])

    def test_bombs_stay_within_limits(self):
        with KilnServer("--memory-limit", "256M") as server:
            said = put(server, gzip.compress(b"\0" * (200 << 20)), headers={"Content-Encoding": "gzip"})
            self.refused(said, 413, "limit", "")

    def test_parts(self):
        file = small_elf(ID, code=False, bulk=bytes(range(256)) * 1000)
        params = {"total": len(file), "sha256": hashlib.sha256(file).hexdigest()}
        with KilnServer() as server:
            self.assertEqual(put(server, b"", **params)[1]["received"], 0)
            self.assertEqual(put(server, file[:1000], **params)[1], {"received": 1000, "total": len(file), "complete": False})
            self.refused(put(server, file[5000:6000], offset=5000, **params), 409, "conflict", "1000 bytes have come")
            self.refused(put(server, file[1000:2000], offset=1000, **(params | {"total": 7000})), 400, "bad_parameter", str(len(file)))
            self.refused(put(server, file[:10], **(params | {"sha256": "12"})), 400, "bad_parameter", "64")
            self.refused(put(server, file[:10], total=len(file)), 400, "bad_parameter", "in parts")
            server.kill()
            server.start()
            self.assertEqual(put(server, b"", **params)[1]["received"], 1000)
            done = put(server, file[900:], offset=900, **params)[1]
            self.assertEqual((done["complete"], done["known"], done["build_id"], done["kind"]), (True, False, ID, "debuginfo"))
            self.assertTrue(put(server, b"", **params)[1]["known"])
            self.assertEqual(files(server), [(ID, "debuginfo")])

    def test_what_is_not_what_was_announced(self):
        file = small_elf(ID, code=False)
        with KilnServer() as server:
            said = put(server, file, total=len(file), sha256="0" * 64)
            self.refused(said, 400, "bad_body", "announced")
            self.assertEqual(files(server), [])
            self.assertEqual(put(server, file)[0], 200)

    def test_kill_leaves_whole_files(self):
        with KilnServer() as server:
            self.assertEqual(put(server, small_elf(ID))[0], 200)
            self.assertEqual(put(server, small_elf(ID, code=False))[0], 200)
            server.kill()
            server.start()
            self.assertEqual(sorted(files(server)), [(ID, "debuginfo"), (ID, "executable")])
            one = server.data / "debug" / "anonymous" / f"{ID}.debuginfo"
            one.write_bytes(one.read_bytes()[:-50])
            server.kill()
            server.start()
            self.assertEqual(files(server), [(ID, "executable")])

    def test_a_quota_that_is_full(self):
        with KilnServer("--symbols-quota", "100K") as server:
            self.refused(put(server, small_elf(ID, bulk=b"x" * 200000)), 413, "limit", "--symbols-quota")
            self.assertEqual(put(server, small_elf(ID, bulk=b"x" * 60000))[0], 200)
            self.assertEqual(put(server, small_elf(OTHER, bulk=b"x" * 60000), OTHER)[0], 200)
            self.assertEqual(files(server), [(OTHER, "executable")])
            self.assertLessEqual(call(server, "")[1]["used_bytes"], 100 << 10)

    def test_rights(self):
        with KilnServer() as server:
            tokens = server.folder / "tokens.yaml"
            tokens.write_text("- {token: reader-token, access: read}\n- {token: writer-token, access: write}\n")
            server.stop()
            server.words += ("--tokens", str(tokens))
            server.start()
            reader, writer = ({"Authorization": "Bearer " + t} for t in ("reader-token", "writer-token"))
            self.assertEqual(put(server, small_elf(ID))[0], 401)
            self.assertEqual(put(server, small_elf(ID), headers=reader)[0], 403)
            self.assertEqual(put(server, small_elf(ID), headers=writer)[0], 200)
            self.assertEqual(call(server, "", headers=reader)[0], 200)
            self.assertEqual(call(server, "", headers=reader, missing=1)[1]["missing"], [])
            self.assertEqual(call(server, "", headers=writer)[0], 403)
            self.assertEqual(call(server, "/" + ID, "DELETE", headers=reader)[0], 403)
            self.assertEqual(call(server, "/" + ID, "DELETE", headers=writer), (200, {"deleted": 1}))


if __name__ == "__main__":
    unittest.main()
