#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pages of other sites in a real browser: after DNS rebinding, by embedding, and by a link.

The browser resolves every name to 127.0.0.1, as if an attacker's DNS server had answered so.
"""
import contextlib
import http.server
import json
import os
import pathlib
import sys
import threading
import urllib.request

from browser import Browser, check, equal

SOURCE = pathlib.Path(os.environ.get("KILN_SOURCE_DIR", "."))
sys.path.insert(0, str(SOURCE / "tests/support"))
from kiln_server import KilnServer  # noqa: E402

RESOLVE = "--host-resolver-rules=MAP evil.example 127.0.0.1, MAP kiln.example 127.0.0.1"

# What a page tries with a server of its own origin: the status of each request, 0 where there was no answer.
ATTACK = """(async () => {
    const ask = (path, options) => fetch(path, options).then((answer) => answer.status, () => 0);
    navigator.sendBeacon("/ingest?name=planted&format=folded", "main 1\\n");
    return {
        read: await ask("/api/v1/services"),
        metrics: await ask("/metrics"),
        write: await ask("/api/v1/annotations", {method: "POST", body: JSON.stringify({text: "from " + location.origin})}),
        ingest: await ask("/ingest?name=planted&format=folded", {method: "POST", body: "main 1\\n"}),
        silent: await ask("/ingest?name=planted&format=folded",
                          {method: "POST", body: "main 1\\n", referrerPolicy: "no-referrer", mode: "no-cors"}),
        remove: await ask("/api/v1/services/shop", {method: "DELETE"}),
        backup: await ask("/api/v1/store/backup?dir=" + encodeURIComponent(%s), {method: "POST"}),
    };
})()"""

# Whether each of these loads as a picture.
EMBED = """Promise.all(%s.map((url) => new Promise((done) => {
    const image = new Image();
    image.onload = () => done(true);
    image.onerror = () => done(false);
    image.src = url;
})))"""


class Foreign(http.server.BaseHTTPRequestHandler):
    """Another site: one empty page, and a picture to see that pictures load at all."""

    def do_GET(self):
        is_picture = self.path == "/picture.svg"
        body = b"<svg xmlns='http://www.w3.org/2000/svg'/>" if is_picture else b"<!doctype html><title>elsewhere</title>"
        self.send_response(200)
        self.send_header("Content-Type", "image/svg+xml" if is_picture else "text/html")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def foreign_site():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Foreign) as site:
        thread = threading.Thread(target=site.serve_forever)
        thread.start()
        try:
            yield site.server_address[1]
        finally:
            site.shutdown()
            thread.join()


def ask(server, path, body=None):
    with urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{server.http}{path}", data=body), timeout=60) as answer:
        return answer.read()


def fill(server):
    ask(server, "/ingest?name=shop&format=folded", b"main;read 3\nmain;idle 1\n")


def services(server):
    return [service["name"] for service in json.loads(ask(server, "/api/v1/services"))["services"]]


def check_rebinding(page, what, words):
    with KilnServer(*words) as server:
        fill(server)
        backup = server.folder / "stolen"
        page.open(f"http://evil.example:{server.http}/")
        equal(f"{what}: the page has the name of the attacker", page.run("location.origin"), f"http://evil.example:{server.http}")
        done = page.run(ATTACK % json.dumps(str(backup)))
        equal(f"{what}: nothing is read, written or deleted", done, dict.fromkeys(done, 421))
        equal(f"{what}: the service is there, and no other", services(server), ["shop"])
        check(f"{what}: there is no backup", not backup.exists())
        check(f"{what}: no annotation", b"evil" not in ask(server, "/api/v1/annotations?from=now-1h"))


def picture(host, server, service):
    query = f'process_cpu:cpu:nanoseconds{{service_name="{service}"}}'
    return f"http://{host}:{server.http}/api/v1/query?format=svg&from=now-1h&query=" + urllib.request.quote(query)


def check_embedding(page):
    """Pictures would tell another site which names exist: those that do load, others do not."""
    with foreign_site() as port, KilnServer("--host-names", "kiln.example") as server:
        fill(server)
        check("there is a picture", ask(server, picture("", server, "shop").partition(str(server.http))[2]).startswith(b"<"))
        for site in (f"http://evil.example:{port}", f"http://127.0.0.1:{port}"):
            page.open(site + "/")
            loads = page.run(EMBED % json.dumps([site + "/picture.svg", picture("127.0.0.1", server, "shop"),
                                                 picture("127.0.0.1", server, "none"), picture("kiln.example", server, "shop")]))
            equal(f"{site}: nothing of the server is embedded", loads, [True, False, False, False])
        page.open(f"http://127.0.0.1:{server.http}/")
        equal("the page itself may", page.run(EMBED % json.dumps([picture("127.0.0.1", server, "shop")])), [True])


def check_link(page):
    with foreign_site() as port, KilnServer() as server:
        page.open(f"http://evil.example:{port}/")
        page.events.clear()
        page.run(f"location.href = 'http://127.0.0.1:{server.http}/'")
        page.wait_for("Page.loadEventFired")
        equal("a link of another site opens the page", page.run("[location.port, document.title.includes('Kiln')]"),
              [str(server.http), True])


def main():
    with Browser(RESOLVE) as page:
        check_rebinding(page, "on loopback", ())
        check_rebinding(page, "for anybody", ("--allow-anonymous",))
        check_embedding(page)
        check_link(page)


if __name__ == "__main__":
    main()
