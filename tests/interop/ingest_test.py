#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What other people's senders send arrives in the store, whole and once:

  - gRPC with the OpenTelemetry Collector's own library and grpc-go, plain and gzip;
  - gRPC with Python's grpcio and the published stubs; OTLP/HTTP in protobuf and JSON with Python;
  - an OpenTelemetry Collector made by its builder, exporting over gRPC and over HTTP;
  - pyroscope-go in a program that burns, allocates and waits.

Each part sends to a running `kiln server`, which is then stopped; `kiln store export` says what it kept.
A peer that cannot be installed is named and its part left out; without any, the test skips.
"""
import gzip
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE / "otlp"), str(HERE.parent / "support")]
import peers  # noqa: E402
from checks import check, exit_code  # noqa: E402
from kiln_server import KILN, KilnServer  # noqa: E402
from ports import free_port  # noqa: E402

SOURCES = pathlib.Path(os.environ.get("KILN_SOURCE_DIR", "."))
BUILDER = "go.opentelemetry.io/collector/cmd/builder@v0.164.0"
GRPC = "grpcio==1.76.0"
tried = 0


def kiln(*words, stdin=None):
    done = subprocess.run([KILN, *map(str, words)], input=stdin, capture_output=True)
    if done.returncode:
        raise RuntimeError(f"kiln {' '.join(map(str, words))}: {done.stderr.decode()}")
    return done.stdout


def request_bytes():
    """The example profile as an OTLP request, and its functions with their own time."""
    otlp = kiln("convert", SOURCES / "examples/checkout.pb.gz", "--to", "otlp")
    return otlp, functions(otlp)


def functions(profile, *words):
    """{function: its own value} of a profile, as `kiln top` tells it."""
    rows = json.loads(kiln("top", "-", "--json", "-n", "0", *words, stdin=profile))["rows"]
    return {row["name"]: row["self"] for row in rows}


def kept(server, *words):
    """Everything that the stopped server's store holds, as OTLP."""
    out = server.folder / "kept.otlp"
    kiln("store", "export", "--data-dir", server.data, "-o", out, *words)
    return out.read_bytes()


def arrives(what, send, copies=1):
    """send(server, request) leaves exactly `copies` of the request in the store."""
    global tried
    request, wanted = request_bytes()
    with KilnServer("--retention", "36500d") as server:
        try:
            said = send(server, request)
        except peers.Absent as why:
            print(f"not tried: {what}: {why}", flush=True)
            return
        tried += 1
        server.stop()
        found = functions(kept(server))
        check(f"{what}: what was sent is kept", found == {f: v * copies for f, v in wanted.items()}, (said, found))


# ---- Go and Python clients ----

def grpc_go(*words):
    def send(server, request):
        program = peers.build_go(HERE / "go/otlpsend")
        done = subprocess.run([program, f"127.0.0.1:{server.otlp_grpc}", *words], input=request, capture_output=True)
        said = done.stdout.decode().strip()
        check(f"grpc-go {' '.join(words)}: the answer is a full success", said == "ok 0", said or done.stderr)
        return said
    return send


def grpc_go_on_the_page(server, request):
    program = peers.build_go(HERE / "go/otlpsend")
    done = subprocess.run([program, f"127.0.0.1:{server.http}"], input=request, capture_output=True)
    check("grpc-go: the port of the page takes gRPC too", done.stdout.decode().strip() == "ok 0", done)


def python_stubs():
    peers.install_protobuf()
    place = peers.CACHE / "python" / f"{GRPC.replace('==', '-')}-{sys.version_info.major}.{sys.version_info.minor}"
    if not place.is_dir():
        pip = subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--target", str(place), GRPC],
                             capture_output=True, text=True)
        if pip.returncode:
            shutil.rmtree(place, ignore_errors=True)
            raise peers.Absent(f"pip cannot install {GRPC}: {peers.last_line(pip.stderr)}")
    sys.path.insert(0, str(place))
    from opentelemetry.proto.collector.profiles.v1development import profiles_service_pb2 as messages
    return messages


def grpc_python(compression):
    def send(server, request):
        messages = python_stubs()
        import grpc
        method = "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export"
        with grpc.insecure_channel(f"127.0.0.1:{server.otlp_grpc}",
                                   compression=getattr(grpc.Compression, compression)) as channel:
            export = channel.unary_unary(method, messages.ExportProfilesServiceRequest.SerializeToString,
                                         messages.ExportProfilesServiceResponse.FromString)
            answer = export(messages.ExportProfilesServiceRequest.FromString(request), timeout=30)
            check(f"grpcio {compression}: partial_success is not set", not answer.HasField("partial_success"), answer)
            broken = channel.unary_unary(method, lambda raw: raw, messages.ExportProfilesServiceResponse.FromString)
            try:
                broken(b"\x0a\xff\xff", timeout=30)
                check(f"grpcio {compression}: garbage is refused", False)
            except grpc.RpcError as error:
                check(f"grpcio {compression}: garbage is INVALID_ARGUMENT",
                      error.code() == grpc.StatusCode.INVALID_ARGUMENT, error)
            unknown = channel.unary_unary("/opentelemetry.proto.collector.trace.v1.TraceService/Export",
                                          lambda raw: raw, lambda raw: raw)
            try:
                unknown(b"", timeout=30)
                check(f"grpcio {compression}: traces are refused", False)
            except grpc.RpcError as error:
                check(f"grpcio {compression}: traces are UNIMPLEMENTED",
                      error.code() == grpc.StatusCode.UNIMPLEMENTED, error)
    return send


def http_python(kind, port, path, encoding=None):
    def send(server, request):
        if kind == "json":
            request = kiln("convert", "-", "--to", "otlp-json", stdin=request)
        headers = {"Content-Type": "application/json" if kind == "json" else "application/x-protobuf"}
        if encoding:
            request, headers["Content-Encoding"] = gzip.compress(request), encoding
        call = urllib.request.Request(f"http://127.0.0.1:{getattr(server, port)}{path}", request, headers)
        with urllib.request.urlopen(call, timeout=30) as answer:
            body = answer.read()
            check(f"HTTP {kind} {path}: 200 in the same encoding",
                  answer.headers["Content-Type"].startswith(headers["Content-Type"]), answer.headers)
            check(f"HTTP {kind} {path}: nothing was rejected", body in (b"", b"{}"), body)
    return send


# ---- the Collector ----

def collector():
    """An OpenTelemetry Collector: $OTELCOL, or one that its builder makes."""
    return os.environ.get("OTELCOL") or made_collector(HERE / "collector/builder.yaml", BUILDER)


def made_collector(description, builder):
    """The one that this describes, made once."""
    def make(path):
        if not shutil.which("go"):
            raise peers.Absent("there is no go")
        with tempfile.TemporaryDirectory() as scratch:
            config = pathlib.Path(scratch) / "builder.yaml"
            config.write_text(description.read_text().replace(
                "  name: otelcol\n", f"  name: otelcol\n  output_path: {scratch}/out\n"))
            go = subprocess.run(["go", "run", builder, "--skip-strict-versioning", "--config", str(config)],
                                cwd=scratch, capture_output=True, text=True, env=os.environ | {"GOWORK": "off"})
            if go.returncode:
                raise peers.Absent(f"the builder fails: {peers.last_line(go.stderr)}")
            shutil.copy(f"{scratch}/out/otelcol", path)

    return peers.kept("go/otelcol" if description.stem == "builder" else f"go/otelcol-{description.stem}", [description], make)


def through_collector(kind):
    def send(server, request):
        program = collector()
        ports = {"IN_GRPC": free_port(), "IN_HTTP": free_port(), "KILN_GRPC": server.otlp_grpc,
                 "KILN_HTTP": server.otlp_http}
        log = server.folder / "otelcol.log"
        with open(log, "wb") as file:
            process = subprocess.Popen([program, "--config", str(HERE / "collector/config.yaml"),
                                        "--feature-gates", "service.profilesSupport"], stdout=file, stderr=file,
                                       env=os.environ | {name: str(port) for name, port in ports.items()})
        try:
            for name in ("IN_GRPC", "IN_HTTP"):
                wait_for_port(ports[name], process, log)
            if kind == "grpc":
                client = peers.build_go(HERE / "go/otlpsend")
                subprocess.run([client, f"127.0.0.1:{ports['IN_GRPC']}"], input=request, check=True,
                               capture_output=True)
            else:
                call = urllib.request.Request(f"http://127.0.0.1:{ports['IN_HTTP']}/v1development/profiles", request,
                                              {"Content-Type": "application/x-protobuf"})
                urllib.request.urlopen(call, timeout=30).read()
            wait_for_request(server)
        finally:
            process.terminate()
            process.wait(60)
        return log.read_text()
    return send


def wait_for_port(port, process, log):
    for _ in range(300):
        if process.poll() is not None:
            raise RuntimeError(f"the collector ended: {log.read_text()}")
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise RuntimeError(f"the collector does not listen: {log.read_text()}")


def wait_for_request(server):
    """Until it has answered one: where the Collector ends first, and its first try has failed, there is no other."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        with urllib.request.urlopen(f"http://127.0.0.1:{server.http}/metrics", timeout=30) as answer:
            if re.search(rb'^kiln_receiver_requests_total\{[^}]*receiver="otlp"[^}]*\} [1-9]', answer.read(), re.M):
                return
        time.sleep(0.1)


# ---- Pyroscope's Go library ----

PYROSCOPE_TYPES = {  # what pyroscope-go is asked to send: type id, a function that must be in it
    "process_cpu:cpu:nanoseconds:cpu:nanoseconds": "main.hotLoop",
    "memory:alloc_space:bytes:space:bytes": "main.allocateMuch",
    "memory:inuse_space:bytes:space:bytes": "main.allocateMuch",
    "mutex:delay:nanoseconds:contentions:count": "main.waitForLock",
    "block:delay:nanoseconds:contentions:count": "main.waitForLock",
    "goroutines:goroutine:count:goroutine:count": "main.main",
}


def pyroscope_go():
    global tried
    with KilnServer("--retention", "36500d") as server:
        try:
            program = peers.build_go(HERE / "go/pyrosend")
        except peers.Absent as why:
            print(f"not tried: pyroscope-go: {why}", flush=True)
            return
        tried += 1
        subprocess.run([program, f"http://127.0.0.1:{server.http}", "5"], check=True, capture_output=True)
        server.stop()
        stacks = {}
        for type_id in PYROSCOPE_TYPES:
            try:
                stacks[type_id] = kiln("convert", "-", "--to", "collapsed", "--sample-type", type_id,
                                       stdin=kept(server, "--service", "pyrosend.app", "--type", type_id)).decode()
            except RuntimeError as error:
                stacks[type_id] = f"({error})"
        for type_id, function in PYROSCOPE_TYPES.items():
            check(f"pyroscope-go: {function} is in {type_id}", function in stacks[type_id], stacks[type_id][:300])
        info = kiln("convert", "-", "--to", "otlp-json", stdin=kept(server)).decode()
        check("pyroscope-go: its tags are attributes of the resource", '"region"' in info and "eu-1" in info)


# ---- Pyroscope's command line ----

def profilecli():
    """`profilecli upload`, where $PROFILECLI names one: Push over Connect, gRPC and gRPC-Web."""
    global tried
    program = os.environ.get("PROFILECLI")
    if not program:
        print("not tried: profilecli: PROFILECLI does not name one", flush=True)
        return
    for protocol in ("connect", "grpc", "grpc-web"):
        with KilnServer("--retention", "36500d") as server:
            tried += 1
            done = subprocess.run([program, "upload", "--url", f"http://127.0.0.1:{server.http}", "--protocol", protocol,
                                   "--extra-labels", "service_name=cli", str(SOURCES / "examples/checkout.pb.gz")],
                                  capture_output=True, text=True)
            server.stop()
            found = functions(kept(server, "--service", "cli")) if done.returncode == 0 else done.stderr
            check(f"profilecli {protocol}: what was uploaded is kept", found == request_bytes()[1], found)


def main():
    for words in ((), ("gzip",)):
        arrives(f"grpc-go {' '.join(words)}", grpc_go(*words))
    arrives("grpc-go on the page's port", grpc_go_on_the_page)
    for compression in ("NoCompression", "Gzip"):
        arrives(f"grpcio {compression}", grpc_python(compression))
    arrives("OTLP/HTTP protobuf", http_python("protobuf", "otlp_http", "/v1development/profiles"))
    arrives("OTLP/HTTP protobuf, gzip", http_python("protobuf", "http", "/v1/profiles", "gzip"))
    arrives("OTLP/HTTP JSON", http_python("json", "otlp_http", "/otlp/v1/profiles"))
    for kind in ("grpc", "http"):
        arrives(f"Collector over {kind}", through_collector(kind))
    pyroscope_go()
    profilecli()
    if not tried:
        print("skipped: none of the clients can be had here")
        return 77
    return exit_code()


if __name__ == "__main__":
    sys.exit(main())
