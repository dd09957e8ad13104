#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The audit log of a server: actions, users and results; and guessed tokens, which are counted and throttled."""
import http.client
import json
import os
import pathlib
import re
import signal
import socket
import sys
import time
import unittest
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))
from kiln_server import KilnServer  # noqa: E402

TOKENS = """
- {name: ops, token: ops-secret-1, access: admin}
- {name: shop ops, token: shop-secret-1, tenant: shop, access: admin}
"""
FIELD = re.compile(r'(\w+)=("(?:[^"\\]|\\.)*"|\S*)')


def ask(port, method, path, token=None, body=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request(method, path, body, {"Authorization": f"Bearer {token}"} if token else {})
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    return answer.status, text, answer.headers


def fields(line):
    return {key: value.strip('"') for key, value in FIELD.findall(line)}


class Audit(unittest.TestCase):
    def setUp(self):
        self.server = KilnServer()
        self.addCleanup(self.server.__exit__)
        self.file = self.server.folder / "audit.log"
        self.tokens = self.server.folder / "tokens.yaml"
        self.tokens.write_text(TOKENS)
        self.server.words = ("--tokens", str(self.tokens), "--audit-log", str(self.file))
        self.server.start()

    def ask(self, method, path, token="ops-secret-1", body=None):
        return ask(self.server.http, method, path, token, body)

    def records(self, file=None):
        return [fields(line) for line in (file or self.file).read_text().splitlines()]

    def wait_for(self, what):
        deadline = time.monotonic() + 60
        while not what():
            self.assertLess(time.monotonic(), deadline, self.server.said())
            time.sleep(0.02)

    def test_what_changes_something_is_recorded(self):
        self.assertEqual(self.ask("POST", "/ingest?name=cart&format=folded", "shop-secret-1", b"main;work 5\n")[0], 200)
        note = json.loads(self.ask("POST", "/api/v1/annotations", body=b'{"text": "a note"}')[1])["id"]
        order = json.dumps({"kind": "pause", "target": "service", "name": 'x" who=root\nresult=ok'}).encode()
        order = json.loads(self.ask("POST", "/api/v1/orders", body=order)[1])["orders"][0]["id"]
        name = urllib.parse.quote('cart" result=ok\nmsg=audit action="delete service" who=nobody')
        wanted = [
            ("DELETE", f"/api/v1/services/{name}", "ops-secret-1", 200, "delete service", "anonymous", "ops", "ok"),
            ("DELETE", "/api/v1/services/cart", "shop-secret-1", 200, "delete service", "shop", "shop ops", "ok"),
            ("DELETE", f"/api/v1/annotations/{note}", "ops-secret-1", 204, "delete annotation", "anonymous", "ops", "ok"),
            ("DELETE", "/api/v1/annotations/none", "ops-secret-1", 404, "delete annotation", "anonymous", "ops", "failed"),
            ("DELETE", "/api/v1/symbols/aabbcc", "ops-secret-1", 404, "delete debug files", "anonymous", "ops", "failed"),
            ("POST", "/api/v1/store/check", "shop-secret-1", 403, "check store", "shop", "shop ops", "refused"),
            ("POST", "/api/v1/store/compact", "ops-secret-1", 200, "compact store", "anonymous", "ops", "ok"),
            ("POST", "/api/v1/store/backup?dir=/tmp/x", "ops-secret-1", 403, "back up store", "anonymous", "ops", "refused"),
            ("GET", "/api/v1/store/export?service=cart", "ops-secret-1", 200, "export profiles", "anonymous", "ops", "ok"),
            ("DELETE", f"/api/v1/orders/{order}", "ops-secret-1", 204, "withdraw order", "anonymous", "ops", "ok"),
        ]
        for method, path, token, status, *_ in wanted:
            self.assertEqual(self.ask(method, path, token)[0], status, path)
        records = self.records()
        self.assertEqual([tuple(r[k] for k in ("action", "tenant", "who", "result")) for r in records],
                         [("give order", "anonymous", "ops", "ok"), *(tuple(want[4:]) for want in wanted)])
        self.assertEqual(records[0]["target"], 'pause service x\\" who=root\\nresult=ok for 3600 s')
        self.assertEqual(records[2]["target"], "cart")
        self.assertEqual(records[8]["target"], "/tmp/x")
        for record in records:
            self.assertEqual((record["level"], record["msg"]), ("info", "audit"))
            self.assertRegex(record["peer"], r"^127\.0\.0\.1:\d+$")
        self.assertEqual(self.file.stat().st_mode & 0o7777, 0o600)
        log = self.server.log.read_text()
        self.assertEqual(log.count("msg=audit action="), len(records) + log.count("who=nobody"))
        self.assertNotIn("secret", self.file.read_text() + log)

    def test_who_comes_by_the_socket_is_named_by_the_kernel(self):
        connection = http.client.HTTPConnection("localhost")
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.connect(str(self.server.folder / "kiln.sock"))
        connection.request("DELETE", "/api/v1/services/cart")
        self.assertEqual(connection.getresponse().read(), b'{\n  "profiles": 0\n}\n')
        connection.close()
        (record,) = self.records()
        self.assertEqual((record["who"], record["peer"]), (f"uid {os.geteuid()}", "unix"))

    def test_guesses_are_slowed_down_and_counted(self):
        self.assertEqual(self.ask("GET", "/api/v1/services")[0], 200)
        answers = [self.ask("GET", "/api/v1/services", f"guess-{i}") for i in range(300)]
        self.assertEqual([status for status, *_ in answers[:11]], [401] * 11)
        self.assertEqual({status for status, *_ in answers}, {401, 429})
        self.assertTrue(all(headers["Retry-After"] for status, _, headers in answers if status == 429))
        self.assertEqual(self.ask("GET", "/api/v1/services")[0], 200)  # it was accepted from here before
        sign_ins = [self.ask("POST", "/api/v1/session", None, json.dumps({"token": f"guess-{i}"}).encode()) for i in range(1000, 1100)]
        self.assertIn(429, {status for status, *_ in sign_ins})
        self.assertFalse([status for status, *_ in sign_ins if status not in (401, 429)])
        for i in range(100):
            self.assertFalse(json.loads(self.ask("GET", "/api/v1/session", f"other-{i}")[1])["signed_in"])
        self.assertEqual(self.server.stop(), 0)
        refused = [record for record in self.records() if record["result"] == "refused"]
        self.assertEqual({record["action"] for record in refused}, {"sign in"})
        self.assertEqual(sum(int(record["count"]) for record in refused), 500)
        self.assertLess(len(refused), 20)

    def test_files_that_are_moved_and_read_again(self):
        old = self.file.rename(self.server.folder / "audit.log.1")
        self.server.process.send_signal(signal.SIGHUP)
        self.wait_for(lambda: self.file.exists() and "reload redaction" in self.file.read_text())
        self.tokens.write_text(TOKENS + "- {name: more, token: more-secret-1, access: read}\n")
        self.server.process.send_signal(signal.SIGHUP)
        self.wait_for(lambda: any(r["action"] == "reload tokens" and r["result"] == "ok" for r in self.records()))
        self.tokens.write_text("- {nonsense: 1}\n")
        self.server.process.send_signal(signal.SIGHUP)
        self.wait_for(lambda: any(r["action"] == "reload tokens" and r["result"] == "failed" for r in self.records()))
        self.assertEqual(self.records(old), [])

    def test_a_link_in_its_place_keeps_the_server_down(self):
        self.server.stop()
        self.file.unlink()
        self.file.symlink_to(self.server.folder / "elsewhere")
        with self.assertRaisesRegex(RuntimeError, "(?s)ended with 4.*symbolic link"):
            self.server.start()
        self.assertFalse((self.server.folder / "elsewhere").exists())


if __name__ == "__main__":
    unittest.main()
