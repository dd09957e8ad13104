# SPDX-License-Identifier: Apache-2.0
"""A `kiln collector` for tests, with its ready file and log in a folder of the test's.

    with Collector(folder, "--config", path) as collector:
        post(f"http://127.0.0.1:{collector.ports['receivers::otlp::http']}/v1development/profiles")
        collector.reload("configuration read again")
"""
import json
import signal
import subprocess
import time
import urllib.request

from kiln_server import KILN


class Collector:
    """One that runs; gone afterwards."""

    def __init__(self, folder, *words):
        self.folder, self.ready, self.log = folder, folder / "ready.json", folder / "log"
        self.ready.unlink(missing_ok=True)
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen([KILN, "collector", "--ready-file", str(self.ready), *words],
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def __enter__(self):
        try:
            self.ports = self.wait_ready()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def said(self):
        return self.log.read_text()

    def wait_ready(self):
        self.wait_for(self.ready.exists)
        return json.loads(self.ready.read_text())["ports"]

    def wait_for(self, condition):
        until = time.monotonic() + 60
        while not condition():
            if self.process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"kiln collector: {self.process.poll()}: {self.said()}")
            time.sleep(0.005)

    def reload(self, said):
        before = self.said().count(said)
        self.process.send_signal(signal.SIGHUP)
        self.wait_for(lambda: self.said().count(said) > before)

    def end(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        return self.process.wait(60)

    def metrics(self):
        port = self.ports["service::telemetry::metrics"]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
            return answer.read().decode()
