# SPDX-License-Identifier: Apache-2.0
"""Commands of README.md, run as they stand there but for where they write."""
import os
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
KILN = pathlib.Path(os.environ.get("KILN", "build/kiln")).resolve()


def run(start, folder, **more):
    """Runs the line that begins with `start`: how it ended, and the line."""
    lines = [line for line in (ROOT / "README.md").read_text(encoding="utf-8").splitlines() if line.startswith(start)]
    if len(lines) != 1:
        raise ValueError(f"README.md has {len(lines)} lines that begin with {start!r}")
    stands_for = {"build/kiln": str(KILN), "/tmp/": f"{folder}/"}
    line = re.sub("build/kiln|/tmp/", lambda match: stands_for[match[0]], lines[0].removeprefix("sudo "))
    return subprocess.run(["bash", "-c", line], cwd=ROOT, capture_output=True, text=True, check=False, timeout=240, **more), line
