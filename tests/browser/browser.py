# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium for tests, driven over a pipe: nothing but Python's own library is needed.

    with Browser() as page:
        page.open("/tmp/x.svg")
        page.run("document.title")

Messages of the DevTools protocol go through file descriptors 3 and 4 of the browser as JSON, each
ended by a NUL.
"""
import base64
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

CHROMIUM = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run "
    "--disable-background-networking --disable-component-update --disable-sync "
    "--disable-dev-shm-usage --hide-scrollbars --remote-debugging-pipe --window-size=1280,800"
).split()
PATIENCE_S = 60


def skip(reason):
    print("skipped:", reason)
    sys.exit(77)


class Browser:
    def __init__(self, *flags):
        program = next(filter(None, map(shutil.which, CHROMIUM)), None)
        if not program:
            skip("no Chromium here")
        self.profile = tempfile.mkdtemp(prefix="kiln-browser-")
        self.events = []
        self.buffer = b""
        self.last_id = 0
        self._start(program, flags)
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "DOM", "Log"):
            self.call(domain + ".enable")

    def _start(self, program, flags):
        to_browser, self.out = os.pipe()
        self.inp, from_browser = os.pipe()

        def hand_over():
            low, high = os.dup(to_browser), os.dup(from_browser)  # 3 and 4 may be in use themselves
            os.dup2(low, 3)
            os.dup2(high, 4)

        self.process = subprocess.Popen(
            [program, *FLAGS, *flags, "--user-data-dir=" + self.profile],
            preexec_fn=hand_over, close_fds=False, start_new_session=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        self.session = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.out)
        os.close(self.inp)
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        shutil.rmtree(self.profile, ignore_errors=True)

    def _receive(self, until):
        while b"\0" not in self.buffer:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self.inp], [], [], left)[0]:
                raise TimeoutError("the browser does not answer")
            data = os.read(self.inp, 1 << 20)
            if not data:
                raise EOFError("the browser is gone")
            self.buffer += data
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **params):
        self.last_id += 1
        message = {"id": self.last_id, "method": method, "params": params}
        if self.session and not method.startswith(("Target.", "Browser.")):
            message["sessionId"] = self.session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        until = time.monotonic() + PATIENCE_S
        while True:
            answer = self._receive(until)
            if answer.get("id") == self.last_id:
                if "error" in answer:
                    raise RuntimeError(method + ": " + answer["error"]["message"])
                return answer["result"]
            self.events.append(answer)

    def wait_for(self, method):
        until = time.monotonic() + PATIENCE_S
        while True:
            for i, event in enumerate(self.events):
                if event.get("method") == method:
                    return self.events.pop(i)["params"]
            self.events.append(self._receive(until))

    def open(self, path):
        """Opens a file, or an address, and waits until it is loaded; forgets what happened before."""
        self.events.clear()
        self.call("Page.navigate", url=path if "://" in path else "file://" + os.path.abspath(path))
        self.wait_for("Page.loadEventFired")

    def run(self, expression):
        """The value of a JavaScript expression."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True,
                           awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(expression + ": " + json.dumps(result["exceptionDetails"]))
        return result["result"].get("value")

    def settle(self):
        """Waits until an animation is over."""
        self.run("new Promise((done) => setTimeout(done, 250))")

    def press(self, key, text=None, modifiers=0):
        text = key if text is None and len(key) == 1 and not modifiers else text
        code = {"Enter": 13, "Escape": 27}.get(key, ord(key.upper()) if len(key) == 1 else 0)
        event = {"key": key, "modifiers": modifiers, "windowsVirtualKeyCode": code}
        down = dict(event, type="keyDown" if text else "rawKeyDown")
        if text:
            down["text"] = text
        self.call("Input.dispatchKeyEvent", **down)
        self.call("Input.dispatchKeyEvent", type="keyUp", **event)
        self.settle()

    def mouse(self, x, y, click=True):
        at = {"x": x, "y": y, "button": "left", "clickCount": 1}
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        if click:
            self.call("Input.dispatchMouseEvent", type="mousePressed", **at)
            self.call("Input.dispatchMouseEvent", type="mouseReleased", **at)
        self.settle()

    def drag(self, x, y, to):
        """Draws from (x, y) to the same height of another x."""
        at = {"y": y, "button": "left", "clickCount": 1}
        self.call("Input.dispatchMouseEvent", type="mousePressed", x=x, **at)
        for i in range(1, 6):
            self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x + (to - x) * i / 5, y=y, button="left")
        self.call("Input.dispatchMouseEvent", type="mouseReleased", x=to, **at)
        self.settle()

    def dark(self, on):
        self.call("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if on else "light"}])

    def requests(self):
        """Everything the page asked for since it was opened."""
        self.settle()
        return [event["params"]["request"]["url"] for event in self.events
                if event.get("method") == "Network.requestWillBeSent"]

    def complaints(self):
        """Exceptions and console messages since the page was opened."""
        self.settle()
        return [event["params"] for event in self.events if event.get("method") in
                ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded",
                 "Page.javascriptDialogOpening")]

    def screenshot(self, name):
        """Saves a picture where KILN_SCREENSHOTS says, if it says so."""
        folder = os.environ.get("KILN_SCREENSHOTS")
        if not folder:
            return
        data = self.call("Page.captureScreenshot", format="png")["data"]
        with open(os.path.join(folder, name + ".png"), "wb") as file:
            file.write(base64.b64decode(data))


def check(what, condition):
    if not condition:
        print("FAILED:", what)
        sys.exit(1)
    print("ok:", what)


def equal(what, is_so, should_be):
    check("%s (%r)" % (what, is_so) if is_so == should_be
          else "%s: %r is not %r" % (what, is_so, should_be), is_so == should_be)
