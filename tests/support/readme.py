# SPDX-License-Identifier: Apache-2.0
"""Commands of README.md, run as they stand there but for where they write."""
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
KILN = pathlib.Path(os.environ.get("KILN", "build/kiln")).resolve()


def run(start, folder, **more):
    """Runs the line that begins with `start`: how it ended, and the line."""
    lines = [line for line in (ROOT / "README.md").read_text(encoding="utf-8").splitlines() if line.startswith(start)]
    if len(lines) != 1:
        raise ValueError(f"README.md has {len(lines)} lines that begin with {start!r}")
    line = lines[0].removeprefix("sudo ").replace("build/kiln", str(KILN)).replace("/tmp/", f"{folder}/")
    return subprocess.run(["bash", "-c", line], cwd=ROOT, capture_output=True, text=True, check=False, timeout=240, **more), line
