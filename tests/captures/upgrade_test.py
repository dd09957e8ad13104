#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What Kiln 0.1 left on disk opens, and answers as it did: a store after kill -9, and the queue of a collector.
(Its spool and its symbol cache: tests/unit/pipeline/older_spool_test.c, tests/unit/symbol/shelf_test.c.)"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest
import urllib.parse
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from kiln_collector import Collector, Sink  # noqa: E402
from kiln_server import KILN, KilnServer  # noqa: E402

DATA = pathlib.Path(os.environ.get("KILN_TEST_DATA", "../shared/data"))
OLD = DATA / "written-by-0.1"
DAY = {"from": "2026-11-17T05:00:00Z", "until": "2026-11-19T00:00:00Z"}
ALL = DAY | {"from": "2026-11-01T00:00:00Z"}
ALLOC, INUSE = "memory:alloc_space:bytes:space:bytes", "memory:inuse_space:bytes:space:bytes"
CPU = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"


def query(kind, form, when=DAY, **labels):
    """The path of a question; labels are named without the dots."""
    selector = ", ".join(f'{name}="{value}"' for name, value in labels.items())
    return "/api/v1/query?" + urllib.parse.urlencode({"query": f"{kind}{{{selector}}}", "format": form} | when)


QUESTIONS = {
    "services": "/api/v1/services",
    "annotations": "/api/v1/annotations",
    "deployments": "/api/v1/deployments?service=shop/cart",
    "host-all-top": query(CPU, "top", ALL),
    "cart-alloc-top": query(ALLOC, "top", service_name="shop/cart"),
    "cart-inuse-top": query(INUSE, "top", service_name="shop/cart"),
    "cart-series": query(ALLOC, "series", DAY | {"step": "60s"}, service_name="shop/cart"),
    "cart-v1-flame": query(ALLOC, "flamegraph", service_name="shop/cart", service_version="1.1"),
    "heap-inuse-top": query(INUSE, "top", service_name="heap"),
    "alloc-top": query(ALLOC, "top", service_name="alloc"),
    "large-top": query(CPU, "top", service_name="large"),
    "log-top": query(CPU, "top", service_name="in-the-log"),
    "spans-top": query(CPU, "top", service_name="spans"),
}
# A level over ten profiles: its meaning may be corrected; that it is answered is looked at.
MAY_CHANGE = {"cart-inuse-top"}
# What merging changes: how an answer came about, and which of the modules of a function is named.
LAYOUT = {"bytes", "bytes_per_second", "blocks", "rolled_up", "module", "file", "kind"}


def unpack(name, folder):
    folder.mkdir(parents=True, exist_ok=True)
    with tarfile.open(OLD / f"{name}.tar.gz") as archive:
        archive.extractall(folder)


def differences(old, new, ignored, where=""):
    """Where what the old answer says is not there or not the same; what the new one has beside it may be new."""
    if isinstance(old, dict) and isinstance(new, dict):
        return [found for key in old if key not in ignored
                for found in ([f"{where}.{key} is gone"] if key not in new else
                              differences(old[key], new[key], ignored, f"{where}.{key}"))]
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return [found for i, pair in enumerate(zip(old, new)) for found in differences(*pair, ignored, f"{where}[{i}]")]
    return [] if old == new else [f"{where}: {str(new)[:80]}, was {str(old)[:80]}"]


class Store(unittest.TestCase):
    maxDiff = None

    def check(self, server, ignored=frozenset()):
        for name, path in QUESTIONS.items():
            with urllib.request.urlopen(f"http://127.0.0.1:{server.http}{path}", timeout=60) as answer:
                new = json.load(answer)
            if name not in MAY_CHANGE:
                old = json.loads((OLD / "answers" / f"{name}.json").read_text())
                self.assertEqual("\n".join(differences(old, new, ignored)), "", name)

    def test_the_answers_are_the_same_after_the_start_a_merge_and_a_kill(self):
        server = KilnServer("--retention", "3650d")
        self.addCleanup(server.__exit__)
        unpack("store", server.data)
        server.start()
        self.check(server)
        urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{server.http}/api/v1/store/compact", method="POST"),
                               timeout=60).close()
        self.check(server, LAYOUT)
        server.kill()
        server.start()
        self.check(server, LAYOUT)
        self.assertEqual(list((server.data / "aside").iterdir()), [])
        server.stop()
        server.start()  # all of it from blocks
        self.check(server, LAYOUT)


CONFIG = """
receivers: {otlp: {protocols: {http: {endpoint: "127.0.0.1:0"}}}}
exporters:
  otlphttp:
    endpoint: http://127.0.0.1:PORT
    compression: none
    sending_queue: {storage: file_storage}
extensions:
  file_storage: {directory: "FOLDER/queue"}
service:
  extensions: [file_storage]
  telemetry: {metrics: {address: "127.0.0.1:0"}}
  pipelines:
    profiles: {receivers: [otlp], exporters: [otlphttp]}
"""


class Queue(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def functions(self, path):
        top = json.loads(subprocess.run([KILN, "top", "--json", "-n", "0", path], capture_output=True, check=True).stdout)
        return top["total"], sorted((row["name"], row["self"], row["total"]) for row in top["rows"])

    def test_requests_that_were_acknowledged_are_sent(self):
        unpack("collector-queue", self.folder / "queue")
        with Sink() as sink:
            (self.folder / "c.yaml").write_text(CONFIG.replace("PORT", str(sink.port)).replace("FOLDER", str(self.folder)))
            with Collector(self.folder, "--config", str(self.folder / "c.yaml")):
                with sink.changed:
                    self.assertTrue(sink.changed.wait_for(lambda: len(sink.bodies) == 4, 60), len(sink.bodies))
        for number, body in enumerate(sink.bodies):
            (self.folder / f"{number}.otlp").write_bytes(body)
        sent = sorted(self.functions(self.folder / f"{number}.otlp") for number in range(4))
        captured = sorted(self.functions(DATA / f"otlp/host-mix.1.11/{number:05}.otlp") for number in range(1, 5))
        self.assertEqual(sent, captured)


if __name__ == "__main__":
    if not OLD.exists():
        print("skipped: no captures here")
        sys.exit(77)
    unittest.main()
