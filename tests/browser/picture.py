#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: picture.py FILE

Draws the picture of the page for the README: an hour of the examples, a new version in the last third.
"""
import base64
import os
import subprocess
import sys
import time

from browser import Browser

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from kiln_server import KILN, KilnServer  # noqa: E402

STEP_S, FIRST_S, DEPLOYED_S = 15, 3540, 1200


def fill(server):
    now = int(time.time()) // 60 * 60
    for version, file, first, last in (("2.14.2", "checkout", FIRST_S, DEPLOYED_S), ("2.15.0", "checkout-v2", DEPLOYED_S, 0)):
        for ago in range(first, last, -STEP_S):
            subprocess.run([KILN, "push", "-q", "--server", f"http://127.0.0.1:{server.http}", "--service", "checkout", "-l",
                            f"service.version={version}", "--time", str(now - ago), f"examples/{file}.pb.gz"], check=True)


def main():
    with Browser() as page, KilnServer() as server:
        fill(server)
        page.call("Emulation.setDeviceMetricsOverride", width=1180, height=660, deviceScaleFactor=1, mobile=False)
        now = int(time.time()) // 60 * 60000
        page.open(f"http://127.0.0.1:{server.http}/?service=checkout&part={now - DEPLOYED_S * 1000}-{now}")
        page.run("new Promise((done) => { const look = () => waiting ? setTimeout(look, 20) : done(); setTimeout(look, 100); })")
        page.run("document.activeElement.blur()")
        data = page.call("Page.captureScreenshot", format="png")["data"]
    with open(sys.argv[1], "wb") as file:
        file.write(base64.b64decode(data))


if __name__ == "__main__":
    sys.exit(main())
