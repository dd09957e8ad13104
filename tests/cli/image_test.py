#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/image-oci: archives are OCI image layouts that Docker loads too, equal each time, and hold all that programs load.

tests/host/containers_test.py runs them.
"""
import gzip
import hashlib
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile

SOURCE = pathlib.Path(os.environ["KILN_SOURCE_DIR"])
sys.path.insert(0, str(SOURCE / "tests/support"))
from checks import check, exit_code  # noqa: E402

EPOCH = 1_700_000_000
USER = 10001


def image_oci(*words, tool=SOURCE / "tools/image-oci", umask=0o022):
    return subprocess.run([tool, *map(str, words)], capture_output=True, text=True, check=False, umask=umask,
                          env=os.environ | {"SOURCE_DATE_EPOCH": str(EPOCH)})


def make(folder, umask):
    """The tree and both archives."""
    words = [("tree", os.environ["KILN_BUILD_DIR"], folder / "tree")]
    words += [("pack", folder / "tree", target, folder / f"{target}.tar") for target in ("agent", "server")]
    for one in words:
        done = image_oci(*one, umask=umask)
        assert done.returncode == 0, done.stderr
    return folder / "tree/root"


class Archive:
    def __init__(self, path):
        with tarfile.open(path) as tar:
            self.members = tar.getmembers()
            self.files = {member.name: tar.extractfile(member).read() for member in self.members if member.isfile()}

    def json(self, name):
        return json.loads(self.files[name])

    def blob(self, descriptor):
        data = self.files["blobs/" + descriptor["digest"].replace(":", "/")]
        check(f"{descriptor['mediaType']} has the size that is said", len(data) == descriptor["size"])
        return data


def check_members(what, members):
    names = [member.name for member in members]
    check(f"{what}: sorted, each once, below its folder, nothing outside",
          names == sorted(set(names), key=pathlib.PurePath) and not any(name.startswith("/") or ".." in name.split("/")
                                                                        for name in names), names)
    owners = {(member.uid, member.gid) for member in members}
    check(f"{what}: owners are root or the server's user", owners <= {(0, 0), (USER, USER)}, owners)
    check(f"{what}: one time", {member.mtime for member in members} == {EPOCH})
    check(f"{what}: no setuid", not any(member.mode & 0o6000 for member in members))


def check_layers(archive, manifest, config):
    folders = {}
    for descriptor, diff_id in zip(manifest["layers"], config["rootfs"]["diff_ids"], strict=True):
        data = archive.blob(descriptor)
        check("gzip says neither a name nor a time", data[3] == 0 and data[4:8] == bytes(4), data[:10])
        plain = gzip.decompress(data)
        check("the layer is the one of the configuration", diff_id == f"sha256:{hashlib.sha256(plain).hexdigest()}")
        with tarfile.open(fileobj=io.BytesIO(plain)) as tar:
            check_members(diff_id[:19], tar.getmembers())
            folders |= {member.name: member for member in tar.getmembers() if member.isdir()}
    return folders


def check_layout(path, target):
    archive = Archive(path)
    wrong = [name for name, data in archive.files.items()
             if name.startswith("blobs/") and name != f"blobs/sha256/{hashlib.sha256(data).hexdigest()}"]
    check(f"{target}: blobs are named by their digests", not wrong, wrong)
    check(f"{target}: it is a layout of version 1", archive.json("oci-layout") == {"imageLayoutVersion": "1.0.0"})
    (descriptor,) = archive.json("index.json")["manifests"]
    manifest = json.loads(archive.blob(descriptor))
    config = json.loads(archive.blob(manifest["config"]))
    folders = check_layers(archive, manifest, config)
    (docker,) = archive.json("manifest.json")
    layers = ["blobs/" + layer["digest"].replace(":", "/") for layer in manifest["layers"]]
    check(f"{target}: what docker load reads is the same image", docker == {
        "Config": "blobs/" + manifest["config"]["digest"].replace(":", "/"), "Layers": layers,
        "RepoTags": [f"kiln-{target}:latest"]}, docker)
    how = config["config"]
    check(f"{target}: it runs kiln {target} and has a health check", how["Entrypoint"] == ["/usr/bin/kiln"] and
          how["Cmd"] == [target] and how["Healthcheck"]["Test"][:3] == ["CMD", "/usr/bin/kiln", "ready"], how)
    if target == "server":
        check("the server is not root, and owns its folder", how["User"] == f"{USER}:{USER}" and all(
            folders[name].uid == USER for name in ("var/lib/kiln", "run/kiln")), how)


def check_files(root):
    loader = next(root.glob("lib*/ld-linux-*"))
    libc = next(root.glob("usr/lib*/**/libc.so.6"))
    words = [loader, "--library-path", libc.parent]
    for path in (root / "usr/bin/kiln", *root.glob("usr/lib/**/libkiln.so.0")):
        said = subprocess.run([*words, "--list", path], capture_output=True, text=True, check=False).stdout
        missing = [line for line in said.splitlines() if "=>" in line and str(root) not in line]
        check(f"{path.name} finds all that it loads in the image", said.count("=>") > 0 and not missing, said)
    done = subprocess.run([*words, root / "usr/bin/kiln", "version"], capture_output=True, text=True, check=False)
    check("the program runs with these libraries", done.returncode == 0 and done.stdout.startswith("kiln "), done)
    (bundle,) = (path for path in root.rglob("*.pem") if path.is_symlink())
    certificates = root / os.readlink(bundle).lstrip("/")
    check("OpenSSL finds certificates of authorities", certificates.read_text().count("BEGIN CERTIFICATE") > 50)
    packages = {path.name for path in (root / "var/lib/dpkg/status.d").iterdir()}
    unlicensed = [name for name in packages if not (root / "usr/share/doc" / name / "copyright").stat().st_size]
    check(f"the licences of {len(packages)} packages are there", len(packages) > 5 and not unlicensed, unlicensed)
    check("and ours", (root / "usr/share/doc/kiln/LICENSE").read_bytes() == (SOURCE / "LICENSE").read_bytes())


def check_refuses(folder):
    """Instructions that images are not made from are not passed over."""
    (folder / "tools").mkdir()
    for name in ("image-oci", "version"):
        shutil.copy(SOURCE / "tools" / name, folder / "tools")
    text = (SOURCE / "Dockerfile").read_text()
    tree = folder / "nothing"
    (tree / "root").mkdir(parents=True)
    for wrong, said in (("RUN true", "RUN: not an instruction"), ("HEALTHCHECK NONE", "HEALTHCHECK NONE: this must be")):
        (folder / "Dockerfile").write_text(f"{text}\nFROM files AS wrong\n{wrong}\n")
        done = image_oci("pack", tree, "wrong", folder / "wrong.tar", tool=folder / "tools/image-oci")
        check(f"{wrong} is refused", done.returncode == 1 and said in done.stderr, done)
    done = image_oci("pack", tree, "build", folder / "wrong.tar")
    check("a stage on a system is refused", done.returncode == 1 and "no stage debian" in done.stderr, done)
    done = image_oci("tree", folder / "nowhere", folder / "none")
    check("a build that is not there is named", done.returncode == 1 and "nowhere/kiln" in done.stderr, done)
    check("a wrong command is told how", image_oci("pack").returncode == 2)


def check_skopeo(folder):
    """Another reader of both formats, which checks every digest."""
    if not shutil.which("skopeo"):
        print("not tried: skopeo is not here")
        return
    for target in ("agent", "server"):
        for form in ("oci-archive", "docker-archive"):
            done = subprocess.run(["skopeo", "--insecure-policy", "copy", "-q", f"{form}:{folder}/{target}.tar",
                                   f"dir:{folder}/{target}-{form}"], capture_output=True, text=True, check=False)
            check(f"skopeo copies {form}:{target}", done.returncode == 0, done.stderr)


def main():
    with tempfile.TemporaryDirectory(prefix="kiln-image-") as scratch:
        first, again = pathlib.Path(scratch, "first"), pathlib.Path(scratch, "again")
        for folder, umask in ((first, 0o022), (again, 0o077)):
            folder.mkdir()
            root = make(folder, umask)
        for target in ("agent", "server"):
            equal = (first / f"{target}.tar").read_bytes() == (again / f"{target}.tar").read_bytes()
            check(f"{target}: built again under another umask, it is the same", equal)
            check_layout(first / f"{target}.tar", target)
        check_files(root)
        check_refuses(again)
        check_skopeo(first)
    return exit_code()


if __name__ == "__main__":
    sys.exit(main())
