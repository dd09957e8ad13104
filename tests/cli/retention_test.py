#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A server that was off for longer than the retention removes nothing at its start, and says why."""
import json
import pathlib
import sys
import time
import unittest
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "support"))
from kiln_server import KilnServer  # noqa: E402


class Retention(unittest.TestCase):
    def ask(self, path, data=None):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.server.http}{path}", data=data, timeout=60) as answer:
            return answer.read().decode()

    def store(self):
        return json.loads(self.ask("/api/v1/status"))["store"]

    def test_old_data_is_kept_while_the_clock_is_not_trusted(self):
        self.server = KilnServer("--retention", "3650d")
        self.addCleanup(self.server.__exit__)
        self.server.start()
        self.ask(f"/api/v1/profiles?service=old&time={int(time.time()) - 20 * 86400}", b"main;old 1\n")
        self.assertIsNone(self.store()["retention_paused"])
        self.server.stop()
        self.server.words = ("--retention", "14d")
        self.server.start()
        self.assertIn("nothing is removed by age", self.store()["retention_paused"])
        self.assertIn("kiln_store_retention_paused 1\n", self.ask("/metrics"))
        self.assertEqual(self.server.said().count("retention by age stops"), 1)
        # what others send meanwhile is not too old either
        self.ask(f"/api/v1/profiles?service=other&time={int(time.time()) - 21 * 86400}", b"main;other 1\n")
        self.assertEqual([one["name"] for one in json.loads(self.ask("/api/v1/services"))["services"]], ["old", "other"])


if __name__ == "__main__":
    unittest.main()
