#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What we draw, read by others: Expat for the SVG files, Graphviz for the dot files.

Names are hostile; every drawing must be well-formed, hold them as text, and ask for nothing outside.
"""
import os
import random
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml

KILN = os.environ.get("KILN", "build/kiln")
PIECES = [b"<script>", b"]]>", b"</title>", b"<!--", b"&amp;", b"&bogus;", b"\"'", b"\\", b"\\n", b"\x01",
          b"\x1b[2J", b"\xff\xfe", b"\xed\xa0\x80", b"\xe2\x80\xae", b"\xef\xbf\xbf", b"%s%n", b"{", b"}", b"a" * 3000,
          "größe".encode(), b"::", b"(", b"/"]
SVG = "{http://www.w3.org/2000/svg}"


def name(dice):
    return b"".join(dice.choice(PIECES) for _ in range(dice.randint(1, 5)))


def profile(folder, seed):
    """Collapsed stacks of hostile names."""
    dice = random.Random(seed)
    names = [name(dice) for _ in range(30)]
    path = os.path.join(folder, "hostile-%d.folded" % seed)
    with open(path, "wb") as file:
        for _ in range(100):
            stack = b";".join(dice.choice(names) for _ in range(dice.randint(1, 8)))
            file.write(b"%s %d\n" % (stack, dice.randint(1, 1000)))
    return path


def kiln(*args):
    return subprocess.run([KILN, *args], check=True, stdout=subprocess.PIPE).stdout


def check_svg(what, data):
    root = xml.fromstring(data)
    assert root.tag == SVG + "svg", what
    allowed = {SVG + tag for tag in ("svg", "title", "style", "rect", "text", "g", "script", "path")}
    for element in root.iter():
        assert element.tag in allowed, "%s: %s" % (what, element.tag)
        for key in element.attrib:
            assert "href" not in key and not key.startswith("on"), "%s: %s" % (what, key)
    assert len(list(root.iter(SVG + "script"))) == 1, what
    assert b"url(" not in data and b"@import" not in data, what
    print("ok:", what, len(data), "bytes")


def main():
    if not os.access(KILN, os.X_OK):
        print("skipped: no program to test:", KILN)
        return 77
    graphviz = shutil.which("dot")
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(8):
            a, b = profile(folder, seed), profile(folder, seed + 100)
            given = ["--from", "collapsed"]
            check_svg("flame graph %d" % seed, kiln("flamegraph", *given, a))
            check_svg("difference %d" % seed, kiln("flamegraph", *given, "--base", a, b))
            check_svg("call graph %d" % seed, kiln("graph", *given, a))
            if graphviz:
                subprocess.run([graphviz, "-Tplain"], input=kiln("graph", *given, "--to", "dot", a),
                               check=True, stdout=subprocess.DEVNULL)
                print("ok: Graphviz reads graph", seed)
        if not graphviz:
            print("not tried: Graphviz is not here")
    return 0


if __name__ == "__main__":
    sys.exit(main())
