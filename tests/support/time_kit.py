# SPDX-License-Identifier: Apache-2.0
"""Programs with libkiln in front of them, and the profiles they leave in a folder."""
import json
import os
import pathlib
import subprocess
import tempfile

KILN = os.environ.get("KILN", "build/kiln")
LIBKILN = os.path.realpath(os.environ.get("LIBKILN", "build/libkiln.so"))
PROGRAMS = pathlib.Path(os.environ.get("KILN_BUILD_DIR", "build")).resolve() / "inproc"


def lost(folder):
    """How much of what was sampled is not in a folder's profiles, or counts together with others."""
    return sum(sum(json.loads(path.read_text())["lost"].values()) for path in pathlib.Path(folder).glob("*.json"))


class Preloaded:
    """A program's run: what it printed, its exit code, and its profiles."""

    def __init__(self, *command, timeout=120, **variables):
        self.folder = tempfile.TemporaryDirectory()
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith(("KILN_", "OTEL_"))}
        environment |= {"LD_PRELOAD": LIBKILN, "KILN_OUT_DIR": self.folder.name, "KILN_SEED": "7",
                        "KILN_SOCKET": self.folder.name + "/none.sock", "OTEL_SERVICE_NAME": "tested",
                        "KILN_EXIT_MS": "20000"}
        run = subprocess.run([str(word) for word in command], env=environment | variables, text=True, timeout=timeout,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                             cwd=self.folder.name)
        self.code, self.out, self.err = run.returncode, run.stdout, run.stderr

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.folder.cleanup()

    def files(self, kind):
        return sorted(pathlib.Path(self.folder.name).glob(f"*-{kind}-*.pb.gz"))

    def functions(self, kind, sample_type, *selection):
        """What each function and all that it called spent, by its name; and the sum of all, as ""."""
        files = self.files(kind)
        if not files:
            return {"": 0}
        answer = subprocess.run([KILN, "top", "--json", "--limit", "0", "-t", sample_type, *selection, *files],
                                capture_output=True, text=True)
        if answer.returncode:
            raise RuntimeError(answer.stderr)
        top = json.loads(answer.stdout)
        return {row["name"]: row["total"] for row in top["rows"]} | {"": top["total"]}
