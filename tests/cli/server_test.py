#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A running `kiln server`: what it says of itself, who may come in, what it keeps, how it ends."""
import concurrent.futures
import gzip
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))
from kiln_server import KILN, KilnServer, sanitized  # noqa: E402

LONG = ("--retention", "20000d")  # the examples are old
PPROF = (ROOT / "examples" / "checkout.pb.gz").read_bytes()
PROTOBUF = {"Content-Type": "application/x-protobuf"}


def kiln(*words):
    return subprocess.run([KILN, *words], cwd=ROOT, capture_output=True, check=True).stdout


OTLP = kiln("convert", "examples/checkout.pb.gz", "--to", "otlp", "-o", "-")


def call(url, context=None, **request):
    """Status and body, whatever the status."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, **request), timeout=60, context=context) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read()


def url(server, path="/", port=None, scheme="http"):
    return f"{scheme}://127.0.0.1:{port or server.http}{path}"


def stats(server, **headers):
    status, body = call(url(server, "/api/v1/store/stats"), headers=headers)
    assert status == 200, (status, body)
    return json.loads(body)


def push(server, path="/v1development/profiles", body=OTLP, **more):
    return call(url(server, path, more.pop("port", None)), data=body, headers=PROTOBUF | more)


def start_fails(*words, env=None):
    """Exit code and what it said; everything on loopback and port 0 unless said otherwise."""
    usual = {"--listen": "127.0.0.1:0", "--otlp-grpc": "127.0.0.1:0", "--otlp-http": "127.0.0.1:0", "--socket": "off"}
    for name, value in usual.items():
        words = words if name in words else (*words, name, value)
    done = subprocess.run([KILN, "server", *words], capture_output=True, text=True, timeout=60, check=False,
                          env=os.environ | (env or {}))
    return done.returncode, done.stderr.strip().splitlines()[-1]


class Itself(unittest.TestCase):
    def test_says_what_and_how_it_is(self):
        with KilnServer() as server:
            self.assertEqual(call(url(server, "/ready")), (200, b"ready\n"))
            self.assertEqual(call(url(server, "/healthz")), (200, b"alive\n"))
            page = call(url(server))[1].decode()
            self.assertIn("<title>Kiln</title>", page)
            self.assertEqual(call(url(server, "/explore"))[1].decode(), page)
            script, = re.findall(r'src="(/assets/kiln-[0-9a-f]+\.js)"', page)
            self.assertIn(b"Send profiles", call(url(server, script))[1])
            self.assertEqual(call(url(server, "/nowhere"))[0], 404)
            ready = json.loads(server.ready.read_text())
            self.assertEqual(ready["pid"], server.process.pid)
            self.assertEqual(server.stop(), 0)
            for word in ("msg=starting", "msg=ready", "msg=stopping signal=SIGTERM", "msg=stopped"):
                self.assertIn(word, server.said())

    def test_metrics_are_prometheus_text(self):
        with KilnServer(*LONG) as server:
            push(server)
            text = call(url(server, "/metrics"))[1].decode()
        seen, typed = {}, {}
        for line in text.splitlines():
            if line.startswith("# TYPE "):
                _, _, name, kind = line.split()
                self.assertNotIn(name, typed)
                typed[name] = kind
            elif not line.startswith("#"):
                series, value = line.rsplit(" ", 1)
                self.assertNotIn(series, seen)
                seen[series] = float(value)
        for name in ("process_cpu_seconds_total", "process_resident_memory_bytes", "process_open_fds",
                     "process_start_time_seconds", 'kiln_pool_limit_bytes{pool="ingest"}'):
            self.assertGreater(seen[name], 0, name)
        self.assertEqual(typed["process_cpu_seconds_total"], "counter")
        self.assertEqual(seen['kiln_receiver_requests_total{receiver="otlp",outcome="accepted"}'], 1)
        self.assertEqual(sum(1 for s in seen if s.startswith("kiln_build_info{version=")), 1)

    def test_every_metric_is_documented(self):
        documented = set(re.findall(r"`((?:kiln|process)_\w+)`", (ROOT / "docs/guide/metrics.md").read_text()))
        with KilnServer(*LONG) as server:
            text = call(url(server, "/metrics"))[1].decode()
        self.assertEqual({line.split()[2] for line in text.splitlines() if line.startswith("# TYPE ")} - documented, set())
        sources = [source for source in (ROOT / "src").rglob("*.c")    # maps, and a function, have such names too
                   if not source.match("host/kernel*.c") and not source.match("collector/own.c") and "bpf" not in source.parts]
        written = {name for source in sources for name in re.findall(r'"(kiln_\w+)"', source.read_text())}
        self.assertEqual({name for name in documented if name.startswith("kiln_")}, written)

    def test_whatever_goes_wrong_has_a_sentence_on_the_page(self):
        rows = re.findall(r'\{\s*"(kiln_\w+)",\s*"([^,]*)",', (ROOT / "src/api/native_drops.c").read_text())
        told = {name for name, _ in rows}
        lines = [line for line in (ROOT / "docs/guide/metrics.md").read_text().splitlines() if line.startswith("| `kiln_")]
        bad = re.compile("refused|reject|drop|lost|fail|overflow|aside|damaged|silent|_late|unapplied|forgotten|bad_|foreign|held|evict|unopened|"
                         "duplicate|restart|early|error|filtered|missing|closed|reset|retired|deleted|unchecked")
        fine = {"kiln_export_dropped_samples_total", "kiln_export_failed_tries_total",  # told as requests; tried again
                "kiln_host_filtered_samples_total", "kiln_store_deleted_profiles_total",  # somebody wanted that
                "kiln_store_retired_blocks_total", "kiln_store_retired_bytes_total",
                "kiln_host_objects_closed_total", "kiln_host_unwind_evicted_total", "kiln_scrape_resets_total",  # nothing is lost
                "kiln_agent_link_failures_total",  # of an agent, asked again
                "kiln_exporter_damaged_files_total", "kiln_exporter_rejected_profiles_total",  # of a collector
                "kiln_names_missing_total", "kiln_store_unchecked_total",
                "kiln_names_debug_files_missing_total", "kiln_names_debug_files_refused_total"}
        names = {name for line in lines for name in re.findall(r"`(kiln_\w+_total)`", line.split("|")[1]) if bad.search(name)}
        self.assertEqual(names - told, fine)
        for name, label in rows:
            (line,) = [line for line in lines if f"`{name}`" in line.split("|")[1]]
            if label:
                key, value = re.fullmatch(r'(\w+)=\\"(\w+)\\"', label).groups()
                self.assertIn(f"`{key}`", line, label)
                self.assertRegex(line, rf"\b{value}\b", label)

    def test_logs_as_json(self):
        with KilnServer("--log-format", "json") as server:
            server.stop()
            lines = [json.loads(line) for line in server.said().splitlines()]
        self.assertEqual([l["level"] for l in lines], ["info"] * len(lines))
        self.assertEqual(lines[-1]["msg"], "stopped")

    def test_tells_a_supervisor(self):
        folder = pathlib.Path(os.environ.get("TMPDIR", "/tmp")) / f"kiln-notify-{os.getpid()}"
        folder.unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told:
            told.bind(str(folder))
            told.settimeout(30)
            try:
                with KilnServer(env={"NOTIFY_SOCKET": str(folder)}) as server:
                    self.assertEqual(told.recv(100), b"READY=1")
                    server.stop()
                    self.assertEqual(told.recv(100), b"STOPPING=1")
            finally:
                folder.unlink()


class Starting(unittest.TestCase):
    def test_who_comes_too_early_is_told_to_try_again(self):
        """The rules of redaction are read after the log: from a pipe, that lasts until we write them."""
        server = KilnServer()
        rules = server.folder / "rules.yaml"
        os.mkfifo(rules)
        server.words = ("--redact", str(rules))
        answers = []

        def ask(port, method, path):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            connection.request(method, path, OTLP if method == "POST" else None, PROTOBUF)
            answer = connection.getresponse()
            answers.append((path, answer.status, answer.headers["retry-after"], answer.read()))
            connection.close()

        def come_early():
            found = None
            while not found:
                found = server.log.exists() and re.search(r"for=everything address=127.0.0.1:0 port=(\d+)", server.said())
            while not answers:
                try:
                    ask(int(found.group(1)), "GET", "/ready")
                except OSError:
                    pass  # bound, but not open yet
            for method, path in (("GET", "/healthz"), ("GET", "/"), ("POST", "/v1/profiles")):
                ask(int(found.group(1)), method, path)
            rules.write_text("[]")
        with concurrent.futures.ThreadPoolExecutor() as pool:
            waits = pool.submit(come_early)
            with server:
                waits.result()
                self.assertEqual([answer[:3] for answer in answers],
                                 [("/ready", 503, None), ("/healthz", 200, None), ("/", 503, "1"),
                                  ("/v1/profiles", 503, "1")])
                self.assertIn(b"the server starts", answers[2][3])
                self.assertEqual(call(url(server, "/ready"))[0], 200)


class Keeping(unittest.TestCase):
    def test_takes_otlp_on_every_port_and_keeps_it_over_restarts(self):
        with KilnServer(*LONG) as server:
            for port in (server.http, server.otlp_http, server.otlp_grpc):
                self.assertEqual(push(server, port=port), (200, b""))
            self.assertEqual(push(server, "/api/v1/profiles?service=shop", PPROF)[0], 200)
            before = stats(server)
            self.assertGreater(before["profiles"], 4)
            self.assertEqual(server.stop(), 0)
            server.start()
            self.assertEqual(stats(server)["profiles"], before["profiles"])
            self.assertEqual(push(server, "/api/v1/profiles?service=late", PPROF)[0], 200)
            after = stats(server)["profiles"]
            self.assertGreater(after, before["profiles"])
            server.kill()
            self.assertIn(b"all well", kiln("store", "check", "--data-dir", server.data))
            self.assertIn(b"late", kiln("store", "export", "--data-dir", server.data, "--format", "otlp-json", "-o", "-"))
            server.start()
            self.assertEqual(stats(server)["profiles"], after)

    def test_a_signal_while_the_log_is_replayed_ends_it(self):
        def begin_with_signal():  # which is pending through exec until the server looks
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
            os.kill(os.getpid(), signal.SIGTERM)

        with KilnServer(*LONG) as server:
            self.assertEqual(push(server), (200, b""))
            before = stats(server)
            server.kill()
            stopped = subprocess.run(server.process.args, stdin=subprocess.DEVNULL, capture_output=True, timeout=60,
                                     preexec_fn=begin_with_signal)
            self.assertEqual(stopped.returncode, 0)
            self.assertIn(b"SIGTERM", stopped.stderr)
            self.assertNotIn(b"msg=ready", stopped.stderr)
            server.start()
            self.assertEqual(stats(server)["profiles"], before["profiles"])

    def test_the_otlp_ports_take_otlp_alone(self):
        with KilnServer() as server:
            for path in ("/", "/metrics", "/ready", "/api/v1/store/stats"):
                self.assertEqual(call(url(server, path, server.otlp_http))[0], 404)

    def test_the_socket_takes_everything(self):
        with KilnServer(*LONG) as server:
            with socket.socket(socket.AF_UNIX) as local:
                local.connect(str(server.folder / "kiln.sock"))
                connection = http.client.HTTPConnection("local")
                connection.sock = local
                connection.request("POST", "/v1development/profiles", OTLP, PROTOBUF)
                answer = connection.getresponse()
                self.assertEqual((answer.status, answer.read()), (200, b""))
                connection.request("GET", "/ready")
                self.assertEqual(connection.getresponse().status, 200)

    def test_redacts_before_it_keeps_and_reads_rules_again(self):
        with KilnServer(*LONG) as server:
            server.stop()
            rules = server.folder / "rules.yaml"
            rules.write_text("[{match: name, regex: ^main, action: replace, replacement: secret_one}]")
            server.words += ("--redact", str(rules))
            server.start()
            push(server, "/api/v1/profiles?service=one", PPROF)
            rules.write_text("[{match: name, regex: ^main, action: replace, replacement: secret_two}]")
            server.process.send_signal(signal.SIGHUP)
            deadline = time.monotonic() + 30
            while "redaction was read again" not in server.said() and time.monotonic() < deadline:
                time.sleep(0.01)
            push(server, "/api/v1/profiles?service=two", PPROF)
            self.assertIn(b"secret_one", call(url(server, "/api/v1/store/export?service=one"))[1])
            two = call(url(server, "/api/v1/store/export?service=two"))[1]
            self.assertIn(b"secret_two", two)
            self.assertNotIn(b"secret_one", two)
            rules.write_text("nonsense")
            server.process.send_signal(signal.SIGHUP)
            while "redaction stays as it was" not in server.said() and time.monotonic() < deadline:
                time.sleep(0.01)
            self.assertIn("redaction stays as it was", server.said())

    def test_the_configuration_file_holds_all_of_it(self):
        with KilnServer() as server:
            server.stop()
            config = server.folder / "kiln.yaml"
            config.write_text("store: {retention: 20000d, series_labels: [team]}\n"
                              "redaction:\n  - match: name\n    regex: ^main\n    action: drop\n")
            server.words += ("--config", str(config))
            server.start()
            push(server, "/api/v1/profiles?service=one", PPROF)
            self.assertIn(b"[redacted]", call(url(server, "/api/v1/store/export?service=one"))[1])

    @unittest.skipIf(sanitized(), "sanitizers take memory of their own")
    def test_stays_below_its_memory_limit(self):
        data = pathlib.Path(os.environ.get("KILN_TEST_DATA", "")) / "pprof" / "large.cpu.pb.gz"
        body = data.read_bytes() if data.exists() else PPROF
        limit = 160 << 20
        with KilnServer(*LONG, "--memory-limit", str(limit)) as server:
            with concurrent.futures.ThreadPoolExecutor(16) as pool:
                answers = list(pool.map(lambda i: push(server, f"/api/v1/profiles?service=s{i % 5}&n={i}", body)[0],
                                        range(160)))
            self.assertEqual(set(answers) - {200, 429, 503}, set())
            self.assertIn(200, answers)
            status = pathlib.Path(f"/proc/{server.process.pid}/status").read_text()
            peak = next(int(l.split()[1]) << 10 for l in status.splitlines() if l.startswith("VmHWM"))
            self.assertLess(peak, limit)
            self.assertEqual(call(url(server, "/ready"))[0], 200)
            self.assertEqual(server.stop(), 0)

    @unittest.skipIf(sanitized(), "sanitizers take memory of their own, which is room that there will be again")
    def test_what_can_never_fit_is_refused_for_good(self):
        bomb = gzip.compress(bytes(60 << 20))
        with KilnServer("--memory-limit", "128M") as server:
            status, said = push(server, "/api/v1/profiles?service=x", bomb)
            self.assertEqual(status, 413, said)
            status, said = push(server, body=bomb, **{"Content-Encoding": "gzip"})
            self.assertEqual(status, 413, said)


class Doors(unittest.TestCase):
    def test_tokens_say_who_may_do_what(self):
        with KilnServer(*LONG) as server:
            server.stop()
            tokens = server.folder / "tokens.yaml"
            tokens.write_text("- {name: w, token: write-me, access: write}\n- {name: a, token: all-of-it, access: admin}\n")
            server.words += ("--tokens", str(tokens), "--listen", "0.0.0.0:0")
            server.start()
            self.assertEqual(push(server)[0], 401)
            self.assertEqual(push(server, Authorization="Bearer wrong")[0], 401)
            self.assertEqual(push(server, Authorization="Bearer write-me")[0], 200)
            self.assertEqual(call(url(server, "/metrics"))[0], 401)
            bearer = {"Authorization": "Bearer write-me"}
            self.assertEqual(call(url(server, "/api/v1/store/stats"), headers=bearer)[0], 403)
            self.assertGreater(stats(server, Authorization="Bearer all-of-it")["profiles"], 0)
            self.assertEqual(call(url(server, "/ready"))[0], 200)

    def test_listening_beyond_loopback_needs_tokens(self):
        with KilnServer() as server:
            data = ("--data-dir", str(server.folder / "other"))
            code, said = start_fails(*data, "--listen", "0.0.0.0:0")
            self.assertEqual(code, 2, said)
            self.assertIn("token", said)
            server.stop()
            server.words += ("--listen", "0.0.0.0:0", "--allow-anonymous")
            server.start()
            self.assertEqual(call(url(server, "/ready"))[0], 200)

    def test_tenants_are_apart(self):
        with KilnServer(*LONG, "--multitenant") as server:
            self.assertEqual(push(server)[0], 401)
            self.assertEqual(push(server, **{"X-Scope-OrgID": "one"})[0], 200)
            self.assertGreater(stats(server, **{"X-Scope-OrgID": "one"})["profiles"], 0)
            self.assertEqual(stats(server, **{"X-Scope-OrgID": "two"})["profiles"], 0)

    @unittest.skipUnless(shutil.which("openssl"), "no openssl to make certificates with")
    def test_tls_with_and_without_certificates_of_clients(self):
        with KilnServer(*LONG) as server:
            server.stop()
            cert, key = server.folder / "cert.pem", server.folder / "key.pem"
            subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=kiln",
                            "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", cert],
                           check=True, capture_output=True)
            server.words += ("--tls-cert", str(cert), "--tls-key", str(key))
            server.start()
            context = ssl.create_default_context(cafile=cert)
            secure = url(server, "/v1development/profiles", scheme="https")
            self.assertEqual(call(secure, context, data=OTLP, headers=PROTOBUF), (200, b""))
            with self.assertRaises((OSError, http.client.HTTPException)):
                call(url(server, "/ready"))
            server.stop()
            server.words += ("--tls-client-ca", str(cert))
            server.start()
            secure = url(server, "/ready", scheme="https")
            with self.assertRaises(OSError):
                call(secure, context)
            context.load_cert_chain(cert, key)
            self.assertEqual(call(secure, context), (200, b"ready\n"))


class Refusals(unittest.TestCase):
    def test_a_data_folder_has_one_server(self):
        with KilnServer() as server:
            code, said = start_fails("--data-dir", str(server.data))
            self.assertEqual(code, 4)
            self.assertIn(f"another kiln server has this data folder (process {server.process.pid})", said)

    def test_a_port_that_is_taken_is_named(self):
        with KilnServer() as server:
            taken = f"127.0.0.1:{server.otlp_http}"
            code, said = start_fails("--data-dir", str(server.folder / "other"), "--otlp-grpc", taken)
            self.assertEqual(code, 4)
            self.assertIn(taken, said)
            self.assertIn("another program listens there already (say --otlp-grpc ADDRESS, or off)", said)

    def test_a_data_folder_that_cannot_be_used(self):
        with KilnServer() as server:
            (server.folder / "file").write_text("")
            code, said = start_fails("--data-dir", str(server.folder / "file" / "x"))
            self.assertEqual(code, 4)
            self.assertIn("--data-dir", said)

    def test_a_newer_store_is_refused_in_a_sentence(self):
        with KilnServer() as server:
            server.stop()
            about = server.data / "store.json"
            newer = json.loads(about.read_text())
            newer["version"] = 99
            about.write_text(json.dumps(newer))
            code, said = start_fails("--data-dir", str(server.data))
            self.assertIn(code, (3, 4))
            self.assertRegex(said, "newer|99")

    def test_a_damaged_store_json_is_moved_and_made_again(self):
        with KilnServer() as server:
            server.stop()
            (server.data / "store.json").write_text("no JSON")
            server.start()
            self.assertIn("moved=yes", server.said())
            self.assertEqual((server.data / "aside" / "store.json").read_text(), "no JSON")
            self.assertIn("seed", json.loads((server.data / "store.json").read_text()))

    def test_wrong_tokens_and_rules_are_named(self):
        with KilnServer() as server:
            data = ("--data-dir", str(server.folder / "other"))
            wrong = server.folder / "wrong.yaml"
            wrong.write_text("- nonsense: 1\n")
            for option in ("--tokens", "--redact"):
                code, said = start_fails(*data, option, str(wrong))
                self.assertEqual(code, 3, said)
                self.assertIn(f"{wrong}", said)
                self.assertIn("line 1", said)

    def test_a_second_signal_ends_it_at_once(self):
        with KilnServer() as server:
            # A request under way holds the end back.
            with socket.create_connection(("127.0.0.1", server.http)) as slow:
                slow.sendall(b"POST /v1development/profiles HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nx")
                call(url(server, "/ready"))
                server.process.send_signal(signal.SIGTERM)
                deadline = time.monotonic() + 30
                while "msg=stopping" not in server.said() and time.monotonic() < deadline:
                    time.sleep(0.005)
                time.sleep(0.05)
                server.process.send_signal(signal.SIGTERM)
                self.assertIn(server.process.wait(30), (0, -signal.SIGTERM))


if __name__ == "__main__":
    unittest.main()
