#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Samples of a stripped program are stored as addresses; its debug file comes later, and the samples have functions, lines and inlined
functions, as elfutils tells them of the program before it was stripped."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))
import debug_files  # noqa: E402
from debug_files import Program, named, profile, send  # noqa: E402
from kiln_server import KILN, KilnServer  # noqa: E402

if debug_files.lacking():
    print("skipped:", ", ".join(debug_files.lacking()), "not installed")
    sys.exit(77)

PATIENCE = 60


def kiln(server, *words, code=0, tenant=None):
    command = [KILN, "symbols", *map(str, words), "--server", f"http://127.0.0.1:{server.http}"] + (["--tenant", tenant] if tenant else [])
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == code, (command, done)
    return done.stdout + done.stderr


def places(program, expected):
    offset, address, _ = program.segment
    return {a - address + offset: frames for a, frames in expected.items()}


class Symbols(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="kiln-symbols-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def until(self, server, service, wanted, tenant=None):
        """Waits until the store says what is wanted."""
        end = time.monotonic() + PATIENCE
        while (said := named(server, service, tenant)) != wanted:
            if time.monotonic() > end:
                self.assertEqual(said, wanted, server.said())
            time.sleep(0.1)

    def make(self, **options):
        program = Program(self.folder, **options)
        addresses = program.addresses("outer") + program.addresses("plain")
        expected = program.expected(addresses)
        self.assertTrue(any(len(frames) == 3 for frames in expected.values()), "nothing is inlined twice")
        return program, addresses, places(program, expected)

    def tell(self, options):
        program, addresses, expected = self.make(**options)
        with KilnServer() as server:
            send(server, profile([(program, addresses)], "shop"))
            self.assertEqual(set(map(tuple, named(server, "shop").values())), {()})
            self.assertIn(program.build_id, kiln(server, "missing"))
            self.assertIn("1 file uploaded", kiln(server, "upload", program.debug))
            self.until(server, "shop", expected)
            self.assertIn("nothing is missing", kiln(server, "missing"))
            self.assertEqual(server.stop(), 0)
            server.start()
            self.assertEqual(named(server, "shop"), expected)
            self.assertIn("there already", kiln(server, "upload", program.debug))

    def test_what_objcopy_split_off(self):
        self.tell({})

    def test_what_eu_strip_split_off(self):
        self.tell({"split": "eu-strip"})

    def test_a_program_at_fixed_addresses(self):
        self.tell({"flags": ("-O2", "-no-pie")})

    @unittest.skipUnless(shutil.which("ld.lld"), "lld is not installed")
    def test_a_program_of_lld(self):
        for split in ("objcopy", "eu-strip"):
            with self.subTest(split=split):
                self.tell({"name": f"lld-{split}", "flags": ("-O2", "-fuse-ld=lld"), "split": split})

    def test_an_executable_alone_and_then_its_debug_file(self):
        program, addresses, expected = self.make()
        with KilnServer() as server:
            send(server, profile([(program, addresses)], "shop"))
            kiln(server, "upload", program.path)
            end = time.monotonic() + PATIENCE
            while "stripped" not in kiln(server, "missing"):
                self.assertLess(time.monotonic(), end, server.said())
                time.sleep(0.1)
            kiln(server, "upload", program.debug)
            self.until(server, "shop", expected)

    @unittest.skipUnless(shutil.which("dwz"), "dwz is not installed")
    def test_what_dwz_moved_out_may_come_last(self):
        program, addresses, expected = self.make(split="eu-strip")
        other = Program(self.folder, "other", split="eu-strip")
        subprocess.run(["dwz", "-m", "common.debug", program.debug.name, other.debug.name], cwd=self.folder, check=True)
        with KilnServer() as server:
            send(server, profile([(program, addresses)], "shop"))
            kiln(server, "upload", program.debug)
            end = time.monotonic() + PATIENCE
            while program.build_id in kiln(server, "missing"):
                self.assertLess(time.monotonic(), end, server.said())
                time.sleep(0.1)
            self.assertNotEqual(named(server, "shop"), expected)
            kiln(server, "upload", self.folder / "common.debug")
            self.until(server, "shop", expected)

    def test_kill_and_what_comes_after_the_upload(self):
        program, addresses, expected = self.make()
        half = addresses[::2]
        with KilnServer() as server:
            kiln(server, "upload", program.debug)
            send(server, profile([(program, half)], "shop"))
            server.kill()
            server.start()
            self.until(server, "shop", {p: f for p, f in expected.items() if p in places(program, dict.fromkeys(half))})
            send(server, profile([(program, addresses)], "shop", time.time() - 30))
            self.until(server, "shop", expected)

    def test_tenants_do_not_see_each_others_files(self):
        program, addresses, expected = self.make()
        with KilnServer("--multitenant") as server:
            for tenant in ("red", "blue"):
                send(server, profile([(program, addresses)], "shop"), tenant)
            kiln(server, "upload", program.debug, tenant="red")
            self.until(server, "shop", expected, "red")
            self.assertIn(program.build_id, kiln(server, "list", tenant="red"))
            self.assertIn("no debug files", kiln(server, "list", tenant="blue"))
            self.assertIn(program.build_id, kiln(server, "missing", tenant="blue"))
            self.assertEqual(set(map(tuple, named(server, "shop", "blue").values())), {()})
            kiln(server, "delete", program.build_id, tenant="blue", code=2)
            kiln(server, "delete", program.build_id, tenant="red")
            self.assertIn("no debug files", kiln(server, "list", tenant="red"))
            self.assertEqual(named(server, "shop", "red"), expected)

    def test_files_of_the_server_itself(self):
        program, addresses, expected = self.make()
        where = self.folder / "debug" / ".build-id" / program.build_id[:2]
        where.mkdir(parents=True)
        shutil.copy(program.debug, where / (program.build_id[2:] + ".debug"))
        with KilnServer("--symbols-path", str(self.folder / "debug")) as server:
            send(server, profile([(program, addresses)], "shop"))
            self.until(server, "shop", expected)

    def test_a_directory_and_a_large_file_in_parts(self):
        program, _, _ = self.make()
        large = self.folder / "large.debug"
        noise = self.folder / "noise"
        noise.write_bytes(os.urandom(20 << 20))
        debug_files.run("objcopy", "--add-section", f".noise={noise}", program.debug, large)
        with KilnServer() as server:
            said = json.loads(kiln(server, "upload", large, "--json"))
            self.assertEqual((said["uploaded"], said["failed"]), (1, 0))
            self.assertGreater(said["sent_bytes"], 20 << 20)
            said = json.loads(kiln(server, "upload", self.folder, "--json"))
            by_path = {pathlib.Path(f["path"]).name: f["outcome"] for f in said["files"]}
            self.assertEqual(by_path["large.debug"], "known")
            self.assertEqual(by_path["shop.debug"], "skipped")  # the same build id
            self.assertEqual(by_path["shop"], "skipped")
            self.assertEqual(by_path["shop.full"], "uploaded")
            self.assertEqual(by_path["shop.c"], "skipped")


if __name__ == "__main__":
    unittest.main()
