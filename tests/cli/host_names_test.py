#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which host names a server without tokens accepts, what pages of other sites may do, and headers that are sent twice."""
import http.client
import json
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

SOURCE = pathlib.Path(os.environ.get("KILN_SOURCE_DIR", "."))
sys.path.insert(0, str(SOURCE / "tests/support"))
from kiln_server import KilnServer  # noqa: E402

LINES = b"main;read 3\nmain;idle 1\n"
INGEST = "/ingest?name=shop&format=folded"
CROSS_SITE = {"Sec-Fetch-Site": "cross-site"}
LINK = CROSS_SITE | {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}


def ask(server, method, path, headers=(), body=b"", port=None):
    """Status, headers and body; `headers` may be pairs, to send one twice."""
    pairs = list(headers.items()) if isinstance(headers, dict) else list(headers)
    connection = http.client.HTTPConnection("127.0.0.1", port or server.http, timeout=60)
    connection.putrequest(method, path, skip_host=any(name.lower() == "host" for name, _ in pairs), skip_accept_encoding=True)
    for name, value in [*pairs, ("Content-Length", str(len(body)))]:
        connection.putheader(name, value)
    connection.endheaders(body)
    answer = connection.getresponse()
    try:
        return answer.status, dict(answer.getheaders()), answer.read()
    finally:
        connection.close()


def curl(server, *words, data=None, port=None):
    """The answer over HTTP/2, head and body, in small letters."""
    url = f"http://127.0.0.1:{port or server.http}{words[-1]}"
    done = subprocess.run(["curl", "-s", "-i", "--http2-prior-knowledge", *words[:-1], url], input=data, capture_output=True,
                          check=True, timeout=60)
    return done.stdout.decode().lower()


class HostNames(unittest.TestCase):
    def status(self, server, method, path, **headers):
        return ask(server, method, path, {name.replace("_", "-"): value for name, value in headers.items()}, LINES)[0]

    def test_loopback_accepts_its_own_names(self):
        with KilnServer() as server:
            for host in (f"localhost:{server.http}", "LOCALHOST.", "kiln.localhost", f"[::1]:{server.http}", "192.0.2.7:4040"):
                self.assertEqual(self.status(server, "GET", "/api/v1/services", Host=host), 200, host)
            for path in ("/api/v1/services", "/", "/metrics", "/healthz", "/ready", "/api/v1/status"):
                status, headers, body = ask(server, "GET", path, {"Host": "evil.example"})
                self.assertEqual(status, 421, path)
                self.assertIn(b"server.host_names", body)
                self.assertEqual(headers["cross-origin-resource-policy"], "same-origin")
            self.assertEqual(self.status(server, "POST", INGEST, Host="evil.example"), 421)
            self.assertEqual(self.status(server, "POST", INGEST, Host="localhost"), 200)

    def test_names_of_options_variables_and_the_file_are_accepted(self):
        with KilnServer("--host-names", "kiln.example,other.example", "--host-names", "third.example") as server:
            for host in ("kiln.example", "Other.Example.:80", "third.example:4040"):
                self.assertEqual(self.status(server, "GET", "/api/v1/services", Host=host), 200, host)
            self.assertEqual(self.status(server, "GET", "/api/v1/services", Host="fourth.example"), 421)
        with KilnServer(env={"KILN_HOST_NAMES": "server,pyroscope"}) as server:
            self.assertEqual(self.status(server, "GET", "/api/v1/services", Host="pyroscope:4040"), 200)
            server.stop()
            settings = server.folder / "kiln.yaml"
            settings.write_text("server: {host_names: [file.example]}\n")
            server.env, server.words = {}, ("--config", str(settings))
            server.start()
            self.assertEqual(self.status(server, "GET", "/api/v1/services", Host="file.example"), 200)
            self.assertEqual(self.status(server, "GET", "/api/v1/services", Host="pyroscope:4040"), 421)

    def test_programs_send_to_an_anonymous_server_under_any_name(self):
        with KilnServer("--allow-anonymous") as server:
            for port, path, kind in ((server.http, INGEST, "text/plain"), (server.otlp_http, "/v1development/profiles", "application/json")):
                body = LINES if path == INGEST else b"{}"
                name = {"Host": "pyroscope:4040", "Content-Type": kind}
                self.assertEqual(ask(server, "POST", path, name, body, port)[0], 200, path)
                page = name | {"Origin": "http://pyroscope:4040"}
                self.assertEqual(ask(server, "POST", path, page, body, port)[0], 421, path)
            self.assertEqual(self.status(server, "GET", "/api/v1/services", Host="pyroscope:4040"), 421)
            self.assertEqual(self.status(server, "DELETE", "/api/v1/services/shop", Host="pyroscope:4040"), 421)

    def test_a_server_with_tokens_accepts_any_name(self):
        with KilnServer() as server:
            server.stop()
            tokens = server.folder / "tokens.yaml"
            tokens.write_text("- {token: all-of-it, access: admin}\n")
            server.words = ("--tokens", str(tokens))
            server.start()
            bearer = {"Authorization": "Bearer all-of-it", "Host": "kiln.example"}
            self.assertEqual(ask(server, "GET", "/api/v1/services", bearer)[0], 200)
            self.assertEqual(ask(server, "GET", "/api/v1/services", bearer | CROSS_SITE)[0], 403)

    def test_a_link_opens_the_page_and_nothing_else(self):
        with KilnServer() as server:
            self.assertEqual(ask(server, "GET", "/", LINK)[0], 200)
            self.assertEqual(ask(server, "GET", "/explore?service=shop", LINK)[0], 200)
            self.assertEqual(ask(server, "GET", "/", CROSS_SITE)[0], 403)
            self.assertEqual(ask(server, "GET", "/api/v1/services", LINK)[0], 403)
            self.assertEqual(ask(server, "GET", "/api/v1/services", CROSS_SITE)[0], 403)
            self.assertEqual(ask(server, "GET", "/api/v1/services", {"Sec-Fetch-Site": "same-site"})[0], 403)
            self.assertEqual(ask(server, "GET", "/api/v1/services", {"Sec-Fetch-Site": "same-origin"})[0], 200)

    def test_credentials_and_tenants_are_sent_once(self):
        with KilnServer("--multitenant") as server:
            once, twice = [("X-Scope-OrgID", "a")], [("X-Scope-OrgID", "a"), ("x-scope-orgid", "b")]
            keys = [("Authorization", "Bearer a"), ("authorization", "Bearer b")]
            self.assertEqual(ask(server, "GET", "/api/v1/services", once)[0], 200)
            self.assertEqual(ask(server, "GET", "/api/v1/services", twice)[0], 400)
            status, _, body = ask(server, "GET", "/api/v1/services", once + keys)
            self.assertEqual((status, json.loads(body)["error"]["code"]), (400, "bad_request"))
            self.assertEqual(ask(server, "GET", "/ready", keys)[0], 400)

    @unittest.skipUnless(shutil.which("curl"), "no curl to speak HTTP/2 with")
    def test_http2_and_grpc(self):
        with KilnServer() as server:
            self.assertIn("http/2 200", curl(server, "/api/v1/services"))
            self.assertIn("http/2 421", curl(server, "-H", "Host: evil.example", "/api/v1/services"))
            self.assertIn("http/2 400", curl(server, "-H", "Authorization: a", "-H", "authorization: b", "/api/v1/services"))
            call = ("-H", "content-type: application/grpc", "--data-binary", "@-",
                    "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export")
            empty, port = bytes(5), server.otlp_grpc
            self.assertIn("grpc-status: 0", curl(server, *call, data=empty, port=port))
            self.assertIn("grpc-status: 7", curl(server, "-H", "Host: evil.example", *call, data=empty, port=port))
            for name in ("authorization", "x-scope-orgid"):
                said = curl(server, "-H", f"{name}: a", "-H", f"{name}: b", *call, data=empty, port=port)
                self.assertIn("grpc-status: 3", said)

    def test_the_unix_socket_has_no_names(self):
        with KilnServer() as server:
            done = subprocess.run([os.environ.get("KILN", "build/kiln"), "query", "--services", "--server", f"unix:{server.folder}/kiln.sock"],
                                  capture_output=True, text=True, check=False, timeout=60)
            self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main()
