#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: dockerfile.py

The Dockerfile, built by buildah on a minimal Debian that debootstrap makes, gives the same images as tools/image-oci:
equal settings, and equal files with equal modes and owners.  Needs root, the network, buildah and debootstrap.
"""
import hashlib
import json
import os
import pathlib
import re
import shutil
import stat
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
AUTHORITIES = pathlib.Path("/usr/local/share/ca-certificates")
sys.path.insert(0, str(SOURCE / "tests/support"))
from checks import check, exit_code  # noqa: E402
from containers import unpack  # noqa: E402


class Buildah:
    """With a store of its own in the folder."""

    def __init__(self, folder):
        self.words = ["buildah", "--root", folder / "store", "--runroot", folder / "run"]

    def run(self, *words, **more):
        return subprocess.run([*map(str, self.words + list(words))], check=True, text=True, **more)

    def answer(self, *words):
        return self.run(*words, stdout=subprocess.PIPE).stdout.strip()

    def import_root(self, root, name):
        container = self.answer("from", "scratch")
        self.run("copy", "-q", container, root, "/")
        if AUTHORITIES.is_dir():  # of a machine behind a proxy; node has a list of its own
            self.run("copy", "-q", container, AUTHORITIES, AUTHORITIES)
            self.run("run", "--isolation", "chroot", container, "update-ca-certificates")
            self.run("config", "--env", "NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt", container)
        self.run("commit", "-q", container, name)
        self.run("rm", container)

    def mounted(self, image):
        return pathlib.Path(self.answer("mount", self.answer("from", "--pull-never", image)))


def contents(root):
    """Path, mode, owner and content of everything below."""
    found = {}
    for path in root.rglob("*"):
        status = path.lstat()
        content = (os.readlink(path) if path.is_symlink() else
                   hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "")
        mode = "link" if path.is_symlink() else stat.filemode(status.st_mode)
        found[str(path.relative_to(root))] = (mode, status.st_uid, status.st_gid, content)
    return found


def compare(buildah, folder, target):
    """One of the images: as buildah made it, and as tools/image-oci packs the same files."""
    archive = folder / f"{target}.tar"
    subprocess.run([SOURCE / "tools/image-oci", "pack", buildah.mounted("kiln-build") / "image", target, archive], check=True)
    config = unpack(archive, folder / target)
    ours, theirs = contents(folder / target), contents(buildah.mounted(f"kiln-{target}"))
    check(f"{target}: the same {len(ours)} files", ours == theirs,
          sorted(set(ours.items()) ^ set(theirs.items()))[:20])
    said = json.loads(buildah.answer("inspect", "--type", "image", f"kiln-{target}"))["Docker"]["config"]
    for name in sorted(config.keys() | {name for name, value in said.items() if value} - {"Hostname"}):
        check(f"{target}: the same {name}", config.get(name) == said.get(name), (config.get(name), said.get(name)))
    done = subprocess.run(["chroot", folder / target, "/usr/bin/kiln", "version"], capture_output=True, text=True, check=False)
    check(f"{target}: its program runs", done.returncode == 0 and done.stdout.startswith("kiln "), done)


def main():
    if os.geteuid() != 0 or not shutil.which("buildah") or not shutil.which("debootstrap"):
        print("skipped: needs root, buildah and debootstrap")
        return 77
    base = re.search(r"^FROM (debian:(\w+)-slim) AS build$", (SOURCE / "Dockerfile").read_text(), re.M)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="kiln-dockerfile-", dir="/var/tmp"))
    buildah = Buildah(folder)
    try:
        root = os.environ.get("KILN_DEBIAN_ROOT")
        if not root:
            root = folder / "debian"
            subprocess.run(["debootstrap", "--variant=minbase", "--include=ca-certificates", base[2], root], check=True)
        buildah.import_root(root, f"docker.io/library/{base[1]}")
        subprocess.run(["git", "clone", "-q", "--depth", "1", f"file://{SOURCE}", folder / "source"], check=True)
        for target in ("build", "agent", "server"):
            buildah.run("build", "--isolation", "chroot", "--network", "host", "--pull-never", "--layers", "--format", "docker", "--identity-label=false",
                        "--target", target, "-t", f"kiln-{target}", folder / "source")
        for target in ("agent", "server"):
            compare(buildah, folder, target)
    finally:
        subprocess.run([*map(str, buildah.words), "rm", "--all"], check=False, stdout=subprocess.DEVNULL)
        subprocess.run(["umount", folder / "store/overlay"], check=False, stderr=subprocess.DEVNULL)
        shutil.rmtree(folder, ignore_errors=True)
    return exit_code()


if __name__ == "__main__":
    sys.exit(main())
