# SPDX-License-Identifier: Apache-2.0
"""Stands between a profiler and its receiver and counts what is sent, as it is on the wire."""
import contextlib
import socket
import threading
import time

REQUEST_BYTES = 1000  # more than it takes to connect: a profile is under way


class Relay:
    def __init__(self, port):
        self.to, self.sent, self.first = port, 0, None
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                client = self.listener.accept()[0]
                server = socket.create_connection(("127.0.0.1", self.to))
                for pair in (client, server, True), (server, client, False):
                    threading.Thread(target=self.carry, args=pair, daemon=True).start()

    def carry(self, source, sink, counts):
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                if counts:
                    self.sent += len(data)
                    if self.sent >= REQUEST_BYTES and self.first is None:
                        self.first = time.monotonic()
                sink.sendall(data)
        for end in source, sink:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self):
        self.listener.close()
