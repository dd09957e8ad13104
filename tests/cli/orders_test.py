#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kiln boost, pause, resume and agents against a real server, whose agents are played here; tokens, restarts, and what strangers send."""
import concurrent.futures
import datetime
import gzip
import http.client
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))
from kiln_server import KILN, KilnServer  # noqa: E402

TOKENS = """
- {name: agents, token: the-agents, access: write}
- {name: pager, token: the-pager, access: control}
- {name: page, token: the-reader, access: read}
- {name: shop pager, token: shop-pager, tenant: shop, access: [read, control]}
"""


def ask(port, method, path, body=None, **headers):
    """Status and body, read as JSON where it is."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    data = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
    connection.request(method, path, data, {k.replace("_", "-"): v for k, v in headers.items()})
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    return answer.status, json.loads(text) if answer.headers.get_content_type() == "application/json" else text


def report(port, host, **said):
    """An agent says how it is; its orders."""
    status, answer = ask(port, "POST", f"/api/v1/agents/id-{host}", {"id": f"id-{host}", "host": host, "state": "running", "hz": 19} | said)
    assert status == 200, answer
    return answer["orders"]


def when(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


class Commands(unittest.TestCase):
    def setUp(self):
        self.server = KilnServer()
        self.server.__enter__()
        self.addCleanup(self.server.__exit__)
        for name in "shop", "cart":
            self.assertEqual(ask(self.server.http, "POST", f"/ingest?name={name}&format=folded", b"main;work 5\n")[0], 200)
        report(self.server.http, "web-1")

    def kiln(self, *words, code=0):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("KILN_")}
        done = subprocess.run([KILN, *words], capture_output=True, text=True, check=False,
                              env=environment | {"KILN_SERVER": f"unix:{self.server.folder}/kiln.sock"})
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def test_a_service_is_boosted_as_the_agent_is_told(self):
        said = self.kiln("boost", "shop", "-F", "299", "-d", "5m", "--why", "slow")
        self.assertRegex(said, r"^boosted service shop to 299 Hz until \d{4}-.*Z\n$")
        (order,) = report(self.server.http, "web-1")
        self.assertEqual([order[k] for k in ("kind", "target", "name", "hz", "host", "why")], ["boost", "service", "shop", 299, None, "slow"])
        self.assertAlmostEqual(when(order["expires"]) - when(order["created"]), 300, delta=0.01)
        self.assertIn("an order was given", self.server.said())
        self.assertEqual(self.kiln("boost", "shop", "--end"), "no longer boosted: service shop\n")
        self.assertEqual(report(self.server.http, "web-1"), [])

    def test_all_of_one_host_are_resumed(self):
        report(self.server.http, "web-2")
        self.kiln("pause", "web-2")
        self.kiln("pause", "cart", "--host", "web-2")
        self.kiln("pause", "cart", "--host", "web-1")
        self.assertEqual(len(json.loads(self.kiln("resume", "--all", "--host", "web-2", "--json"))), 2)
        self.kiln("resume", "cart")

    def test_no_rate_is_no_boost(self):
        self.assertIn("kiln pause", self.kiln("boost", "cart", "-F", "0", code=2))

    def test_whom_a_word_means(self):
        self.assertIn("paused host web-1", self.kiln("pause", "web-1"))
        self.assertIn("paused host id-web-1", self.kiln("pause", "id-web-1"))
        self.assertIn("paused service cart", self.kiln("pause", "cart"))
        self.assertIn("no service or host of this name is known", self.kiln("pause", "carr", code=2))
        self.assertIn("no agent that could follow", self.kiln("pause", "carr", "--host", "nowhere"))
        report(self.server.http, "shop")
        self.assertIn("shop is both a service and a host: say --service shop, or --host shop", self.kiln("pause", "shop", code=2))
        self.assertIn("paused host shop", self.kiln("pause", "--host", "shop"))
        self.assertIn("paused service shop", self.kiln("pause", "--service", "shop"))
        self.assertIn("is both a host and a service that have orders", self.kiln("resume", "shop", code=2))
        self.assertIn("resumed service shop", self.kiln("resume", "--service", "shop"))
        self.assertIn("resumed host shop", self.kiln("resume", "shop"))
        self.assertIn("no such order", self.kiln("resume", "shop", code=1))
        for words in (), ("shop", "--all"), ("--service", "a", "--pid", "7"):
            self.assertIn("whom? Say one of", self.kiln("pause", *words, code=2))

    def test_one_host_hears_only_what_is_for_it(self):
        report(self.server.http, "web-2")
        self.kiln("pause", "web-2")
        self.kiln("boost", "shop", "--host", "web-2")
        self.kiln("boost", "--pid", "4711", "--host", "web-1")
        self.kiln("boost", "--container", "deadbeef")
        self.assertEqual([(o["target"], o["pid"]) for o in report(self.server.http, "web-1")], [("process", 4711), ("container", None)])
        self.assertEqual([o["target"] for o in report(self.server.http, "web-2")], ["host", "service", "container"])

    def test_all_is_paused_and_resumed(self):
        self.kiln("pause", "cart")
        self.assertIn("paused every host until", self.kiln("pause", "--all", "-d", "2h"))
        self.assertIn("an order for all still holds", self.kiln("resume", "cart"))
        self.kiln("pause", "cart")
        self.assertEqual(len(json.loads(self.kiln("resume", "--all", "--json"))), 2)
        self.assertEqual(report(self.server.http, "web-1"), [])

    def test_agents_are_listed_with_what_they_follow(self):
        order = json.loads(self.kiln("boost", "shop", "--json"))["orders"][0]["id"]
        report(self.server.http, "web-2", orders=[order], version="9.9", samples=1000, problem="no clock", state="failed",
               drops=[{"reason": "lost", "count": 10}], unwind={"complete": 900, "all": 1000}, cpu_cores=0.002, memory_bytes=1 << 20)
        said = self.kiln("agents")
        self.assertRegex(said, r"(?m)^web-1 +running ")
        self.assertRegex(said, r"(?m)^web-2 +failed +9\.9 .* 19 Hz +1,000 +1\.0% +90\.0% +0\.2% .* 1$")
        self.assertRegex(said, r"(?m)^web-2: no clock$")
        self.assertRegex(said, r"(?m)^boost +service shop +199 Hz ")
        answer = json.loads(self.kiln("agents", "--json"))
        self.assertEqual([a["host"] for a in answer["agents"]], ["web-1", "web-2"])
        self.assertEqual([o["id"] for o in answer["orders"]], answer["agents"][1]["orders"])

    def test_orders_outlive_the_server_and_end_by_themselves(self):
        self.kiln("boost", "shop")
        self.kiln("pause", "cart", "-d", "2s")
        self.server.kill()
        self.server.start()
        names = [order["name"] for order in report(self.server.http, "web-1")]
        self.assertIn("shop", names)
        deadline = time.monotonic() + 30
        while "cart" in [order["name"] for order in report(self.server.http, "web-1")]:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.1)
        self.assertEqual([o["name"] for o in json.loads(self.kiln("agents", "--json"))["orders"]], ["shop"])

    def test_a_damaged_book_is_put_aside_and_the_server_starts(self):
        self.kiln("boost", "shop")
        self.server.kill()
        book = self.server.data / "orders.json"
        book.write_bytes(book.read_bytes()[:-20])
        self.server.start()
        self.assertEqual(report(self.server.http, "web-1"), [])
        self.assertTrue((self.server.data / "orders.json.damaged").exists())
        self.kiln("boost", "shop")
        self.assertEqual(len(report(self.server.http, "web-1")), 1)

    def test_a_server_that_is_not_there_is_named(self):
        self.server.stop()
        self.assertIn(f"unix:{self.server.folder}/kiln.sock", self.kiln("agents", code=4))
        self.assertIn(f"unix:{self.server.folder}/kiln.sock", self.kiln("pause", "--all", code=4))


class Anonymous(unittest.TestCase):
    """A server without tokens, as it runs by default: every user of the host reaches its port."""

    def setUp(self):
        self.server = KilnServer()
        self.addCleanup(self.server.__exit__)

    def start(self, *words):
        self.server.words += words
        self.server.start()
        report(self.server.http, "web-1")

    def give(self, **order):
        return ask(self.server.http, "POST", "/api/v1/orders", order)

    def kiln(self, *words, code=0, **env):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("KILN_")}
        done = subprocess.run([KILN, *words], capture_output=True, text=True, check=False, env=environment | env)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def refused(self, answer):
        status, said = answer
        self.assertEqual((status, said["error"]["code"]), (403, "forbidden"), said)
        self.assertIn("server.anonymous_orders", said["error"]["message"])

    def test_the_port_takes_small_boosts_and_no_pauses(self):
        self.start()
        here = {"KILN_SOCKET": str(self.server.folder / "kiln.sock")}
        status, said = self.give(kind="boost", target="service", name="shop")
        self.assertEqual(status, 201)
        self.assertEqual(ask(self.server.http, "DELETE", f"/api/v1/orders/{said['orders'][0]['id']}")[0], 204)
        self.refused(self.give(kind="boost", target="service", name="shop", hz=200))
        self.refused(self.give(kind="boost", target="service", name="shop", duration=601))
        self.refused(self.give(kind="pause", target="all"))
        self.assertEqual(report(self.server.http, "web-1"), [])
        self.assertIn("may not pause", self.kiln("pause", "--all", "--server", f"http://127.0.0.1:{self.server.http}", code=2))
        self.kiln("pause", "--all", **here)
        (order,) = report(self.server.http, "web-1")
        self.refused(ask(self.server.http, "DELETE", f"/api/v1/orders/{order['id']}"))
        self.assertEqual(len(report(self.server.http, "web-1")), 1)
        self.kiln("resume", "--all", **here)
        self.assertEqual(report(self.server.http, "web-1"), [])
        self.kiln("boost", "--all", "-F", "999", "-d", "1h", **here)
        session = ask(self.server.http, "GET", "/api/v1/session")[1]
        self.assertEqual(session["orders"], "boost")
        self.assertIn("no tokens", session["orders_reason"])

    def test_an_alert_of_several_is_taken_whole_or_not_at_all(self):
        self.start("--anonymous-orders", "boost")
        alerts = {"alerts": [{"status": "firing", "labels": {"service": name}} for name in ("shop", "cart")]}
        self.refused(ask(self.server.http, "POST", "/api/v1/orders?hz=999&label=service", alerts))
        self.assertEqual(report(self.server.http, "web-1"), [])
        self.assertEqual(ask(self.server.http, "POST", "/api/v1/orders?label=service", alerts)[0], 201)
        self.assertEqual(len(report(self.server.http, "web-1")), 2)

    def test_the_setting_takes_all_or_none(self):
        self.start("--anonymous-orders", "all")
        self.assertEqual(self.give(kind="pause", target="all")[0], 201)
        self.assertEqual(ask(self.server.http, "GET", "/api/v1/session")[1]["orders"], "all")
        self.server.stop()
        self.server.words = ("--anonymous-orders", "off")
        self.server.start()
        self.refused(self.give(kind="boost", target="all"))
        self.refused(self.give(kind="pause", target="all"))
        self.assertIn("is none of off, boost, all", self.kiln("config", code=2, KILN_ANONYMOUS_ORDERS="some"))


@unittest.skipIf(os.geteuid(), "only root can become other users")
class OwnServer(unittest.TestCase):
    """A server of an ordinary user, without any option about sockets."""
    OWNER, STRANGER = 65533, 65532

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.folder.chmod(0o755)
        self.kiln = shutil.copy(KILN, self.folder / "kiln")  # the build folder may be closed to them
        self.own = self.folder / "own"
        self.own.mkdir(0o700)
        os.chown(self.own, self.OWNER, self.OWNER)

    def run_as(self, user, *words, **env):
        return subprocess.Popen([self.kiln, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd="/", user=user, group=user,
                                extra_groups=[], env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", "KILN_SERVER": ""} | env)

    def said(self, user, code, *words, **env):
        done = self.run_as(user, *words, **env)
        said = done.communicate(timeout=60)[0]
        self.assertEqual(done.returncode, code, said)
        return said

    def test_who_started_it_pauses_and_another_user_does_not(self):
        ready = self.own / "ready.json"
        server = self.run_as(self.OWNER, "server", "--data-dir", str(self.own / "data"), "--listen", "127.0.0.1:0", "--otlp-grpc", "off",
                             "--otlp-http", "off", "--ready-file", str(ready), XDG_RUNTIME_DIR=str(self.own))
        self.addCleanup(server.communicate)
        self.addCleanup(server.kill)
        deadline = time.monotonic() + 60
        while not ready.exists():
            self.assertIsNone(server.poll())
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)
        port = json.loads(ready.read_text())["http"]
        self.assertTrue((self.own / "kiln" / "kiln.sock").is_socket())
        said = self.said(self.STRANGER, 2, "pause", "--all", "--server", f"http://127.0.0.1:{port}")
        self.assertIn("clients without a token may not pause", said)
        self.assertIn("paused every host", self.said(self.OWNER, 0, "pause", "--all", XDG_RUNTIME_DIR=str(self.own)))
        self.assertEqual(len(ask(port, "GET", "/api/v1/orders")[1]["orders"]), 1)
        self.assertIn("resumed every host", self.said(self.OWNER, 0, "resume", "--all", XDG_RUNTIME_DIR=str(self.own)))


class Strangers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        tokens = pathlib.Path(cls.folder.name) / "tokens.yaml"
        tokens.write_text(TOKENS, encoding="ascii")
        cls.server = KilnServer("--tokens", str(tokens))
        cls.server.__enter__()

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__()
        cls.folder.cleanup()

    def ask(self, token, method, path, body=None, **headers):
        return ask(self.server.http, method, path, body, Authorization=f"Bearer {token}", **headers)

    def test_only_who_may_control_gives_orders(self):
        order = {"kind": "pause", "target": "all"}
        for token in "the-agents", "the-reader", "nobody-at-all":
            self.assertIn(self.ask(token, "POST", "/api/v1/orders", order)[0], (401, 403))
            self.assertIn(self.ask(token, "DELETE", "/api/v1/orders/1")[0], (401, 403))
        status, answer = self.ask("the-pager", "POST", "/api/v1/orders", order)
        self.assertEqual((status, answer["orders"][0]["by"]), (201, "pager"))
        self.assertEqual(self.ask("the-pager", "GET", "/api/v1/orders")[0], 403)
        self.assertEqual(self.ask("the-reader", "POST", "/api/v1/agents/x", {})[0], 403)
        self.assertEqual(self.ask("the-agents", "POST", "/api/v1/agents/x", {})[0], 200)
        self.assertEqual(self.ask("the-pager", "DELETE", "/api/v1/orders/" + answer["orders"][0]["id"])[0], 204)

    def test_where_profiles_go_an_agent_may_ask_and_nothing_else(self):
        for port in self.server.otlp_grpc, self.server.otlp_http:
            bearer = {"Authorization": "Bearer the-agents"}
            self.assertEqual(ask(port, "POST", "/api/v1/agents/x", {}, **bearer)[0], 200)
            self.assertIn(ask(port, "POST", "/api/v1/orders", {}, **bearer)[0], (404, 405))
            self.assertEqual(ask(port, "POST", "/api/v1/agents/x", {})[0], 401)

    def test_a_token_of_a_tenant_is_for_that_tenant(self):
        order = self.ask("shop-pager", "POST", "/api/v1/orders", {"kind": "boost", "target": "service", "name": "till"})[1]["orders"][0]
        self.assertEqual(self.ask("the-agents", "POST", "/api/v1/agents/x", {})[1]["orders"], [])
        self.assertEqual(self.ask("the-pager", "DELETE", "/api/v1/orders/" + order["id"])[0], 404)
        self.assertEqual(self.ask("shop-pager", "DELETE", "/api/v1/orders/" + order["id"])[0], 204)

    def test_what_strangers_send_is_refused_in_words(self):
        bodies = [b"", b"{", b"[]", b"null", b'{"kind":"boost"}', b'{"kind":"boost","target":"service","name":"' + b"x" * 300 + b'"}',
                  b'{"kind":"boost","target":"all","hz":1e9}', b'{"kind":"pause","target":"all","duration":1e300}',
                  b'{"kind":"pause","target":"service","name":"a\\u0000b"}', b'{"alerts":[{"status":"firing","labels":{}}]}', b'{"alerts":{}}',
                  b'{"a":' + b"[" * 10000 + b"]" * 10000 + b"}", b"\xff\xfe", b'{"kind":"boost","target":"process","pid":99999999999,"host":"x"}']
        for body in bodies:
            with self.subTest(body=body[:40]):
                status, answer = self.ask("the-pager", "POST", "/api/v1/orders", body)
                self.assertIn(status, (400, 413))
                self.assertTrue(answer["error"]["message"])
        for body in b"", b"[]", b'{"id":"y"}', b'{"id":"x","state":1}', b'{"id":"x","drops":[{"reason":"r","count":-1}]}':
            with self.subTest(body=body[:40]):
                self.assertEqual(self.ask("the-agents", "POST", "/api/v1/agents/x", body)[0], 400)
        self.assertEqual(self.ask("the-pager", "POST", "/api/v1/orders", b" " * (2 << 20))[0], 413)
        self.assertIn(self.ask("the-agents", "POST", "/api/v1/agents/x", gzip.compress(b" " * (64 << 20)), Content_Encoding="gzip")[0], (400, 413))
        self.assertEqual(self.ask("the-agents", "POST", "/api/v1/agents/" + "x" * 64, {})[0], 400)
        self.assertEqual(self.ask("the-reader", "GET", "/api/v1/orders")[1], {"orders": []})

    def test_orders_from_many_at_once_are_all_there_or_refused(self):
        def give(i):
            return self.ask("shop-pager", "POST", "/api/v1/orders", {"kind": "pause", "target": "service", "name": f"s{i % 20}"})

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            self.assertEqual({status for status, _ in pool.map(give, range(60))}, {201})
        orders = self.ask("shop-pager", "GET", "/api/v1/orders")[1]["orders"]
        self.assertEqual(sorted(order["name"] for order in orders), sorted(f"s{i}" for i in range(20)))
        for order in orders:
            self.assertEqual(self.ask("shop-pager", "DELETE", "/api/v1/orders/" + order["id"])[0], 204)


if __name__ == "__main__":
    unittest.main(verbosity=0)
