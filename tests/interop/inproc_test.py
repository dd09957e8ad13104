#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a program under libkiln sends arrives at an OpenTelemetry Collector, over gRPC and HTTP, which hands it on to
`kiln server`: named, and all of it.  What libkiln sends passes `kiln check --strict` and, where $PROFCHECK names it,
OpenTelemetry's profcheck.  A Collector that cannot be installed is named and its part left out."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE / "otlp"), str(HERE.parent / "support")]
import ingest_test  # noqa: E402
import peers  # noqa: E402
from checks import check, exit_code  # noqa: E402
from inproc_kit import Sink, Worker, ok  # noqa: E402
from kiln_server import KILN, KilnServer  # noqa: E402
from ports import free_port  # noqa: E402


def kiln(*words):
    return subprocess.run([KILN, *map(str, words)], check=True, capture_output=True).stdout


def planted(path):
    rows = json.loads(kiln("top", path, "--json", "-n", "0", "-t", "alloc_space"))["rows"]
    return sum(row["self"] for row in rows if row["name"] == "out_planted")


def through_collector():
    program = ingest_test.collector()
    with KilnServer() as server:
        ports = {"IN_GRPC": free_port(), "IN_HTTP": free_port(), "KILN_GRPC": server.otlp_grpc,
                 "KILN_HTTP": server.otlp_http}
        log = server.folder / "otelcol.log"
        with open(log, "wb") as file:
            process = subprocess.Popen([program, "--config", str(HERE / "collector/config.yaml"), "--feature-gates",
                                        "service.profilesSupport"], stdout=file, stderr=file,
                                       env=os.environ | {name: str(number) for name, number in ports.items()})
        try:
            for name in ("IN_GRPC", "IN_HTTP"):
                ingest_test.wait_for_port(ports[name], process, log)
            for service, name, protocol in (("collected-grpc", "IN_GRPC", "grpc"),
                                            ("collected-http", "IN_HTTP", "http/protobuf")):
                with Worker(OTEL_SERVICE_NAME=service, KILN_PROFILES="alloc,heap", OTEL_EXPORTER_OTLP_PROTOCOL=protocol,
                            OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{ports[name]}") as worker:
                    worker.ask("work 4")
                    check(f"a Collector, {protocol}: takes it", worker.ask("flush 30000") == 0)
                    check(f"a Collector, {protocol}: the program ends well", worker.end() == (0, ""))
            ingest_test.wait_for_request(server)
        finally:
            process.terminate()  # it hands on all it has
            process.wait(60)
        server.stop()
        for service in ("collected-grpc", "collected-http"):
            out = server.folder / f"{service}.otlp"
            kiln("store", "export", "--data-dir", server.data, "-o", out, "--service", service)
            found = planted(out)
            check(f"{service}: all of it is kept, named", abs(found - (8 << 20)) < 6 * ((8 << 20) * 65536) ** 0.5, found)


def by_the_rules():
    with Sink(ok()) as sink, Worker(OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{sink.port}",
                                    OTEL_EXPORTER_OTLP_COMPRESSION="none", THREAD="a-thread") as worker:
        worker.ask("label user alice")
        worker.ask("work 4")
        worker.ask("flush 30000")
        worker.end()
        requests = [body for _, body in sink.requests]
    check("a request came", requests)
    for content in requests[:1]:
        with tempfile.NamedTemporaryFile(suffix=".otlp") as file:
            file.write(content)
            file.flush()
            ours = subprocess.run([KILN, "check", "--strict", file.name], capture_output=True, text=True)
            check("kiln check --strict passes", ours.returncode == 0, ours.stdout + ours.stderr)
            if os.environ.get("PROFCHECK"):
                theirs = subprocess.run([os.environ["PROFCHECK"], file.name], capture_output=True, text=True)
                check("profcheck passes", theirs.returncode == 0, theirs.stdout + theirs.stderr)


def main():
    by_the_rules()
    try:
        through_collector()
    except peers.Absent as why:
        print(f"not tried: a Collector: {why}", flush=True)
    return exit_code()


if __name__ == "__main__":
    sys.exit(main())
