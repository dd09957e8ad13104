#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Signing in to a real server with tokens, as a browser does it; and what a session may and may not."""
import http.client
import http.cookies
import json
import pathlib
import ssl
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))
from kiln_server import KilnServer  # noqa: E402

TOKENS = """
- {name: shop page, token: shop-reader, tenant: shop, access: read}
- {name: shop sender, token: shop-writer, tenant: shop, access: write}
- {name: bank sender, token: bank-writer, tenant: bank, access: write}
- {name: operator, token: the-operator, access: admin}
"""
SAMPLES = b"main;work 5\n"
PAGE = {"X-Kiln-Page": "1"}


class Browser:
    """Keeps its cookie, and says what browsers say."""

    def __init__(self, server, **always):
        self.server, self.always, self.cookie, self.attributes = server, always, None, None

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.server.http, timeout=60)

    def ask(self, method, path, body=None, **headers):
        words = {k.replace("_", "-"): v for k, v in (self.always | headers).items()}
        if self.cookie:
            words["Cookie"] = "theme=dark; kiln_session=" + self.cookie
        connection = self.connect()
        connection.request(method, path, body, words)
        answer = connection.getresponse()
        answer.text = answer.read()
        connection.close()
        if answer.headers["Set-Cookie"]:
            self.attributes = http.cookies.SimpleCookie(answer.headers["Set-Cookie"])["kiln_session"]
            self.cookie = self.attributes.value or None
        return answer

    def sign_in(self, token, **headers):
        return self.ask("POST", "/api/v1/session", json.dumps({"token": token}), **headers)

    def session(self):
        return json.loads(self.ask("GET", "/api/v1/session").text)


def wrong(answer):
    """Status, code and message of an error, which has the shape of all of them."""
    error = json.loads(answer.text)["error"]
    assert set(error) == {"code", "message", "where"} and error["message"], answer.text
    assert answer.headers.get_content_type() == "application/json", answer.headers
    return answer.status, error["code"], error["message"]


class Guarded(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.tokens = pathlib.Path(cls.folder.name) / "tokens.yaml"
        cls.tokens.write_text(TOKENS)
        cls.server = KilnServer("--tokens", str(cls.tokens), "--multitenant")
        cls.server.__enter__()
        for tenant, service in (("shop", "orders"), ("bank", "vault")):
            sent = Browser(cls.server).ask("POST", f"/ingest?name={service}&from={int(time.time())}", SAMPLES,
                                           Authorization=f"Bearer {tenant}-writer")
            assert sent.status == 200, sent.text

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__()
        cls.folder.cleanup()

    def signed_in(self, token):
        browser = Browser(self.server)
        answer = browser.sign_in(token)
        self.assertEqual(answer.status, 200, answer.text)
        return browser

    def test_a_stranger_is_told_that_there_is_a_door(self):
        session = Browser(self.server).session()
        self.assertEqual((session["tokens"], session["signed_in"], session["access"], session["tenant"], session["multitenant"]),
                         (True, False, [], None, True))
        self.assertEqual(wrong(Browser(self.server).ask("GET", "/api/v1/services"))[:2], (401, "unauthenticated"))

    def test_one_signs_in_reads_and_signs_out(self):
        browser = Browser(self.server)
        answer = browser.sign_in("shop-reader")
        self.assertEqual(answer.status, 200)
        self.assertEqual(answer.headers["Cache-Control"], "no-store")
        self.assertNotIn(b"shop-reader", answer.text)
        attributes = {k: browser.attributes[k] for k in ("httponly", "samesite", "path", "max-age", "secure")}
        self.assertEqual(attributes, {"httponly": True, "samesite": "Strict", "path": "/", "max-age": "43200", "secure": ""})
        self.assertRegex(browser.cookie, "^[0-9a-f]{64}$")
        self.assertEqual(json.loads(answer.text)["access"], ["read"])
        session = browser.session()
        self.assertEqual((session["signed_in"], session["access"], session["tenant"]), (True, ["read"], "shop"))
        services = json.loads(browser.ask("GET", "/api/v1/services").text)["services"]
        self.assertEqual([s["name"] for s in services], ["orders"])
        old = browser.cookie
        answer = browser.ask("DELETE", "/api/v1/session", **PAGE)
        self.assertEqual((answer.status, answer.text, browser.cookie), (204, b"", None))
        browser.cookie = old
        self.assertEqual(browser.ask("GET", "/api/v1/services").status, 401)
        self.assertFalse(browser.session()["signed_in"])
        self.assertEqual(browser.ask("DELETE", "/api/v1/session").status, 204)

    def test_a_reader_deletes_nothing_and_sees_no_other_tenant(self):
        browser = self.signed_in("shop-reader")
        self.assertEqual(wrong(browser.ask("DELETE", "/api/v1/services/orders", **PAGE))[:2], (403, "forbidden"))
        self.assertEqual(wrong(browser.ask("POST", "/api/v1/annotations", '{"text":"x"}', **PAGE))[:2], (403, "forbidden"))
        self.assertEqual(wrong(browser.ask("GET", "/api/v1/services", X_Scope_OrgID="bank"))[:2], (403, "forbidden"))
        self.assertEqual(wrong(browser.ask("GET", "/api/v1/services", X_Scope_OrgID="bank|shop"))[:2], (403, "forbidden"))
        self.assertEqual(browser.ask("GET", "/api/v1/store/stats").status, 403)
        status = json.loads(browser.ask("GET", "/api/v1/status").text)
        self.assertEqual((status["scope"], status["ingest"], status["drops"], status["store"]["profiles"]), ("tenant", None, [], 1))

    def test_the_operator_sees_the_whole_server(self):
        browser = self.signed_in("the-operator")
        self.assertEqual(browser.session()["access"], ["read", "write", "control", "admin"])
        browser.ask("GET", "/api/v1/types", Authorization="Bearer nonsense")
        status = json.loads(browser.ask("GET", "/api/v1/status").text)
        self.assertEqual(status["scope"], "server")
        self.assertEqual((status["ingest"]["profiles"], status["ingest"]["samples"], status["store"]["profiles"]), (2, 2, 2))
        self.assertGreater(status["memory"]["used_bytes"], 1 << 20)
        refused = [d for d in status["drops"] if (d["where"], d["reason"]) == ("access", "unauthenticated")]
        self.assertGreaterEqual(refused[0]["count"], 1)
        self.assertTrue(refused[0]["text"] and refused[0]["remedy"])

    def test_other_pages_change_nothing_through_a_session(self):
        browser = self.signed_in("the-operator")
        note = '{"text":"x"}'
        host = f"127.0.0.1:{self.server.http}"
        tenant = {"X_Scope_OrgID": "shop"}
        for headers, status in (({}, 403), (PAGE, 201), ({"Origin": f"http://{host}"}, 403), (PAGE | {"Origin": f"http://{host}"}, 201),
                                (PAGE | {"Origin": "http://evil.example"}, 403), (PAGE | {"Sec-Fetch-Site": "same-origin"}, 201),
                                (PAGE | {"Sec-Fetch-Site": "same-site"}, 403), (PAGE | {"Origin": "null"}, 403)):
            with self.subTest(headers=headers):
                self.assertEqual(browser.ask("POST", "/api/v1/annotations", note, **headers, **tenant).status, status)
        # and a program with a token needs none of it
        self.assertEqual(Browser(self.server).ask("POST", "/api/v1/annotations", note, Authorization="Bearer the-operator", **tenant).status, 201)
        # nor does another page sign somebody in
        self.assertEqual(wrong(Browser(self.server).sign_in("shop-reader", Origin="http://evil.example"))[:2], (403, "forbidden"))

    def test_a_token_that_is_said_counts_more_than_the_session(self):
        browser = self.signed_in("the-operator")
        self.assertEqual(browser.ask("GET", "/api/v1/services", Authorization="Bearer nonsense").status, 401)
        self.assertEqual(browser.ask("DELETE", "/api/v1/services/orders", Authorization="Bearer shop-reader", **PAGE).status, 403)

    def test_garbage_is_refused_in_words(self):
        browser = Browser(self.server)
        for cookie in ("x", "0" * 64, "0" * 60000, "%00%ff", '"quoted"', "a=b=c"):
            browser.cookie = cookie
            with self.subTest(cookie=cookie[:20]):
                self.assertEqual(wrong(browser.ask("GET", "/api/v1/services"))[:2], (401, "unauthenticated"))
                self.assertFalse(browser.session()["signed_in"])
        browser.cookie = None
        for body, status in ((b"", 400), (b"[]", 400), (b'{"token":1}', 400), (b'{"token":""}', 400), (b'{"token":"x","more":1}', 400),
                             (b'{"token":"' + b"x" * 5000 + b'"}', 400), (b'{"token":"' + b"x" * 100000 + b'"}', 413),
                             (b'{"token":"wrong-token"}', 401), (b'{"token":"shop-reader\\u0000"}', 401)):
            with self.subTest(body=body[:30]):
                answer = browser.ask("POST", "/api/v1/session", body)
                self.assertEqual(wrong(answer)[0], status, answer.text)
                self.assertIsNone(answer.headers["Set-Cookie"])

    def test_no_browser_window_comes_before_the_page(self):
        self.assertEqual(Browser(self.server).ask("GET", "/api/v1/services", **PAGE).headers["WWW-Authenticate"], 'Bearer realm="kiln"')
        self.assertIn("Basic", Browser(self.server).ask("GET", "/api/v1/services").headers["WWW-Authenticate"])

    def test_what_the_server_refuses_itself_has_the_shape_of_all_errors(self):
        operator = {"Authorization": "Bearer the-operator", "X_Scope_OrgID": "shop"}
        ask = Browser(self.server, **operator).ask
        self.assertEqual(wrong(ask("GET", "/api/v1/nothing"))[:2], (404, "not_found"))
        self.assertEqual(wrong(ask("PUT", "/api/v1/types"))[:2], (405, "method"))
        self.assertEqual(ask("PUT", "/api/v1/types").headers["Allow"], "GET, HEAD")
        self.assertEqual(wrong(ask("POST", "/api/v1/annotations", b"x" * (2 << 20)))[:2], (413, "limit"))
        self.assertEqual(wrong(ask("POST", "/api/v1/annotations", b"{}", Content_Encoding="snappy"))[:2], (415, "encoding"))
        self.assertEqual(wrong(ask("GET", "/api/v1/types", Content_Type="application/json", Authorization="Bearer no"))[:2],
                         (401, "unauthenticated"))
        self.assertEqual(wrong(Browser(self.server, Authorization="Bearer the-operator").ask("GET", "/api/v1/types"))[:2],
                         (401, "unauthenticated"))
        self.assertEqual(wrong(ask("POST", "/api/v1/store/backup?dir=here"))[0], 403)
        # others keep theirs
        connect = ask("POST", "/querier.v1.QuerierService/LabelNames", b"{}", Content_Type="application/json", Authorization="Bearer no")
        self.assertEqual((connect.status, json.loads(connect.text)["code"]), (401, "unauthenticated"))
        self.assertEqual(ask("GET", "/nothing").headers.get_content_type(), "text/plain")
        self.assertEqual(ask("POST", "/ingest?name=x", SAMPLES, Authorization="Bearer no").headers.get_content_type(), "text/plain")

    def test_a_session_ends_with_its_token(self):
        browser = self.signed_in("shop-reader")
        try:
            self.tokens.write_text(TOKENS.replace("shop-reader", "another-one"))
            self.server.process.send_signal(1)
            deadline = time.monotonic() + 60
            while browser.ask("GET", "/api/v1/services").status == 200:
                self.assertLess(time.monotonic(), deadline)
        finally:
            self.tokens.write_text(TOKENS)
            self.server.process.send_signal(1)
        while Browser(self.server).sign_in("shop-reader").status != 200:
            self.assertLess(time.monotonic(), deadline)
        self.assertFalse(browser.session()["signed_in"])


class Open(unittest.TestCase):
    def test_where_there_are_no_tokens_there_is_nothing_to_sign_in_to(self):
        with KilnServer() as server:
            browser = Browser(server)
            session = browser.session()
            self.assertEqual((session["tokens"], session["signed_in"], session["access"], session["tenant"], session["host_profiler"]),
                             (False, False, ["read", "write", "control", "admin"], None, "off"))
            status, code, message = wrong(browser.sign_in("whatever-token"))
            self.assertEqual((status, code), (409, "conflict"))
            self.assertIn("nothing to sign in to", message)
            self.assertEqual(json.loads(browser.ask("GET", "/api/v1/agents").text), {"agents": []})

    def test_a_restart_forgets_every_session(self):
        with tempfile.TemporaryDirectory() as folder:
            tokens = pathlib.Path(folder) / "tokens.yaml"
            tokens.write_text(TOKENS)
            with KilnServer("--tokens", str(tokens)) as server:
                browser = Browser(server)
                self.assertEqual(browser.sign_in("shop-reader").status, 200)
                server.kill()
                server.start()
                self.assertFalse(browser.session()["signed_in"])

    def test_over_tls_the_cookie_never_leaves_it(self):
        with tempfile.TemporaryDirectory() as folder:
            cert, key, tokens = (pathlib.Path(folder) / name for name in ("cert.pem", "key.pem", "tokens.yaml"))
            subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert, "-days", "2", "-subj",
                            "/CN=localhost"], check=True, capture_output=True)
            tokens.write_text(TOKENS)
            with KilnServer("--tokens", str(tokens), "--tls-cert", str(cert), "--tls-key", str(key)) as server:
                browser = Browser(server)
                trust = ssl.create_default_context(cafile=str(cert))
                trust.check_hostname = False
                browser.connect = lambda: http.client.HTTPSConnection("127.0.0.1", server.http, timeout=60, context=trust)
                self.assertEqual(browser.sign_in("shop-reader").status, 200)
                self.assertTrue(browser.attributes["secure"])
                self.assertTrue(browser.session()["signed_in"])

    def test_behind_a_proxy_that_speaks_tls_too(self):
        with tempfile.TemporaryDirectory() as folder:
            tokens = pathlib.Path(folder) / "tokens.yaml"
            tokens.write_text(TOKENS)
            with KilnServer("--tokens", str(tokens)) as server:
                browser = Browser(server, X_Forwarded_Proto="https")
                self.assertEqual(browser.sign_in("shop-reader").status, 200)
                self.assertTrue(browser.attributes["secure"])


class Agents(unittest.TestCase):
    """The host profiler of the server is told of, whether it may run here or not."""

    def test_the_one_in_the_server_is_the_first(self):
        with KilnServer("--host-profiler", "auto", "--report-interval", "1s") as server:
            browser = Browser(server)
            agent, deadline = {}, time.monotonic() + 60
            while not agent.get("samples") and agent.get("state") != "failed" and time.monotonic() < deadline:
                (agent,) = json.loads(browser.ask("GET", "/api/v1/agents").text)["agents"]
            session = browser.session()
            self.assertTrue(agent["local"] and agent["host"] and agent["kernel"] and agent["version"])
            if agent["state"] == "failed":
                self.assertTrue(agent["problem"])
                self.assertEqual((session["host_profiler"], session["host_profiler_reason"]), ("failed", agent["problem"]))
                return
            self.assertEqual((agent["state"], agent["hz"], agent["problem"], session["host_profiler"]), ("running", 19, None, "on"))
            self.assertGreater(agent["memory_bytes"], 1 << 20)
            unwind = agent["unwind"]
            ends = {e["reason"]: e["count"] for e in unwind["ends"]}
            self.assertEqual(sum(ends.values()), agent["samples"])
            self.assertEqual(ends.get("complete", 0), unwind["complete"])
            self.assertLessEqual(unwind["complete"], unwind["all"])

    def test_one_that_may_not_says_what_is_missing(self):
        with KilnServer("--host-profiler", "auto", "--cgroup", "/kiln-has-no-such-group") as server:
            (agent,) = json.loads(Browser(server).ask("GET", "/api/v1/agents").text)["agents"]
            self.assertEqual((agent["state"], agent["samples"], agent["unwind"]["share"]), ("failed", 0, None))
            self.assertTrue(agent["problem"])
            self.assertEqual(Browser(server).session()["host_profiler"], "failed")


if __name__ == "__main__":
    unittest.main()
