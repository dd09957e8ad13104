# SPDX-License-Identifier: Apache-2.0
"""A program on a terminal of its own: what it shows, keys, sizes, and whether the terminal is as it was.

    with Terminal("kiln", "live", columns=80, rows=24) as page:
        page.wait(lambda lines: "hash" in lines[4])
        page.press("q")
        page.end()
"""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
import unicodedata

BEGIN, END, LEAVE = "\x1b[?2026h", "\x1b[?2026l", "\x1b[?1049l"
UP, DOWN, ESCAPE, ENTER = "\x1b[A", "\x1b[B", "\x1b", "\r"
SEQUENCE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def columns_of(text):
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


class Terminal:
    def __init__(self, *command, columns=80, rows=24, env=None):
        self.all = ""
        self.ours, self.theirs = pty.openpty()
        self.resize(columns, rows, told=False)
        self.before = termios.tcgetattr(self.theirs)
        self.process = subprocess.Popen([str(word) for word in command], stdin=self.theirs, stdout=self.theirs,
                                        stderr=self.theirs, env=os.environ | {"TERM": "xterm-256color"} | (env or {}),
                                        start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        os.close(self.ours)
        os.close(self.theirs)

    def resize(self, columns, rows, told=True):
        self.columns, self.rows = columns, rows
        fcntl.ioctl(self.theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        if told:
            os.killpg(self.process.pid, signal.SIGWINCH)

    def read(self, seconds=0.1):
        until = time.monotonic() + seconds
        while select.select([self.ours], [], [], max(0, until - time.monotonic()))[0]:
            try:
                self.all += os.read(self.ours, 1 << 16).decode(errors="replace")
            except OSError:
                break

    def press(self, *keys):
        for key in keys:
            os.write(self.ours, key.encode())
            self.read(0.02)

    def lines(self):
        """The last whole page that was shown."""
        end = self.all.rfind(END)
        begin = self.all.rfind(BEGIN, 0, end)
        if begin < 0:
            return []
        return [SEQUENCE.sub("", line) for line in self.all[begin:end].split("\r\n")]

    def page(self):
        return "\n".join(self.lines())

    def wait(self, wanted, patience_s=60):
        """Whether `wanted` comes to hold for the lines shown."""
        until = time.monotonic() + patience_s
        while time.monotonic() < until:
            self.read()
            lines = self.lines()
            if lines and wanted(lines):
                return True
            if self.process.poll() is not None:
                return False
        return False

    def children(self):
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children", encoding="ascii") as children:
            return [int(child) for child in children.read().split()]

    def end(self, patience_s=60):
        """Its exit code, once it has ended."""
        until = time.monotonic() + patience_s
        while self.process.poll() is None and time.monotonic() < until:
            self.read()
        self.read()
        return self.process.poll()

    def is_restored(self):
        """The modes of the terminal are as they were, and what was on its screen is back."""
        return termios.tcgetattr(self.theirs) == self.before and self.all.rfind(LEAVE) > self.all.rfind("\x1b[?1049h")
