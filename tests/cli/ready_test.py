#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the server answers while it cannot keep anything: to `GET /ready`, `kiln ready` and senders."""
import os
import pathlib
import shutil
import subprocess
import sys
import time
import unittest
import urllib.error
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "support"))
from kiln_server import KILN, KilnServer  # noqa: E402


class Ready(unittest.TestCase):
    def setUp(self):
        self.server = KilnServer("--retention", "3650d")
        self.server.start()
        self.addCleanup(self.server.__exit__)
        self.url = f"http://127.0.0.1:{self.server.http}"

    def ask(self, path, data=None):
        try:
            with urllib.request.urlopen(self.url + path, data=data, timeout=60) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def send(self, name):
        """The status of a profile of one function."""
        return self.ask("/api/v1/profiles?service=s", f"main;{name} 1\n".encode())[0]

    def wait_for(self, status):
        """The answer to /ready, once it has this status."""
        until = time.monotonic() + 120
        while time.monotonic() < until:
            code, text = self.ask("/ready")
            if code == status:
                return text
            time.sleep(0.1)
        raise AssertionError(f"/ready is {code}: {text}")

    def names(self):
        code, text = self.ask("/api/v1/query?query=%7B%7D&from=now-1h&until=now%2B1h&format=collapsed")
        self.assertEqual(code, 200, text)
        return sorted(line.split(";")[1].split(" ")[0] for line in text.splitlines())

    def test_a_log_that_was_removed(self):
        self.assertEqual(self.send("before"), 200)
        self.assertEqual(self.ask("/ready")[0], 200)
        shutil.rmtree(self.server.data / "wal")
        self.assertEqual(self.send("during"), 503)
        self.assertIn("wal/: the directory was removed", self.wait_for(503))
        said = subprocess.run([KILN, "ready", "--server", self.url], capture_output=True, text=True, check=False)
        self.assertEqual(said.returncode, 1)
        self.assertIn("wal/: the directory was removed", said.stderr)
        self.assertIn('"writable":false', self.ask("/api/v1/status")[1])
        # what the log had is written as a block, for nothing else has it
        until = time.monotonic() + 120
        while not list(self.server.data.glob("blocks/anonymous/*.kb")) and time.monotonic() < until:
            time.sleep(0.1)
        (self.server.data / "wal").mkdir(mode=0o777)
        os.chmod(self.server.data / "wal", 0o777)  # writable for any user the server runs as
        self.wait_for(200)
        self.assertEqual(self.send("after"), 200)
        self.server.kill()
        self.server.start()
        self.url = f"http://127.0.0.1:{self.server.http}"
        self.assertEqual(self.names(), ["after", "before"])

    def test_a_data_directory_that_was_removed(self):
        self.assertEqual(self.send("before"), 200)
        shutil.rmtree(self.server.data)
        self.assertEqual(self.send("during"), 503)
        self.assertIn("wal/: the directory was removed", self.wait_for(503))

    def test_a_log_that_cannot_be_written(self):
        probe = self.server.data / "wal" / "probe"
        probe.mkdir()  # where the file of the try would be
        self.assertIn("wal/: cannot be written", self.wait_for(503))
        probe.rmdir()
        self.assertEqual(self.wait_for(200).strip(), "ready")


if __name__ == "__main__":
    unittest.main()
