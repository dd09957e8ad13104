#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`kiln collector`: what it reads, how it refuses, how it runs, reloads and ends."""
import base64
import http.server
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import unittest
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))
from kiln_collector import Collector, Requests, Sink, exporters, post  # noqa: E402
from kiln_server import KILN, KilnServer  # noqa: E402

NOP = """
receivers: {nop: }
exporters: {nop: }
service:
  telemetry: {metrics: {address: "127.0.0.1:0"}}
  pipelines:
    profiles: {receivers: [nop], exporters: [nop]}
"""


def kiln(*words, env=None):
    return subprocess.run([KILN, "collector", *words], capture_output=True, text=True, timeout=60, check=False,
                          env=os.environ | (env or {}))


def push(collector, name, otlp, headers=None):
    """Posts profiles to this listener; anything but success is an error."""
    request = urllib.request.Request(f"http://127.0.0.1:{collector.ports[name]}/v1development/profiles",
                                     data=otlp, headers={"Content-Type": "application/x-protobuf", **(headers or {})})
    with urllib.request.urlopen(request, timeout=60) as answer:
        answer.read()


class Folder(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="kiln-collector-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def file(self, text, name="c.yaml"):
        path = self.folder / name
        path.write_text(text)
        return str(path)


class Reading(Folder):
    def refused(self, text, said, *words):
        path = self.file(text)
        for verb in ("validate",), ():
            ran = kiln("--config", path, *words, *verb)
            self.assertEqual((ran.returncode, ran.stderr.strip()), (1, f"kiln: {said.replace('FILE', path)}"))

    def test_a_sound_file_is_no_news(self):
        ran = kiln("--config", self.file(NOP), "validate")
        self.assertEqual((ran.returncode, ran.stdout, ran.stderr), (0, "", ""))

    def test_faults_are_named_with_file_and_line_and_leave_with_1(self):
        self.refused(NOP.replace("exporters: [nop]", "exporters: [nop/x]"),
                     'FILE: line 7, column 46: service::pipelines::profiles: references exporter "nop/x" which is '
                     'not configured')
        self.refused(NOP.replace("receivers: {nop: }", "receivers: {nop: {speed: 1}}"),
                     'FILE: line 2, column 19: \'receivers\' error reading configuration for "nop": unknown key speed')
        self.refused(NOP + "recievers: {}\n",
                     "FILE: line 8, column 1: unknown key recievers (did you mean receivers?)")
        self.refused("receivers: [\n", "FILE: line 2, column 1: did not find expected node content")
        self.refused(NOP.replace("nop: }\nexp", "nop: '${x:y}'}\nexp"),
                     'FILE: line 2, column 18: invalid uri: "x:y"')

    def test_all_faults_are_told_at_once(self):
        path = self.file("""
receivers: {nop: {speed: 1}, unheard: }
exporters: {otlp: {}}
colour: red
service:
  telemetry: {logs: {level: loud}}
  extensions: [gone]
  pipelines:
    profiles: {receivers: [nop, lost], exporters: [otlp]}
    tracks: {receivers: [nop], exporters: [otlp]}
    profiles/empty: {receivers: [nop]}
""")
        said = [line.removeprefix(f"kiln: {path}: ").removeprefix("kiln: ")[:57]
                for line in kiln("--config", path, "validate").stderr.splitlines()]
        self.assertEqual(sorted(said), sorted([
            "line 6, column 29: service::telemetry::logs::level: unrec",
            "line 4, column 1: unknown key colour",
            "line 2, column 19: 'receivers' error reading configuratio",
            'line 2, column 39: \'receivers\' unknown type: "unheard" fo',
            "line 3, column 19: 'exporters' error reading configuratio",
            "line 7, column 16: service::extensions: references extens",
            "line 9, column 33: service::pipelines::profiles: referenc",
            "line 10, column 13: service::pipelines::tracks: unknown s",
            "line 11, column 21: service::pipelines::profiles/empty: m",
        ]))

    def test_all_faults_of_a_component_are_told_at_once(self):
        path = self.file("""
receivers:
  otlp: {protocols: {grpc: {endpoint: "127.0.0.1:0", tls: {cipher: x, min_version: "1.0", cert_file: [a]}}}}
  nop:
processors:
  batch:
    timeout: soon
    send_bach_size: 5
    send_batch_max_size: -1
  memory_limiter: {limit_mibs: 5, check_interval: 1s}
  transform:
    profile_statements:
      - set(profile.attributes["a"], )
      - delete_key(profile.attributes, "b")
      - sett(profile.attributes["c"], 1)
exporters:
  otlp: {compression: snappy, colour: red, retry_on_failure: {initial_interval: 1y}}
service:
  color: red
  telemetri: {}
  pipelines:
    profiles: {receivers: [nop], processor: [], exporter: [], exporters: [otlp]}
""")
        said = [line.removeprefix(f"kiln: {path}: ").split(": ")[0]
                for line in kiln("--config", path, "validate").stderr.splitlines()]
        self.assertEqual(said, [f"line {line}, column {column}" for line, column in (
            (3, 60), (3, 102), (3, 84),             # not that a certificate is missing: it is the list
            (7, 14), (8, 5), (9, 26),
            (10, 20),                               # nor that there is no limit
            (13, 9), (15, 9),
            (17, 31), (17, 23), (17, 81),
            (19, 3), (20, 3),
            (22, 34), (22, 49))])

    def test_a_file_that_is_not_there_leaves_with_1(self):
        ran = kiln("--config", "/nonexistent/c.yaml", "validate")
        self.assertEqual(ran.returncode, 1)
        self.assertIn("unable to read the file /nonexistent/c.yaml", ran.stderr)

    def test_another_host_may_have_it(self):
        class Files(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200 if self.path == "/c.yaml?x=1" else 404)
                self.end_headers()
                self.wfile.write(NOP.encode())

            def log_message(self, *_):
                pass

        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Files) as server:
            threading.Thread(target=server.serve_forever).start()
            url = f"http://127.0.0.1:{server.server_address[1]}"
            self.assertEqual(kiln("--config", f"{url}/c.yaml?x=1", "print-config").stdout,
                             kiln("--config", self.file(NOP), "print-config").stdout)
            for words in ("--config", f"{url}/gone"), ("--config", f"yaml:receivers: '${{{url}/gone}}'"):
                ran = kiln(*words, "validate")
                self.assertEqual(ran.returncode, 1)
                self.assertIn(f"unable to download the file via http {url}/gone: HTTP status 404", ran.stderr)
            server.shutdown()

    def test_a_wrong_command_line_leaves_with_2(self):
        for words in (), ("validate",), ("--config", self.file(NOP), "vaildate"):
            self.assertEqual(kiln(*words).returncode, 2)

    def test_null_wipes_what_another_source_said(self):
        ran = kiln("--config", self.file(NOP), "--config", "yaml:exporters:", "validate")
        self.assertEqual(ran.returncode, 1)
        self.assertIn('references exporter "nop" which is not configured', ran.stderr)
        self.assertEqual(kiln("--config", self.file(NOP), "--config", "yaml:exporters: {}", "validate").returncode, 0)

    def test_sources_are_merged_and_printed(self):
        ran = kiln("--config", self.file(NOP), "--config", "env:MORE", "--set",
                   "service.pipelines.profiles/two={receivers: [nop], exporters: [\"nop/${NAME}\"]}", "print-config",
                   "--format", "json", env={"MORE": "exporters: {nop/b: }", "NAME": "b"})
        self.assertEqual((ran.returncode, ran.stderr), (0, ""))
        printed = json.loads(ran.stdout)
        self.assertEqual(printed["exporters"], {"nop": None, "nop/b": None})
        self.assertEqual(printed["service"]["pipelines"]["profiles/two"]["exporters"], ["nop/b"])

    def test_what_is_printed_can_be_run(self):
        printed = kiln("--config", self.file(NOP), "print-config").stdout
        self.assertEqual(kiln("--config", f"yaml:{printed}", "print-config").stdout, printed)

    def test_components_and_gates_are_listed(self):
        self.assertIn("  - name: nop\n    stability:\n      profiles: stable\n", kiln("components").stdout)
        self.assertIn("service.profilesSupport", kiln("featuregate").stdout)
        self.assertEqual(len(kiln("featuregate", "service.profilesSupport").stdout.splitlines()), 2)
        self.assertEqual(kiln("featuregate", "service.unheard").returncode, 2)

    def test_a_variable_that_is_not_set_is_told_of(self):
        ran = kiln("--config", self.file(NOP + "extensions: ${env:KILN_TEST_ABSENT}\n"), "validate")
        self.assertEqual(ran.returncode, 0)
        self.assertIn('c.yaml: line 8, column 13: Configuration references unset environment variable '
                      '"KILN_TEST_ABSENT"', ran.stderr)


class Running(Folder):
    def test_it_runs_until_it_is_told_to_stop(self):
        for number in signal.SIGTERM, signal.SIGINT:
            with Collector(self.folder, "--config", self.file(NOP)) as collector:
                self.assertIn("Everything is ready", collector.said())
                self.assertEqual(collector.end(number), 0)
                self.assertIn("msg=stopped", collector.said())

    def test_the_process_is_measured_in_the_collectors_names(self):
        with Collector(self.folder, "--config", self.file(NOP)) as collector:
            names = {line.split("{")[0].split(" ")[0] for line in collector.metrics().splitlines()}
        self.assertLessEqual({"otelcol_process_uptime", "otelcol_process_cpu_seconds", "otelcol_process_memory_rss",
                              "otelcol_process_runtime_total_alloc_bytes"}, names)

    def test_what_goes_through_is_measured_in_the_collectors_names(self):
        path = self.file(NOP.replace("nop: }\nexp", 'otlp: {protocols: {http: {endpoint: "127.0.0.1:0"}}}}\nexp')
                         .replace("{nop: }\nservice", "{otlp_http: {endpoint: SINK, sending_queue: {batch: {flush_timeout: 10ms}}}}\n"
                                  "processors: {memory_limiter: {check_interval: 1s, limit_mib: 4000}, batch: {timeout: 10ms}}\nservice")
                         .replace("[nop], exporters: [nop]", "[otlp], processors: [memory_limiter, batch], exporters: [otlp_http]"))
        requests = Requests(samples=7)
        with Sink() as sink:
            pathlib.Path(path).write_text(pathlib.Path(path).read_text().replace("SINK", f"http://127.0.0.1:{sink.port}"))
            shown, detailed = (self.measured(path, sink, requests, level) for level in ("normal", "detailed"))
        self.documented(detailed)
        for line in ('receiver_accepted_profile_samples{receiver="otlp"} 7', 'receiver_refused_profile_samples{receiver="otlp"} 0',
                     'receiver_failed_profile_samples{receiver="otlp"} 0', 'exporter_sent_profile_samples{exporter="otlp_http"} 7',
                     'exporter_send_failed_profile_samples{exporter="otlp_http"} 0',
                     'exporter_enqueue_failed_profile_samples{exporter="otlp_http"} 0',
                     'exporter_queue_size{data_type="profiles",exporter="otlp_http"} 0',
                     'exporter_queue_capacity{data_type="profiles",exporter="otlp_http"} 1000',
                     'exporter_in_flight_requests{data_type="profiles",exporter="otlp_http"} 0'):
            self.assertIn(f"\notelcol_{line}\n", shown)
        self.assertIn('\notelcol_receiver_requests{receiver="otlp",outcome="success"} 1\n', shown)
        for direction in "incoming", "outgoing":
            self.assertRegex(shown, rf'\notelcol_processor_{direction}_items\{{.*processor="batch".*\}} 7\n')
        self.assertRegex(shown, r'\notelcol_processor_internal_duration_count\{.*processor="memory_limiter"\} 1\n')
        for name in ('processor_batch_batch_send_size{}{{processor="batch"}}', 'exporter_enqueue_size{}{{exporter="otlp_http"}}',
                     'exporter_queue_batch_send_size{}{{exporter="otlp_http"}}'):
            self.assertNotIn(name.format("_sum"), shown)
            self.assertIn(f"\notelcol_{name.format('_sum')} 7\n", detailed)
            self.assertRegex(detailed, rf"\notelcol_{name.format('_bytes_sum')} [1-9]")

    def measured(self, path, sink, requests, level):
        """What it counts of one request that went through, at this level."""
        with Collector(self.folder, "--config", path, "--set", f"service.telemetry.metrics.level={level}") as collector:
            number, body = requests.take()
            status, connection = post(collector.ports["receivers::otlp::http"], body)
            connection.close()
            self.assertEqual((status, sink.wait_for({number})), (200, set()))
            collector.wait_for(lambda: exporters(collector.metrics())["otlp_http"]["sent"] == 7)
            return collector.metrics()

    def documented(self, shown):
        pages = "".join((ROOT / "docs/guide" / page).read_text() for page in ("metrics.md", "collector-exporters.md"))
        self.assertEqual(set(re.findall(r"^# TYPE (\w+)", shown, re.M)) - set(re.findall(r"\b\w+\b", pages)), set())

    def test_headers_keep_batches_apart_and_become_attributes(self):
        requests = Requests()
        with Sink() as sink:
            path = self.file(f"""
receivers: {{otlp: {{protocols: {{http: {{endpoint: "127.0.0.1:0", include_metadata: true}}}}}}}}
processors:
  batch: {{timeout: 10ms, metadata_keys: [X-Team], metadata_cardinality_limit: 2}}
  resource: {{attributes: [{{key: team, from_context: metadata.x-team, action: upsert}}]}}
exporters: {{otlp_http: {{endpoint: "http://127.0.0.1:{sink.port}", compression: none}}}}
service:
  telemetry: {{metrics: {{address: "127.0.0.1:0"}}}}
  pipelines: {{profiles: {{receivers: [otlp], processors: [batch, resource], exporters: [otlp_http]}}}}
""")
            with Collector(self.folder, "--config", path) as collector:
                numbers = {}
                for team in [b"team-pay", b"team-shop"] * 3:
                    number, body = requests.take()
                    numbers[number] = team
                    push(collector, "receivers::otlp::http", body, {"X-Team": team.decode()})
                self.assertEqual(sink.wait_for(set(numbers)), set())
                self.assertIn('\notelcol_processor_batch_metadata_cardinality{processor="batch"} 0\n', collector.metrics())
        for body in sink.bodies:
            there = {numbers[number] for number in numbers if number in body}
            self.assertEqual({team for team in numbers.values() if team in body}, there)
            self.assertEqual(len(there), 1)

    def test_who_was_authenticated_becomes_an_attribute(self):
        number, body = Requests().take()
        with Sink() as sink:
            path = self.file(f"""
extensions: {{basicauth: {{htpasswd: {{inline: "anna:secret"}}}}}}
receivers: {{otlp: {{protocols: {{http: {{endpoint: "127.0.0.1:0", auth: {{authenticator: basicauth}}}}}}}}}}
processors: {{resource: {{attributes: [{{key: who, from_context: auth.username, action: upsert}}]}}}}
exporters: {{otlp_http: {{endpoint: "http://127.0.0.1:{sink.port}", compression: none}}}}
service:
  extensions: [basicauth]
  telemetry: {{metrics: {{level: none}}}}
  pipelines: {{profiles: {{receivers: [otlp], processors: [resource], exporters: [otlp_http]}}}}
""")
            with Collector(self.folder, "--config", path) as collector:
                word = base64.b64encode(b"anna:secret").decode()
                push(collector, "receivers::otlp::http", body, {"Authorization": f"Basic {word}"})
                self.assertEqual(sink.wait_for({number}), set())
        self.assertIn(b"\x03who\x12\x06\n\x04anna", sink.bodies[0])

    def test_metrics_can_be_off(self):
        with Collector(self.folder, "--config", self.file(NOP), "--set",
                       "service.telemetry.metrics.level=none") as collector:
            self.assertEqual(collector.ports, {})

    def test_an_address_that_was_asked_for_has_to_be_free(self):
        with socket.create_server(("127.0.0.1", 0)) as other:
            address = f"127.0.0.1:{other.getsockname()[1]}"
            ran = kiln("--config", self.file(NOP), "--set", f"service::telemetry::metrics::address={address}")
        self.assertEqual(ran.returncode, 1)
        self.assertIn("service::telemetry::metrics: already in use", ran.stderr)

    def test_gates_are_taken_and_do_nothing(self):
        with Collector(self.folder, "--config", self.file(NOP), "--feature-gates=service.profilesSupport,-x.y", "--set",
                       "service.telemetry.logs.level=debug") as collector:
            said = collector.said()
        self.assertIn('level=debug msg="feature gates change nothing here" gate=service.profilesSupport', said)
        self.assertIn('level=warn msg="no such feature gate" gate=x.y', said)

    def test_the_log_can_be_json(self):
        with Collector(self.folder, "--config", self.file(NOP), "--set",
                       "service.telemetry.logs.encoding=json") as collector:
            collector.end()
            self.assertEqual([json.loads(line)["msg"] for line in collector.said().splitlines()][-1], "stopped")

    def test_a_reload_keeps_the_port_and_takes_the_new_file(self):
        path = self.file(NOP)
        with Collector(self.folder, "--config", path) as collector:
            self.file(NOP.replace("{address", "{level: detailed, address").replace("service:", "service:  # changed"))
            collector.reload("configuration read again")
            self.assertEqual(collector.wait_ready(), collector.ports)
            collector.metrics()
            self.file(NOP.replace('{address: "127.0.0.1:0"}', "{level: none}"))
            collector.reload("configuration read again")
            self.assertEqual(collector.wait_ready(), {})
            with self.assertRaises(OSError):
                collector.metrics()
            self.assertEqual(collector.end(), 0)

    def test_nobody_finds_a_closed_door_while_it_reloads(self):
        path = self.file(NOP.replace("nop: }\nexp", 'otlp: {protocols: {http: {endpoint: "127.0.0.1:0"}}}}\nexp')
                         .replace("[nop], exp", "[otlp], exp"))
        with Collector(self.folder, "--config", path) as collector:
            port, refused, stop = collector.ports["receivers::otlp::http"], [], threading.Event()

            def knock():
                while not stop.is_set():
                    try:
                        socket.create_connection(("127.0.0.1", port), timeout=60).close()
                    except ConnectionRefusedError as closed:
                        refused.append(closed)

            knocking = threading.Thread(target=knock)
            knocking.start()
            for _ in range(3):
                collector.reload("configuration read again")
            stop.set()
            knocking.join()
            self.assertEqual(refused, [])
            self.assertEqual(collector.wait_ready(), collector.ports)

    def test_a_reload_of_a_faulty_file_changes_nothing(self):
        path = self.file(NOP)
        with Collector(self.folder, "--config", path) as collector:
            self.file(NOP.replace("exporters: [nop]", "exporters: [gone]"))
            collector.reload("the configuration stays as it was")
            self.assertIn('references exporter \\"gone\\" which is not configured', collector.said())
            self.assertIn("c.yaml: line 7, column", collector.said())
            collector.metrics()
            self.assertEqual(collector.end(), 0)

    def test_a_reload_that_cannot_start_goes_back(self):
        path = self.file(NOP)
        with Collector(self.folder, "--config", path) as collector, socket.create_server(("127.0.0.1", 0)) as other:
            self.file(NOP.replace("127.0.0.1:0", f"127.0.0.1:{other.getsockname()[1]}"))
            collector.reload("the configuration before is at work again")
            self.assertIn("already in use", collector.said())
            collector.metrics()
            self.assertEqual(collector.end(), 0)


class Protocols(Folder):
    """A queue on disk that was given to an exporter of another protocol: its folder has another name since."""

    def config(self, signal, exporter):
        return self.file(f"""
extensions: {{file_storage: {{directory: "{self.folder}/queue", create_directory: true}}}}
receivers: {{otlp: {{protocols: {{http: {{endpoint: "127.0.0.1:0"}}}}}}}}
exporters: {{{exporter}, sending_queue: {{storage: file_storage}}}}}}
service:
  extensions: [file_storage]
  telemetry: {{metrics: {{level: none}}}}
  pipelines: {{{signal}: {{receivers: [otlp], exporters: [{exporter.split(":")[0]}]}}}}
""")

    def left_as_json(self, signal, path, body):
        with socket.socket() as nobody:
            nobody.bind(("127.0.0.1", 0))  # and does not listen
            port = nobody.getsockname()[1]
            to = f'otlp_http/a: {{endpoint: "http://127.0.0.1:{port}"{", encoding: json" if signal == "profiles" else ""}'
            with Collector(self.folder, "--config", self.config(signal, to)) as collector:
                request = urllib.request.Request(
                    f"http://127.0.0.1:{collector.ports['receivers::otlp::http']}{path}", data=body,
                    headers={"Content-Type": "application/x-protobuf" if signal == "profiles" else "application/json"})
                with urllib.request.urlopen(request, timeout=60) as answer:
                    self.assertEqual(answer.status, 200)
                self.assertEqual(collector.end(), 0, collector.said())
        (self.folder / f"queue/exporter_otlp_http~002Fa_{signal}").rename(self.folder / f"queue/exporter_otlp~002Fb_{signal}")

    def test_profiles_that_wait_as_json_are_sent_over_grpc(self):
        otlp = subprocess.run([KILN, "convert", "examples/checkout.pb.gz", "--to", "otlp", "-o", "-"], cwd=ROOT,
                              capture_output=True, check=True).stdout
        self.left_as_json("profiles", "/v1development/profiles", otlp)
        with KilnServer("--retention", "20000d") as server:
            to = f'otlp/b: {{endpoint: "http://127.0.0.1:{server.http}"'
            with Collector(self.folder, "--config", self.config("profiles", to)) as collector:
                self.assertEqual(collector.end(), 0, collector.said())
            asked = subprocess.run([KILN, "query", "--services", "--server", f"http://127.0.0.1:{server.http}"],
                                   capture_output=True, text=True, check=True)
        self.assertIn("unknown_service      4         4 ", asked.stdout)

    def test_what_cannot_be_made_protobuf_stays_and_is_told_of(self):
        span = {"traceId": "0" * 31 + "1", "spanId": "0" * 15 + "1", "name": "x"}
        body = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}).encode()
        self.left_as_json("traces", "/v1/traces", body)
        kept = {path: path.read_bytes() for path in self.folder.glob("queue/*/*.*")}
        self.assertTrue(any(kept.values()))
        ran = kiln("--config", self.config("traces", 'otlp/b: {endpoint: "http://127.0.0.1:1"'))
        self.assertNotEqual(ran.returncode, 0)
        self.assertIn("requests wait here as JSON, which gRPC does not carry", ran.stderr)
        self.assertEqual(kept, {path: path.read_bytes() for path in kept})


class Tutorials(unittest.TestCase):
    """Files as tutorials print them: only addresses are changed."""

    def through(self, name, path, to, *words):
        """What the server behind `to` has of a profile that went through."""
        text = (ROOT / "tests" / "cli" / "collector" / name).read_text()
        for port in "4317", "4318":
            text = text.replace(f"0.0.0.0:{port}", "127.0.0.1:0")
        otlp = subprocess.run([KILN, "convert", "examples/checkout.pb.gz", "--to", "otlp", "-o", "-"], cwd=ROOT,
                              capture_output=True, check=True).stdout
        with KilnServer("--retention", "20000d") as server:
            folder = server.folder
            config = folder / name
            config.write_text(text.replace(to, f"http://127.0.0.1:{server.http}"))
            with Collector(folder, "--config", str(config), "--set", "service.telemetry.metrics.level=none") as collector:
                push(collector, path, otlp)
                self.assertEqual(collector.end(), 0, collector.said())
            asked = subprocess.run([KILN, "query", *words, "--server", f"http://127.0.0.1:{server.http}"],
                                   capture_output=True, text=True, check=False)
            self.assertEqual(asked.returncode, 0, asked.stderr + collector.said())
            return asked.stdout

    def test_batched_and_sent_over_http(self):
        said = self.through("memory-and-cpu.yaml", "receivers::otlp::grpc", "http://pyroscope:4040", "--services")
        self.assertIn("unknown_service      4         4 ", said)

    def test_batched_labelled_and_sent_over_grpc(self):
        said = self.through("beside-traces.yaml", "receivers::otlp::http", "https://oneuptime.com/otlp", "--values",
                            "deployment.environment", "--from", "2025-11-15T00:00:00Z", "--until",
                            "2025-11-16T00:00:00Z")
        self.assertIn("production         4 ", said)


if __name__ == "__main__":
    unittest.main()
