#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What /api/v1/query gives as files, read by those who made the formats: `go tool pprof` says the same of a profile before it went into a
server and after; Graphviz lays out the call graph."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import urllib.parse
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))
from kiln_server import KilnServer  # noqa: E402

FILE = ROOT / "examples" / "checkout.pb.gz"
CPU = 'process_cpu:cpu:nanoseconds{service_name="checkout"}'


def get(server, path, **params):
    with urllib.request.urlopen(f"http://127.0.0.1:{server.http}{path}?{urllib.parse.urlencode(params)}", timeout=60) as answer:
        return answer.read()


def push(server):
    request = urllib.request.Request(f"http://127.0.0.1:{server.http}/api/v1/profiles?service=checkout", data=FILE.read_bytes())
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert answer.status < 300


def top(path):
    """Function -> flat and cumulative nanoseconds, as pprof's -top has them."""
    out = subprocess.run(["go", "tool", "pprof", "-top", "-nodecount=100000", "-nodefraction=0", "-sample_index=cpu", "-unit=ns", path],
                         capture_output=True, text=True, check=True, timeout=120, env=os.environ | {"PPROF_NO_BROWSER": "1"}).stdout
    rows = re.findall(r"^\s*(\S+)\s+\S+%\s+\S+%\s+(\S+)\s+\S+%\s+(.*)$", out, re.M)
    return {name.replace(" (inline)", "").replace(" (partial-inline)", ""): (flat, cum) for flat, cum, name in rows}


class Files(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = KilnServer("--retention", "20000d")  # the example is old
        cls.server.__enter__()
        push(cls.server)

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__()

    def ask(self, **params):
        return get(self.server, "/api/v1/query", query=CPU, **{"from": "2000-01-01", "until": "now+1d", **params})

    @unittest.skipUnless(shutil.which("go"), "go is not installed")
    def test_go_tool_pprof_says_the_same_before_and_after(self):
        with tempfile.NamedTemporaryFile(suffix=".pb.gz") as file:
            file.write(self.ask(format="pprof"))
            file.flush()
            after = top(file.name)
        self.assertGreater(len(after), 10)
        self.assertEqual(after, top(str(FILE)))

    @unittest.skipUnless(shutil.which("dot"), "Graphviz is not installed")
    def test_graphviz_draws_the_call_graph(self):
        drawn = subprocess.run(["dot", "-Tsvg"], input=self.ask(format="dot"), capture_output=True, check=True, timeout=120).stdout
        self.assertIn(b"</svg>", drawn)


if __name__ == "__main__":
    if not shutil.which("go") and not shutil.which("dot"):
        print("skipped: neither go nor dot is installed")
        sys.exit(77)
    unittest.main()
