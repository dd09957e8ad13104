#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The SBOM and the licence notices of the programs that were built name all that readelf and the linker see in them, and an independent
reader of SPDX finds no fault."""
import importlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(os.environ.get("KILN_SOURCE_DIR", "."))
BUILD = pathlib.Path(os.environ.get("KILN_BUILD_DIR", "build")).resolve()
sys.path[:0] = [str(SOURCE / "tests/support"), str(SOURCE / "tests/interop/otlp")]
import peers  # noqa: E402
from checks import check, exit_code  # noqa: E402

SPDX_TOOLS = "spdx-tools==0.8.3"
TOOL = SOURCE / "tools/components"


def components(*words):
    return subprocess.run([TOOL, *map(str, words)], capture_output=True, text=True, check=False)


def package_of(path):
    """The Debian package of a file, by dpkg; None where it has none."""
    real = os.path.realpath(path)
    for name in (real, real.replace("/usr/lib/", "/lib/", 1)):
        found = subprocess.run(["dpkg-query", "-S", name], capture_output=True, text=True, check=False).stdout
        if found:
            return found.split(":")[0]
    return None


def needed_packages(program):
    """By ldd, where the libraries are that the program itself names."""
    names = re.findall(r"\(NEEDED\).*\[(.*)\]", subprocess.run(["readelf", "-dW", program], capture_output=True, text=True, check=True).stdout)
    paths = dict(re.findall(r"^\s*(\S+) => (\S+)", subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout, re.M))
    return {package_of(paths[name]) for name in names if name in paths}


def check_packages(document):
    packages = {package["SPDXID"]: package for package in document["packages"]}
    linked = {kind: {packages[r["relatedSpdxElement"]]["name"] for r in document["relationships"] if r["relationshipType"] == kind}
              for kind in ("DYNAMIC_LINK", "STATIC_LINK", "CONTAINS")}
    for program in (BUILD / "kiln", BUILD / "libkiln.so.0"):
        missing = needed_packages(program) - linked["DYNAMIC_LINK"] - linked["STATIC_LINK"]
        check(f"{program.name}: each library that it needs is in the SBOM", not missing, missing)
    check("libkiln has the archives that cmake/inproc.cmake links", {"libdeflate-dev", "libzstd-dev", "liblzma-dev", "zlib1g-dev",
          "libiberty-dev", "libnghttp2-dev"} <= linked["STATIC_LINK"], linked["STATIC_LINK"])
    lock = json.loads((SOURCE / "web/package.json").read_text())["dependencies"]
    got = {p["name"]: p["versionInfo"] for p in packages.values() if p.get("externalRefs", [{}])[0].get("referenceLocator", "").startswith("pkg:npm/")}
    check("the libraries of the web UI are there in their versions", got == lock and set(lock) <= linked["CONTAINS"], got)
    check("each has a licence and a version", all(p["licenseDeclared"] != "NOASSERTION" and p["versionInfo"] != "unknown"
          for p in packages.values()), [p["name"] for p in packages.values() if p["licenseDeclared"] == "NOASSERTION"])
    return [p["name"] for p in packages.values() if not p["name"].startswith(("kiln", "libkiln"))]


def check_notices(names):
    notices = components(BUILD, "notices")
    check("there are notices", notices.returncode == 0 and not notices.stderr, notices.stderr)
    titles = " ".join(re.findall(r"^=+\n(.*)\n=+$", notices.stdout, re.M))
    missing = [name for name in names if f"{name} " not in titles + " "]
    check("each package has its licence notice", not missing, missing)
    referred = set(re.findall(r"common-licenses/((?:L?GPL|Apache)-[\d.]*\d)", notices.stdout))
    check("texts that notices refer to are there", all(os.path.basename(os.path.realpath(f"/usr/share/common-licenses/{name}")) in titles
                                                      for name in referred), referred)


def load_spdx_tools():
    place = peers.CACHE / "python" / f"{SPDX_TOOLS.replace('==', '-')}-{sys.version_info.major}.{sys.version_info.minor}"
    if not place.is_dir():
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=place.parent) as scratch:
            made = pathlib.Path(scratch) / "made"
            pip = subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--target", str(made), SPDX_TOOLS],
                                 capture_output=True, text=True, check=False)
            if pip.returncode:
                raise peers.Absent(f"pip cannot install {SPDX_TOOLS}: {peers.last_line(pip.stderr)}")
            made.rename(place)
    sys.path.insert(0, str(place))
    return (importlib.import_module("spdx_tools.spdx.parser.parse_anything"),
            importlib.import_module("spdx_tools.spdx.validation.document_validator"))


def check_validity(document):
    parser, validator = load_spdx_tools()
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "kiln.spdx.json"
        path.write_text(json.dumps(document))
        faults = validator.validate_full_spdx_document(parser.parse_file(str(path)))
        check("spdx-tools finds no fault", not faults, faults)
        document["packages"][0].pop("downloadLocation")
        path.write_text(json.dumps(document))
        try:
            faults = validator.validate_full_spdx_document(parser.parse_file(str(path)))
        except Exception as error:  # of any class of the validator's
            faults = [error]
        check("spdx-tools finds the fault of a document that has one", bool(faults))


def main():
    if not shutil.which("dpkg-query") or not shutil.which("node"):
        print("skipped: needs dpkg and node")
        return 77
    first = components(BUILD, "spdx")
    check("there is an SBOM", first.returncode == 0, first.stderr)
    check("it is the same twice", first.stdout == components(BUILD, "spdx").stdout)
    check("wrong usage", components(BUILD, "xml").returncode == 2 and components().returncode == 2)
    document = json.loads(first.stdout)
    check_notices(check_packages(document))
    try:
        check_validity(document)
    except peers.Absent as absent:
        print(f"skipped: {absent}")
    return exit_code()


if __name__ == "__main__":
    sys.exit(main())
