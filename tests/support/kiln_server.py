# SPDX-License-Identifier: Apache-2.0
"""A `kiln server` for tests: on free ports of loopback, in a folder of its own, gone afterwards.

    with KilnServer("--memory-limit", "256M") as server:
        post(f"http://127.0.0.1:{server.http}/ingest?...")
        server.kill()      # kill -9
        server.start()     # again, in the same folder
"""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

KILN = os.environ.get("KILN", "build/kiln")


def sanitized():
    """Whether the program takes the memory and the time that sanitizers take."""
    cache = pathlib.Path(KILN).resolve().parent / "CMakeCache.txt"
    return cache.exists() and "KILN_SANITIZE:STRING=\n" not in cache.read_text()


class KilnServer:
    def __init__(self, *words, env=None):
        self.words, self.env, self.process = words, env or {}, None
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="kiln-test-"))
        self.folder.chmod(0o777)  # what root starts becomes another user, who reads and writes here as well
        self.data = self.folder / "data"
        self.log = self.folder / "server.log"
        self.ready = self.folder / "ready.json"

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self):
        """Starts and waits until it is ready; the seconds that took."""
        self.ready.unlink(missing_ok=True)
        began = time.monotonic()
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [KILN, "server", "--data-dir", str(self.data), "--listen", "127.0.0.1:0", "--otlp-grpc", "127.0.0.1:0",
                 "--otlp-http", "127.0.0.1:0", "--socket", str(self.folder / "kiln.sock"), "--ready-file",
                 str(self.ready), *self.words], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env=os.environ | self.env)
        while not self.ready.exists():
            if self.process.poll() is not None:
                raise RuntimeError(f"kiln server ended with {self.process.returncode}: {self.said()}")
            if time.monotonic() - began > 60:
                raise RuntimeError(f"kiln server is not ready after a minute: {self.said()}")
            time.sleep(0.002)
        ports = json.loads(self.ready.read_text())
        self.http, self.otlp_grpc, self.otlp_http = ports["http"], ports["otlp_grpc"], ports["otlp_http"]
        return time.monotonic() - began

    def cpu_seconds(self):
        """What the process has used since it started, in all its threads."""
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def said(self):
        return self.log.read_text(errors="replace")[-4000:]

    def stop(self):
        """Asks it to go and waits until it has; its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(120)

    def kill(self):
        self.process.kill()
        self.process.wait()
