#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`kiln collector` between others, with the file that the OpenTelemetry Collector reads:

  - grpc-go and HTTP senders, then Kiln's collector and the real one in either order, then a store that is looked into;
  - gzip, zstd and no compression, over gRPC and over HTTP;
  - TLS with and without certificates of clients between the two; what does not fit is refused with a reason;
  - the real one in front of Kiln's, which is killed meanwhile: nothing is lost;
  - traces, metrics and logs in JSON through Kiln's and then the real one, which makes protobuf of them;
  - at every level of telemetry, all metrics of the real one are there, with their names and types;
  - what each exporter sends passes `kiln check --strict` and, where $PROFCHECK names it, OpenTelemetry's profcheck.

A peer that cannot be installed is named and its part left out.
"""
import contextlib
import itertools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request

HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE / "otlp"), str(HERE.parent / "support")]
import ingest_test  # noqa: E402
import peers  # noqa: E402
from certificates import make_certificates  # noqa: E402
from checks import check, exit_code  # noqa: E402
from export_test import check_rules, drawn, grpc_sink, parts, told, tried  # noqa: E402
from ingest_test import KILN, arrives, functions, kept, wait_for_port, wait_for_request  # noqa: E402
from kiln_collector import PATH, Collector, Requests, Sink  # noqa: E402
from kiln_server import KilnServer  # noqa: E402
from ports import free_port, free_ports  # noqa: E402

CONFIG = HERE / "collector/config.yaml"


def kiln_collector():
    return [KILN, "collector"]


def real_collector():
    return [ingest_test.collector(), "--feature-gates", "service.profilesSupport"]


@contextlib.contextmanager
def running(program, folder, environment, ways_in, *words):
    """One that runs with these numbers and paths in its environment, of which `ways_in` are ports that it listens on; its log."""
    log = folder / f"collector-{environment[ways_in[0]]}.log"
    with open(log, "wb") as file:
        process = subprocess.Popen([*program, *words], stdout=file, stderr=file,
                                   env=os.environ | {name: str(value) for name, value in environment.items()})
    try:
        for name in ways_in:
            wait_for_port(environment[name], process, log)
        yield log
    finally:
        process.terminate()
        process.wait(60)


@contextlib.contextmanager
def collector(program, folder, to_grpc, to_http, compression, *words):
    """One that listens on two free ports, gRPC and HTTP, and sends on to these two."""
    ports = {"IN_GRPC": free_port(), "IN_HTTP": free_port(), "KILN_GRPC": to_grpc, "KILN_HTTP": to_http}
    with running(program, folder, ports, ("IN_GRPC", "IN_HTTP"), "--config", str(CONFIG), "--set",
                 f"exporters.otlp.compression={compression}", "--set", f"exporters.otlphttp.compression={compression}",
                 *words) as log:
        yield ports["IN_GRPC"], ports["IN_HTTP"], log


def post(port, request):
    call = urllib.request.Request(f"http://127.0.0.1:{port}{PATH}", request, {"Content-Type": "application/x-protobuf"})
    urllib.request.urlopen(call, timeout=60).read()


def through(kinds, protocol, compression):
    """A sender for `arrives`: by this protocol through collectors of these kinds, the first of them first."""
    def send(server, request):
        ports, logs = (server.otlp_grpc, server.otlp_http), []
        with contextlib.ExitStack() as stack:
            for kind in reversed(kinds):
                *ports, log = stack.enter_context(collector(kind(), server.folder, *ports, compression))
                logs.append(log)
            if protocol == "grpc":
                client = peers.build_go(HERE / "go/otlpsend")
                subprocess.run([client, f"127.0.0.1:{ports[0]}"], input=request, check=True, capture_output=True)
            else:
                post(ports[1], request)
            wait_for_request(server)
        return "\n".join(log.read_text() for log in logs)
    return send


# ---- TLS ----

WAYS = ("tls_grpc", "tls_http", "mtls_grpc", "mtls_http")
REFUSED = {  # the way: what Kiln says of it; the Collector has several sentences for each
    "wrong_ca_grpc": "unable to get local issuer certificate",
    "wrong_ca_http": "unable to get local issuer certificate",
    "no_cert_grpc": "certificate required",
    "no_cert_http": "certificate required",
}


def ports_of_two():
    """What each of two collectors is told: its own ports, and those of the other that it sends to."""
    names = [*(f"IN_{way.upper()}" for way in (*WAYS, *REFUSED)), *(f"AT_{way.upper()}" for way in WAYS)]
    ports = free_ports(2 * len(names))
    both = [dict(zip(names, some)) for some in (ports[:len(names)], ports[len(names):])]
    return [own | {name.replace("AT_", "TO_"): port for name, port in other.items() if name.startswith("AT_")}
            for own, other in (both, reversed(both))]


def requests_of(server):
    with urllib.request.urlopen(f"http://127.0.0.1:{server.http}/metrics", timeout=60) as answer:
        return sum(map(int, re.findall(rb'^kiln_receiver_requests_total\{[^}]*receiver="otlp"[^}]*\} (\d+)', answer.read(), re.M)))


def until(condition):
    """Whether it came true within a minute."""
    end = time.monotonic() + 60
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)
    return condition()


def over_tls(certificates):
    """Kiln's collector and the real one, each in front of the other, in one run."""
    if not shutil.which("openssl"):
        raise peers.Absent("there is no openssl")
    programs = (kiln_collector(), real_collector())
    with KilnServer("--retention", "36500d") as server, contextlib.ExitStack() as stack:
        make_certificates(certificates)
        ports = ports_of_two()
        logs = [stack.enter_context(running(
            program, server.folder, told_ports | {"CERTS": certificates, "KILN_GRPC": server.otlp_grpc},
            [name for name in told_ports if not name.startswith("TO_")], "--config", str(HERE / "collector/tls.yaml")))
            for program, told_ports in zip(programs, ports)]
        for number, (front, way) in enumerate(itertools.product(range(2), WAYS)):
            post(ports[front][f"IN_{way.upper()}"], drawn(server.folder, number).read_bytes())
        for front, way in itertools.product(range(2), REFUSED):
            post(ports[front][f"IN_{way.upper()}"], drawn(server.folder, 99).read_bytes())
        until(lambda: requests_of(server) >= 2 * len(WAYS))
        for front, (way, sentence) in itertools.product(range(2), REFUSED.items()):
            said = until(lambda: [line for line in logs[front].read_text().splitlines()
                                  if way in line and "dropp" in line.lower()])
            check(f"TLS, {way}: {('Kiln', 'the Collector')[front]} says why it cannot send",
                  any(front or sentence in line for line in said), said)
        stack.close()
        server.stop()
        found = parts(kept(server))
        check("TLS: what was sent both ways is kept, and nothing of what is refused", found == told(range(2 * len(WAYS))), found)


# ---- killed behind the real one ----

QUEUE = """
receivers: {otlp: {protocols: {http: {endpoint: "127.0.0.1:PORT"}}}}
exporters:
  otlp_http:
    endpoint: http://127.0.0.1:SINK
    compression: none
    sending_queue: {storage: file_storage, queue_size: 100000}
    retry_on_failure: {initial_interval: 20ms, max_interval: 100ms, max_elapsed_time: 0}
extensions: {file_storage: {directory: "FOLDER/queue", create_directory: true}}
service:
  extensions: [file_storage]
  telemetry: {metrics: {level: none}}
  pipelines: {profiles: {receivers: [otlp], exporters: [otlp_http]}}
"""


def killed_behind_the_collector(folder):
    program, requests, port, sent = real_collector(), Requests(), free_port(), set()
    path = folder / "queue.yaml"
    with Sink() as sink, contextlib.ExitStack() as stack:
        path.write_text(QUEUE.replace("PORT", str(port)).replace("SINK", str(sink.port)).replace("FOLDER", str(folder)))
        killed = stack.enter_context(Collector(folder, "--config", str(path)))
        _, way_in, log = stack.enter_context(collector(program, folder, free_port(), port, "gzip", "--set",
                                                       "exporters.otlphttp.retry_on_failure.initial_interval=100ms"))
        for _ in range(3):
            for _ in range(100):
                number, body = requests.take()
                sent.add(number)
                post(way_in, body)
            killed.process.kill()
            killed.process.wait()
            killed = stack.enter_context(Collector(folder, "--config", str(path)))
        missing = sink.wait_for(sent)
        check("the Collector, then Kiln's that is killed: nothing is lost", not missing, (missing, log.read_text()[-1500:]))


# ---- what exporters send ----

SENT = """
receivers: {otlp: {protocols: {http: {endpoint: "127.0.0.1:0"}}}}
processors:
  resource: {attributes: [{key: deployment.environment.name, value: test, action: upsert}]}
  attributes: {actions: [{key: thread.name, action: delete}]}
  transform: {profile_statements: [{context: sample, statements: ['set(attributes["seen"], "yes")']}]}
  filter: {error_mode: ignore, profiles: {profile: ['duration_unix_nano == 12345']}}
  batch: {timeout: 100ms}
exporters:
  otlp_http: {endpoint: "http://127.0.0.1:PLAIN", compression: none}
  otlp_http/changed: {endpoint: "http://127.0.0.1:CHANGED", sending_queue: {batch: {flush_timeout: 100ms, min_size: 100}}}
  otlp: {endpoint: "127.0.0.1:GRPC", tls: {insecure: true}}
  file: {path: "FOLDER/sent.bin", format: proto}
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    profiles: {receivers: [otlp], exporters: [otlp_http, otlp, file]}
    profiles/changed: {receivers: [otlp], processors: [resource, attributes, transform, filter, batch], exporters: [otlp_http/changed]}
"""


def records(content):
    """Of a file of records: each behind its length."""
    while content:
        length = int.from_bytes(content[:4], "big")
        yield content[4:4 + length]
        content = content[4 + length:]


def what_exporters_send(folder):
    if not os.environ.get("PROFCHECK"):
        print("not tried: profcheck: PROFCHECK does not name one", flush=True)
    request, wanted = ingest_test.request_bytes()
    path = folder / "sent.yaml"
    with Sink() as plain, Sink() as changed, grpc_sink() as (port, called):
        path.write_text(SENT.replace("PLAIN", str(plain.port)).replace("CHANGED", str(changed.port))
                        .replace("GRPC", str(port)).replace("FOLDER", str(folder)))
        with Collector(folder, "--config", str(path)) as collector:
            for _ in range(3):
                post(collector.ports["receivers::otlp::http"], request)
            check("what exporters send: it ends well", collector.end() == 0, collector.said())
    sent = {"otlp_http": plain.bodies, "otlp_http behind processors": changed.bodies,
            "otlp": [message.SerializeToString() for message, _ in called],
            "file": list(records((folder / "sent.bin").read_bytes()))}
    for name, bodies in sent.items():
        found = [functions(body) for body in bodies]
        total = {function: sum(one.get(function, 0) for one in found) for function in wanted}
        check(f"what {name} sends: all of it", total == {function: 3 * value for function, value in wanted.items()}, total)
        for body in bodies[:2]:
            check_rules(f"what {name} sends", body)


# ---- other signals, in JSON ----

SIGNALS = {
    "traces": {"resourceSpans": [{"scopeSpans": [{"spans": [{
        "traceId": "01" * 16, "spanId": "02" * 8, "name": "id-000001", "startTimeUnixNano": "1", "endTimeUnixNano": "2"}]}]}]},
    "metrics": {"resourceMetrics": [{"scopeMetrics": [{"metrics": [{
        "name": "id-000002", "gauge": {"dataPoints": [{"timeUnixNano": "1", "asInt": "5"}]}}]}]}]},
    "logs": {"resourceLogs": [{"scopeLogs": [{"logRecords": [{"timeUnixNano": "1", "body": {"stringValue": "id-000003"}}]}]}]},
}


def as_json(folder):
    """What comes as JSON goes on as JSON, and the real one, which sends protobuf, understands it."""
    with Sink() as sink, contextlib.ExitStack() as stack:
        port = sink.port
        for program in (real_collector(), kiln_collector()):
            ports = {"IN_HTTP": free_port(), "TO_HTTP": port}
            stack.enter_context(running(program, folder, ports, ("IN_HTTP",), "--config", str(HERE / "collector/signals.yaml")))
            port = ports["IN_HTTP"]
        for signal, message in SIGNALS.items():
            call = urllib.request.Request(f"http://127.0.0.1:{port}/v1/{signal}", json.dumps(message).encode(),
                                          {"Content-Type": "application/json"})
            with urllib.request.urlopen(call, timeout=60) as answer:
                check(f"{signal} in JSON are taken", json.load(answer) == {})
        missing = sink.wait_for({b"id-000001", b"id-000002", b"id-000003"})
        check("traces, metrics and logs in JSON come out of the Collector behind", not missing, missing)
        check("as protobuf", not any(body.startswith(b"{") for body in sink.bodies), sink.bodies)


# ---- metrics ----

LEVELS = ("basic", "normal", "detailed")


def metric_names(program, folder, level, sink_ports, request):
    """Names of the Collector's own that it shows after profiles went through it, each with its type."""
    ports = {"IN_GRPC": free_port(), "IN_HTTP": free_port(), "METRICS": free_port(), **sink_ports, "LEVEL": level}
    with running(program, folder, ports, ("IN_GRPC", "IN_HTTP", "METRICS"), "--config", str(HERE / "collector/metrics.yaml")):
        post(ports["IN_HTTP"], request)

        def shown():
            with urllib.request.urlopen(f"http://127.0.0.1:{ports['METRICS']}/metrics", timeout=60) as answer:
                return answer.read().decode()
        check(f"{level}: both exporters send", until(
            lambda: len(re.findall(r"^otelcol_exporter_sent_profile_samples\{[^}]*\} [1-9]", shown(), re.M)) == 2))
        return set(re.findall(r"^# TYPE (otelcol_\w+ \w+)", shown(), re.M))


def same_metrics(folder):
    """At every level of telemetry Kiln's collector shows what the real one does.  What Go's libraries add (http_*, rpc_*) is theirs."""
    request = drawn(folder, 1).read_bytes()
    with KilnServer("--retention", "36500d") as server:
        sinks = {"KILN_GRPC": server.otlp_grpc, "KILN_HTTP": server.otlp_http}
        for level in LEVELS:
            real = metric_names(real_collector(), folder, level, sinks, request)
            ours = metric_names(kiln_collector(), folder, level, sinks, request)
            check(f"{level}: the real one shows some", len(real) > 10, real)
            check(f"{level}: Kiln's collector shows all of them", real <= ours, sorted(real - ours))


def main():
    for protocol, compression in (("grpc", "gzip"), ("http", "gzip"), ("grpc", "zstd"), ("http", "zstd"), ("grpc", "none")):
        arrives(f"{protocol} {compression}: Kiln's collector", through([kiln_collector], protocol, compression))
    for protocol, compression in (("grpc", "gzip"), ("http", "gzip"), ("grpc", "zstd"), ("http", "zstd")):
        arrives(f"{protocol} {compression}: Kiln's, then the Collector", through([kiln_collector, real_collector], protocol, compression))
        arrives(f"{protocol} {compression}: the Collector, then Kiln's", through([real_collector, kiln_collector], protocol, compression))
    for what, part in (("TLS", over_tls), ("killed behind the Collector", killed_behind_the_collector),
                       ("what exporters send", what_exporters_send), ("signals in JSON", as_json),
                       ("metrics", same_metrics)):
        with tempfile.TemporaryDirectory() as folder:
            tried(what, part, pathlib.Path(folder))
    if not ingest_test.tried:
        print("skipped: none of the peers can be had here")
        return 77
    return exit_code()


if __name__ == "__main__":
    sys.exit(main())
