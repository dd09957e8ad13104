#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A real debuginfod serves the debug file of a stripped program: samples are named from it, for every tenant, and what it does not have is
asked for once; servers that are slow, endless, lying or gone do no harm."""
import concurrent.futures
import http.server
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))
import debug_files  # noqa: E402
from debug_files import Invented, Program, named, profile, send  # noqa: E402
from kiln_server import KILN, KilnServer  # noqa: E402

LACKING = debug_files.lacking()
if LACKING:
    print("skipped:", ", ".join(LACKING), "not installed")
    sys.exit(77)

PATIENCE = 90


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Debuginfod:
    """Over the files of a folder; on a free port, gone afterwards."""

    def __init__(self, folder, known):
        self.port, self.known = free_port(), known
        self.state = tempfile.TemporaryDirectory()
        self.process = subprocess.Popen(["debuginfod", "-p", str(self.port), "-d", str(pathlib.Path(self.state.name) / "db.sqlite"), "-F", str(folder)],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=self.state.name)
        self.url = f"http://127.0.0.1:{self.port}"

    def __enter__(self):
        end = time.monotonic() + PATIENCE
        while True:  # until it has looked at the folder
            try:
                with urllib.request.urlopen(f"{self.url}/buildid/{self.known}/debuginfo", timeout=10):
                    return self
            except (urllib.error.URLError, ConnectionError):
                if time.monotonic() > end or self.process.poll() is not None:
                    self.__exit__()
                    raise
                time.sleep(0.1)

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.state.cleanup()


class Peer(http.server.BaseHTTPRequestHandler):
    """A server that answers as its path says: what some debuginfod somewhere may do to us."""
    asked = []

    def do_GET(self):
        Peer.asked.append(self.path)
        how = self.path.split("/")[1]
        if how == "endless":
            self.send_response(200)
            self.end_headers()
            try:
                while True:
                    self.wfile.write(b"\x7fELF" * 65536)
            except OSError:
                return
        elif how == "round":
            self.send_response(302)
            self.send_header("Location", self.path)
            self.end_headers()
        elif how == "file":
            self.send_response(302)
            self.send_header("Location", "file:///etc/hostname")
            self.end_headers()
        elif how == "garbage":
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"this is no ELF file")
        elif how == "other":
            self.send_response(200)
            self.end_headers()
            self.wfile.write(debug_files.small_elf("ee" * 20))
        else:
            self.send_response(500 if how == "broken" else 404)
            self.end_headers()

    def log_message(self, *_):
        pass


def kiln(server, *words):
    return subprocess.run([KILN, "symbols", *words, "--server", f"http://127.0.0.1:{server.http}"], capture_output=True, text=True, timeout=120,
                          check=True).stdout


class Fetching(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="kiln-debuginfod-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.program = Program(cls.folder)
        cls.program.full.rename(cls.folder.parent / (cls.folder.name + ".full"))
        cls.program.full = cls.folder.parent / (cls.folder.name + ".full")
        cls.addClassCleanup(cls.program.full.unlink)
        cls.peer = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Peer)
        cls.peer.daemon_threads = True
        threading.Thread(target=cls.peer.serve_forever, daemon=True).start()
        cls.addClassCleanup(cls.peer.server_close)
        cls.addClassCleanup(cls.peer.shutdown)
        cls.peer_url = f"http://127.0.0.1:{cls.peer.server_port}"

    def until(self, what, server):
        end = time.monotonic() + PATIENCE
        while not (said := what()):
            self.assertLess(time.monotonic(), end, server.said())
            time.sleep(0.1)
        return said

    @unittest.skipUnless(shutil.which("debuginfod"), "debuginfod is not installed")
    def test_a_real_one(self):
        offset, address, _ = self.program.segment
        addresses = self.program.addresses("outer") + self.program.addresses("plain")
        expected = {a - address + offset: frames for a, frames in self.program.expected(addresses).items()}
        body = profile([(self.program, addresses), (Invented("cd" * 20), [0x1010])], "shop")
        with Debuginfod(self.folder, self.program.build_id) as peer, \
                KilnServer("--debuginfod", self.peer_url + "/absent", "--debuginfod", peer.url + "/", "--multitenant") as server:
            for tenant in ("red", "blue"):
                send(server, body, tenant)
                self.until(lambda t=tenant: all(named(server, "shop", t)[p] == f for p, f in expected.items()), server)
            said = subprocess.run([KILN, "symbols", "list", "--json", "--tenant", "blue", "--server", f"http://127.0.0.1:{server.http}"],
                                  capture_output=True, text=True, check=True, timeout=60).stdout
            self.assertIn('"from":"debuginfod"', said.replace(" ", ""))
            self.assertEqual(len([p for p in Peer.asked if self.program.build_id in p and "debuginfo" in p]), 1, "one asks once")

    def test_nobody_is_asked_unless_told(self):
        with KilnServer() as server:
            send(server, profile([(Invented("12" * 20), [0x1010])], "shop"))
            self.until(lambda: "files of the server: none" in kiln(server, "missing"), server)
            self.assertNotIn("debuginfod", kiln(server, "missing"))

    def bear(self, build_id, how, words):
        with KilnServer("--debuginfod", f"{self.peer_url}/{how}", "--symbols-quota", "16M") as server:
            send(server, profile([(Invented(build_id), [0x1010])], "shop"))
            self.until(lambda: words in kiln(server, "missing", "--wide"), server)
            left = [p.name for p in (server.data / "debug").rglob("*") if p.is_file()]
            self.assertEqual(left, [], how)
            self.assertEqual(server.stop(), 0, how)

    def test_servers_that_do_harm(self):
        """All at once: each waits for the clock of its server."""
        harms = {"garbage": "no ELF file", "other": "ee" * 10, "endless": "larger than", "round": "cannot be reached",
                 "file": "cannot be reached", "broken": "does not answer", "absent": "debuginfod: none"}
        with concurrent.futures.ThreadPoolExecutor(len(harms)) as pool:
            for done in [pool.submit(self.bear, f"{i + 30:02x}" * 20, *harm) for i, harm in enumerate(harms.items())]:
                done.result()

    def test_one_that_is_gone(self):
        with KilnServer("--debuginfod", f"http://127.0.0.1:{free_port()}") as server:
            send(server, profile([(Invented("77" * 20), [0x1010])], "shop"))
            self.until(lambda: "cannot be reached" in kiln(server, "missing", "--wide"), server)

    def test_what_is_no_address(self):
        for url in ("ftp://x/", "file:///etc", "debuginfod.example"):
            done = subprocess.run([KILN, "server", "--data-dir", str(self.folder / "data"), "--listen", "127.0.0.1:0", "--otlp-grpc", "off", "--otlp-http",
                                   "off", "--socket", "off", "--debuginfod", url], capture_output=True, text=True, timeout=60)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("--debuginfod", done.stderr)


if __name__ == "__main__":
    unittest.main()
