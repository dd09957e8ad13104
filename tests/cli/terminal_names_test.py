#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Names that a terminal would obey: no text format lets them through, and collapsed stacks with them read back the same."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(os.environ.get("KILN_SOURCE_DIR", ".")).resolve()
sys.path.insert(0, str(ROOT / "tests/support"))
from pty_kit import Terminal  # noqa: E402

KILN = os.environ.get("KILN", str(ROOT / "build/kiln"))
NAMES = ["#root", "title\x1b]0;owned\x07", "clear\x1b[2J", "c1 \x9b31m", "bidi \u202edeifirev\u202c", "isolate \u2066x\u2069", "bell\x07",
         "line\nfeed\ttab\rreturn", "del\x7f", "semi;colon"]
# All that a terminal obeys but line ends, and the colours that Kiln itself sends.
OBEYED = re.compile("[\x00-\x09\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def speedscope(names):
    return json.dumps({"$schema": "https://www.speedscope.app/file-format-schema.json",
                       "shared": {"frames": [{"name": name} for name in names]},
                       "profiles": [{"type": "sampled", "name": "x", "unit": "none", "startValue": 0, "endValue": 7,
                                     "samples": [list(range(len(names)))], "weights": [7]}]})


def kiln(*words):
    return subprocess.run([KILN, *words], check=True, capture_output=True).stdout.decode()


def on_terminal(*words):
    with Terminal(KILN, *words, columns=200) as page:
        while page.process.poll() is None:
            page.read()
        page.read()
        assert page.process.returncode == 0, page.all
        return page.all.replace("\r\n", "\n")


class Names(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.profile = str(self.folder / "names.json")
        pathlib.Path(self.profile).write_text(speedscope(NAMES))

    def test_no_text_on_a_terminal_is_obeyed(self):
        for words in (("convert", "--to", "collapsed"), ("convert", "--to", "otlp-json"), ("convert", "--to", "speedscope"),
                      ("convert", "--to", "dot"), ("tree",), ("top",), ("top", "--json"), ("tree", "--json"), ("info",)):
            shown = on_terminal(*words, self.profile)
            self.assertIsNone(OBEYED.search(COLOUR.sub("", shown)), (words, shown))
            if words[0] != "info":
                self.assertIn("title", shown, words)

    def test_pipes_get_the_names_as_they_are(self):
        self.assertIn("bidi \u202edeifirev\u202c", kiln("convert", "--to", "collapsed", self.profile))
        frames = json.loads(kiln("convert", "--to", "speedscope", self.profile))["shared"]["frames"]
        self.assertEqual([frame["name"] for frame in frames], NAMES)

    def test_collapsed_stacks_read_back_the_same(self):
        path = str(self.folder / "x")  # its ending says nothing
        kiln("convert", "--to", "collapsed", self.profile, "-o", path)
        frames = json.loads(kiln("convert", "--to", "speedscope", path))["shared"]["frames"]
        self.assertEqual([frame["name"] for frame in frames], NAMES)

    def test_stacks_without_frames_or_of_one_frame_are_recognised(self):
        nothing, flat = self.folder / "nothing", self.folder / "flat.folded"
        nothing.write_text("[no stack] 7\n")
        self.assertIn('"format":"collapsed"', kiln("info", "--json", str(nothing)).replace(" ", ""))
        flat.write_text("main 7\n")
        self.assertIn('"format":"collapsed"', kiln("info", "--json", str(flat)).replace(" ", ""))


if __name__ == "__main__":
    unittest.main()
