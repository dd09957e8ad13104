# SPDX-License-Identifier: Apache-2.0
"""The peers of otlp_test.py: the protobuf library of PyPI and every published revision of OTLP profiles.

The newest revision comes with PyPI's opentelemetry-proto.  All revisions, old and new, are modules of Go,
whose generated sources hold the serialized descriptors they were made from: these are taken out of the
sources and given to the same protobuf library.  Nothing is compiled.  All is kept outside the tree, by
version, and installed once.
"""
import ast
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

PROTO = "opentelemetry-proto==1.45.2"  # profiles of revision 1.11
CACHE = pathlib.Path(os.environ.get("KILN_CACHE") or
                     pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "kiln")
BASE = "opentelemetry.proto."
OTLP = "go.opentelemetry.io/proto/otlp"
DEVELOPMENT = f"{OTLP}/profiles/v1development"
# revision: the module with the profiles, the module with what they share with the other signals
MODULES = {
    "1.4": (f"{OTLP}@v1.4.0", f"{OTLP}@v1.4.0"),
    "1.5": (f"{OTLP}@v1.5.0", f"{OTLP}@v1.5.0"),
    "1.6": (f"{OTLP}@v1.6.0", f"{OTLP}@v1.6.0"),
    "1.7": (f"{OTLP}@v1.7.0", f"{OTLP}@v1.7.0"),
    "1.8": (f"{DEVELOPMENT}@v0.1.0", f"{OTLP}@v1.8.0"),
    "1.9": (f"{DEVELOPMENT}@v0.2.0", f"{OTLP}@v1.9.0"),
    "1.10": (f"{DEVELOPMENT}@v0.3.0", f"{OTLP}@v1.10.0"),
    "1.11": (f"{DEVELOPMENT}@v0.4.0", f"{OTLP}@v1.11.0"),
}


class Absent(Exception):
    """A peer that cannot be had here, and why."""


def last_line(text):
    lines = text.strip().splitlines()
    return lines[-1] if lines else "it said nothing"


def install_protobuf():
    """Makes google.protobuf and opentelemetry.proto importable."""
    place = CACHE / "python" / f"{PROTO.replace('==', '-')}-{sys.version_info.major}.{sys.version_info.minor}"
    if not place.is_dir():
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=place.parent) as scratch:
            made = pathlib.Path(scratch) / "made"
            pip = subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--target", str(made), PROTO],
                                 capture_output=True, text=True)
            if pip.returncode:
                raise Absent(f"pip cannot install {PROTO}: {last_line(pip.stderr)}")
            try:
                made.rename(place)
            except OSError:
                if not place.is_dir():  # else another test was faster
                    raise
    sys.path.insert(0, str(place))


def module_folder(module):
    """Where a Go module's sources are, downloaded if need be."""
    if not shutil.which("go"):
        raise Absent("there is no go")
    go = subprocess.run(["go", "mod", "download", "-json", module], capture_output=True, text=True,
                        cwd=tempfile.gettempdir(), env=os.environ | {"GOWORK": "off", "GO111MODULE": "on"})
    answer = json.loads(go.stdout) if go.stdout.startswith("{") else {}
    if "Dir" not in answer:
        raise Absent(f"go cannot download {module}: {answer.get('Error') or last_line(go.stderr)}")
    return pathlib.Path(answer["Dir"])


def kept(name, sources, make):
    """The path NAME in the cache, made by make(path) unless it is there; a change of the sources renews it.

    Tests beside each other may make it at the same time: each makes its own and renames it, so that none writes a file
    that another executes."""
    mark = hashlib.sha256(b"".join(f.read_bytes() for f in sorted(sources))).hexdigest()[:16]
    path = CACHE / f"{name}-{mark}"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent) as own:
            made = pathlib.Path(own) / path.name
            make(made)
            made.rename(path)
    return path


def build_go(source, *uses):
    """The program in the folder `source`, which uses the packages in the folders `uses`."""
    def make(path):
        go = subprocess.run(["go", "build", "-o", str(path), "."], cwd=source, capture_output=True, text=True,
                            env=os.environ | {"GOWORK": "off", "GOFLAGS": "-buildvcs=false"})
        if go.returncode:
            raise Absent(f"go cannot build {source.name}: {last_line(go.stderr)}")

    if not shutil.which("go"):
        raise Absent("there is no go")
    return kept(f"go/{source.name}", [f for folder in (source, *uses) for f in folder.iterdir()], make)


def raw_descriptor(source):
    """The serialized FileDescriptorProto in a generated Go file: a list of bytes or a sum of strings."""
    text = source.read_text()
    found = re.search(r"_rawDesc = \[\]byte\{(.*?)\n\}", text, re.S)
    if found:
        return bytes(int(byte, 16) for byte in re.findall(r"0x[0-9a-f]{2}", found[1]))
    found = re.search(r'_rawDesc = ""((?: \+\n\t"(?:[^"\\\n]|\\.)*")+)', text)
    if not found:
        raise Absent(f"no descriptor in {source}")
    return b"".join(ast.literal_eval("b" + re.sub(r"[^\x00-\x7f]+", lambda m: "".join(
        f"\\x{byte:02x}" for byte in m[0].encode()), string))
        for string in re.findall(r'"(?:[^"\\\n]|\\.)*"', found[1]))


class Revision:
    """The messages of one revision, as attributes: Revision("1.8").Profile()."""

    def __init__(self, name):
        from google.protobuf import descriptor_pool
        self.name = name
        self.pool = descriptor_pool.DescriptorPool()
        profiles, shared = map(module_folder, MODULES[name])
        below = "" if profiles != shared else "profiles/v1development/"
        for source in (shared / "common/v1/common.pb.go", shared / "resource/v1/resource.pb.go",
                       profiles / f"{below}profiles.pb.go"):
            self.pool.AddSerializedFile(raw_descriptor(source))

    def __getattr__(self, message):
        from google.protobuf import message_factory
        for package in ("profiles.v1development.", "common.v1.", "resource.v1."):
            try:
                found = self.pool.FindMessageTypeByName(BASE + package + message)
            except KeyError:
                continue
            return message_factory.GetMessageClass(found)
        raise AttributeError(message)


class Newest(Revision):
    """The revision of PyPI's package, by the classes it ships."""

    def __init__(self):
        from opentelemetry.proto.profiles.v1development import profiles_pb2
        self.name = "1.11"
        self.pool = profiles_pb2.DESCRIPTOR.pool
