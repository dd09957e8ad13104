#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The plain page in a real browser, on a real server: choose, read, zoom, find, brush, come back by the address."""
import json
import os
import sys
import time
import urllib.parse

from browser import Browser, check, equal

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from drawn_otlp import Drawn  # noqa: E402
from kiln_server import KilnServer  # noqa: E402

MINUTE = 60_000_000_000
NOW = time.time_ns() // MINUTE * MINUTE
HOSTILE = "<img src=x onerror='window.pwned=1'>"
OLD = """
    main;serve;parse;scan       30
    main;serve;parse;unquote    10
    main;serve;draw             40
    main;idle;scan              20
"""
NEW = OLD + "main;serve;" + HOSTILE + " 100\n"


def fill(server):
    drawn = Drawn()
    for minute in range(50, 0, -1):
        version, text = ("1.0", OLD) if minute > 20 else ("1.1", NEW)
        drawn.profile({"service.name": "shop", "service.version": version}, NOW - minute * MINUTE, text)
        drawn.profile({"service.name": "search"}, NOW - minute * MINUTE, "main;find 7\nmain;rank 3\n")
    drawn.profile({"service.name": "shop"}, NOW - MINUTE, "main;serve 4096\n", kind=("alloc_space", "bytes"), period_ns=1)
    drawn.send(server)


class Page:
    def __init__(self, browser, server):
        self.browser, self.url = browser, f"http://127.0.0.1:{server.http}/"

    def open(self, **scope):
        self.browser.open(self.url + ("?" + urllib.parse.urlencode(scope, doseq=True) if scope else ""))
        self.wait()

    def wait(self):
        """Until every question is answered and drawn."""
        self.browser.run("""new Promise((done, fail) => {
            const end = Date.now() + 30000;
            const look = () => !waiting && document.readyState === "complete" ? done()
                : Date.now() > end ? fail("it still waits") : setTimeout(look, 20);
            setTimeout(look, 50);
        })""")

    def text(self, name):
        return self.browser.run(f"document.getElementById({json.dumps(name)}).textContent")

    def scope(self):
        return urllib.parse.parse_qs(urllib.parse.urlsplit(self.browser.run("location.href")).query)

    def frame(self, *path):
        """Where the frame at the end of a path is on the screen: x, y, width, height."""
        return self.browser.run("""(() => {
            const at = %s.reduce(childNamed, 0), canvas = document.getElementById("flame").getBoundingClientRect();
            const [x, y, w] = place(at, canvas.width);
            return [canvas.x + x, canvas.y + y, w, ROW];
        })()""" % json.dumps(path))

    def pixel(self, x, y):
        """The colour of the flame graph at a place of the screen."""
        return self.browser.run("""(() => {
            const canvas = document.getElementById("flame"), box = canvas.getBoundingClientRect(), scale = canvas.width / box.width;
            return [...canvas.getContext("2d").getImageData((%f - box.x) * scale, (%f - box.y) * scale, 1, 1).data];
        })()""" % (x, y))

    def rows(self):
        return self.browser.run("[...document.querySelectorAll('#rows tr')].map((r) => [...r.cells].map((c) => c.textContent))")


def test_first_sight(page):
    page.open()
    equal("of several services, all are shown", page.browser.run("document.getElementById('service').value"), "*")
    equal("each with its share, the largest first", page.browser.run(
        "[...document.querySelectorAll('#services tr')].map((r) => [...r.cells].map((c) => c.textContent))"),
        [["shop", "93.3 %"], ["search", "6.7 %"]])
    page.browser.run("document.querySelector('#services button').click()")
    page.wait()
    equal("and a click away", page.scope()["service"], ["shop"])
    check("where it stands alone", page.browser.run("document.getElementById('shares').hidden"))
    equal("all services are offered", page.browser.run("[...document.getElementById('service').options].map((o) => o.value)"),
          ["*", "search", "shop"])
    page.browser.run("(() => { const s = document.getElementById('service'); s.value = '*'; s.onchange(); })()")
    page.wait()
    check("or all of them at once", page.text("sentence").startswith("all services: ") and
          {"find", "draw"} <= {row[0] for row in page.rows()})
    page.browser.run("(() => { const s = document.getElementById('service'); s.value = 'shop'; s.onchange(); })()")
    page.wait()
    equal("the choice is in the address", page.scope()["service"], ["shop"])
    equal("types have names that people use", page.browser.run(
        "[...document.getElementById('type').options].map((o) => o.textContent).sort()"), ["CPU time", "bytes allocated"])


def test_shares(page):
    # thirty profiles of 100 observations, twenty of 200: 7,000, of which parse has 50 x 40
    page.open(service="shop")
    whole = page.frame()[2]
    for path, wanted in ((("main",), 1), (("main", "serve"), 6000 / 7000), (("main", "serve", "parse"), 2000 / 7000),
                         (("main", "idle"), 1000 / 7000), (("main", "serve", HOSTILE), 2000 / 7000)):
        check("/".join(path)[:30] + " is as wide as its share", abs(page.frame(*path)[2] / whole - wanted) < 1e-3)
    x, y, w, h = page.frame("main", "serve", "draw")
    inside, beside = page.pixel(x + w / 2, y + 2), page.pixel(x + w / 2, page.frame()[1] + 200)
    check("and it is painted there", inside[3] == 255 and beside[3] == 0)
    check("the sentence says how much and where", "1.17 min in all; 35.7 % in scan itself" in page.text("sentence"))
    equal("the table is by self", [row[0] for row in page.rows()][0], "scan")
    found = {row[0]: row[1:] for row in page.rows()}
    equal("draw", found["draw"], ["28.6 %", "28.6 %"])
    equal("scan, in two places", found["scan"], ["35.7 %", "35.7 %"])
    equal("main", found["main"], ["0.0 %", "100.0 %"])
    page.browser.screenshot("page")


def test_zoom(page):
    x, y, w, h = page.frame("main", "serve", "parse")
    page.browser.mouse(x + w / 2, y + h / 2)
    equal("a click zooms", page.scope()["zoom"], ["main", "serve", "parse"])
    check("it fills the width", abs(page.frame("main", "serve", "parse")[2] - page.frame()[2]) < 1)
    check("with its shares", abs(page.frame("main", "serve", "parse", "scan")[2] / page.frame()[2] - 0.75) < 1e-3)
    check("the detail names it", page.text("detail").startswith("parse") and "28.6 %" in page.text("detail"))
    page.browser.screenshot("page-zoomed")
    page.browser.open(page.browser.run("location.href"))
    page.wait()
    check("the address brings it back", abs(page.frame("main", "serve", "parse")[2] - page.frame()[2]) < 1)
    page.browser.press("Escape")
    equal("Escape goes to its caller", page.scope()["zoom"], ["main", "serve"])
    page.browser.press("0")
    check("0 shows all", "zoom" not in page.scope())


def test_keys_and_find(page):
    for key in ("ArrowDown", "ArrowDown", "ArrowDown"):
        page.browser.press(key)
    check("arrows walk", page.text("detail").split()[0] in ("parse", "draw", HOSTILE.split()[0]))
    page.browser.press("/")
    for letter in "scan":
        page.browser.press(letter)
    equal("find counts frames and their share", page.text("found"), "2 frames, 35.7 %")
    equal("and narrows the table", [row[0] for row in page.rows()], ["scan"])
    page.browser.screenshot("page-found")
    page.browser.press("Enter")
    check("Enter goes to the first", page.text("detail").startswith("scan"))
    page.browser.press("Escape")
    equal("Escape ends it", page.text("found"), "")
    x, y, w, h = page.frame("main", "serve", "draw")
    page.browser.mouse(x + w / 2, y + h / 2, click=False)
    tip = page.text("tip")
    check("the tip says name, share and value: " + tip, tip.startswith("draw\n28.6 % (20") and "self 28.6 %" in tip)
    page.browser.run("document.querySelector('th button[data-by=name]').click()")
    names = [row[0] for row in page.rows()]
    equal("the table sorts by name", names, sorted(names))


def test_brush(page):
    page.open(service="shop", **{"from": str((NOW - 50 * MINUTE) // 1_000_000), "until": str(NOW // 1_000_000)})
    box = page.browser.run("(() => { const b = document.getElementById('timeline').getBoundingClientRect(); return [b.x, b.y, b.width]; })()")
    page.browser.drag(box[0] + 2, box[1] + 40, box[0] + box[2] * 0.5)
    page.wait()
    check("a part of the timeline is in the address", "part" in page.scope())
    whole = page.frame()[2]
    check("of the old version only: draw has 40 %", abs(page.frame("main", "serve", "draw")[2] / whole - 0.4) < 1e-3)
    check("and the new function is not there", HOSTILE not in [row[0] for row in page.rows()])
    page.browser.screenshot("page-brushed")
    page.browser.run("history.back()")
    page.wait()
    check("back shows all again", "part" not in page.scope() and abs(page.frame("main", "serve", "draw")[2] / whole - 2 / 7) < 1e-3)


def test_selector_and_mistakes(page):
    page.open(service="shop", where='"service.version"="1.1"')
    check("labels choose", abs(page.frame("main", "serve", HOSTILE)[2] / page.frame()[2] - 0.5) < 1e-3)
    page.open(service="shop", where='pod="')
    check("a mistake is said: " + page.text("sentence"), page.text("sentence").startswith("The question failed"))
    page.open(service="shop", **{"from": "yesterdy"})
    check("so is a wrong time: " + page.text("sentence"), 'from: not a time: "yesterdy"' in page.text("sentence"))
    page.open(service="shop", **{"from": "now-1h30m"})
    check("a time of two parts is one: " + page.text("sentence"), page.text("sentence").startswith("shop: "))
    page.open(service="nobody")
    equal("an unknown service is said", page.text("sentence"), "There is no service nobody.")
    page.open(service="shop", **{"from": "now-7d", "until": "now-6d"})
    check("an empty range says where data is: " + page.text("sentence"), "Nothing of shop" in page.text("sentence") and
          "the last is of" in page.text("sentence"))


def test_looks(page):
    page.open(service="shop")
    colour = "getComputedStyle(document.body).backgroundColor"
    page.browser.dark(True)
    equal("dark is dark", page.browser.run(colour), "rgb(19, 17, 16)")
    page.browser.settle()
    page.browser.screenshot("page-dark")
    page.browser.dark(False)
    equal("light is light", page.browser.run(colour), "rgb(250, 249, 247)")
    equal("nothing of the names ran", page.browser.run("window.pwned === undefined"), True)
    equal("nothing but this server was asked", [u for u in page.browser.requests() if not u.startswith((page.url, "data:"))], [])
    equal("nobody complained", page.browser.complaints(), [])
    page.browser.call("Emulation.setScriptExecutionDisabled", value=True)
    page.browser.open(page.url)
    page.browser.screenshot("page-without-script")
    page.browser.call("Emulation.setScriptExecutionDisabled", value=False)
    page.browser.open(page.url)


def test_many_nodes(page, server):
    """16,384 nodes: drawing one picture stays far below what a person notices."""
    drawn = Drawn()
    drawn.profile({"service.name": "wide"}, NOW - MINUTE, "".join(
        f"main;a{i % 16};b{i % 256};c{i} {1 + i}\n" for i in range(20000)))
    drawn.send(server)
    page.open(service="wide")
    check("it is drawn, and says what was folded: " + page.text("note"), "largest totals" in page.text("note"))
    took = page.browser.run("(() => { const t = performance.now(); for (let i = 0; i < 10; i++) drawFlame(); return (performance.now() - t) / 10; })()")
    print(f"one drawing of 16,384 nodes: {took:.1f} ms")


def test_empty(browser):
    with KilnServer() as server:
        page = Page(browser, server)
        page.open()
        check("an empty server says what to do", "kiln push --server" in page.text("commands") and
              not browser.run("document.getElementById('empty').hidden"))
        browser.screenshot("page-empty")


def main():
    with Browser() as browser, KilnServer() as server:
        fill(server)
        page = Page(browser, server)
        for test in (test_first_sight, test_shares, test_zoom, test_keys_and_find, test_brush, test_selector_and_mistakes, test_looks):
            test(page)
        test_many_nodes(page, server)
        test_empty(browser)


if __name__ == "__main__":
    sys.exit(main())
