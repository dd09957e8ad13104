#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What leaves a program under libkiln: to our server over HTTP, gRPC and its socket; to one that is away and comes back;
over TLS; to servers that answer nonsense, or nothing; into files, also where the disk is full.  A secret that is planted in
a path, a label, a variable and a thread's name is nowhere in it.  libkiln.so needs the C library and nothing else."""
import gzip
import json
import os
import pathlib
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time
import urllib.request

SOURCES = pathlib.Path(os.environ.get("KILN_SOURCE_DIR", ".")).resolve()
sys.path.insert(0, str(SOURCES / "tests/support"))
from checks import check, exit_code  # noqa: E402
from inproc_kit import LIBKILN, PROGRAMS, Sink, Worker, ok  # noqa: E402
from kiln_server import KILN, KilnServer  # noqa: E402

ALLOCATED = 8 << 20


def kiln(*words):
    return subprocess.run([KILN, *map(str, words)], check=True, capture_output=True).stdout


def rows(path):
    return json.loads(kiln("top", path, "--json", "-n", "0", "-t", "alloc_space"))["rows"]


def planted(path):
    """The bytes that out_planted() allocated, by a file of profiles."""
    return sum(row["self"] for row in rows(path) if row["name"] == "out_planted")


def kept(server, service):
    """What the stopped server keeps of a service: the bytes of out_planted()."""
    out = server.folder / f"{service}.otlp"
    kiln("store", "export", "--data-dir", server.data, "-o", out, "--service", service)
    return planted(out)


def is_about(bytes_, wanted):
    """64 KiB a sample: within 6 sigma."""
    return abs(bytes_ - wanted) < 6 * (wanted * 65536) ** 0.5


# ---- our server ----

def wait_for_names(server):
    """What came over the socket has addresses alone: the server looks them up in the files of whoever sent them."""
    def ask(path):
        with urllib.request.urlopen(f"http://127.0.0.1:{server.http}{path}") as answer:
            return answer.read().decode()

    for _ in range(600):
        named = re.search(r'^kiln_naming_addresses_total\{.*"named".*\} [1-9]', ask("/metrics"), re.M)
        if named and "private_worker" not in ask("/api/v1/symbols?missing=1"):
            return
        time.sleep(0.1)
    check("what came over the socket is named", False, ask("/api/v1/symbols?missing=1"))


def to_our_server():
    with KilnServer("--user", "root") as server, tempfile.TemporaryDirectory() as folder:
        private = shutil.copy(PROGRAMS / "out_worker", f"{folder}/private_worker")
        os.chmod(folder, 0o700)
        ways = {"over-http": {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{server.otlp_http}"},
                "over-grpc": {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{server.otlp_grpc}",
                              "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
                "by-name": {"OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT":
                            f"http://localhost:{server.otlp_http}/v1development/profiles",
                            "OTEL_EXPORTER_OTLP_COMPRESSION": "none"},
                "by-socket": {"KILN_SOCKET": server.folder / "kiln.sock"}}
        for service, variables in ways.items():
            program = private if service == "by-socket" else PROGRAMS / "out_worker"
            with Worker(program, OTEL_SERVICE_NAME=service, KILN_PROFILES="alloc,heap", GIT_COMMIT="0af3",
                        **variables) as worker:
                worker.ask("work 4")
                check(f"{service}: the flush says that it was taken", worker.ask("flush 30000") == 0)
                worker.ask("work 4")
                code, said = worker.end()  # what was sampled since goes at the end
                check(f"{service}: the program ends well", code == 0 and said == "", (code, said))
        wait_for_names(server)
        server.stop()
        for service in ways:
            found = kept(server, service)
            check(f"{service}: all of it is kept", is_about(found, 2 * ALLOCATED), found)
        lines = [row["file"] for row in rows(server.folder / "by-socket.otlp") if row["name"] == "out_planted"]
        check("by-socket: the server has looked names up, with lines", lines and lines[0].endswith("out_worker.c"), lines)
        labels = kiln("store", "export", "--data-dir", server.data, "-o", server.folder / "all.json", "--format", "otlp-json",
                      "--service", "over-http") + (server.folder / "all.json").read_bytes()
        for text in (b'"git.commit"', b'"0af3"', b'"process.pid"', b'"host.name"', b'"service.instance.id"'):
            check(f"the resource tells {text.decode()}", text in labels)


def away_and_back():
    with KilnServer() as server:
        server.stop()
        with Worker(OTEL_SERVICE_NAME="patient", KILN_PROFILES="alloc,heap", KILN_LOG="1",
                    OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{server.otlp_http}") as worker:
            worker.ask("work 4")
            check("away: the flush says so", worker.ask("flush 30000") < 0)
            worker.ask("work 4")
            check("away: and again", worker.ask("flush 30000") < 0)
            server.words += ("--otlp-http", f"127.0.0.1:{server.otlp_http}")
            server.start()
            check("back: the flush says so", worker.ask("flush 30000") == 0)
            code, said = worker.end()
            check("away and back: one line each says it", code == 0 and said.count("is away") == 1
                  and said.count("is back") == 1, said)
        server.stop()
        check("away and back: nothing is lost", is_about(kept(server, "patient"), 2 * ALLOCATED))


# ---- TLS ----

def certificates(folder):
    """ca.pem, and what it signed for the server."""
    def openssl(*words):
        subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)

    curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    for name in ("ca", "other"):
        openssl("req", "-x509", *curve, "-days", "2", "-subj", f"/CN=test {name}", "-keyout", f"{name}.key", "-out",
                f"{name}.pem")
    (pathlib.Path(folder) / "names").write_text("subjectAltName=IP:127.0.0.1")
    openssl("req", *curve, "-subj", "/CN=server", "-keyout", "server.key", "-out", "server.csr")
    openssl("x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
            "-extfile", "names", "-out", "server.pem")


def over_tls():
    if not shutil.which("openssl"):
        print("not tried: TLS: there is no openssl", flush=True)
        return
    with tempfile.TemporaryDirectory() as folder:
        certificates(folder)
        with KilnServer("--tls-cert", f"{folder}/server.pem", "--tls-key", f"{folder}/server.key") as server:
            for protocol, port in (("grpc", server.otlp_grpc), ("http/protobuf", server.otlp_http)):
                for authority, name, taken in (("ca.pem", "127.0.0.1", True), ("other.pem", "127.0.0.1", False),
                                               ("ca.pem", "localhost", False)):
                    with Worker(OTEL_SERVICE_NAME="tls", KILN_PROFILES="alloc,heap", KILN_LOG="1",
                                OTEL_EXPORTER_OTLP_ENDPOINT=f"https://{name}:{port}",
                                OTEL_EXPORTER_OTLP_PROTOCOL=protocol,
                                OTEL_EXPORTER_OTLP_CERTIFICATE=f"{folder}/{authority}") as worker:
                        worker.ask("work 1")
                        result = worker.ask("flush 30000")
                        _, said = worker.end()
                        check(f"TLS, {protocol}, {authority}, {name}: {'taken' if taken else 'refused'}",
                              (result == 0) == taken and ("the certificate is not accepted" in said) != taken,
                              (result, said))
            with Worker(OTEL_SERVICE_NAME="tls-end", KILN_PROFILES="alloc,heap", KILN_LOG="1",
                        OTEL_EXPORTER_OTLP_ENDPOINT=f"https://127.0.0.1:{server.otlp_http}",
                        OTEL_EXPORTER_OTLP_PROTOCOL="http/protobuf", OTEL_EXPORTER_OTLP_CERTIFICATE=f"{folder}/ca.pem") as worker:
                worker.ask("work 4")
                worker.ask("flush 30000")
                worker.ask("work 4")
                server.stop()  # so that a new connection is needed
                server.words += ("--otlp-http", f"127.0.0.1:{server.otlp_http}")
                server.start()
                ended = worker.end()
            server.stop()
            check("TLS: what is left at the end is sent before OpenSSL ends", ended[0] == 0
                  and is_about(kept(server, "tls-end"), 2 * ALLOCATED), ended)


# ---- strange servers ----

def strange_servers():
    with Sink(b"220 smtp.example ESMTP\r\n\r\n", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfff", ok()) as sink, \
            Worker(KILN_PROFILES="alloc,heap", OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{sink.port}",
                   OTEL_EXPORTER_OTLP_TIMEOUT="300") as worker:
        worker.ask("work 1")
        results = [worker.ask("flush 30000") for _ in range(2)]
        while results[-1] < 0 and len(results) < 100:  # a busy machine may answer too late
            results.append(worker.ask("flush 30000"))
        check("nonsense is no answer, and the same request goes until there is one",
              results[0] < 0 and results[1] < 0 and results[-1] == 0
              and len({body for _, body in sink.requests[:3]}) == 1, results)
        check("nonsense does no harm", worker.end()[0] == 0)
    with Sink(ok("503 Busy", "Retry-After: 3600"), ok()) as sink, \
            Worker(KILN_PROFILES="alloc,heap", OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{sink.port}") as worker:
        worker.ask("work 1")
        results = [worker.ask("flush 30000") for _ in range(3)]
        worker.end()
        check("who says when to come back is not asked before", all(r < 0 for r in results) and len(sink.requests) == 1,
              (results, len(sink.requests)))
    with Sink(ok("400 Bad")) as sink, \
            Worker(KILN_PROFILES="alloc,heap", OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{sink.port}",
                   OTEL_EXPORTER_OTLP_HEADERS="authorization=Bearer%20abc") as worker:
        worker.ask("work 1")
        check("a refusal is told", worker.ask("flush 30000") < 0)
        _, said = worker.end()
        check("and said once", said.count("does not take profiles: HTTP status 400") == 1, said)
        check("headers go along", b"authorization: Bearer abc\r\n" in sink.requests[0][0], sink.requests[0][0])
    with Sink(None) as sink, \
            Worker(KILN_PROFILES="alloc,heap", OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{sink.port}",
                   KILN_EXIT_MS="100") as worker:
        worker.ask("work 1")
        check("who never answers is not waited for", worker.ask("flush 100") < 0)
        check("nor at the end", worker.end()[0] == 0)


# ---- what must not leave ----

def looked_at(path):
    """What /debug/pprof says: the command line, and the heap."""
    said = b""
    for page in ("cmdline", "heap", "allocs?debug=1"):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(path)
            connection.sendall(f"GET /debug/pprof/{page} HTTP/1.0\r\n\r\n".encode())
            body = b"".join(iter(lambda: connection.recv(65536), b"")).split(b"\r\n\r\n", 1)[1]
        said += gzip.decompress(body) if body.startswith(b"\x1f\x8b") else body
    return said


def published(pid):
    """What others on the host read of who the process is (OTEP 4719)."""
    with open(f"/proc/{pid}/maps", encoding="ascii") as maps:
        start = next(int(line.split("-")[0], 16) for line in maps if "OTEL_CTX" in line)
    with open(f"/proc/{pid}/mem", "rb") as memory:
        memory.seek(start)
        signature, _, size, _, payload = struct.unpack("<8sIIQQ", memory.read(32))
        memory.seek(payload)
        return memory.read(size) if signature == b"OTEL_CTX" else b""


def secrets():
    with tempfile.TemporaryDirectory(prefix="hunter2-") as folder:
        program = pathlib.Path(folder) / "hunter2-worker"
        shutil.copy(PROGRAMS / "out_worker", program)
        for rules, found in (("*hunter2*", False), ("", True)):
            files = pathlib.Path(folder).parent / f"kiln-out-{os.getpid()}"
            with Sink(ok()) as sink, \
                    Worker(program, KILN_REDACT=rules, THREAD="hunter2-thread", KILN_OUT_DIR=files,
                           OTEL_RESOURCE_ATTRIBUTES="team=hunter2", KILN_EXPORT_INTERVAL_MS="3600000",
                           OTEL_EXPORTER_OTLP_COMPRESSION="none", DEPLOYMENT_ID="d-hunter2",
                           KILN_PPROF_LISTEN=f"unix:{folder}/pprof.sock",
                           OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{sink.port}") as worker:
                worker.ask("label user hunter2")
                worker.ask("work 4")
                worker.ask("flush 30000")
                shown = published(worker.process.pid)
                check(f"with rules {rules!r}: others on the host {'see' if found else 'do not see'} it",
                      (b"hunter2" in shown) == found and b"service.name" in shown, shown)
                left = looked_at(f"{folder}/pprof.sock")
                worker.end()
                left += b"".join(body for _, body in sink.requests)
            for path in files.iterdir():
                left += path.name.encode()
                left += kiln("convert", path, "--to", "otlp-json") if path.suffix == ".gz" else path.read_bytes()
            shutil.rmtree(files)
            check(f"with rules {rules!r}: the secret {'leaves' if found else 'stays'}", (b"hunter2" in left) == found,
                  re.findall(rb"[^\0]{0,40}hunter2[^\0]{0,20}", left)[:5])
            check(f"with rules {rules!r}: and the rest leaves", b"out_planted" in left)
        for rules in ("path:", "path:/x," * 1000):
            with Worker(KILN_REDACT=rules, KILN_OUT_DIR=folder) as worker:
                worker.ask("work 1")
                worker.ask("flush 30000")
                _, said = worker.end()
                check("rules that cannot be read keep everything inside", "no profile leaves this process" in said
                      and not list(pathlib.Path(folder).glob("*.pb.gz")), said)


# ---- files ----

def into_files():
    with tempfile.TemporaryDirectory() as folder:
        with Worker(OTEL_SERVICE_NAME="shop", KILN_PROFILES="alloc,heap", KILN_OUT_DIR=f"{folder}/made",
                    GIT_COMMIT="0af3") as worker:
            for _ in range(2):
                worker.ask("work 4")
                worker.ask("flush 30000")
            worker.end()
        paths = sorted(pathlib.Path(folder).glob("made/kiln-shop-memory-*.pb.gz"))
        check("files: one a window", len(paths) in (2, 3), paths)
        check("files: all of it is there", is_about(sum(map(planted, paths)), 2 * ALLOCATED), list(map(planted, paths)))
        about = json.loads(paths[0].with_name(paths[0].name.replace(".pb.gz", ".json")).read_text())
        check("files: what is known of them is beside", about["service"] == "shop" and about["commit"] == "0af3"
              and about["window_start"] < about["window_end"] and about["lost"]["ring"] == 0
              and about["attributes"]["host.name"], about)


def full_disk():
    with tempfile.TemporaryDirectory() as folder:
        script = pathlib.Path(folder) / "script"
        script.write_text(f"#!/bin/sh\nunset LD_PRELOAD\nmount -t tmpfs -o size=40k none {folder}/small || exit 77\n"
                          f"head -c 100k /dev/zero > {folder}/small/others 2>/dev/null\n"
                          f"LD_PRELOAD={LIBKILN} {PROGRAMS}/out_worker; code=$?\nls {folder}/small >&2\nexit $code\n")
        script.chmod(0o755)
        os.mkdir(f"{folder}/small")
        process = subprocess.run(["unshare", "-m", str(script)], input="work 1\nflush 30000\nwork 1\nflush 30000\n",
                                 capture_output=True, text=True,
                                 env={**os.environ, "KILN_OUT_DIR": f"{folder}/small", "KILN_PROFILES": "alloc",
                                      "KILN_EXPORT_INTERVAL_MS": "3600000", "KILN_SOCKET": "/nowhere"})
        if process.returncode in (1, 77) and "done" not in process.stdout:
            print("not tried: a full disk: nothing may be mounted here", flush=True)
            return
        check("a full disk: the program goes on", process.returncode == 0 and process.stdout.count("done") == 4, process)
        check("a full disk: one line says it", process.stderr.count("cannot be written") == 1, process.stderr)
        check("a full disk: nothing half is left", ".tmp" not in process.stderr and ".json" not in process.stderr,
              process.stderr)


def needs_little():
    lines = subprocess.run(["readelf", "-d", LIBKILN], check=True, capture_output=True, text=True).stdout.splitlines()
    needed = {re.search(r"\[(.*)\]", line)[1] for line in lines if "(NEEDED)" in line}
    others = {name for name in needed if not re.match(r"(libc|libm|libpthread|libdl)\.so|ld-linux", name)}
    check("libkiln.so needs the C library alone", "libc.so.6" in needed and not others, needed)
    names = subprocess.run(["nm", "-D", "--defined-only", LIBKILN], check=True, capture_output=True, text=True).stdout
    inner = re.findall(r" (nghttp2_\w+|libdeflate_\w+|lzma_\w+|kiln_(?:in|batch|names|buf|otlp)_\w+|cplus_\w+)", names)
    check("what is linked into it is not seen", not inner, inner[:5])


def main():
    needs_little()
    to_our_server()
    away_and_back()
    over_tls()
    strange_servers()
    secrets()
    into_files()
    full_disk()
    return exit_code()


if __name__ == "__main__":
    sys.exit(main())
