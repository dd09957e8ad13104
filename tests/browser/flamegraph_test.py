#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The flame graph in a real browser: zoom, find, keys, dark, without script, hostile names."""
import os
import subprocess
import sys
import tempfile

from browser import Browser, check, equal, skip

KILN = os.environ.get("KILN", "build/kiln")
DATA = os.environ.get("KILN_TEST_DATA", "../shared/data")
CTRL = 2

STACKS = """\
main;serve;parse;scan 300
main;serve;parse;unquote 100
main;serve;draw 400
main;idle;scan 200
"""

HOSTILE = [
    "<script>window.pwned=1</script>",
    "</title></g></svg><script xmlns='http://www.w3.org/2000/svg'>window.pwned=1</script>",
    "]]><script>window.pwned=1</script>",
    "\"onmouseover=\"window.pwned=1",
    "javascript:window.pwned=1",
    "${window.pwned=1}",
    "<foreignObject><img xmlns='http://www.w3.org/1999/xhtml' src='x' onerror='window.pwned=1'/>",
    "&lt;b&gt; &#x3c;script&#x3e;",
    "x" * 10000,
    "a\u202eb\u0007c",
]


def draw(folder, name, data):
    """Writes `data`, draws it, and gives the path of the drawing."""
    source, drawing = os.path.join(folder, name), os.path.join(folder, name + ".svg")
    with open(source, "wb") as file:
        file.write(data)
    convert(source, drawing, "--from", "collapsed")
    return drawing


def convert(source, drawing, *options):
    subprocess.run([KILN, "convert", source, "-o", drawing, "--to", "svg", *options], check=True)


def frame(page, name):
    """Where the first frame of that name is: x, y, width, height; None if it is not shown."""
    return page.run("""(() => {
        const frame = document.documentElement.kiln.frames.find((f) => f.name === %r);
        if (frame.hidden) return null;
        const box = frame.rect.getBoundingClientRect();
        return [box.x, box.y, box.width, box.height];
    })()""" % name)


def state(page, what):
    return page.run("document.documentElement.kiln.state()." + what)


def click(page, name):
    x, y, w, h = frame(page, name)
    page.mouse(x + w / 2, y + h / 2)


def test_zoom(page):
    whole = frame(page, "main")[2]
    check("main is as wide as the window allows", whole > 1280 - 80)
    check("parse is two fifths", abs(frame(page, "parse")[2] / whole - 0.4) < 0.01)
    click(page, "parse")
    equal("a click zooms", state(page, "zoomed.name"), "parse")
    check("the zoomed frame fills the width", abs(frame(page, "parse")[2] - whole) < 2)
    check("its callers stay above it", abs(frame(page, "serve")[2] - whole) < 2)
    equal("its neighbours are gone", frame(page, "draw"), None)
    check("the zoom is named", "Zoomed to parse" in page.run(
        "document.querySelector('#crumb').textContent"))
    page.screenshot("flame-zoomed")
    page.press("Escape")
    equal("Escape goes back", state(page, "zoomed.name"), "all")
    check("everything is as before", abs(frame(page, "main")[2] - whole) < 1)


def test_find(page):
    page.press("/")
    check("/ puts the cursor into the field", page.run("document.activeElement.tagName") == "input")
    for letter in "scan":
        page.press(letter)
    equal("two frames match", state(page, "hits.length"), 2)
    equal("their share is shown", page.run(
        "[...document.querySelectorAll('text.end')].map((t) => t.textContent).filter((t) =>"
        " t === '50.0 %').length"), 1)
    page.screenshot("flame-found")
    page.press("Enter")
    equal("Enter goes to the first", state(page, "chosen.parent.name"), "parse")
    page.press("n")
    equal("n to the next", state(page, "chosen.parent.name"), "idle")
    page.press("N")
    equal("N back", state(page, "chosen.parent.name"), "parse")
    page.press("Escape")
    equal("Escape ends the search", state(page, "hits.length"), 0)
    equal("a nested match counts once", page.run(
        "document.documentElement.kiln.search('parse|scan').share"), 60)
    equal("what is no expression is a text", page.run(
        "document.documentElement.kiln.search('par(').count"), 0)
    equal("a capital asks for capitals", page.run(
        "document.documentElement.kiln.search('SCAN').count"), 0)
    page.run("document.documentElement.kiln.search('')")
    page.press("f", modifiers=CTRL)
    check("Ctrl-F is the same field", page.run("document.activeElement.tagName") == "input")
    page.press("Escape")


def test_keys(page):
    page.run("document.documentElement.kiln.choose(document.documentElement.kiln.frames[0])")
    for key, wanted in (("ArrowDown", "main"), ("ArrowDown", "serve"), ("ArrowRight", "idle"),
                        ("ArrowLeft", "serve"), ("ArrowDown", "draw"), ("ArrowUp", "serve")):
        page.press(key)
        equal(key, state(page, "chosen.name"), wanted)
    page.press("Enter")
    equal("Enter zooms", state(page, "zoomed.name"), "serve")
    page.press("0")
    equal("0 shows all", state(page, "zoomed.name"), "all")
    page.call("Browser.grantPermissions",
              permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
    page.press("c")
    equal("c copies the name", page.run("navigator.clipboard.readText()"), "serve")
    above = frame(page, "main")[1] < frame(page, "scan")[1]
    page.press("i")
    check("i turns it over", above and frame(page, "main")[1] > frame(page, "scan")[1])
    page.press("i")


def test_tip(page):
    x, y, w, h = frame(page, "draw")
    page.mouse(x + w / 2, y + h / 2, click=False)
    tip = page.run("[...document.querySelectorAll('.tip text')].map((t) => t.textContent).join('|')")
    check("the tip says name and cost: " + tip, tip.startswith("draw|40.0 % (400), self 40.0 %"))
    page.screenshot("flame-tip")


def test_dark(page):
    colour = "getComputedStyle(document.querySelector('.bg')).fill"
    page.dark(True)
    equal("dark is dark", page.run(colour), "rgb(19, 17, 16)")
    page.screenshot("flame-dark")
    page.dark(False)
    equal("light is light", page.run(colour), "rgb(250, 249, 247)")


def test_without_script(page, path):
    page.call("Emulation.setScriptExecutionDisabled", value=True)
    page.open(path)
    root = page.call("DOM.getDocument", depth=-1)["root"]["nodeId"]
    count = lambda css: len(page.call("DOM.querySelectorAll", nodeId=root, selector=css)["nodeIds"])
    equal("without script every frame has its title", count("#frames > g > title"), 9)
    check("and a label", count("#frames > g > text:not(.pc)") >= 8)
    page.screenshot("flame-without-script")
    page.call("Emulation.setScriptExecutionDisabled", value=False)


def test_hostile(page, folder):
    lines = "".join("root;%s %d\n" % (name.replace(";", ":"), 10 + i)
                    for i, name in enumerate(HOSTILE))
    page.open(draw(folder, "hostile.folded", lines.encode() + b"root;\xff\xfe\xc3 5\n"))
    equal("hostile names are frames", page.run("document.documentElement.kiln.frames.length"),
          len(HOSTILE) + 3)
    page.run("document.documentElement.kiln.frames.forEach((f) => {"
             "document.documentElement.kiln.choose(f); document.documentElement.kiln.zoomTo(f); })")
    page.settle()
    x, y, w, h = frame(page, "root")
    page.mouse(x + w / 2, y + h / 2, click=False)
    equal("nothing of them ran", page.run("window.pwned === undefined"), True)
    equal("there is one script", page.run("document.querySelectorAll('script').length"), 1)
    equal("and no image", page.run("document.querySelectorAll('img').length"), 0)
    names = page.run("document.documentElement.kiln.frames.map((f) => f.name)")
    check("they read as they are written", HOSTILE[0] in names and HOSTILE[2] in names)
    equal("nobody complained", page.complaints(), [])
    page.screenshot("flame-hostile")


def test_large(page, folder):
    source = os.path.join(DATA, "pprof/large.cpu.pb.gz")
    if not os.path.exists(source):
        print("not tried: the large profile is not here")
        return
    drawing = os.path.join(folder, "large.svg")
    convert(source, drawing)
    check("the large drawing is below 2 MB", os.path.getsize(drawing) < 2000000)
    page.open(drawing)
    check("it is alive", page.run("document.documentElement.kiln.frames.length") > 1000)
    click(page, "main.next")
    equal("and zooms", state(page, "zoomed.name"), "main.next")
    equal("without complaint", page.complaints(), [])
    page.screenshot("flame-large")


def main():
    if not os.access(KILN, os.X_OK):
        skip("no program to test: " + KILN)
    with tempfile.TemporaryDirectory() as folder, Browser() as page:
        path = draw(folder, "stacks.folded", STACKS.encode())
        page.open(path)
        page.screenshot("flame")
        test_zoom(page)
        test_find(page)
        test_keys(page)
        test_tip(page)
        test_dark(page)
        equal("nothing but the file was asked for", len(page.requests()), 1)
        equal("nothing was complained about", page.complaints(), [])
        test_without_script(page, path)
        test_hostile(page, folder)
        test_large(page, folder)


if __name__ == "__main__":
    sys.exit(main())
