# SPDX-License-Identifier: Apache-2.0
"""A program under libkiln that does what a test says (tests/inproc/programs/out_worker.c), and receivers for it."""
import os
import pathlib
import socket
import subprocess
import threading

LIBKILN = os.environ.get("LIBKILN", "build/libkiln.so")
PROGRAMS = pathlib.Path(os.environ.get("KILN_BUILD_DIR", "build")) / "inproc"


class Worker:
    """Each variable is one of its environment; those of this process that libkiln would read are left out."""

    def __init__(self, program=PROGRAMS / "out_worker", **variables):
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "KILN_"))}
        variables = {"KILN_SOCKET": "/nowhere", "KILN_EXPORT_INTERVAL_MS": "3600000", "KILN_SEED": "1",
                     "KILN_ALLOC_BYTES": "65536", "KILN_ALLOC_RATE": "0", "KILN_EXIT_MS": "20000", **variables}
        self.process = subprocess.Popen([str(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True,
                                        env=kept | {name: str(value) for name, value in variables.items()}
                                        | {"LD_PRELOAD": str(LIBKILN)})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline().split()[1])

    def end(self):
        """Its exit code, and what it said."""
        _, said = self.process.communicate(timeout=120)
        return self.process.returncode, said


class Sink:
    """Listens on a port of loopback: takes requests of HTTP/1.1 and answers each with the next of `answers`, the last
    one again and again.  None: says nothing, ever."""

    def __init__(self, *answers):
        self.answers, self.requests, self.came = list(answers), [], threading.Semaphore(0)
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def accept(self):
        while True:
            try:
                connection = self.socket.accept()[0]
            except OSError:
                return
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        with connection, connection.makefile("rb") as stream:
            while head := self.head(stream):
                length = int(next(line.split(b":")[1] for line in head if line.lower().startswith(b"content-length")))
                self.requests.append((b"".join(head), stream.read(length)))
                self.came.release()
                answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
                if answer is None:
                    threading.Event().wait()
                connection.sendall(answer)

    @staticmethod
    def head(stream):
        lines = []
        for line in stream:
            if line == b"\r\n":
                return lines
            lines.append(line)
        return None


def ok(status="200 OK", *headers):
    return "\r\n".join([f"HTTP/1.1 {status}", "Content-Length: 0", *headers, "", ""]).encode()
