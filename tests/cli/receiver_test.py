#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Where an agent without an endpoint would send, asked of `kiln doctor`, which sends one empty request there: to the socket of the
server of this host, if a user listens there who may see everybody's profiles; never to a port where any user can listen.

Runs in a network namespace of its own, where port 4317 is free; needs root for that and for listeners of other users.
"""
import http.server
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, str(pathlib.Path(os.environ.get("KILN_SOURCE_DIR", ".")).resolve() / "tests/support"))
from checks import check, exit_code  # noqa: E402
from kiln_server import KILN, KilnServer  # noqa: E402

NOBODY = 65534
asked = []


class Squatter(http.server.BaseHTTPRequestHandler):
    """Takes what it gets, as a receiver would."""

    def do_POST(self):
        asked.append(self.path)
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def receiver(*words, **env):
    done = subprocess.run([KILN, "doctor", "--json", "--spool", "off", *words], capture_output=True, text=True, check=False, timeout=120,
                          env={"PATH": os.environ["PATH"], **env})
    return next(one for one in json.loads(done.stdout)["findings"] if one["name"] == "receiver")


class SquattedSocket:
    """A Unix socket of nobody, in a folder."""

    def __init__(self, folder, mode):
        folder.mkdir()
        os.chown(folder, NOBODY, NOBODY)
        self.path, self.folder = folder / "otlp.sock", folder
        ours, theirs = socket.socketpair()
        self.pid = os.fork()
        if self.pid == 0:
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
            ours.close()
            self.serve(theirs)
        theirs.close()
        self.ours = ours
        check("nobody listens", ours.recv(1) == b"y")
        folder.chmod(mode)
        os.chown(folder, 0, 0)

    def serve(self, theirs):
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(self.path))
        listener.listen()
        theirs.send(b"y")
        theirs.recv(1)  # until the test is done: what came waits in the backlog
        listener.setblocking(False)
        came = 0
        try:
            while True:
                connection, _ = listener.accept()
                connection.setblocking(True)
                connection.settimeout(30)
                while part := connection.recv(4096):
                    came += len(part)
        except BlockingIOError:
            theirs.send(str(came).encode())
        os._exit(0)

    def bytes_that_came(self):
        self.ours.send(b"x")
        came = int(self.ours.recv(32))
        os.waitpid(self.pid, 0)
        return came


def check_port(folder):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 4317), Squatter)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    found = receiver(KILN_OTLP_SOCKET=str(folder / "absent.sock"))
    check("without the socket nothing is sent to port 4317", not asked, asked)
    check("and that is said, with what to do", found["state"] == "less" and "absent.sock" in found["found"] and
          "--endpoint" in found["grant"], found)
    found = receiver("--endpoint", "http://127.0.0.1:4317", "--protocol", "http/protobuf", KILN_OTLP_SOCKET=str(folder / "absent.sock"))
    check("an endpoint that is named counts", found["state"] == "ok" and asked == ["/v1development/profiles"], (found, asked))
    found = receiver(OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:4317", OTEL_EXPORTER_OTLP_PROTOCOL="http/protobuf")
    check("so does that of OpenTelemetry's variable", found["state"] == "ok" and len(asked) == 2, (found, asked))
    found = receiver(KILN_OTLP_SOCKET="off")
    check("without any, the agent does not start", found["state"] == "missing" and "--endpoint" in found["found"], found)
    server.shutdown()


def check_server(folder):
    with KilnServer() as server:
        for protocol in "http/protobuf", "grpc", "http/json":
            found = receiver("--protocol", protocol, KILN_SOCKET=str(server.folder / "kiln.sock"))
            check(f"the socket beside that of the server takes {protocol}", found["state"] == "ok" and "/otlp.sock takes" in found["found"],
                  found)
        check("every user may connect", (server.folder / "otlp.sock").stat().st_mode & 0o777 == 0o666)
    with KilnServer("--otlp-socket", "off") as server:
        check("off is off", not (server.folder / "otlp.sock").exists(), server.said())


def check_squatted(folder):
    squatted = SquattedSocket(folder / "open", 0o1777)
    found = receiver(KILN_OTLP_SOCKET=str(squatted.path))
    check("where every user can make a socket, nobody is not trusted", found["state"] == "less" and "user 65534 listens here" in found["found"],
          found)
    check("and got no byte", squatted.bytes_that_came() == 0)


def inside():
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="kiln-test-"))
    folder.chmod(0o755)
    try:
        for part in (check_port, check_server, check_squatted):
            part(folder)
    finally:
        shutil.rmtree(folder)
    return exit_code()


def main():
    if sys.argv[1:] == ["inside"]:
        return inside()
    if subprocess.run(["unshare", "-n", "true"], capture_output=True, check=False).returncode or not shutil.which("ip") or os.geteuid():
        print("skipped: no network namespace can be made (as root, with iproute2)")
        return 77
    return subprocess.run(["unshare", "-n", sys.executable, __file__, "inside"], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
