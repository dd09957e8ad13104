#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""/debug/pprof of a native program, for everybody who knows it from Go.  All stories are told at once.

A program with something of every profile runs under libkiln.  `go tool pprof` fetches each of them, all at once,
and must name the functions; scrapers' default paths are asked as Alloy and Parca do, and held against what these
check; a real `kiln server` scrapes with its ordinary configuration; many clients, clients that send rubbish, and
clients that dawdle must not be in each other's way.
"""
import concurrent.futures
import http.client
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

SOURCES = pathlib.Path(os.environ.get("KILN_SOURCE_DIR", ".")).resolve()
sys.path.insert(0, str(SOURCES / "tests/support"))
from checks import check, exit_code  # noqa: E402
from kiln_server import KILN, KilnServer  # noqa: E402

BUILD = pathlib.Path(os.environ.get("KILN_BUILD_DIR", "build")).resolve()
LIBKILN = os.environ.get("LIBKILN", str(BUILD / "libkiln.so"))
PROGRAM = BUILD / "inproc/pprof_all"
MIB = 1 << 20
# path: sample types, and the function that must be in there
PROFILES = {
    "profile?seconds=1": ("samples/count cpu/nanoseconds", "burn_cpu"),
    "../fgprof?seconds=1": ("samples/count time/nanoseconds", "nap"),
    "wall?seconds=1": ("samples/count wall/nanoseconds", "nap"),
    "heap": ("alloc_objects/count alloc_space/bytes inuse_objects/count inuse_space/bytes", "keep_blocks"),
    "allocs": ("alloc_objects/count alloc_space/bytes inuse_objects/count inuse_space/bytes", "churn_blocks"),
    "block": ("contentions/count delay/nanoseconds", "wait_for_signal"),
    "mutex": ("contentions/count delay/nanoseconds", "wait_for_lock"),
    "mutex_holders": ("contentions/count delay/nanoseconds", "wait_for_lock"),
    "goroutine": ("goroutine/count", ""),
    "threadcreate": ("threadcreate/count", "make_threads"),
    "event_loop": ("lag/nanoseconds", "stall_loop"),
    "allocs?seconds=1": ("alloc_objects/count alloc_space/bytes inuse_objects/count inuse_space/bytes",
                         "churn_blocks"),
}


class Program:
    """The program under libkiln, and where it serves."""

    def __init__(self, folder, listen="127.0.0.1:0", command=(PROGRAM,), **env):
        file = folder / "address"
        file.unlink(missing_ok=True)
        env = {"LD_PRELOAD": LIBKILN, "KILN_PPROF_LISTEN": listen, "KILN_PPROF_ADDRESS_FILE": str(file),
               "KILN_ALLOC_BYTES": "4096", "KILN_SOCKET": str(folder / "nobody")} | env
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, env=os.environ | env)
        assert self.process.stdout.readline() == "ready\n", self.process.stderr.read()
        self.address = file.read_text().strip() if file.exists() else None

    def tell(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def url(self, path):
        return f"http://{self.address}/debug/pprof/{path}".replace("pprof/../", "")

    def get(self, path, headers=None):
        """Status, headers, body."""
        request = urllib.request.Request(self.url(path), headers=headers or {})
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, answer.headers, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.headers, error.read()

    def end(self):
        """It ends by itself; what it said on standard error."""
        said = self.process.communicate(timeout=60)[1]
        check("the program ends well", self.process.returncode == 0, said)
        return said


def pprof(folder, *words):
    done = subprocess.run(["go", "tool", "pprof", *words], capture_output=True, text=True, check=False,
                          env=os.environ | {"PPROF_TMPDIR": str(folder)})
    return done.stdout if done.returncode == 0 else f"failed: {done.stderr}"


def kiln(folder, body, *words):
    """What kiln says of an answer."""
    with tempfile.NamedTemporaryFile(dir=folder, suffix=".pb.gz") as file:
        file.write(body)
        file.flush()
        done = subprocess.run([KILN, *words, file.name], capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else f"failed: {done.stderr}"


def stacks(folder, body, sample_type):
    """Stack -> value of one type."""
    rows = kiln(folder, body, "convert", "--to", "collapsed", "-t", sample_type, "-o", "-").splitlines()
    return {stack: int(value) for stack, value in (row.rsplit(" ", 1) for row in rows if row)}


def check_go(program, folder):
    """All at once: windows overlap, and nobody waits for anybody."""
    def fetch(path):
        return path, pprof(folder, "-raw", program.url(path))

    patience = time.monotonic() + 30  # on a busy machine the loop's first turn may not be over yet
    while "stall_loop" not in fetch("event_loop")[1] and time.monotonic() < patience:
        time.sleep(0.1)
    with concurrent.futures.ThreadPoolExecutor(len(PROFILES)) as pool:
        for path, raw in pool.map(fetch, PROFILES):
            types, function = PROFILES[path]
            check(f"go tool pprof: {path} has its types", types in raw.replace("[dflt]", ""), raw)
            check(f"go tool pprof: {path} names {function or 'frames'}", f" {function} " in raw or not function, raw)
    top = pprof(folder, "-top", program.url("heap"))
    check("go tool pprof: the program is named", "File: pprof_all" in top and "Type: inuse_space" in top, top)
    text = program.get("heap?debug=1")[2]
    (folder / "heap.txt").write_bytes(text)
    raw = pprof(folder, "-raw", str(folder / "heap.txt"))
    check("go tool pprof: a heap as text", " keep_blocks " in raw, raw)


def kept(folder, body):
    """MiB that keep_blocks holds."""
    return round(sum(v for s, v in stacks(folder, body, "inuse_space").items() if "keep_blocks" in s) / MIB, 1)


def window_of_heap(program):
    """A window in which three blocks are added; None where the machine was too slow for that."""
    client = http.client.HTTPConnection(program.address, timeout=60)
    began = time.monotonic()
    client.request("GET", "/debug/pprof/heap?seconds=1")
    for _ in range(2):  # whoever came before a request that is answered has been heard
        program.get("symbol")
    program.tell("alloc 3")
    in_time = time.monotonic() - began < 0.9
    answer = client.getresponse()
    check("a window of the heap", answer.status == 200 and 'filename="heap-delta"' in
          answer.headers["Content-Disposition"])
    body = answer.read()
    client.close()
    return body if in_time else None


def check_truth(program, folder):
    """Differences are what happened meanwhile; levels may shrink, sums never do."""
    before = stacks(folder, program.get("allocs")[2], "alloc_space")
    wanted = 4
    check("memory in use is what is in use", kept(folder, program.get("heap")[2]) == wanted)
    body = None
    while body is None:
        body = window_of_heap(program)
        wanted += 3
    check("a window has what was added in it", kept(folder, body) == 3, kept(folder, body))
    check("memory in use is what is in use, later", kept(folder, program.get("heap")[2]) == wanted)
    after = stacks(folder, program.get("allocs")[2], "alloc_space")
    check("sums never shrink", all(after.get(s, 0) >= v for s, v in before.items()))


def check_scrapers(program, folder):
    """Default paths of Alloy (cumulative, window one second less than its interval) and of Parca, and their checks."""
    shapes = ["allocs", "block", "goroutine", "mutex", "profile?seconds=1"]
    shapes += [f"{path}?seconds=1" for path in ("allocs", "block", "goroutine", "mutex")]
    with concurrent.futures.ThreadPoolExecutor(len(shapes)) as pool:
        for path, (status, headers, body) in zip(shapes, pool.map(program.get, shapes)):
            check(f"scrapers: {path}", status == 200 and len(body) > 0 and
                  headers["Content-Type"].startswith("application/octet-stream") and body[:2] == b"\x1f\x8b",
                  (status, str(headers), body[:80]))
    for path, kind in (("block", "contentions"), ("mutex", "delay")):
        before, after = (stacks(folder, program.get(path)[2], kind) for _ in range(2))
        check(f"scrapers: {path} never shrinks", all(after.get(s, 0) >= v for s, v in before.items()), (before, after))


def check_own_scraper(program, folder):
    config = folder / "kiln.yaml"
    config.write_text(f"""
scrape:
  - job_name: shop
    scrape_interval: 1s
    profiles: {{profile: {{seconds: 1}}}}
    static_configs:
      - targets: ["{program.address}"]
""")
    wanted = ["alloc_space:bytes", "inuse_space:bytes", "goroutine:count", "cpu:nanoseconds", "mutex:delay",
              "block:delay"]

    def metric(name):
        with urllib.request.urlopen(f"http://127.0.0.1:{server.http}/metrics", timeout=60) as answer:
            text = answer.read().decode()
        return sum(float(l.rsplit(" ", 1)[1]) for l in text.splitlines() if re.match(name, l))

    server = KilnServer("--config", str(config))
    try:
        server.start()
        deadline, text = time.monotonic() + 60, ""
        while not all(kind in text for kind in wanted) and time.monotonic() < deadline:
            time.sleep(0.2)
            with urllib.request.urlopen(f"http://127.0.0.1:{server.http}/api/v1/store/export?service=shop",
                                        timeout=60) as answer:
                text = kiln(folder, answer.read(), "info")
        for kind in wanted:
            check(f"kiln server: {kind} arrived", kind in text, text + server.said())
        check("kiln server: no counter began anew", metric("kiln_scrape_resets_total") == 0)
    finally:
        server.__exit__()


def connect(program):
    host, port = program.address.rsplit(":", 1)
    return socket.create_connection((host, int(port)), timeout=60)


def check_crowd(folder):
    """Many clients at once, some of them hostile. They have a program of their own, because one serves 64 clients at a time."""
    program = Program(pathlib.Path(tempfile.mkdtemp(dir=folder)))
    dawdlers = [connect(program) for _ in range(20)]
    for dawdler in dawdlers:
        dawdler.sendall(b"GET /debug/pprof/heap HTTP/1.1\r\nHo")
    for rubbish in (b"\x16\x03\x01\x02\x00\x01\x00", b"\0" * 4000, b"GET\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"):
        with connect(program) as client:
            client.sendall(rubbish)
            client.shutdown(socket.SHUT_WR)
            client.recv(100)
    with concurrent.futures.ThreadPoolExecutor(32) as pool:
        answers = list(pool.map(program.get, ["profile?seconds=1"] * 32))
    check("32 clients at once", all(a[0] == 200 and a[2][:2] == b"\x1f\x8b" for a in answers), [a[0] for a in answers])
    for dawdler in dawdlers:
        dawdler.close()
    client = http.client.HTTPConnection(program.address, timeout=60)
    for path in ("cmdline", "symbol", "nothing", "heap?debug=1", "trace"):
        client.request("GET", "/debug/pprof/" + path)
        answer = client.getresponse()
        body = answer.read()
        good = {"nothing": 404, "trace": 404}.get(path, 200)
        check(f"one connection, many requests: {path}", answer.status == good, (answer.status, body))
    client.close()
    program.end()


def check_symbol(program, folder):
    raw = pprof(folder, "-raw", program.url("heap")) if shutil.which("go") else ""
    found = re.search(r"^ *\d+: (0x[0-9a-f]+) M=\d+ keep_blocks ", raw, re.M)
    if not found:
        check("addresses of a profile", not raw, raw)
        return
    request = urllib.request.Request(program.url("symbol"), data=found[1].encode())
    with urllib.request.urlopen(request, timeout=60) as answer:
        text = answer.read().decode()
    check("names by address", text == f"num_symbols: 1\n{found[1]} keep_blocks\n", text)
    check("the command line", program.get("cmdline")[2] == str(PROGRAM).encode())


def check_threads(program):
    text = program.get("goroutine?debug=2")[2].decode()
    check("threads are listed", "thread" in text and "wait_for_" in text, text)
    text = program.get("goroutine?debug=1")[2].decode()
    check("threads are counted without our own", text.startswith("goroutine profile: total 6\n"), text)


def check_places(program, folder):
    """An address belongs to one process; that it is taken is one line."""
    (folder / "second").mkdir()
    second = Program(folder / "second", listen=program.address)
    check("a port that is taken is not served", second.address is None)
    said = second.end()
    check("and that is one line", said.count("\n") == 1 and "already in use" in said, said)
    path = folder / "pprof.sock"
    third = Program(folder / "second", listen=f"unix:{path}", KILN_PPROF_TOKEN="secret")
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(60)
        client.connect(str(path))
        client.sendall(b"GET /debug/pprof/ HTTP/1.0\r\n\r\n")
        check("a token is asked for", client.recv(4096).startswith(b"HTTP/1.1 401 "))
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(60)
        client.connect(str(path))
        client.sendall(b"GET /debug/pprof/ HTTP/1.0\r\nAuthorization: Bearer secret\r\n\r\n")
        check("and lets in", client.recv(4096).startswith(b"HTTP/1.1 200 "))
    third.end()
    check("the file of the socket goes with the program", not path.exists())


def check_address_file(folder):
    """Another user has a link at the name that the file could be written under first."""
    folder = pathlib.Path(tempfile.mkdtemp(dir=folder))
    victim = folder / "victim"
    victim.write_text("as it was")
    program = Program(folder, command=["sh", "-c", f'ln -s {victim} {folder}/address.$$; exec "$0"', str(PROGRAM)])
    check("no link is followed", victim.read_text() == "as it was" and not (folder / "address").is_symlink())
    check("every user reads the address", (folder / "address").stat().st_mode & 0o777 == 0o644)
    check("nothing else is left", {file.name for file in folder.iterdir()} - {"victim", "address"} == {f"address.{program.process.pid}"})
    program.end()


def check_on_demand(folder):
    """CPU time is not among the profiles: whoever asks for a window has it sampled meanwhile."""
    folder = pathlib.Path(tempfile.mkdtemp(dir=folder))
    program = Program(folder, KILN_PROFILES="alloc")
    deadline, text = time.monotonic() + 60, ""
    while "burn_cpu" not in text and time.monotonic() < deadline:
        text = kiln(folder, program.get("profile?seconds=1")[2], "top")
    check("a window switches sampling on", "burn_cpu" in text, text)
    check("a profile that is off is empty", program.get("mutex")[0] == 200)
    program.end()


def check_fork(folder):
    """A child lives on when its parent has ended: it must not hold the port."""
    program = Program(pathlib.Path(tempfile.mkdtemp(dir=folder)))
    check("it forks", program.tell("fork") == "forked")
    address = program.address.rsplit(":", 1)
    program.process.kill()
    program.process.wait()
    try:
        socket.create_connection((address[0], int(address[1])), timeout=60).close()
        check("the child does not listen", False)
    except ConnectionRefusedError:
        check("the child does not listen", True)
    program.process.stdin.close()


def main():
    if not PROGRAM.exists():
        print(f"skipped: {PROGRAM} is not built")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        program = Program(folder)
        stories = [lambda: check_own_scraper(program, folder), lambda: check_truth(program, folder),
                   lambda: check_scrapers(program, folder), lambda: check_crowd(folder),
                   lambda: check_threads(program), lambda: check_places(program, folder),
                   lambda: check_address_file(folder), lambda: check_on_demand(folder), lambda: check_fork(folder)]
        if shutil.which("go"):
            stories.append(lambda: (check_go(program, folder), check_symbol(program, folder)))
        try:
            with concurrent.futures.ThreadPoolExecutor(len(stories)) as pool:
                for story in [pool.submit(story) for story in stories]:
                    story.result()
            said = program.end()
            check("nothing was said", said == "", said)
        finally:
            program.process.kill()
    sys.exit(exit_code())


main()
