#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`kiln collector` between others, with the file that the OpenTelemetry Collector reads:

  - grpc-go and HTTP senders, then Kiln's collector and the real one in either order, then a store that is looked into;
  - gzip, zstd and no compression, over gRPC and over HTTP.

A peer that cannot be installed is named and its part left out.
"""
import contextlib
import os
import pathlib
import subprocess
import sys
import urllib.request

HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE / "otlp"), str(HERE.parent / "support")]
import ingest_test  # noqa: E402
import peers  # noqa: E402
from checks import exit_code  # noqa: E402
from ingest_test import KILN, arrives, wait_for_port, wait_for_request  # noqa: E402
from ports import free_port  # noqa: E402

CONFIG = HERE / "collector/config.yaml"


def kiln_collector():
    return [KILN, "collector"]


def real_collector():
    return [ingest_test.collector(), "--feature-gates", "service.profilesSupport"]


@contextlib.contextmanager
def collector(program, folder, to_grpc, to_http, compression):
    """One that listens on two free ports, gRPC and HTTP, and sends on to these two."""
    ports = {"IN_GRPC": free_port(), "IN_HTTP": free_port(), "KILN_GRPC": to_grpc, "KILN_HTTP": to_http}
    log = folder / f"collector-{ports['IN_GRPC']}.log"
    with open(log, "wb") as file:
        process = subprocess.Popen([*program, "--config", str(CONFIG), "--set", f"exporters.otlp.compression={compression}",
                                    "--set", f"exporters.otlphttp.compression={compression}"], stdout=file, stderr=file,
                                   env=os.environ | {name: str(port) for name, port in ports.items()})
    try:
        for name in ("IN_GRPC", "IN_HTTP"):
            wait_for_port(ports[name], process, log)
        yield ports["IN_GRPC"], ports["IN_HTTP"], log
    finally:
        process.terminate()
        process.wait(60)


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
                call = urllib.request.Request(f"http://127.0.0.1:{ports[1]}/v1development/profiles", request,
                                              {"Content-Type": "application/x-protobuf"})
                urllib.request.urlopen(call, timeout=30).read()
            wait_for_request(server)
        return "\n".join(log.read_text() for log in logs)
    return send


def main():
    for protocol, compression in (("grpc", "gzip"), ("http", "gzip"), ("grpc", "zstd"), ("http", "zstd"), ("grpc", "none")):
        arrives(f"{protocol} {compression}: Kiln's collector", through([kiln_collector], protocol, compression))
    for protocol in ("grpc", "http"):
        arrives(f"{protocol}: Kiln's, then the Collector", through([kiln_collector, real_collector], protocol, "gzip"))
        arrives(f"{protocol}: the Collector, then Kiln's", through([real_collector, kiln_collector], protocol, "gzip"))
    if not ingest_test.tried:
        print("skipped: none of the peers can be had here")
        return 77
    return exit_code()


if __name__ == "__main__":
    sys.exit(main())
