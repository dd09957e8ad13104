#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`kiln store`: the same answers from a server over its socket and from the directory it left."""
import json
import os
import pathlib
import subprocess
import sys
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))
from kiln_server import KILN, KilnServer  # noqa: E402


class Store:
    """A server with two services, each pushed into a few blocks."""

    def __init__(self, server):
        self.server, self.folder = server, server.folder

    def kiln(self, *words, code=0):
        done = subprocess.run([KILN, *words], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False,
                              env=os.environ | {"KILN_SOCKET": str(self.folder / "kiln.sock")})
        assert done.returncode == code, (words, done.returncode, done.stdout, done.stderr)
        return done.stdout if code == 0 else done.stdout + done.stderr

    def store(self, *words, code=0):
        return self.kiln("store", *words, "--data-dir", str(self.server.data), code=code)

    def push(self, service, minutes):
        self.kiln("push", "--server", f"http://127.0.0.1:{self.server.http}", "--service", service, "--time",
                  f"-{minutes}m", "examples/checkout.pb.gz")

    def stats(self):
        return json.loads(self.store("stats", "--json"))

    def services(self):
        return {row["service"]: row["profiles"] for row in self.stats()["rows"]
                if row["type"].startswith("process_cpu:cpu:")}

    def collapsed(self, *words):
        return sorted(self.store("export", "--format", "collapsed", "--type", "cpu", *words).splitlines())


def total(lines):
    return sum(int(line.rsplit(" ", 1)[1]) for line in lines)


class Verbs(unittest.TestCase):
    def setUp(self):
        self.server = KilnServer()
        self.addCleanup(self.server.__exit__)
        self.server.start()
        self.store = Store(self.server)
        for minutes in (5, 4, 3):
            self.store.push("checkout", minutes)
            self.store.store("compact")
        self.store.push("cart", 2)

    def both(self, ask):
        """What a server says and what its directory says are the same."""
        live = ask()
        self.assertEqual(self.server.stop(), 0)
        self.assertEqual(ask(), live)
        return live

    def test_stats(self):
        self.assertEqual(self.both(self.store.services), {"checkout": 3, "cart": 1})
        stats = self.store.stats()
        self.assertEqual(sum(row["bytes"] for row in stats["rows"]), stats["block_bytes"])
        self.assertIn("checkout", self.store.store("stats"))

    def test_check(self):
        self.assertIn("all well", self.store.store("check"))
        self.server.stop()
        self.assertIn("all well", self.store.store("check"))
        block = next((self.server.data / "blocks").rglob("*.kb"))
        content = bytearray(block.read_bytes())
        content[len(content) // 3] ^= 1
        block.write_bytes(content)
        said = self.store.store("check", code=1)
        self.assertIn(f"{block.relative_to(self.server.data)}: damaged", said)
        self.assertEqual(json.loads(self.store.store("check", "--json", code=1))["damaged"], 1)

    def test_export(self):
        everything = self.both(lambda: self.store.collapsed("--service", "checkout"))
        self.assertGreater(total(everything), 0)
        self.assertEqual(total(self.store.collapsed()) * 3, total(everything) * 4)
        some = self.store.collapsed("--service", "checkout", "--from", "now-210s", "--to", "now")
        self.assertEqual(total(some) * 3, total(everything))
        self.assertIn("no profiles are chosen", self.store.store("export", "--format", "collapsed", "--service", "x", code=3))
        path = str(self.server.folder / "all.pb.gz")
        self.store.store("export", "--match", "service.name!=cart", "-o", path)
        self.assertIn("CPU time", self.store.kiln("top", path))

    def test_compact(self):
        self.assertEqual(self.store.store("compact"), "1 block left, nothing more to merge\n")
        self.assertEqual(self.store.services(), {"checkout": 3, "cart": 1})
        self.server.stop()
        self.assertEqual(json.loads(self.store.store("compact", "--json")), {"blocks": 1})

    def test_delete(self):
        self.assertEqual(self.store.store("delete", "cart"), "4 profiles deleted\n")
        self.assertEqual(self.both(self.store.services), {"checkout": 3})
        self.assertEqual(json.loads(self.store.store("delete", "checkout", "--json")), {"profiles": 12})
        self.assertEqual(self.store.stats()["blocks"], 0)

    def test_backup_and_restore(self):
        backup, restored = str(self.server.folder / "backup"), str(self.server.folder / "restored")
        self.store.store("backup", backup)
        self.assertIn("not empty", self.store.store("backup", backup, code=4))
        self.store.push("late", 1)
        self.store.kiln("store", "restore", backup, "--data-dir", restored)
        rows = json.loads(self.store.kiln("store", "stats", "--json", "--data-dir", restored))["rows"]
        self.assertEqual({row["service"] for row in rows}, {"checkout", "cart"})
        self.server.stop()
        self.store.store("backup", str(self.server.folder / "again"))
        self.assertIn("not empty", self.store.kiln("store", "restore", backup, "--data-dir", restored, code=4))

    def set_aside(self):
        """What version 0.1 did with a block that it could not read: all of it is in aside/."""
        self.store.store("compact")
        self.assertEqual(self.server.stop(), 0)
        for block in list((self.server.data / "blocks" / "anonymous").glob("*.kb")):
            block.rename(self.server.data / "aside" / f"anonymous-{block.name}")

    def aside(self):
        return [path.name for path in (self.server.data / "aside").iterdir()]

    def test_salvage(self):
        before = self.store.services()
        self.set_aside()
        self.assertEqual(self.store.services(), {})
        dry = json.loads(self.store.store("salvage", "--dry-run", "--json"))
        self.assertEqual((dry["recovered"], dry["unreadable"], dry["kept"]), (16, 0, 0))
        self.assertIn("nothing is changed", self.store.store("salvage", "--dry-run"))
        self.assertEqual(self.store.services(), {})
        said = self.store.store("salvage")
        self.assertTrue(said.endswith("\n16 profiles recovered\n"), said)
        self.assertEqual(self.store.services(), before)
        self.assertEqual(self.aside(), [])
        self.assertEqual(self.store.store("salvage"), "nothing is set aside\n")

    def test_a_server_salvages_and_its_answers_tell_what_they_lack(self):
        before = self.store.services()
        self.set_aside()
        self.server.start()
        with self.assertRaises(urllib.error.HTTPError) as nothing:
            self.notes()
        with nothing.exception as answer:
            self.assertIn("damaged files may lack", answer.read().decode())
        self.store.push("late", 1)
        self.assertEqual(self.notes(), ["blocks_damaged"])
        for note in self.headers():
            self.assertIn("damaged files may lack here", note or "")
        self.assertEqual(set(self.list_notes()), {"blocks_damaged"})
        self.assertEqual(json.loads(self.store.store("salvage", "--json"))["recovered"], 16)
        self.assertEqual(self.store.services(), before | {"late": 1})
        self.assertEqual(self.notes(), [])
        self.assertEqual(set(self.headers()), {None})
        self.assertEqual(set(self.list_notes()), {None})

    def notes(self, selector=""):
        query = urllib.parse.quote("process_cpu:cpu:nanoseconds" + selector)
        url = f"http://127.0.0.1:{self.server.http}/api/v1/query?query={query}&from=now-1h"
        with urllib.request.urlopen(url, timeout=60) as answer:
            return [note["code"] for note in json.load(answer)["notes"]]

    def list_notes(self):
        """X-Kiln-Notes of the lists of the own API."""
        for path in ("services", "labels", "labels/service_name/values", "series", "series?by=service_name", "types"):
            with urllib.request.urlopen(f"http://127.0.0.1:{self.server.http}/api/v1/{path}", timeout=60) as answer:
                yield answer.headers["X-Kiln-Notes"]

    def headers(self):
        """Kiln-Note of answers whose formats have no place for notes."""
        address = f"http://127.0.0.1:{self.server.http}"
        cpu = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
        now_ms = int(time.time() * 1000)
        message = {"profileTypeID": cpu, "labelSelector": "{}", "start": now_ms - 3600000, "end": now_ms + 60000}
        merge = urllib.request.Request(f"{address}/querier.v1.QuerierService/SelectMergeStacktraces", json.dumps(message).encode(),
                                       {"Content-Type": "application/json"})
        render = f"{address}/pyroscope/render?from=now-1h&until=now&query=" + urllib.parse.quote(cpu + "{}")
        for request in (merge, render, f"{address}/api/v1/store/export"):
            with urllib.request.urlopen(request, timeout=60) as answer:
                yield answer.headers["Kiln-Note"]

    def test_a_server_rewrites_a_damaged_block_without_what_is_lost(self):
        self.store.store("compact")
        block = next((self.server.data / "blocks").rglob("*.kb"))
        with open(block, "r+b") as file:  # the first page has the samples of cart
            file.seek(40)
            byte = file.read(1)
            file.seek(40)
            file.write(bytes([byte[0] ^ 1]))
        self.assertIn("blocks_damaged", self.notes('{service_name="cart"}'))
        for _ in range(600):  # in the background, the note of what was lost at the end
            if self.store.services() == {"checkout": 3} and not block.exists() and len(self.aside()) == 2:
                break
            time.sleep(0.1)
        self.assertEqual(self.store.services(), {"checkout": 3})
        self.assertEqual(len(self.aside()), 2, self.aside())
        self.assertEqual(self.notes(), ["blocks_damaged"])
        self.assertIn("all well", self.store.store("check"))
        self.assertIn("4 unreadable", self.store.store("salvage", code=1))
        self.assertIn("the rest is removed", self.store.store("salvage", "--discard"))
        self.assertEqual(self.notes(), [])

    def test_salvage_into_files(self):
        self.set_aside()
        (self.server.data / "aside" / ("anonymous-" + 32 * "0" + ".kb")).write_bytes(b"no block")
        target = self.server.folder / "salvaged"
        said = self.store.store("salvage", "-o", str(target), code=1)
        self.assertIn("the rest is kept", said)
        files = [str(path) for path in target.iterdir()]
        self.assertEqual(len(files), 1)
        self.assertIn("CPU time", self.store.kiln("top", "-t", "cpu", *files))
        self.assertEqual(len(self.aside()), 2)
        self.assertIn("removed", self.store.store("salvage", "--discard", code=0))
        self.assertEqual(self.aside(), [])

    def test_a_locked_directory_without_a_server_says_so(self):
        (self.server.folder / "kiln.sock").unlink()
        self.assertIn("kiln.sock", self.store.store("stats", code=4))

    @unittest.skipIf(os.geteuid() == 0, "root may read everything")
    def test_a_directory_without_permission_says_so(self):
        self.server.stop()
        self.server.data.chmod(0)
        self.addCleanup(self.server.data.chmod, 0o700)
        for verb in ("check", "stats", "compact"):
            self.assertIn("ermission denied", self.store.store(verb, code=4))


if __name__ == "__main__":
    unittest.main()
