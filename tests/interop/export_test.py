#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What our exporter of OTLP sends arrives at other people's receivers, whole and once:

  - a gRPC server of Python's grpcio with the published stubs;
  - an OpenTelemetry Collector, over gRPC and HTTP, gzip and zstd, which hands it on to `kiln server`;
  - a receiver that is away and comes back, with the sender killed meanwhile; a spool that is too small.

What arrives passes `kiln check --strict` and, where $PROFCHECK names it, OpenTelemetry's profcheck.
A peer that cannot be installed is named and its part left out.
"""
import contextlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent import futures

HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE / "otlp"), str(HERE.parent / "support")]
import ingest_test  # noqa: E402
import peers  # noqa: E402
from certificates import make_certificates  # noqa: E402
from checks import check, exit_code  # noqa: E402
from ingest_test import functions, kept, kiln  # noqa: E402
from kiln_server import KilnServer  # noqa: E402
from ports import free_port  # noqa: E402

SENDER = pathlib.Path(os.environ.get("KILN_BUILD_DIR", "build")) / "interop_export_sender"
METHOD = "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export"
SENT = "kiln_export_sent_requests_total"


class Sender:
    """The exporter in a process of its own: export_sender.c."""

    def __init__(self, endpoint, spool="", *more, **variables):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
        environment |= {f"OTEL_EXPORTER_OTLP_{name}": value for name, value in variables.items()}
        self.process = subprocess.Popen([SENDER, str(spool), *map(str, more)], stdin=subprocess.PIPE, text=True,
                                        stdout=subprocess.PIPE,
                                        env=environment | {"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().split()

    def send(self, path):
        return int(self.ask(f"send {path}")[1])

    def count(self, name):
        return float(self.ask(f"count {name}")[1])

    def wait(self, name, value):
        for _ in range(3000):
            if self.count(name) >= value:
                return
            time.sleep(0.01)
        raise RuntimeError(f"{name} stays at {self.count(name)}, not {value}")

    def end(self, ms=30000):
        return self.ask(f"end {ms}")


def drawn(folder, number):
    """A file with one profile of its own; and its functions."""
    path = pathlib.Path(folder) / f"{number}.otlp"
    path.write_bytes(kiln("convert", "-", "--from", "collapsed", "--to", "otlp",
                          stdin=f"main;work;part_{number} {number + 1}\n".encode()))
    return path


def told(numbers):
    return {f"part_{number}": number + 1 for number in numbers}


def parts(profile):
    return {name: value for name, value in functions(profile).items() if name.startswith("part_")}


# ---- grpcio ----

@contextlib.contextmanager
def grpc_sink():
    """A server of grpcio: its port, and a list of what it gets: (request, metadata)."""
    messages = ingest_test.python_stubs()
    import grpc
    got = []

    def export(request, context):
        got.append((request, dict(context.invocation_metadata())))
        return messages.ExportProfilesServiceResponse()

    handlers = grpc.method_handlers_generic_handler(
        METHOD.split("/")[1], {"Export": grpc.unary_unary_rpc_method_handler(
            export, messages.ExportProfilesServiceRequest.FromString,
            messages.ExportProfilesServiceResponse.SerializeToString)})
    server = grpc.server(futures.ThreadPoolExecutor(2))
    server.add_generic_rpc_handlers((handlers,))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield port, got
    finally:
        server.stop(None)


def grpc_python(compression):
    example = pathlib.Path(os.environ.get("KILN_SOURCE_DIR", ".")) / "examples/checkout.pb.gz"
    with grpc_sink() as (port, got), Sender(f"http://127.0.0.1:{port}", PROTOCOL="grpc", COMPRESSION=compression,
                                            HEADERS="X-Scope-OrgID=shop,authorization=Bearer%20abc") as sender:
        for _ in range(3):
            sender.send(example)
        sender.wait(SENT, 3)
        sender.end()
    wanted = functions(kiln("convert", example, "--to", "otlp"))
    check(f"grpcio {compression}: three requests came", len(got) == 3, len(got))
    for request, metadata in got[:1]:
        content = request.SerializeToString()
        check(f"grpcio {compression}: every function is there", functions(content) == wanted, functions(content))
        check(f"grpcio {compression}: headers came along",
              (metadata.get("x-scope-orgid"), metadata.get("authorization")) == ("shop", "Bearer abc"), metadata)
        check_rules(f"grpcio {compression}", content)


def check_rules(what, content):
    with tempfile.NamedTemporaryFile(suffix=".otlp") as file:
        file.write(content)
        file.flush()
        ours = subprocess.run([ingest_test.KILN, "check", "--strict", file.name], capture_output=True, text=True)
        check(f"{what}: kiln check --strict passes", ours.returncode == 0, ours.stdout + ours.stderr)
        if os.environ.get("PROFCHECK"):
            theirs = subprocess.run([os.environ["PROFCHECK"], file.name], capture_output=True, text=True)
            check(f"{what}: profcheck passes", theirs.returncode == 0, theirs.stdout + theirs.stderr)


# ---- the Collector ----

def through_collector(protocol, compression):
    def send(server, _):
        program = ingest_test.collector()
        ports = {"IN_GRPC": free_port(), "IN_HTTP": free_port(), "KILN_GRPC": server.otlp_grpc,
                 "KILN_HTTP": server.otlp_http}
        port = ports["IN_GRPC" if protocol == "grpc" else "IN_HTTP"]
        log = server.folder / "otelcol.log"
        with open(log, "wb") as file:
            process = subprocess.Popen([program, "--config", str(HERE / "collector/config.yaml"),
                                        "--feature-gates", "service.profilesSupport"], stdout=file, stderr=file,
                                       env=os.environ | {name: str(number) for name, number in ports.items()})
        try:
            for name in ("IN_GRPC", "IN_HTTP"):
                ingest_test.wait_for_port(ports[name], process, log)
            with Sender(f"http://127.0.0.1:{port}", PROTOCOL=protocol, COMPRESSION=compression) as sender:
                sender.send(ingest_test.SOURCES / "examples/checkout.pb.gz")
                sender.wait(SENT, 1)
                sender.end()
            ingest_test.wait_for_request(server)
        finally:
            process.terminate()
            process.wait(60)
        return log.read_text()
    return send


# ---- a receiver that is away ----

def away_and_back():
    with tempfile.TemporaryDirectory() as folder:
        port, spool = free_port(), pathlib.Path(folder) / "spool"
        words = ("--retention", "36500d", "--otlp-grpc", f"127.0.0.1:{port}")
        endpoint = f"http://127.0.0.1:{port}"
        with Sender(endpoint, spool, PROTOCOL="grpc") as sender:
            for number in range(4):
                sender.send(drawn(folder, number))
            sender.wait("kiln_export_spool_files", 4)
            sender.process.kill()  # with all of it on disk
        with KilnServer(*words) as server, Sender(endpoint, spool, PROTOCOL="grpc") as sender:
            sender.wait(SENT, 4)
            sender.send(drawn(folder, 4))
            sender.wait(SENT, 5)
            server.stop()
            for number in range(5, 12):
                sender.send(drawn(folder, number))
            sender.wait("kiln_export_spool_files", 7)
            server.start()
            sender.wait(SENT, 12)
            check("away and back: the spool is empty again", sender.count("kiln_export_spool_files") <= 1)
            sender.end()
            dropped = [reason for reason in ("memory", "spool_full", "torn", "refused")
                       if sender.count(f'kiln_export_dropped_requests_total{{reason="{reason}"}}')]
            check("away and back: nothing was dropped", not dropped, dropped)
            server.stop()
            found = parts(kept(server))
            check("away and back: everything arrived, once", found == told(range(12)), found)
        left = [path.name for path in spool.iterdir()]
        check("away and back: no file is left behind", left == ["lock"], left)


def too_small():
    with tempfile.TemporaryDirectory() as folder:
        port, spool = free_port(), pathlib.Path(folder) / "spool"
        endpoint = f"http://127.0.0.1:{port}"
        with Sender(endpoint, spool, 2000, PROTOCOL="grpc") as sender:
            for number in range(40):
                sender.send(drawn(folder, number))
            sender.wait("kiln_export_spooled_requests_total", 40)
            dropped = int(sender.count('kiln_export_dropped_requests_total{reason="spool_full"}'))
            kept_back = int(sender.count("kiln_export_spool_files"))
            check("a small spool: it holds what it may", sender.count("kiln_export_spool_bytes") <= 2000)
            check("a small spool: the rest is counted", dropped + kept_back == 40 and kept_back > 2, (dropped, kept_back))
            check("a small spool: and the samples of it",
                  sender.count('kiln_export_dropped_samples_total{reason="spool_full"}') == dropped)
            with KilnServer("--retention", "36500d", "--otlp-grpc", f"127.0.0.1:{port}") as server:
                sender.wait(SENT, kept_back)
                sender.end()
                server.stop()
                found = parts(kept(server))
            check("a small spool: the newest were kept", found == told(range(dropped, 40)), found)


def one_owner():
    with tempfile.TemporaryDirectory() as spool, Sender("http://127.0.0.1:9", spool) as first:
        first.count(SENT)
        second = subprocess.run([SENDER, spool], stdin=subprocess.DEVNULL, capture_output=True, text=True)
        check("a spool has one owner", second.returncode == 1 and "another process" in second.stderr, second)


# ---- TLS ----

def over_tls():
    if not shutil.which("openssl"):
        print("not tried: TLS: there is no openssl", flush=True)
        return
    with tempfile.TemporaryDirectory() as folder:
        make_certificates(folder)
        words = ("--tls-cert", f"{folder}/server.pem", "--tls-key", f"{folder}/server.key", "--tls-client-ca",
                 f"{folder}/ca.pem", "--retention", "36500d")
        ours = {"CERTIFICATE": f"{folder}/ca.pem", "CLIENT_CERTIFICATE": f"{folder}/client.pem",
                "CLIENT_KEY": f"{folder}/client.key"}
        with KilnServer(*words) as server:
            for number, protocol in enumerate(("grpc", "http/protobuf")):
                port = server.otlp_grpc if protocol == "grpc" else server.otlp_http
                with Sender(f"https://127.0.0.1:{port}", PROTOCOL=protocol, **ours) as sender:
                    sender.send(drawn(folder, number))
                    sender.wait(SENT, 1)
                for lacking in ("CERTIFICATE", "CLIENT_CERTIFICATE"):
                    some = {name: value for name, value in ours.items() if not name.startswith(lacking)}
                    with Sender(f"https://127.0.0.1:{port}", PROTOCOL=protocol, **some) as sender:
                        sender.send(drawn(folder, 9))
                        sender.wait("kiln_export_failed_tries_total", 2)
                        check(f"TLS {protocol}: without {lacking} nothing is sent, and nothing lost",
                              sender.count(SENT) == 0 and sender.count("kiln_export_queue_bytes") > 0)
            server.stop()
            found = parts(kept(server))
            check("TLS: what was sent is kept, over gRPC and HTTP", found == told(range(2)), found)


def tried(what, part, *words):
    try:
        part(*words)
    except peers.Absent as why:
        print(f"not tried: {what}: {why}", flush=True)


def main():
    away_and_back()
    too_small()
    one_owner()
    over_tls()
    for compression in ("gzip", "none"):
        tried(f"grpcio {compression}", grpc_python, compression)
    for protocol in ("grpc", "http/protobuf"):
        for compression in ("gzip", "zstd"):
            ingest_test.arrives(f"our exporter, a Collector, {protocol} {compression}",
                                through_collector(protocol, compression))
    return exit_code()


if __name__ == "__main__":
    sys.exit(main())
