# SPDX-License-Identifier: Apache-2.0
"""A program for tests that runs until it is told to end, and is gone afterwards."""
import signal
import subprocess


class Service:
    """`log` has what it says; words of the command line are anything that has a name."""

    def __init__(self, log, *words, env=None):
        self.log = log
        with open(log, "ab") as said:
            self.process = subprocess.Popen([str(word) for word in words], stdin=subprocess.DEVNULL, stdout=said,
                                            stderr=said, env=env)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def said(self):
        return self.log.read_text(errors="replace")

    def end(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        return self.process.wait(120)
