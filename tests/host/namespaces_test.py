#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs in namespaces of their own, and programs whose file is gone or another one by now: names all the same."""
import os
import pathlib
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(os.environ.get("KILN_SOURCE_DIR", ".")).resolve() / "tests/support"))
from checks import check, exit_code  # noqa: E402
from host_kit import PROGRAMS, Folder, has_chain, need_host, record, record_running, resources_of, skip  # noqa: E402

CHAINS = (("burn_leaf", "middle_a", "outer", "main"), ("burn_other", "middle_b", "outer", "main"))


def known(frames):
    return any(has_chain(frames, chain) for chain in CHAINS)


def check_known(what, rec):
    seen = rec.count(known)
    check(f"{what}: {seen} of {rec.total} samples have their chain by name",
          rec.total > 20 and seen >= 0.9 * rec.total, (rec.said, rec.worst(known)))


def check_namespaces(folder):
    """A file that only its mount namespace has, in a PID namespace where it is number one."""
    hide = f"mount -t tmpfs none /mnt && cp {PROGRAMS}/chain /mnt/hidden && exec /mnt/hidden 1"
    check_known("in namespaces of PIDs and mounts", record(folder, "unshare", "--mount", "--pid", "--fork", "sh", "-c",
                                                          hide))
    nested = f"unshare --pid --fork --mount-proc {PROGRAMS}/chain 1"
    check_known("in nested PID namespaces", record(folder, "unshare", "--mount", "--pid", "--fork", "sh", "-c", nested))


def check_root(folder):
    """In another root: paths are those of the process, not ours."""
    root = folder / "root"
    (root / "bin").mkdir(parents=True)
    shutil.copy(PROGRAMS / "chain-static", root / "bin/chain")
    check_known("in another root", record(folder, "chroot", root, "/bin/chain", "1"))


def check_gone(folder):
    """Deleted, or replaced by another program, while it runs: what runs is what counts."""
    for what in ("deleted", "replaced"):
        path = folder / f"program-{what}"
        shutil.copy(PROGRAMS / "chain", path)
        process = subprocess.Popen([path, "600"])
        try:
            if what == "deleted":
                path.unlink()
            else:
                shutil.copy(PROGRAMS / "shares", folder / "other")
                os.rename(folder / "other", path)
            rec = record_running(folder, process.pid)
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()
        check_known(f"an executable that was {what}", rec)
        names = {attributes.get("process.executable.name") for attributes, _ in resources_of(rec.path)}
        check(f"an executable that was {what}: it is called by its name", names == {path.name}, names)


def main():
    need_host("chain", "chain-static")
    if subprocess.run(["unshare", "--mount", "--pid", "--fork", "true"], check=False, stderr=subprocess.DEVNULL).returncode:
        skip("no namespaces of mounts can be made here: no right to, or a chroot")
    with Folder() as folder:
        check_namespaces(folder)
        check_root(folder)
        check_gone(folder)
    return exit_code()


if __name__ == "__main__":
    sys.exit(main())
