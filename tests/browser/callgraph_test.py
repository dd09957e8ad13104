#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The call graph in a real browser: it fits, zooms, moves, lights up neighbours, and runs no names."""
import os
import subprocess
import sys
import tempfile

from browser import Browser, check, equal, skip

KILN = os.environ.get("KILN", "build/kiln")
SOURCE = os.environ.get("KILN_SOURCE_DIR", ".")

HOSTILE = b"""\
root;<script>window.pwned=1</script> 30
root;</title></svg><script xmlns='http://www.w3.org/2000/svg'>window.pwned=1</script>;x 20
root;]]>;x 10
"""


def box(page):
    return [float(n) for n in
            page.run("document.querySelector('#graph').getAttribute('viewBox')").split(" ")]


def lit(page):
    return page.run("document.querySelectorAll('#nodes > g.near').length")


def overlaps(page):
    """Pairs of boxes that lie on each other."""
    return page.run("""(() => {
        const all = [...document.querySelectorAll('#nodes > g > rect:first-of-type')].map((r) =>
            r.getBBox());
        let n = 0;
        all.forEach((a, i) => all.slice(i + 1).forEach((b) => {
            n += a.x < b.x + b.width && b.x < a.x + a.width &&
                a.y < b.y + b.height && b.y < a.y + a.height;
        }));
        return n;
    })()""")


def too_long(page):
    """Labels that are wider than their boxes."""
    return page.run("""[...document.querySelectorAll('#nodes > g')].filter((g) =>
        [...g.querySelectorAll('text')].some((t) =>
            t.getBBox().width > g.querySelector('rect').getBBox().width)).length""")


def middle(page, node):
    return page.run("""(() => {
        const box = document.querySelector('#nodes > g[data-n="%d"] > rect').getBoundingClientRect();
        return [box.x + box.width / 2, box.y + box.height / 2];
    })()""" % node)


def test_example(page, folder):
    path = os.path.join(folder, "graph.svg")
    subprocess.run([KILN, "graph", os.path.join(SOURCE, "examples/checkout-v2.pb.gz"), "-o", path],
                   check=True)
    page.open(path)
    page.screenshot("graph")
    equal("no box lies on another", overlaps(page), 0)
    equal("no label leaves its box", too_long(page), 0)
    before = box(page)
    page.mouse(*middle(page, 0), click=False)
    near = lit(page)
    check("the pointer lights up neighbours (%d)" % near, 1 < near < 20)
    page.screenshot("graph-aim")
    page.press("+")
    check("+ zooms in", box(page)[2] < before[2])
    page.press("ArrowRight")
    check("arrows move", box(page)[0] > before[0])
    page.press("0")
    page.screenshot("graph-whole")
    whole = box(page)
    check("0 shows all", whole[2] >= before[2])
    page.press("Escape")
    equal("Escape is where it began", box(page), before)
    page.dark(True)
    page.screenshot("graph-dark")
    page.dark(False)
    equal("nothing but the file was asked for", len(page.requests()), 1)
    equal("nothing was complained about", page.complaints(), [])


def test_hostile(page, folder):
    source, path = os.path.join(folder, "hostile"), os.path.join(folder, "hostile.svg")
    with open(source, "wb") as file:
        file.write(HOSTILE)
    subprocess.run([KILN, "graph", "--from", "collapsed", source, "-o", path], check=True)
    page.open(path)
    equal("hostile names are boxes", page.run("document.querySelectorAll('#nodes > g').length"), 5)
    equal("nothing of them ran", page.run("window.pwned === undefined"), True)
    equal("there is one script", page.run("document.querySelectorAll('script').length"), 1)


def main():
    if not os.access(KILN, os.X_OK):
        skip("no program to test: " + KILN)
    with tempfile.TemporaryDirectory() as folder, Browser() as page:
        test_example(page, folder)
        test_hostile(page, folder)


if __name__ == "__main__":
    sys.exit(main())
