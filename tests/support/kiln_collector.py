# SPDX-License-Identifier: Apache-2.0
"""A `kiln collector` for tests, a receiver behind it that does what it is told, and senders before it.

    with Sink() as sink, Collector(folder, "--config", str(config)) as collector:
        collector.ports["receivers::otlp::http"], collector.metrics(), collector.said()
"""
import collections
import contextlib
import gzip
import http.client
import http.server
import json
import os
import pathlib
import re
import signal
import subprocess
import threading
import time
import urllib.request

from kiln_server import KILN
from service import Service

PATH = "/v1development/profiles"


class Collector(Service):
    """One that runs; gone afterwards."""

    def __init__(self, folder, *words, env=None):
        self.folder, self.ready = folder, folder / "ready.json"
        self.ready.unlink(missing_ok=True)
        super().__init__(folder / "log", KILN, "collector", "--ready-file", self.ready, *words,
                         env=os.environ | (env or {}))

    def __enter__(self):
        try:
            self.ports = self.wait_ready()
        except BaseException:
            self.__exit__()
            raise
        return self

    def wait_ready(self):
        self.wait_for(self.ready.exists)
        return json.loads(self.ready.read_text())["ports"]

    def wait_for(self, condition):
        until = time.monotonic() + 60
        while not condition():
            if self.process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"kiln collector: {self.process.poll()}: {self.said()}")
            time.sleep(0.005)

    def reload(self, said):
        before = self.said().count(said)
        self.process.send_signal(signal.SIGHUP)
        self.wait_for(lambda: self.said().count(said) > before)

    def metrics(self):
        port = self.ports["service::telemetry::metrics"]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
            return answer.read().decode()

    def peak_bytes(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) << 10


# ---- what went where ----

def exporters(metrics):
    """{exporter: {"accepted": samples, "sent": ..., "queued": ..., "dropped": all reasons together}}"""
    found = collections.defaultdict(lambda: dict.fromkeys(("accepted", "sent", "queued", "dropped"), 0))
    for what, exporter, value in re.findall(
            r'^(?:otelcol|kiln)_exporter_(accepted|sent|queued|dropped)_profile_samples(?:_total)?\{'
            r'[^}]*exporter="([^"]*)"[^}]*\} (\d+)$', metrics, re.M):
        found[exporter][what] += int(value)
    return dict(found)


def not_conserved(metrics):
    """Exporters of which accepted is not sent + queued + dropped."""
    return {name: counts for name, counts in exporters(metrics).items()
            if counts["accepted"] != counts["sent"] + counts["queued"] + counts["dropped"]}


class Conserved:
    """Looks at /metrics again and again, until it ends: `problems` must stay empty."""

    def __init__(self, collector):
        self.collector, self.problems, self.looks, self.stopping = collector, [], 0, False
        self.thread = threading.Thread(target=self.look)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stopping = True
        self.thread.join()

    def look(self):
        while not self.stopping:
            with contextlib.suppress(OSError, http.client.HTTPException):  # somebody has killed it
                self.problems += not_conserved(self.collector.metrics()).items()
                self.looks += 1
            time.sleep(0.01)


# ---- behind it ----

class Sink:
    """Receives OTLP over HTTP and notes the numbers (id-000123) of what it took.

    `mode` says how: "take", "busy" (503) or "hold" (no answer until it is another one)."""

    def __init__(self, port=0, mode="take"):
        self.got, self.bodies, self.mode = collections.Counter(), [], mode
        self.changed = threading.Condition()
        sink = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                with contextlib.suppress(OSError):
                    self.answer(sink.take(gzip.decompress(body) if self.headers["Content-Encoding"] == "gzip" else body))

            def answer(self, status):
                self.send_response(status)
                self.send_header("Content-Type", "application/x-protobuf")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads, request_queue_size = True, 128

            def handle_error(self, *_):
                """Senders are killed."""

        self.server = Server(("127.0.0.1", port), Handler)
        self.port = self.server.server_address[1]

    def take(self, body):
        with self.changed:
            self.changed.wait_for(lambda: self.mode != "hold")
            if self.mode == "busy":
                return 503
            self.got.update(set(re.findall(rb"id-\d{6}", body)))
            self.bodies.append(body)
            self.changed.notify_all()
        return 200

    def turn(self, mode):
        with self.changed:
            self.mode = mode
            self.changed.notify_all()

    def wait_for(self, numbers):
        """Until all of these were taken; those that are missing after a minute."""
        with self.changed:
            self.changed.wait_for(lambda: numbers <= self.got.keys(), 60)
            return numbers - self.got.keys()

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_):
        self.turn("take")
        self.server.shutdown()
        self.server.server_close()


# ---- before it ----

class Requests:
    """OTLP requests, each with a number of its own, of `samples` samples and some bytes each."""

    def __init__(self, samples=4, text_bytes=20):
        self.samples = samples
        lines = "".join(f"main;id-999999;leaf_{i}_{'x' * text_bytes} {i + 1}\n" for i in range(samples))
        self.body = subprocess.run([KILN, "convert", "-", "--from", "collapsed", "--to", "otlp"], input=lines.encode(),
                                   capture_output=True, check=True).stdout
        self.next, self.lock = 0, threading.Lock()

    def take(self):
        """The number of the next one, and the request."""
        with self.lock:
            self.next += 1
            number = b"id-%06d" % self.next
        return number, self.body.replace(b"id-999999", number)


class Senders:
    """Each sends one request after the other, and each again until it is acknowledged.

    `port` is where to; None: nobody is there just now."""

    def __init__(self, requests, port, n=4, most=None):
        self.requests, self.port, self.most, self.stopping = requests, port, most, False
        self.acknowledged, self.refused, self.lock = set(), collections.Counter(), threading.Lock()
        self.threads = [threading.Thread(target=self.send) for _ in range(n)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stopping = True
        self.join()

    def join(self):
        for thread in self.threads:
            thread.join()

    def send(self):
        connection = None
        while not self.stopping and (self.most is None or self.requests.next < self.most):
            number, body = self.requests.take()
            while not self.stopping:
                status, connection = post(self.port, body, connection)
                with self.lock:
                    if status == 200:
                        self.acknowledged.add(number)
                        break
                    self.refused[status] += 1
                time.sleep(0.005)
        if connection:
            connection.close()


def post(port, body, connection=None):
    """The status, or None where there was no answer; and the connection for the next one."""
    if connection and connection.port != port:
        connection.close()
        connection = None
    if port is None:
        return None, None
    connection = connection or http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("POST", PATH, body, {"Content-Type": "application/x-protobuf"})
        answer = connection.getresponse()
        answer.read()
        return answer.status, connection
    except (OSError, http.client.HTTPException):
        connection.close()
        return None, None
