#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Where somebody samples the process already, and says so on the local socket, libkiln leaves that to him; what a server
says there."""
import http.client
import json
import os
import pathlib
import socket
import sys
import tempfile
import threading

sys.path.insert(0, str(pathlib.Path(os.environ.get("KILN_SOURCE_DIR", ".")).resolve() / "tests/support"))
from checks import check, exit_code  # noqa: E402
from kiln_server import KilnServer  # noqa: E402
from time_kit import PROGRAMS, Preloaded  # noqa: E402


class Profiler:
    """Answers every question with what it was made with; None: not at all."""

    def __init__(self, path, sampled):
        self.body = json.dumps({"sampled": sampled, "agent": {}}) if sampled is not None else None
        self.asked = []
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen()
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        held = []
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.asked.append(connection.recv(4096).decode("latin-1").split("\r\n")[0])
            if self.body is None:
                held.append(connection)
                continue
            connection.sendall(f"HTTP/1.1 200 OK\r\ncontent-length: {len(self.body)}\r\n\r\n{self.body}".encode())
            connection.close()


def run(sampled):
    """What was told of CPU time and of waits, with a profiler that says this."""
    with tempfile.TemporaryDirectory() as folder:
        path = folder + "/kiln.sock"
        profiler = Profiler(path, sampled)
        with Preloaded(PROGRAMS / "time_truth", "mixed", KILN_PROFILES="cpu,wall", KILN_SOCKET=path,
                       KILN_EXIT_MS="3000") as done:
            cpu, waits = (done.functions(*kind)[""] for kind in (("process_cpu", "cpu"), ("off_cpu", "off_cpu")))
        profiler.listener.close()
    check("it is asked over HTTP", "GET /v1/self HTTP/1.1" in profiler.asked, profiler.asked)
    return cpu > 0, waits > 0


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("kiln")
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.path)


def check_server():
    with KilnServer("--host-profiler", "off") as server:
        connection = UnixConnection(str(server.folder / "kiln.sock"))
        connection.request("GET", "/v1/self")
        answer = connection.getresponse()
        told = json.loads(answer.read())
        check("a server that profiles nobody says so, and who asks", (answer.status, told["sampled"]) == (
            200, {"pid": os.getpid(), "cpu": False, "off_cpu": False}), told)
        connection = http.client.HTTPConnection("127.0.0.1", server.http)
        connection.request("GET", "/v1/self")
        check("over the network it says nothing", connection.getresponse().status == 404)


def main():
    check("CPU time is left to one that samples it", run({"pid": 1, "cpu": True, "off_cpu": False}) == (False, True))
    check("so are waits", run({"cpu": True, "off_cpu": True}) == (False, False))
    check("one that does not answer is not waited for", run(None) == (True, True))
    check_server()
    return exit_code()


if __name__ == "__main__":
    sys.exit(main())
