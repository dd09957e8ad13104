#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The guides' two Collector configurations, through a real OpenTelemetry Collector ($OTELCOL, or one that tests/interop built), into
Kiln; the API key of the second is a token.  Only addresses differ from the guides (on loopback
without TLS), and the processors are left out: the Collector's
own batch processor has no profiles, and a pipeline that names it does not start."""
import hashlib
import os
import socket
import subprocess
import time
import urllib.request

from scenario import CPU, KILN, KilnServer, check, equal, finish, peers, query, shares, skip
from drawn_otlp import Drawn
from ports import free_port

STACKS = """
    handleRequest;parseJSON;decodeUTF8   25
    handleRequest;parseJSON               7
    handleRequest;validateInput           6
    handleRequest;writeResponse           4
    handleRequest                         3
    idle                                 55
"""
TO_PYROSCOPE = """
receivers:
  otlp:
    protocols:
      grpc:
        endpoint: 127.0.0.1:%(grpc)d
      http:
        endpoint: 127.0.0.1:%(http)d

exporters:
  otlphttp/pyroscope:
    endpoint: http://127.0.0.1:%(kiln)d

service:
  pipelines:
    profiles:
      receivers: [otlp]
      exporters: [otlphttp/pyroscope]
"""
WITH_KEY = """
receivers:
  otlp:
    protocols:
      grpc:
        endpoint: 127.0.0.1:%(grpc)d
      http:
        endpoint: 127.0.0.1:%(http)d

exporters:
  # Send profiles to your observability backend via OTLP
  otlp/profiles:
    endpoint: 127.0.0.1:%(kiln_grpc)d
    tls: {insecure: true}
    headers:
      Authorization: "Bearer your-api-key"

service:
  pipelines:
    # Profile pipeline runs alongside your existing trace and metric pipelines
    profiles:
      receivers: [otlp]
      exporters: [otlp/profiles]
"""


def collector():
    if os.environ.get("OTELCOL"):
        return os.environ["OTELCOL"]
    built = sorted((peers.CACHE / "go").glob("otelcol-" + "[0-9a-f]" * 16), key=lambda file: file.stat().st_mtime)
    return built[-1] if built else skip("no OpenTelemetry Collector here: OTELCOL does not name one, and interop/ingest has not built one")


def wait_for(port, process, log):
    for _ in range(600):
        if process.poll() is not None:
            raise RuntimeError(f"the Collector ended: {log.read_text()}")
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise RuntimeError(f"the Collector does not listen: {log.read_text()}")


def through(program, server, settings):
    """Sends the drawn profile to the Collector, which then ends, having sent all it had."""
    ports = {"grpc": free_port(), "http": free_port(), "kiln": server.http, "kiln_grpc": server.otlp_grpc}
    config, log = server.folder / "otel-collector-config.yaml", server.folder / "otelcol.log"
    config.write_text(settings % ports + "  telemetry: {metrics: {level: none}}\n")
    with open(log, "wb") as file:
        process = subprocess.Popen([program, "--config", str(config), "--feature-gates", "service.profilesSupport"],
                                   stdout=file, stderr=file)
    try:
        wait_for(ports["grpc"], process, log)
        wait_for(ports["http"], process, log)
        drawn = Drawn()
        drawn.profile({"service.name": "order-service"}, time.time_ns() - 60_000_000_000, STACKS)
        otlp = subprocess.run([KILN, "convert", "-", "--to", "otlp"], input=drawn.json(), capture_output=True, check=True).stdout
        call = urllib.request.Request(f"http://127.0.0.1:{ports['http']}/v1development/profiles", otlp,
                                      {"Content-Type": "application/x-protobuf"})
        urllib.request.urlopen(call, timeout=60).read()
    finally:
        process.terminate()  # it sends what it has first
        process.wait(60)
    complaints = [line for line in log.read_text().splitlines() if "\terror\t" in line]
    check("the Collector does not complain", not complaints, complaints)


def same(what, server):
    answer = query(server, CPU + '{service_name="order-service"}')
    period = 10_000_000
    equal(f"{what}: the total", answer["total"], 100 * period)
    equal(f"{what}: decodeUTF8 has 25 %", shares(answer)["decodeUTF8"], 25 * period)
    equal(f"{what}: parseJSON 32 %, with what it calls", shares(answer, "total")["parseJSON"], 32 * period)
    equal(f"{what}: handleRequest 45 %", shares(answer, "total")["handleRequest"], 45 * period)


def main():
    program = collector()
    with KilnServer() as server:
        through(program, server, TO_PYROSCOPE)
        same("over HTTP to Pyroscope's port", server)
    with KilnServer() as server:
        server.stop()
        tokens = server.folder / "tokens.yaml"
        tokens.write_text(f"- {{name: collector, sha256: {hashlib.sha256(b'your-api-key').hexdigest()}, tenant: anonymous, access: [write]}}\n")
        server.words = ("--tokens", str(tokens))
        server.start()
        through(program, server, WITH_KEY)
        server.stop()
        server.words = ()
        server.start()
        same("over gRPC with a key", server)
    finish()


if __name__ == "__main__":
    main()
