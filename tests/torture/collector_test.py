#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`kiln collector` in bad times: killed, with a receiver that is away or slow, with a full or a damaged disk.

Senders send each request until it is acknowledged.  Whatever was acknowledged arrives, at least once; and whenever anybody looks at
/metrics, what exporters accepted is what they sent, hold and dropped.  KILN_KILLS: how often it is killed.
"""
import os
import pathlib
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from kiln_collector import Collector, Conserved, Requests, Senders, Sink, exporters, not_conserved, post  # noqa: E402
from kiln_server import sanitized  # noqa: E402
from ports import held_port  # noqa: E402

KILLS = int(os.environ.get("KILN_KILLS", 5))
MB = 1 << 20
IN = "receivers::otlp::http"

CONFIG = """
receivers: {otlp: {protocols: {http: {endpoint: "127.0.0.1:0"}}}}
exporters:
EXPORTERS
extensions:
  file_storage: {directory: "FOLDER/queue", create_directory: true}
service:
  extensions: [file_storage]
  telemetry: {metrics: {address: "127.0.0.1:0"}}
  pipelines:
    profiles: {receivers: [otlp], exporters: [NAMES]}
"""
EXPORTER = """
  otlp_http/NAME:
    endpoint: http://127.0.0.1:PORT
    compression: COMPRESSION
    sending_queue: {queue_size: 100000, QUEUE}
    retry_on_failure: {initial_interval: 20ms, max_interval: 100ms, max_elapsed_time: 0}
"""
ON_DISK, IN_MEMORY = "storage: file_storage", "num_consumers: 4"


class Bad(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="kiln-collector-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def config(self, *ways):
        """One that sends to each (port, queue), or (port, queue, compression)."""
        def exporter(number, port, queue, compression="none"):
            return (EXPORTER.replace("NAME", str(number)).replace("PORT", str(port)).replace("QUEUE", queue)
                    .replace("COMPRESSION", compression))

        path = self.folder / "c.yaml"
        path.write_text(CONFIG.replace("EXPORTERS", "".join(exporter(i, *way) for i, way in enumerate(ways)))
                        .replace("NAMES", ", ".join(f"otlp_http/{i}" for i in range(len(ways))))
                        .replace("FOLDER", str(self.folder)))
        return "--config", str(path)

    def files(self, ending):
        return sorted(self.folder.glob(f"queue/*/*.{ending}"))

    def check_conserved(self, *looks):
        for look in looks:
            self.assertEqual(look.problems, [])
            self.assertGreater(look.looks, 0)

    def check_arrived(self, sink, senders):
        self.assertEqual(sink.wait_for(set(senders.acknowledged)), set())
        self.assertGreater(len(senders.acknowledged), 0)

    def check_empty(self, collector, requests):
        """All is sent, nothing was dropped; and what was sent is whole requests."""
        collector.wait_for(lambda: not any(counts["queued"] for counts in exporters(collector.metrics()).values()))
        for counts in exporters(collector.metrics()).values():
            self.assertEqual(counts, counts | {"sent": counts["accepted"], "queued": 0, "dropped": 0})
            self.assertEqual(counts["sent"] % requests.samples, 0)
        self.assertEqual(not_conserved(collector.metrics()), {})

    # ---- killed ----

    def test_what_was_acknowledged_survives_kill_9(self):
        requests, luck = Requests(), random.Random(4711)
        with Sink() as sink:
            words = self.config((sink.port, ON_DISK))
            with Senders(requests, None) as senders:
                for _ in range(KILLS):
                    sink.turn(luck.choice(("take", "busy", "hold")))
                    with Collector(self.folder, *words) as collector, Conserved(collector) as look:
                        senders.port, before = collector.ports[IN], len(senders.acknowledged)
                        collector.wait_for(lambda: len(senders.acknowledged) > before + 20)
                        time.sleep(luck.random() / 10)
                        senders.port = None
                        collector.process.kill()
                        collector.process.wait()
                    self.check_conserved(look)
            sink.turn("take")
            with Collector(self.folder, *words) as collector, Conserved(collector) as look:
                self.check_arrived(sink, senders)
                self.check_empty(collector, requests)
            self.check_conserved(look)
            self.assertLessEqual(set(sink.got), {b"id-%06d" % (i + 1) for i in range(requests.next)})
            self.assertEqual(self.files("damaged"), [], collector.said())

    def test_what_has_arrived_is_not_sent_again_by_the_next(self):
        """Though it was killed, and nothing followed: that it arrived is noted soon."""
        requests = Requests()
        with Sink() as sink:
            words = self.config((sink.port, ON_DISK))
            with Collector(self.folder, *words) as collector:
                with Senders(requests, collector.ports[IN], most=100) as senders:
                    senders.join()
                self.check_arrived(sink, senders)
                collector.wait_for(lambda: self.noted() == requests.next)
                collector.process.kill()
                collector.process.wait()
            with Collector(self.folder, *words) as collector:
                with Senders(requests, collector.ports[IN], n=1, most=requests.next + 1) as senders:
                    senders.join()
                self.check_arrived(sink, senders)
                self.check_empty(collector, requests)
            self.assertEqual(set(sink.got.values()), {1})

    def noted(self):
        """Requests that files of the queue say are done with."""
        return sum(file.read_bytes().count(b"DONEDONE") for file in self.files("log"))

    # ---- a receiver that is away ----

    def test_on_disk_a_receiver_may_be_away_for_long(self):
        requests, port = Requests(samples=40, text_bytes=200), held_port()
        with Collector(self.folder, *self.config((port, ON_DISK))) as collector, Conserved(collector) as look:
            with Senders(requests, collector.ports[IN], most=4000) as senders:
                senders.join()
            self.assertEqual(len(senders.acknowledged), requests.next)
            queued = exporters(collector.metrics())["otlp_http/0"]["queued"]
            self.assertEqual(queued, requests.next * requests.samples)
            self.assertGreater(sum(file.stat().st_size for file in self.files("log")), 30 * MB)
            if not sanitized():
                self.assertLess(collector.peak_bytes(), 30 * MB)
            with Sink(port) as sink:
                self.check_arrived(sink, senders)
                self.check_empty(collector, requests)
                collector.wait_for(lambda: len(self.files("log")) == 1)
                self.assertEqual(set(sink.got.values()), {1})  # nothing is sent twice unless somebody is killed
        self.check_conserved(look)

    def test_in_memory_senders_wait_where_a_receiver_is_away(self):
        requests, port = Requests(samples=40, text_bytes=5000), held_port()
        words = self.config((port, IN_MEMORY))
        with Collector(self.folder, *words, "--memory-limit", "16M") as collector, Conserved(collector) as look:
            with Senders(requests, collector.ports[IN], n=8, most=400) as senders:
                collector.wait_for(lambda: "kiln_exporter_waiting_deliveries" in collector.metrics() and not
                                   'waiting_deliveries{data_type="profiles",exporter="otlp_http/0"} 0' in collector.metrics())
                self.assertLess(len(senders.acknowledged), 200)  # of 200 kB each
                with Sink(port) as sink:
                    senders.join()
                    self.check_arrived(sink, senders)
                    self.check_empty(collector, requests)
            self.assertEqual(len(senders.acknowledged), requests.next)
            self.assertEqual(set(sink.got.values()), {1})
            if not sanitized():
                self.assertLess(collector.peak_bytes(), 48 * MB)
        self.check_conserved(look)

    # ---- bad senders ----

    def test_a_bad_request_spoils_none_that_waits_with_it(self):
        """In a batch, which is not looked into before it goes on."""
        requests = Requests()
        bad = requests.body[:-1] + bytes([requests.body[-1] | 0x80])  # the last index of the dictionary is cut off
        with Sink() as sink:
            words = (*self.config((sink.port, IN_MEMORY)), "--set", "processors.batch.timeout=200ms", "--set",
                     "service.pipelines.profiles.processors=[batch]")
            with Collector(self.folder, *words) as collector, Conserved(collector) as look:
                with Senders(requests, collector.ports[IN], most=400) as senders:
                    answers, connection = set(), None
                    while any(thread.is_alive() for thread in senders.threads):
                        status, connection = post(collector.ports[IN], bad, connection)
                        answers.add(status)
                    connection.close()
                self.assertEqual(answers, {400})
                self.assertEqual(senders.refused, {})
                self.check_arrived(sink, senders)
                self.check_empty(collector, requests)
                self.assertLess(len(sink.bodies), requests.next)  # they did wait for each other
                self.assertNotIn(b"id-999999", sink.got)
                self.assertIn('otelcol_receiver_failed_profile_samples{receiver="otlp"} 0', collector.metrics())
            self.assertEqual(set(sink.got.values()), {1})
            self.check_conserved(look)

    # ---- disks ----

    @unittest.skipIf(os.geteuid() != 0, "a small file system needs root")
    def test_a_full_disk_is_not_acknowledged_and_comes_back(self):
        (self.folder / "queue").mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "kiln-test", str(self.folder / "queue")],
                                 capture_output=True, text=True, check=False)
        if mounted.returncode:
            self.skipTest(f"no tmpfs: {mounted.stderr.strip()}")
        self.addCleanup(subprocess.run, ["umount", str(self.folder / "queue")], check=True)
        requests, port = Requests(samples=20, text_bytes=200), held_port()
        words = self.config((port, ON_DISK))
        with Senders(requests, None, n=2) as senders:
            with Collector(self.folder, *words) as collector, Conserved(collector) as look:
                senders.port = collector.ports[IN]
                collector.wait_for(lambda: senders.refused[503] > 10)
                self.assertEqual(len(senders.acknowledged) * requests.samples,
                                 exporters(collector.metrics())["otlp_http/0"]["queued"])
                senders.port = None
                collector.process.kill()
                collector.process.wait()
            self.check_conserved(look)
            self.assertEqual(senders.refused.keys() - {503, None}, set())
            with Collector(self.folder, *words) as collector, Conserved(collector) as look:  # on a disk that is full
                senders.port, before = collector.ports[IN], len(senders.acknowledged)
                with Sink(port) as sink:
                    collector.wait_for(lambda: len(senders.acknowledged) > before + 100)
                    senders.stopping = True
                    senders.join()
                    self.check_arrived(sink, senders)
                    self.check_empty(collector, requests)
            self.check_conserved(look)

    def test_damaged_files_are_set_aside_and_the_rest_is_sent(self):
        requests, port = Requests(), held_port()
        words = self.config((port, ON_DISK))
        with Collector(self.folder, *words) as collector:
            with Senders(requests, collector.ports[IN], most=100) as senders:
                senders.join()
            collector.process.kill()
            collector.process.wait()
        file, = self.files("log")
        content = bytearray(file.read_bytes())
        for part in (0.2, 0.5, 0.8):
            content[int(len(content) * part)] ^= 0x10
        file.write_bytes(content)
        with Sink(port) as sink, Collector(self.folder, *words) as collector, Conserved(collector) as look:
            self.check_empty(collector, requests)
            missing = senders.acknowledged - set(sink.got)
            self.assertLessEqual(len(missing), 3)
            self.assertGreater(len(missing), 0)
            self.assertEqual([aside.name for aside in self.files("damaged")], [file.stem + ".damaged"])
            self.assertIn("files of the queue on disk are damaged and set aside", collector.said())
            self.assertIn('kiln_exporter_damaged_files_total{data_type="profiles",exporter="otlp_http/0"} 1',
                          collector.metrics())
        self.check_conserved(look)

    # ---- one slow, one fast ----

    def test_a_slow_exporter_does_not_stop_a_fast_one(self):
        requests = Requests()
        with Sink(mode="hold") as slow, Sink() as fast:
            with Collector(self.folder, *self.config((slow.port, IN_MEMORY), (fast.port, IN_MEMORY))) as collector:
                with Conserved(collector) as look, Senders(requests, collector.ports[IN], most=300) as senders:
                    senders.join()
                    self.assertEqual(len(senders.acknowledged), requests.next)
                    self.check_arrived(fast, senders)
                    self.assertEqual(len(slow.got), 0)
                    slow.turn("take")
                    self.check_arrived(slow, senders)
                    self.check_empty(collector, requests)
                self.check_conserved(look)

    def test_a_full_queue_that_may_refuse_leaves_the_other_exporter_alone(self):
        requests = Requests()
        with Sink(mode="hold") as slow, Sink() as fast:
            words = self.config((slow.port, f"{IN_MEMORY}, block_on_overflow: false"), (fast.port, IN_MEMORY))
            with Collector(self.folder, *words, "--set", "exporters.otlp_http/0.sending_queue.queue_size=5") as collector:
                with Conserved(collector) as look:
                    sent, connection = set(), None
                    for _ in range(50):
                        number, body = requests.take()
                        status, connection = post(collector.ports[IN], body, connection)
                        self.assertEqual(status, 200 if len(sent) < 5 else 429)
                        sent.add(number)
                    connection.close()
                    self.assertEqual(fast.wait_for(sent), set())
                    slow.turn("take")
                    self.check_empty(collector, requests)
                    self.assertEqual(len(slow.got), 5)
                self.check_conserved(look)

    # ---- the next configuration ----

    def check_reloads(self, *rounds, ends="configuration read again"):
        """Senders send while each of these follows the one before: whatever was acknowledged arrives."""
        requests, changes = Requests(), self.folder / "changes.yaml"
        with Sink() as sink:
            changes.write_text(rounds[0])
            with Collector(self.folder, *self.config((sink.port, IN_MEMORY)), "--config", str(changes)) as collector:
                with Senders(requests, collector.ports[IN]) as senders:
                    for settings in rounds[1:]:
                        before = len(senders.acknowledged)
                        collector.wait_for(lambda: len(senders.acknowledged) > before + 50)
                        changes.write_text(settings)
                        collector.reload(ends)
                self.assertEqual(collector.end(), 0, collector.said())
            self.assertEqual(set(senders.acknowledged) - set(sink.got), set(), collector.said())
            self.assertGreater(len(senders.acknowledged), 50 * len(rounds[1:]))

    def test_exporters_that_change_under_load_lose_nothing(self):
        ways = (("queue_size: 1000", "", "1s"), ("queue_size: 1001", "batch", "1s"), ("enabled: false", "batch", "50ms"),
                ("wait_for_result: true", "batch", "0s"), ("storage: file_storage", "batch", "1s"),
                ("batch: {min_size: 100}", "", "1s"))
        self.check_reloads(*(f"processors: {{batch: {{timeout: {timeout}}}}}\n"
                             f"exporters: {{otlp_http/0: {{sending_queue: {{{queue}}}}}}}\n"
                             f"service: {{pipelines: {{profiles: {{processors: [{processors}]}}}}}}\n"
                             for queue, processors, timeout in 2 * ways))

    def test_configurations_that_cannot_start_under_load_lose_nothing(self):
        """The last receiver cannot: by then the first one may have taken something for an exporter that is new."""
        with socket.create_server(("127.0.0.1", 0)) as other:
            names = ["otlp", *(f"otlp/{i}" for i in range(30))]
            ports = [0] * (len(names) - 1) + [other.getsockname()[1]]
            receivers = "".join(f"  {name}: {{protocols: {{http: {{endpoint: '127.0.0.1:{port}'}}}}}}\n"
                                for name, port in zip(names, ports))
            self.check_reloads("receivers: {}", *(
                f"receivers:\n{receivers}exporters: {{otlp_http/0: {{sending_queue: {{queue_size: {size}}}}}}}\n"
                f"service: {{pipelines: {{profiles: {{receivers: [{', '.join(names)}]}}}}}}\n" for size in range(1000, 1010)),
                ends="the configuration before is at work again")

    # ---- the end ----

    def test_sigterm_sends_what_waits_and_ends_well(self):
        requests = Requests()
        with Sink(mode="busy") as sink, Collector(self.folder, *self.config((sink.port, IN_MEMORY))) as collector:
            with Senders(requests, collector.ports[IN], most=50) as senders:
                senders.join()
            sink.turn("take")
            self.assertEqual(collector.end(), 0)
            self.assertEqual(senders.acknowledged - set(sink.got), set())


if __name__ == "__main__":
    unittest.main()
