#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the token of one tenant may do with the rest of a server: over TCP, and on the Unix socket as a user without rights."""
import http.client
import json
import os
import pathlib
import socket
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))
from kiln_server import KILN, KilnServer  # noqa: E402

TOKENS = """
- {name: root, token: root-admin-1, access: admin}
- {name: a, token: tenant-a-admin-1, tenant: a, access: admin}
- {name: b, token: tenant-b-admin-1, tenant: b, access: admin}
"""
STRANGER = 65534


def headers_of(token, tenant):
    return ({"Authorization": f"Bearer {token}"} if token else {}) | ({"X-Scope-OrgID": tenant} if tenant else {})


def ask(port, method, path, token=None, body=None, tenant=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request(method, path, body, headers_of(token, tenant))
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    return answer.status, text


class Unix(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=60)
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.path)


def ask_here(path, method, target, token=None, tenant=None):
    connection = Unix(path)
    connection.request(method, target, headers=headers_of(token, tenant))
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    return answer.status, text


def as_stranger(server, method, target, token=None, tenant=None):
    """The same in a process of another user, who is in the group of the socket."""
    path = server.folder / "kiln.sock"
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(path.stat().st_gid)
            os.setuid(STRANGER)
            status, text = ask_here(path, method, target, token, tenant)
            os.write(write, json.dumps([status, text.decode("latin1")]).encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as answer:
        said = answer.read()
    os.waitpid(child, 0)
    status, text = json.loads(said)
    return status, text.encode("latin1")


class Tenants(unittest.TestCase):
    def setUp(self):
        self.server = KilnServer("--multitenant")
        self.addCleanup(self.server.__exit__)
        self.backups = self.server.folder / "backups"
        tokens = self.server.folder / "tokens.yaml"
        tokens.write_text(TOKENS)
        self.server.words += ("--tokens", str(tokens))

    def start(self, *words):
        self.server.words += words
        self.server.start()
        for tenant in "a", "b":
            self.assertEqual(ask(self.server.http, "POST", f"/ingest?name=svc-{tenant}&format=folded", f"tenant-{tenant}-admin-1", b"main;work 5\n")[0], 200)

    def ask(self, method, path, token, body=None, tenant=None):
        return ask(self.server.http, method, path, token, body, tenant)

    def refused(self, answer, status, *words):
        self.assertEqual(answer[0], status, answer[1])
        for word in words:
            self.assertIn(word.encode(), answer[1])

    def test_what_is_of_all_tenants_takes_a_token_without_tenant(self):
        self.backups.mkdir()
        self.backups.chmod(0o777)
        self.start("--backup-dir", str(self.backups))
        for method, path in (("POST", "/api/v1/store/check"), ("POST", "/api/v1/store/compact"), ("POST", "/api/v1/store/backup?dir=mine"), ("GET", "/metrics")):
            with self.subTest(path):
                self.refused(self.ask(method, path, "tenant-a-admin-1"), 403, "without tenant")
                status, text = self.ask(method, path, "root-admin-1", tenant="a")
                self.assertEqual(status, 200, text)
        self.assertEqual({path.name for path in (self.backups / "mine" / "blocks").iterdir()}, {"a", "b"})

    def test_a_tenant_sees_and_deletes_its_own(self):
        self.start()
        self.assertEqual(self.ask("GET", "/api/v1/store/export?service=svc-b", "tenant-b-admin-1")[0], 200)
        self.assertIn(b"svc-b", self.ask("GET", "/api/v1/store/export", "tenant-b-admin-1")[1])
        self.refused(self.ask("GET", "/api/v1/store/export?tenant=b", "tenant-a-admin-1"), 403, "this request is of tenant a")
        self.assertNotIn(b"svc-b", self.ask("GET", "/api/v1/store/export", "tenant-a-admin-1")[1])
        stats = self.ask("GET", "/api/v1/store/stats", "tenant-a-admin-1")[1]
        self.assertIn(b"svc-a", stats)
        self.assertNotIn(b"svc-b", stats)
        self.assertEqual(json.loads(self.ask("DELETE", "/api/v1/services/svc-b", "tenant-a-admin-1")[1]), {"profiles": 0})
        self.assertEqual(json.loads(self.ask("DELETE", "/api/v1/services/svc-b", "tenant-b-admin-1")[1]), {"profiles": 1})
        self.refused(self.ask("GET", "/api/v1/store/stats", "tenant-a-admin-1", tenant="b"), 403, "another tenant")
        self.assertEqual(json.loads(self.ask("GET", "/api/v1/status", "tenant-a-admin-1")[1])["scope"], "tenant")

    def test_a_quota_of_debug_files_is_the_tenants(self):
        self.start("--symbols-quota", "8M")
        one, all_of_it = (json.loads(self.ask("GET", "/api/v1/symbols", token, tenant="a")[1]) for token in ("tenant-a-admin-1", "root-admin-1"))
        self.assertEqual((one["quota_bytes"], all_of_it["quota_bytes"]), (4 << 20, 8 << 20))

    @unittest.skipIf(os.geteuid(), "only root can become another user")
    def test_the_group_of_the_socket_gives_no_rights(self):
        self.start()
        self.server.folder.chmod(0o755)
        self.refused(as_stranger(self.server, "GET", "/api/v1/store/stats"), 401)
        self.refused(as_stranger(self.server, "GET", "/api/v1/store/export?tenant=b", "tenant-a-admin-1"), 403)
        status, text = as_stranger(self.server, "GET", "/api/v1/store/export", "tenant-a-admin-1")
        self.assertEqual(status, 200)
        self.assertIn(b"svc-a", text)
        stats = as_stranger(self.server, "GET", "/api/v1/store/stats", "tenant-a-admin-1")[1]
        self.assertIn(b"svc-a", stats)
        self.assertNotIn(b"svc-b", stats)
        self.refused(as_stranger(self.server, "POST", f"/api/v1/store/backup?dir={self.backups}", "root-admin-1", "a"), 403, "server.backup_dir")
        self.assertIn(b"svc-b", ask_here(self.server.folder / "kiln.sock", "GET", "/api/v1/store/export?tenant=b", tenant="a")[1])


class Backups(unittest.TestCase):
    """Where a backup may be written: without tokens, as `kiln` runs on a laptop."""

    def setUp(self):
        self.server = KilnServer()
        self.addCleanup(self.server.__exit__)
        self.place = self.server.folder / "backups"
        self.place.mkdir()
        self.place.chmod(0o777)

    def backup(self, dir):
        return ask(self.server.http, "POST", f"/api/v1/store/backup?dir={dir}")

    def test_without_a_directory_clients_have_none_made(self):
        self.server.start()
        status, text = self.backup(self.place / "x")
        self.assertEqual(status, 403)
        self.assertIn(b"server.backup_dir", text)
        self.assertEqual(list(self.place.iterdir()), [])
        here = ask_here(self.server.folder / "kiln.sock", "POST", f"/api/v1/store/backup?dir={self.place}/mine")
        self.assertEqual(here[0], 200, here[1])
        self.assertTrue((self.place / "mine" / "store.json").exists())

    def test_names_do_not_lead_out_of_the_directory(self):
        outside = self.server.folder / "outside"
        outside.mkdir()
        outside.chmod(0o777)
        (self.place / "link").symlink_to(outside)
        self.server.words += ("--backup-dir", str(self.place))
        self.server.start()
        for dir in ("..", ".", "", "a/b", "../outside", f"{self.place}/../outside", str(outside), "/", f"{self.place}", f"{self.place}/", ".hidden", "a%00b", "x" * 300):
            with self.subTest(dir):
                self.assertEqual(self.backup(dir)[0], 400)
        self.assertEqual(self.backup("link")[0], 409)
        self.assertEqual(list(outside.iterdir()), [])
        self.assertEqual({path.name for path in self.place.iterdir()}, {"link"})
        self.assertEqual(self.backup("one")[0], 200)
        self.assertEqual(self.backup(f"{self.place}/two")[0], 200)
        status, text = self.backup("one")
        self.assertEqual((status, b"one: the directory is not empty" in text), (409, True))
        for name in "one", "two":
            self.assertTrue((self.place / name / "store.json").exists())

    def test_the_command_names_a_backup_of_a_server_elsewhere(self):
        self.server.words += ("--backup-dir", str(self.place))
        self.server.start()
        done = subprocess.run([KILN, "store", "backup", "nightly", "--server", f"http://127.0.0.1:{self.server.http}"], capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual((done.returncode, done.stdout), (0, "0 blocks in nightly\n"), done.stderr)
        self.assertTrue((self.place / "nightly" / "store.json").exists())


if __name__ == "__main__":
    unittest.main()
