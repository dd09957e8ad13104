#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`kiln collector` that profiles itself: /debug/pprof of the pprof extension, and `self` of the pprof receiver, whose
profiles are valid OTLP."""
import http.client
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))
from kiln_collector import Collector, Sink  # noqa: E402
from kiln_server import KILN, sanitized  # noqa: E402

CONFIG = """
extensions: {{pprof: {{endpoint: "127.0.0.1:0"}}}}
receivers:
  otlp: {{protocols: {{http: {{endpoint: "127.0.0.1:0"}}}}}}
  pprof: {{self: {{collection_interval: 1s}}}}
exporters:
  nop:
  file: {{path: {file}, format: proto}}
service:
  extensions: [pprof]
  telemetry: {{metrics: {{level: none}}}}
  pipelines:
    profiles: {{receivers: [otlp], exporters: [nop]}}
    profiles/own: {{receivers: [pprof], exporters: [file]}}
"""


class Own(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="kiln-own-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.file = self.folder / "own.otlp"
        self.config = self.folder / "c.yaml"
        self.config.write_text(CONFIG.format(file=self.file))
        os.environ.update(KILN_CPU_HZ="1000", KILN_ALLOC_BYTES="4096")    # much for little time
        self.otlp = subprocess.run([KILN, "convert", "examples/checkout.pb.gz", "--to", "otlp", "-o", "-"], cwd=ROOT,
                                   capture_output=True, check=True).stdout

    def busy(self, collector, stop):
        url = f"http://127.0.0.1:{collector.ports['receivers::otlp::http']}/v1development/profiles"
        while not stop.is_set():
            request = urllib.request.Request(url, data=self.otlp, headers={"Content-Type": "application/x-protobuf"})
            urllib.request.urlopen(request, timeout=60).close()

    def fetch(self, collector, what):
        url = f"http://127.0.0.1:{collector.ports['extensions::pprof']}/debug/pprof/{what}"
        with urllib.request.urlopen(url, timeout=120) as answer:
            return answer.read()

    def names_of_ours(self, collector, what):
        """Whether a profile has functions of the collector, by name; on a busy machine not the first has."""
        file = self.folder / "fetched.pb.gz"
        for _ in range(60):
            file.write_bytes(self.fetch(collector, what))
            if "kiln_" in subprocess.run([KILN, "top", str(file)], capture_output=True, text=True, check=True).stdout:
                return True
        return False

    def test_it_serves_profiles_of_itself(self):
        with Collector(self.folder, "--config", str(self.config)) as collector:
            stop = threading.Event()
            thread = threading.Thread(target=self.busy, args=(collector, stop))
            thread.start()
            try:
                cpu = self.names_of_ours(collector, "profile?seconds=1")
                allocs = self.names_of_ours(collector, "allocs")
                threads = self.fetch(collector, "goroutine?debug=1").decode()
                page = self.fetch(collector, "").decode()
                collector.wait_for(lambda: self.file.exists() and self.file.stat().st_size)
            finally:
                stop.set()
                thread.join()
            self.assertEqual(collector.end(), 0, collector.said())
        self.assertTrue(cpu and allocs)
        self.assertIn("goroutine profile: total", threads)
        self.assertIn("<title>/debug/pprof/</title>", page)
        self.check_valid()

    def records(self):
        """A record of the file has its length before it."""
        body, names = self.file.read_bytes(), []
        while body:
            n = int.from_bytes(body[:4], "big")
            names.append(self.folder / f"{len(names)}.otlp")
            names[-1].write_bytes(body[4:4 + n])
            body = body[4 + n:]
        return names

    def check_valid(self):
        for name in self.records():
            checked = subprocess.run([KILN, "check", str(name)], capture_output=True, text=True, check=False)
            self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)
            if os.environ.get("PROFCHECK"):
                theirs = subprocess.run([os.environ["PROFCHECK"], str(name)], capture_output=True, text=True,
                                        check=False)
                self.assertEqual(theirs.returncode, 0, theirs.stdout + theirs.stderr)
        said = subprocess.run([KILN, "info", str(self.file)], capture_output=True, text=True, check=True).stdout
        self.assertIn("kiln-collector", said)

    def test_nothing_is_left_behind_and_the_process_is_the_same(self):
        runtime = self.folder / "run"
        runtime.mkdir()
        os.environ["XDG_RUNTIME_DIR"] = str(runtime)
        try:
            with Collector(self.folder, "--config", str(self.config)) as collector:
                self.assertEqual(len(list(runtime.glob("kiln-*/pprof.sock"))), 1)
                self.assertEqual(oct(next(runtime.iterdir()).stat().st_mode)[-3:], "700")
                name = pathlib.Path(f"/proc/{collector.process.pid}/comm").read_text().strip()
                self.assertEqual(name, pathlib.Path(KILN).name)
                self.fetch(collector, "cmdline")
                self.assertEqual(collector.end(), 0)
        finally:
            del os.environ["XDG_RUNTIME_DIR"]
        self.assertEqual(list(runtime.iterdir()), [])

    def sends(self, **more):
        """What leaves by itself while somebody fetches, though the environment says where to: requests, files."""
        files = self.folder / "files"
        files.mkdir(exist_ok=True)
        with Sink() as sink:
            said = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{sink.port}", "KILN_OUT_DIR": str(files),
                    "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf", "KILN_EXPORT_INTERVAL_MS": "100"}
            with Collector(self.folder, "--config", str(self.config), env=said | more) as collector:
                if more:
                    collector.wait_for(lambda: sink.bodies and any(files.iterdir()))
                self.fetch(collector, "profile?seconds=1")
                self.assertEqual(collector.end(), 0)
            return len(sink.bodies), len(list(files.iterdir()))

    def test_its_profiles_go_nowhere_by_themselves(self):
        self.assertEqual(self.sends(), (0, 0))
        requests, files = self.sends(KILN_SEND="1")
        self.assertTrue(requests and files)

    def test_a_window_ends_with_the_collector(self):
        with Collector(self.folder, "--config", str(self.config)) as collector:
            port, answers = collector.ports["extensions::pprof"], []
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
            connection.request("GET", "/debug/pprof/profile?seconds=3000")
            waiting = threading.Thread(target=lambda: answers.append(connection.getresponse().status))
            waiting.start()
            self.fetch(collector, "cmdline")  # the one before has begun
            self.assertEqual(collector.end(), 0, collector.said())
            waiting.join()
        self.assertEqual(answers, [503])

    def test_a_reload_cannot_switch_it_on(self):
        text = self.config.read_text()
        without = text.replace("extensions: [pprof]", "extensions: []").replace("receivers: [pprof]", "receivers: [otlp]")
        self.config.write_text(without)
        with Collector(self.folder, "--config", str(self.config)) as collector:
            self.config.write_text(text)
            collector.reload("the configuration before is at work again")
            self.assertIn("start it anew", collector.said())
            self.assertEqual(collector.end(), 0)


if __name__ == "__main__":
    if sanitized():  # where that is inside of the program, only libkiln itself sees it, and stands aside
        print("skipped: libkiln cannot be put in front of this build")
        sys.exit(77)
    unittest.main()
