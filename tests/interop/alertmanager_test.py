#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A real Alertmanager opens a window of closer sampling: an alert that fires reaches the webhook, and the service of its label is boosted."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

SOURCES = pathlib.Path(os.environ.get("KILN_SOURCE_DIR", ".")).resolve()
sys.path.insert(0, str(SOURCES / "tests/support"))
from checks import check, exit_code  # noqa: E402
from kiln_server import KilnServer  # noqa: E402
from ports import free_port  # noqa: E402

# As docs/guide/host.md has it, but that it waits for nothing.
CONFIG = """
route: {{receiver: kiln, group_by: [alertname, service], group_wait: 0s, group_interval: 1s}}
receivers:
  - name: kiln
    webhook_configs:
      - url: http://127.0.0.1:{port}/api/v1/orders?hz=299&duration=10m
        http_config: {{authorization: {{credentials: the-pager}}}}
"""


def ask(port, path, body=None, **headers):
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers=headers,
                                     data=None if body is None else json.dumps(body).encode())
    if body is not None:
        request.add_header("Content-Type", "application/json")
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.loads(answer.read() or b"null")


def wait_for(what, patience_s=60):
    began = time.monotonic()
    while time.monotonic() - began < patience_s:
        try:
            found = what()
        except (urllib.error.URLError, ConnectionError):
            found = None
        if found:
            return found
        time.sleep(0.1)
    return None


def notifications(port):
    """How many the Alertmanager sent to webhooks."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
        return float(re.search(r'^alertmanager_notifications_total\{integration="webhook"\} (\S+)$', answer.read().decode(), re.M)[1])


def run(folder, program):
    tokens, config = folder / "tokens.yaml", folder / "alertmanager.yml"
    tokens.write_text("- {name: pager, token: the-pager, access: control}\n- {name: page, token: the-reader, access: read}\n")
    with KilnServer("--tokens", str(tokens)) as server:
        config.write_text(CONFIG.format(port=server.http))
        port = free_port()
        with open(folder / "alertmanager.log", "wb") as log:
            manager = subprocess.Popen([program, f"--config.file={config}", f"--storage.path={folder}/alerts", "--cluster.listen-address=",
                                        f"--web.listen-address=127.0.0.1:{port}"], stdout=log, stderr=log)

        def orders():
            return ask(server.http, "/api/v1/orders", Authorization="Bearer the-reader")["orders"]

        def fire(service, **more):
            ask(port, "/api/v2/alerts", [{"labels": {"alertname": "SloBurn", "severity": "page"} | service, **more}])

        try:
            check("the Alertmanager starts", wait_for(lambda: ask(port, "/api/v2/status")), (folder / "alertmanager.log").read_text())
            fire({"service": "shop"})
            fire({"other": "label"})
            found = wait_for(orders) or []
            shown = [(o["kind"], o["target"], o["name"], o["hz"], o["by"], o["why"]) for o in found]
            check("an alert that fires boosts the service of its label",
                  shown == [("boost", "service", "shop", 299, "alertmanager", "SloBurn fires")], shown)
            fire({"service": "cart"})
            check("another alert boosts another service", wait_for(lambda: {o["name"] for o in orders()} == {"shop", "cart"}), orders())
            told = notifications(port)
            fire({"service": "shop"}, endsAt="2026-01-01T00:00:00Z")
            check("the end of an alert is told, too", wait_for(lambda: notifications(port) > told))
            check("and leaves the window as it is", found and found[0]["id"] in {o["id"] for o in orders()}, orders())
            check("the log says who and why", 'by=alertmanager why="SloBurn fires"' in server.said(), server.said())
        finally:
            manager.kill()
            manager.wait()


def main():
    program = shutil.which("prometheus-alertmanager") or shutil.which("alertmanager")
    if not program:
        print("skipped: there is no Alertmanager here")
        return 77
    with tempfile.TemporaryDirectory(prefix="kiln-alerts-") as folder:
        run(pathlib.Path(folder), program)
    return exit_code()


if __name__ == "__main__":
    sys.exit(main())
