#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`kiln push` and `kiln loadgen` against a real server, and against one that says no in every way."""

import http.server
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

SOURCE = pathlib.Path(os.environ["KILN_SOURCE_DIR"])
sys.path.insert(0, str(SOURCE / "tests/support"))
from kiln_server import KILN, KilnServer  # noqa: E402

NOW = int(time.time())
EXAMPLE = str(SOURCE / "examples/checkout.pb.gz")


def kiln(*words, code=0, **more):
    done = subprocess.run([KILN, *map(str, words)], capture_output=True, text=True, timeout=120, **more)
    assert done.returncode == code, f"{words}: exit {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def check(got, wanted):
    assert got == wanted, f"{got!r} is not {wanted!r}"


# ---- a real server ----


def profiles_in(url, service):
    rows = json.loads(kiln("store", "stats", "--json", "-s", url))["rows"]
    return sum(row["profiles"] for row in rows if row["service"] == service)


def push_to_kiln(url, folder):
    """Times, services and labels arrive; a second push of the same changes nothing."""
    (folder / "meta.json").write_text('{"service": "shop", "version": "1.4", "time": %d}' % (NOW - 3600))
    (folder / "meta.pb.gz").write_bytes(pathlib.Path(EXAMPLE).read_bytes())
    for _ in range(2):
        said = json.loads(kiln("push", "-s", url, "--json", folder))
        check((said["acknowledged"], said["skipped"], said["rejected"], said["profiles"]), (1, 1, 0, 4))
    check(said["files"][1]["time_from"], "metadata")
    for _ in range(2):
        kiln("push", "-s", url, "-q", "--service", "twice", "--time", "%d" % (NOW - 7200), EXAMPLE)
    check(profiles_in(url, "twice"), 4)
    out = folder / "back.otlp"
    kiln("store", "export", "-s", url, "--service", "shop", "-o", out)
    resource = json.loads(kiln("info", "--json", out))["resources"][0]["attributes"]
    check((resource["service.name"], resource["service.version"]), ("shop", "1.4"))
    said = kiln("push", "-s", url, "--service", "old", "--time", "2001-01-01", EXAMPLE, code=3)
    assert "older than the retention" in said and "4 rejected" in said, said


def load_of(url, folder, shape, protocol, *more):
    journal = folder / f"{shape}-{protocol}"
    said = json.loads(kiln("loadgen", "-s", url, "-n", 12, "--shape", shape, "--protocol", protocol, "--json",
                           "--samples", 60, "--journal", journal, *more))
    check((said["acknowledged"], said["refused"], said["failed"], said["rejected"]), (12, 0, 0, 0))
    assert 0 < said["latency_ns"]["p50"] <= said["latency_ns"]["p99"] <= said["latency_ns"]["max"]
    lines = [line.split() for line in journal.read_text().splitlines()]
    check(sorted(int(line[0]) for line in lines), list(range(12)))
    return {line[1] for line in lines}


def load_to_kiln(url, folder):
    """What the journal says is in the store, by its id."""
    ids = load_of(url, folder, "host", "otlp-http", "--seed", "5")
    ids |= load_of(url, folder, "host", "otlp-grpc", "--seed", "6", "--prepare", "--compression", "zstd")
    ids |= load_of(url, folder, "pprof", "otlp-grpc", "--seed", "7", "--types", "cpu,heap")
    load_of(url, folder, "pprof", "pyroscope", "--seed", "8")
    stored = json.loads(kiln("store", "export", "-s", url, "--format", "otlp-json"))
    found = {profile.get("profileId") for resource in stored["resourceProfiles"]
             for scope in resource["scopeProfiles"] for profile in scope["profiles"]}
    check(ids - found, set())
    said = json.loads(kiln("loadgen", "-s", url, "--duration", "1s", "--rate", "20", "--json"))
    assert 15 <= said["acknowledged"] <= 20, said


def real_server(folder):
    with KilnServer() as server:
        url = f"http://127.0.0.1:{server.http}"
        push_to_kiln(url, folder)
        load_to_kiln(url, folder)
        kiln("push", "-q", "-s", f"unix:{server.folder}/kiln.sock", "--time", "now", EXAMPLE)
        check([kiln("ready", "-s", at) for at in (url, f"unix:{server.folder}/kiln.sock")], ["ready\n"] * 2)
        kiln("loadgen", "-q", "-n", "2", "-s", f"http://127.0.0.1:{server.otlp_grpc}", "--protocol", "otlp-grpc")
        check(server.stop(), 0)


def server_with_tokens(folder):
    tokens = folder / "tokens.yaml"
    tokens.write_text("tokens:\n  - {token: write-me-please-0123456789, access: write}\n")
    try:
        server = KilnServer("--tokens", str(tokens)).__enter__()
    except RuntimeError as failed:
        return print(f"not tested with tokens: {failed}")
    try:
        url = f"http://127.0.0.1:{server.http}"
        check(kiln("ready", "-s", url), "ready\n")
        said = kiln("push", "-s", url, "--time", "now", EXAMPLE, code=4)
        assert "the server answers 401" in said, said
        said = kiln("loadgen", "-s", url, "-n", "3", "--protocol", "otlp-grpc", code=1)
        assert "refused       3" in said, said
        kiln("push", "-q", "-s", url, "--time", "now", EXAMPLE,
             env=os.environ | {"KILN_TOKEN": "write-me-please-0123456789"})
    finally:
        server.__exit__()


# ---- a server that says no ----


class Moody(http.server.BaseHTTPRequestHandler):
    """Answers with what stands in `moods`, one after the other, and then with success."""
    protocol_version = "HTTP/1.1"
    moods, seen = [], []

    def do_GET(self):
        self.do_POST()

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"] or 0))
        self.seen.append((self.path, self.headers["Content-Type"], self.headers["Content-Encoding"], len(body)))
        status, headers, answer = self.moods.pop(0) if self.moods else (200, {}, b"")
        if status == 0:
            self.close_connection = True
            self.connection.close()
            return
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


def mood(*moods):
    Moody.moods, Moody.seen = list(moods), []


def ask_whether_ready(url):
    mood((200, {}, b"anything"))
    check(kiln("ready", "-s", url), "ready\n")
    check([path for path, *_ in Moody.seen], ["/ready"])
    mood((503, {"Content-Type": "text/plain"}, b"not ready: replaying \x1b[31mthe log\n"))
    said = kiln("ready", "-s", url, code=1)
    assert "503: not ready: replaying" in said and "\x1b" not in said, said
    mood((404, {}, b""))
    kiln("ready", "-s", url, code=1)
    mood((0, {}, b""), (0, {}, b""))
    kiln("ready", "-s", url, code=4)
    kiln("ready", "-s", "http://127.0.0.1:9", code=4)
    kiln("ready", "-s", "unix:/nowhere.sock", code=4)


def moody_server(url):
    busy = (503, {"Retry-After": "0", "Content-Type": "text/plain"}, b"busy\n")
    mood(busy, (429, {}, b""), (0, {}, b""))
    said = json.loads(kiln("push", "-s", url, "--json", EXAMPLE))
    check((said["acknowledged"], len(Moody.seen)), (1, 4))
    assert said["tried_again"] in (2, 3), said  # libcurl itself tries again where a kept connection ends
    check(Moody.seen[0][:3], ("/v1development/profiles", "application/x-protobuf", "gzip"))
    mood((400, {"Content-Type": "application/json"}, b'{"code":3,"message":"bad stack"}'))
    said = kiln("push", "-j1", "-s", url, EXAMPLE, EXAMPLE, code=3)
    assert "the server answers 400: bad stack" in said and "1 refused" in said, said
    mood((200, {"Content-Type": "application/x-protobuf"}, b"\x0a\x08\x08\x01\x12\x04late"))
    said = kiln("push", "-s", url, EXAMPLE, code=3)
    assert "late" in said and "1 rejected" in said, said
    mood(*[(503, {"Retry-After": "3600"}, b"")] * 9)
    said = kiln("push", "-j1", "-s", url, "--retry", "1s", EXAMPLE, EXAMPLE, code=4)
    assert "1 failed, 1 not sent" in said and len(Moody.seen) == 1, said
    mood(busy, (413, {}, b""), (500, {}, b""))
    said = json.loads(kiln("loadgen", "-s", url, "-n", "5", "-j1", "--json", code=1)
                      .split("\nkiln:")[0])
    check((said["acknowledged"], said["refused"], said["tried_again"]), (3, 2, 1))


def main():
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        for name in ("push", "tokens"):
            (folder / name).mkdir()
        real_server(folder / "push")
        server_with_tokens(folder / "tokens")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Moody) as moody:
        threading.Thread(target=moody.serve_forever, daemon=True).start()
        ask_whether_ready(f"http://127.0.0.1:{moody.server_address[1]}")
        moody_server(f"http://127.0.0.1:{moody.server_address[1]}")
        moody.shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main())
