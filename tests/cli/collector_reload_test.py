#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""SIGHUP of `kiln collector`: what waits in memory for a receiver that is away goes on waiting, and arrives once."""
import http.server
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import unittest
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))
from kiln_collector import Collector  # noqa: E402
from kiln_server import KILN  # noqa: E402

CONFIG = """
extensions: {{bearertokenauth: {{token: {token}}}}}
receivers: {{otlp: {{protocols: {{http: {{endpoint: "127.0.0.1:0"}}}}}}}}
processors: {{resource: {{attributes: [{{key: round, value: {round}, action: upsert}}]}}}}
exporters:
  otlphttp:
    endpoint: http://127.0.0.1:{port}
    auth: {{authenticator: bearertokenauth}}
    retry_on_failure: {{initial_interval: 100ms, max_interval: 200ms, max_elapsed_time: 0}}
    sending_queue: {{queue_size: {size}}}
service:
  extensions: [bearertokenauth]
  telemetry: {{metrics: {{address: "{metrics}"}}}}
  pipelines:
    profiles: {{receivers: [otlp], processors: [resource], exporters: [otlphttp]}}
"""
SENT = 5


class Away(http.server.BaseHTTPRequestHandler):
    """A receiver that is away until `here` is set."""
    here, taken, tokens = threading.Event(), [], set()

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.here.is_set():
            self.taken.append(body)
            self.tokens.add(self.headers["Authorization"])
        self.send_response(200 if self.here.is_set() else 503)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


class Reload(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="kiln-reload-"))
        self.addCleanup(shutil.rmtree, self.folder)
        Away.here.clear()
        Away.taken.clear()
        Away.tokens.clear()
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Away)
        threading.Thread(target=self.server.serve_forever).start()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        self.otlp = subprocess.run([KILN, "convert", "examples/checkout.pb.gz", "--to", "otlp", "-o", "-"], cwd=ROOT,
                                   capture_output=True, check=True).stdout
        self.values = {"token": "one", "round": 1, "size": 1000, "metrics": "127.0.0.1:0",
                       "port": self.server.server_address[1]}
        self.write()

    def write(self, **changes):
        self.values |= changes
        (self.folder / "c.yaml").write_text(CONFIG.format(**self.values))

    def start(self):
        return Collector(self.folder, "--config", str(self.folder / "c.yaml"))

    def send(self, collector, n=SENT):
        url = f"http://127.0.0.1:{collector.ports['receivers::otlp::http']}/v1development/profiles"
        for _ in range(n):
            request = urllib.request.Request(url, data=self.otlp, headers={"Content-Type": "application/x-protobuf"})
            with urllib.request.urlopen(request, timeout=60) as answer:
                self.assertEqual(answer.status, 200)

    def counts(self, collector):
        """Of the exporter: what was taken, and what became of it, which is the same at any time."""
        counts = {"accepted": 0, "sent": 0, "queued": 0, "dropped": 0}
        for line in collector.metrics().splitlines():
            for what in counts:
                if line.startswith((f"kiln_exporter_{what}_profile_samples", f"otelcol_exporter_{what}_profile_samples")):
                    counts[what] += float(line.split()[-1])
        self.assertEqual(counts["accepted"], counts["sent"] + counts["queued"] + counts["dropped"])
        return counts

    def finish(self, collector, n):
        """The receiver is back: everything arrives, once."""
        each = self.counts(collector)["accepted"] / n
        Away.here.set()
        collector.wait_for(lambda: self.counts(collector)["sent"] == n * each)
        self.assertEqual((len(Away.taken), self.counts(collector)["dropped"]), (n, 0))
        self.assertEqual(collector.end(), 0, collector.said())

    def test_an_exporter_that_did_not_change_goes_on(self):
        with self.start() as collector:
            self.send(collector)
            for n in 2, 3:
                self.write(round=n)
                collector.reload("configuration read again")
                self.assertEqual(self.counts(collector)["dropped"], 0)
                self.send(collector)
            self.finish(collector, 3 * SENT)
            self.assertEqual(Away.tokens, {"Bearer one"})

    def test_an_exporter_that_did_change_does_not(self):
        for change in {"size": 500}, {"token": "two"}:
            Away.here.set()
            self.write(token="one", size=1000)
            with self.start() as collector:
                self.send(collector)
                self.write(**change)
                collector.reload("configuration read again")
                self.send(collector)
                self.finish(collector, 2 * SENT)
                self.assertIn(f"Bearer {self.values['token']}", Away.tokens)
                Away.taken.clear()

    def test_a_reload_that_cannot_start_gives_it_back(self):
        with self.start() as collector, socket.create_server(("127.0.0.1", 0)) as other:
            self.send(collector)
            self.write(round=2, metrics=f"127.0.0.1:{other.getsockname()[1]}")
            collector.reload("the configuration before is at work again")
            self.assertEqual(self.counts(collector)["dropped"], 0)
            self.send(collector)
            self.finish(collector, 2 * SENT)

    def test_who_waits_for_room_is_told_to_come_again(self):
        self.write(size=1)
        with self.start() as collector:
            self.send(collector, 1)
            ended = []

            def wait():
                try:
                    self.send(collector, 1)
                except urllib.error.HTTPError as refused:
                    ended.append(refused.code)

            waiting = threading.Thread(target=wait)
            waiting.start()
            collector.wait_for(lambda: "kiln_exporter_waiting_deliveries{data_type=\"profiles\",exporter=\"otlphttp\"} 1"
                               in collector.metrics())
            self.write(round=2)
            collector.reload("configuration read again")
            waiting.join()
            self.assertEqual(ended, [503])
            self.finish(collector, 1)


FILES = """
receivers: {{otlp_json_file: {{include: ["{folder}/in*.json"], start_at: beginning}}}}
exporters: {{file: {{path: "{folder}/out.json", create_directory: {create}}}}}
service:
  telemetry: {{metrics: {{address: "{metrics}"}}}}
  pipelines: {{profiles: {{receivers: [otlp_json_file], exporters: [file]}}}}
"""


class Files(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="kiln-reload-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.line = subprocess.run([KILN, "convert", "examples/checkout.pb.gz", "--to", "otlp-json", "-o", "-"], cwd=ROOT,
                                   capture_output=True, check=True).stdout

    def write(self, **values):
        (self.folder / "c.yaml").write_text(FILES.format(folder=self.folder, **values))

    def append(self, n):
        with open(self.folder / "in.json", "ab") as file:
            file.write(n * self.line)

    def lines(self):
        return (self.folder / "out.json").read_bytes().count(b"\n")

    def test_every_line_is_read_once_and_none_is_erased(self):
        self.append(3)
        self.write(create="false", metrics="127.0.0.1:0")
        with Collector(self.folder, "--config", str(self.folder / "c.yaml")) as collector, \
                socket.create_server(("127.0.0.1", 0)) as other:
            collector.wait_for(lambda: self.lines() == 3)
            self.append(2)
            self.write(create="true", metrics="127.0.0.1:0")
            collector.reload("configuration read again")
            collector.wait_for(lambda: self.lines() >= 5)
            self.write(create="false", metrics=f"127.0.0.1:{other.getsockname()[1]}")
            collector.reload("the configuration before is at work again")
            self.append(1)
            collector.wait_for(lambda: self.lines() >= 6)
            self.assertEqual(collector.end(), 0, collector.said())
        self.assertEqual(self.lines(), 6)

    def test_a_port_may_change_its_host(self):
        self.write(create="false", metrics="0.0.0.0:0")
        with Collector(self.folder, "--config", str(self.folder / "c.yaml")) as collector:
            port = collector.ports["service::telemetry::metrics"]
            for host in "0.0.0.0", "127.0.0.1", "localhost":
                self.write(create="false", metrics=f"{host}:{port}")
                collector.reload("configuration read again")
                collector.metrics()
            self.assertNotIn("already in use", collector.said())
            self.assertEqual(collector.end(), 0, collector.said())


if __name__ == "__main__":
    unittest.main()
