#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`kiln query` and `kiln annotate` against a real server: tables, trees, files, comparisons, thresholds, refusals."""

import http.server
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time

SOURCE = pathlib.Path(os.environ["KILN_SOURCE_DIR"])
sys.path.insert(0, str(SOURCE / "tests/support"))
from drawn_otlp import Drawn  # noqa: E402
from kiln_server import KILN, KilnServer  # noqa: E402

NOW = int(time.time())
SHOP = 'cpu{service_name="shop"}'


def kiln(*words, code=0, **more):
    done = subprocess.run([KILN, *map(str, words)], capture_output=True, text=True, timeout=120, **more)
    assert done.returncode == code, f"{words}: exit {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def check(got, wanted):
    assert got == wanted, f"{got!r} is not {wanted!r}"


def has(text, *parts):
    for part in parts:
        assert re.search(part, text, re.M), f"{part!r} is not in\n{text}"


# ---- what a server knows ----


def fill(folder):
    """Version 1.1 half an hour ago, 1.2 a quarter; stacks that are easy to add up."""
    stacks = {"1.1": "main;parse 300\nmain;read 100\n", "1.2": "main;parse 100\nmain;read 100\nmain;log;write 600\n"}
    for number, (version, text) in enumerate(stacks.items()):
        path = folder / f"{version}.folded"
        path.write_text(text)
        meta = {"service": "shop", "version": version, "time": NOW - 1800 + 900 * number, "labels": {"git.commit": f"c{number}"}}
        path.with_suffix(".json").write_text(json.dumps(meta))
        kiln("push", "-q", path)


def top():
    said = kiln("query", "{service_name='shop'}", "-n", 2)
    has(said, r"^ *self +self% ", r"^ *600 +50\.0% .* write", r"^ *400 +33\.3% .* parse", r"\.\.\. 3 more")
    has(kiln("query", "{service_name='shop'}", "--sort", "total"), r"% .*\n *\. .* 1,200 +100\.0% .* main")
    rows = json.loads(kiln("query", "{service_name='shop'}", "--json"))
    check((rows["total"], rows["top"]["rows"][0]["name"]), (1200, "write"))
    only = json.loads(kiln("query", "{service_name='shop'}", "--function", "read", "--json"))
    check(only["total"], 200)
    only = json.loads(kiln("query", "{service_name='shop'}", "--with", "^p", "--json", "--until", "now-20m"))
    check(only["total"], 300)


def gap(server):
    """A service that waits: wall-clock time of both parts, and what lies between."""
    drawn, at, bank = Drawn(), (NOW - 600) * 10**9, {"service.name": "bank"}
    drawn.profile(bank, at, "main;sum 100\nmain;ask 10")
    drawn.waits(bank, at, "main;ask;read 4000 # thread.state=blocked wait.reason=socket\n"
                          "main;sum;lock 800 # thread.state=blocked wait.reason=futex\nmain;sum 100 # thread.state=runnable")
    drawn.send(server)
    has(kiln("query", 'wall{service_name="bank"}'), r"^Wall-clock time: 6s in 10s \(0\.6 threads\)", r"^ *4s +66\.7% .* read")
    has(kiln("query", "{service_name='bank'}", "--types"), "^wall:wall:nanoseconds:wall:nanoseconds")
    said = kiln("query", 'cpu{service_name="bank"}', "--gap")
    has(said, r"^on CPU 1\.1s, blocked 4\.8s \(socket 4s, futex 800ms\), runnable 100ms$", r"^ *off CPU +% +CPU",
        r"^ *4s +81\.6% +100ms +\. +4s +socket +ask", r"^ *900ms +18\.4% +1s +100ms +800ms +futex +sum")
    has(kiln("query", "{service_name='bank'}", "--gap", "--sort", "self", "-n", 1), r"^ *4s .* socket +read", r"\.\.\. 4 more")
    check(json.loads(kiln("query", "{service_name='bank'}", "--gap", "--json"))["overall"]["gap"], 4_900_000_000)
    has(kiln("query", "{service_name='shop'}", "--gap", code=3), "nothing is known of waits")


def tree():
    said = kiln("query", "{service_name='shop'}", "--tree")
    has(said, r"100\.0 % +1,200 +0 .* main", r"50\.0 % +600 +0 .* log", r"50\.0 % +600 +600 .* write")


def series():
    said = kiln("query", "{service_name='shop'}", "--series", "--by", "service.version", "--step", "5m")
    has(said, r'^service\.version="1\.1" +400 .*█', r'^service\.version="1\.2" +800 .*█', r"a bucket is 5min")


def lines(folder):
    frames = [{"name": "main", "file": "/build/j.c", "line": 9}, {"name": "parse", "file": "/build/j.c", "line": 3},
              {"name": "parse", "file": "/build/j.c", "line": 9}, {"name": "parse", "file": "x.c", "line": 1}]
    profile = {"type": "sampled", "name": "a", "unit": "none", "startValue": 0, "endValue": 9, "samples": [[0, 1], [0, 2], [0, 3]], "weights": [7, 2, 1]}
    path = folder / "j.json"
    path.write_text(json.dumps({"$schema": "https://www.speedscope.app/file-format-schema.json", "shared": {"frames": frames}, "profiles": [profile]}))
    kiln("push", "-q", "--service", "lines", path)
    said = kiln("query", "{service_name='lines'}", "--lines", "--function", "parse")
    has(said, r"^/build/j\.c$", r"^ +1 +a$", r"^ +2 +if \(b\)$", r"^ *7 +70\.0% +7 +70\.0% +3 +    c\(\);$", r"^ *2 +20\.0% +2 +20\.0% +9 +i$", r"^ +\.\.\.$", r"there is one of this name in x\.c too")
    assert not re.search(r"^ +12 ", said, re.M), said
    line = json.loads(kiln("query", "{service_name='lines'}", "--lines", "-f", "parse", "--json"))["lines"][0]
    check({name: line[name] for name in ("line", "self", "total", "self_share", "total_share")},
          {"line": 3, "self": 7, "total": 7, "self_share": 0.7, "total_share": 0.7})
    has(kiln("query", "{service_name='lines'}", "--lines", "-f", "main"), r"^ *\. +\. +10 +100\.0% +9 +i$")
    has(kiln("query", "{service_name='lines'}", "--lines", code=2), "--lines needs one --function NAME")
    has(kiln("query", "{service_name='lines'}", "--lines", "-f", "none", code=3), "no profiles with such functions")


def lists():
    has(kiln("query", "--services"), r"^shop +1 +2 ")
    has(kiln("query", "--types"), r"^\S+:\S*:\S*:\S*:\S* +2 ")
    has(kiln("query", "--labels"), r"^service\.version$", r"^service_name$")
    has(kiln("query", "--values", "service.version"), r"^1\.1 +1 ", r"^1\.2 +1 ")
    has(kiln("query", "{service_name='shop'}", "--profiles"), r"^\S+Z +\S* *800 .*shop", r"^\S+Z +\S* *400 .*shop")
    has(kiln("query", "{service_name='shop'}", "--spans"), "there are no spans")


def files(folder):
    out = folder / "out.pb.gz"
    kiln("query", "{service_name='shop'}", "-o", out)
    check(json.loads(kiln("top", "--json", out))["total"], 1200)
    check(sorted(kiln("query", "{service_name='shop'}", "--format", "collapsed").splitlines()),
          ["main;log;write 600", "main;parse 400", "main;read 200"])
    kiln("query", "{service_name='shop'}", "-o", folder / "out.svg")
    has((folder / "out.svg").read_text(), "<svg", "write")
    kiln("query", "{service_name='shop'}", "--version", "1.2", "--against-version", "1.1", "-o", folder / "diff.svg")
    has((folder / "diff.svg").read_text(), "<svg", "write")
    has(kiln("query", "{}", "-o", folder / "out.what", code=2), "says no format")
    has(kiln("query", "{}", "--format", "what", code=2), "no format of an answer")


# ---- comparisons and thresholds ----


def comparisons():
    words = ("query", "{service_name='shop'}", "--version", "1.2", "--against-version", "1.1", "--normalize", "none")
    said = kiln(*words)
    has(said, r"grew by 100\.0%", r"Grew:\n.*\n *\+600 .* write", r"Shrank:\n.*\n *-200 .* parse")
    assert not re.search(r" read$", said, re.M), said  # it did not change
    has(kiln(*words, "--fail-on-growth", 120, code=1), "write grew by 150.0% of the whole, more than 120%")
    kiln(*words, "--fail-on-growth", 151)
    has(kiln("query", "{service_name='shop'}", "--from", "now-20m", "--against", "now-40m..now-20m", "--normalize", "none"),
        r"Grew:\n.*\n *\+600 .* write")
    has(kiln("query", "{service_name='shop'}", "--from", "now-20m", "--diff", "--normalize", "none"), r"\+600 .* write")
    has(kiln("query", "{service_name='shop'}", "--against", "now-9h..now-8h", code=3), "no profiles are chosen")
    has(kiln("query", "{}", "--against", "now", code=2), r"FROM\.\.UNTIL")
    has(kiln("query", "{}", "--fail-on-growth", 5, code=2), "needs --diff")


def thresholds():
    words = ("query", "{service_name='shop'}", "--function")
    has(kiln(*words, "write", "--fail-above", "40%", code=1), r"^write: 50\.00% ±\S+% of the whole, which is above 40%")
    has(kiln(*words, "write", "--fail-above", 51), "not above 51%")
    has(kiln(*words, "main", "--fail-above", 10, code=1), "100.00%")
    has(kiln(*words, "main", "--fail-above", 10, "--self"), r"0\.00% ")
    has(kiln(*words, "writ", "--fail-above", 10), r"writ did not run \(did you mean write\?\)")
    said = json.loads(kiln(*words, "write", "--fail-above", 10, "--json", code=1))
    check((said["function"], said["share"], said["failed"]), ("write", 0.5, True))
    has(kiln("query", SHOP, "--fail-above", 10, code=2), "needs --function")
    nobody = ("query", '{service_name="nobody"}')
    has(kiln(*nobody, "-f", "x", "--fail-above", 10, code=3), "no profiles are chosen")


def nothing(folder):
    """A list of nothing is a list; what else has nothing to answer from is neither well nor above a threshold."""
    for words in ("--types",), ("--labels",), ("--profiles",), ("--values", "pod"):
        has(kiln("query", '{service_name="nobody"}', *words), "there are no ")
    for words in (), ("--tree",), ("--series",), ("--json",), ("--tree", "--json"):
        for selector in '{service_name="nobody"}', "a:b:c:d:e{}":
            has(kiln("query", selector, *words, code=3), "no profiles are chosen")
    has(kiln("query", "{service_name='shop'}", "-f", "nothing", code=3), "no profiles with such functions")
    for words in ("--format", "pprof"), ("-o", folder / "nothing.svg"):
        check(kiln("query", "{service_name='shop'}", "-f", "nothing", *words, code=3).splitlines(),
              ["kiln: no profiles are chosen (`kiln query --services` shows what there is)"])
    assert not (folder / "nothing.svg").exists()
    has(kiln("query", "{service_name='shop'}", "--deployment", "9.9", "--against-deployment", "1.1", code=3), "no deployment is 9.9")


def deployments():
    has(kiln("query", "--deployments", "shop"), r"Z +\. +shop +1\.2 +found", r"Z +\S+Z +shop +1\.1 +found")
    said = json.loads(kiln("annotate", "--service", "shop", "--version", "1.2", "--name", "spring", "--json", "--time",
                           NOW - 901, "cache prices"))
    check((said["service"], said["version"], said["text"]), ("shop", "1.2", "cache prices"))
    has(kiln("query", "--deployments", "shop"), r"shop +1\.2 +told .* spring +cache prices")
    has(kiln("query", "{service_name='shop'}", "--deployment", "spring", "--against-deployment", "1.1", "--normalize", "none"),
        r"Grew:\n.*\n *\+600 .* write")
    has(kiln("annotate", "load test", "--tag", "load", "--time", "now-5m", "--until", "now"), r"^annotation \S+ at ")
    has(kiln("annotate", code=2), "what happened")
    has(kiln("annotate", "--version", "1", code=2), "whose version")


# ---- refusals ----


def refusals():
    has(kiln("query", "cpu{service_name=", code=2), "1:18: parse error: unexpected end of input inside braces")
    has(kiln("query", "wall:wall:nanoseconds{service_name='shop'}", code=2), "no type is wall:wall:nanoseconds; there are ")
    has(kiln("query", "--services", SHOP, code=2), "give no selector")
    has(kiln("query", "--deployments", SHOP, code=2), "the name of a service")
    has(kiln("query", "{}", "--from", "soon", code=2), "from")
    has(kiln("query", "--tree", "--series", code=2), "one thing at a time")
    has(kiln("query", "-s", "unix:/nowhere/kiln.sock", code=4), "/nowhere/kiln.sock")
    only_otlp = os.environ["KILN_OTLP_ONLY"]
    has(kiln("query", "-s", only_otlp, code=4), re.escape(only_otlp), "no such path: .* a Kiln server")


def bombs(folder):
    """An expression that would match for ever ends with a sentence, in selectors and of function names."""
    evil = "a" * 60 + "!b!b"
    path = folder / "evil.folded"
    path.write_text(f"main;{evil} 1\nmain;x 1\n")
    kiln("push", "-q", "--service", evil, "--time", NOW - 60, path)
    bomb = "(a*)*(a*)*(a*)*b"
    has(kiln("query", '{service_name=~"%s"}' % bomb, "--labels", code=2), "takes too many steps")
    has(kiln("query", '{service_name=~"%s"}' % bomb, code=2), "takes too many steps")
    has(kiln("query", '{service_name="%s"}' % evil, "--with", bomb, code=2), "takes too many steps")


class Liar(http.server.BaseHTTPRequestHandler):
    """Answers that no server of ours gives."""
    answer = b""

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(self.answer)))
        self.end_headers()
        self.wfile.write(self.answer)

    def log_message(self, *_):
        pass


def lies():
    """Whatever comes back, it ends with a sentence and a code."""
    server = http.server.HTTPServer(("127.0.0.1", 0), Liar)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    graph = {"names": ["total"], "name": [0, 7], "depth": [0, 1], "self": [0, 1], "total": [1, 1]}
    for answer, words, code in (
            (b"<html>", [], 3), (b"[]", [], 3), (b"{}", [], 3), (b'{"top": {"rows": [3]}}', [], 3),
            (b'{"basis": {"profiles": 1}, "top": {"rows": [{"self": "x"}]}}', [], 0),
            (json.dumps({"basis": {"profiles": 1}, "flamegraph": graph}).encode(), ["--tree"], 3),
            (json.dumps({"basis": {"profiles": 1}, "flamegraph": {"depth": [0, 5]}}).encode(), ["--tree"], 3),
            (b'{"series": {"buckets": 1e300, "series": [{"bucket": [-1, 1e300], "value": [1]}]}}', ["--series"], 0),
            (b'{"total": 1, "lines": [{"line": 9007199254740992, "self": 1}, {"line": -5}, {"line": 1e300}], "text": {"first": -1e300, "lines": ["a"]}}',
             ["--lines", "-f", "x"], 0),
            (b'{"from": "yesterday"}', [], 3)):
        Liar.answer = answer
        kiln("query", "-s", url, *words, code=code)
    server.shutdown()


def main():
    with tempfile.TemporaryDirectory() as source, KilnServer("--source", source) as server, tempfile.TemporaryDirectory() as folder:
        os.chmod(source, 0o755)  # of root, and for the server's user to read
        pathlib.Path(source, "j.c").write_text("a\nif (b)\n\tc();\nd\ne\nf\ng\nh\ni\nj\nk\nl\n")
        os.environ["KILN_SERVER"] = f"http://127.0.0.1:{server.http}"
        os.environ["KILN_OTLP_ONLY"] = f"http://127.0.0.1:{server.otlp_http}"
        folder = pathlib.Path(folder)
        fill(folder)
        top()
        tree()
        series()
        lists()
        lines(folder)
        files(folder)
        comparisons()
        thresholds()
        nothing(folder)
        deployments()
        refusals()
        gap(server)
        bombs(folder)
    lies()


if __name__ == "__main__":
    main()
