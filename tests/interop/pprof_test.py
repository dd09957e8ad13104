#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""pprof as google/pprof reads and writes it.

Every profile goes through Kiln, as pprof and by way of OTLP, and `go tool pprof` must say the same of
it before and after: -top for each sample type, -traces, -raw.  A small program over google/pprof's own
library (tests/interop/go/pprofdump) also compares what those commands leave out, and writes
profiles for Kiln to read.  Profiles of gperftools must become what google/pprof makes of them.
"""
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "support"))
from checks import check, exit_code  # noqa: E402

KILN = os.environ.get("KILN", "build/kiln")
SOURCES = pathlib.Path(os.environ.get("KILN_SOURCE_DIR", "."))
DATA = pathlib.Path(os.environ.get("KILN_TEST_DATA", "../shared/data"))
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "kiln"
DUMP_SOURCES = SOURCES / "tests/interop/go/pprofdump"
ALIKE = ("examples", "go-bench", "sequence", "jfr")


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def run(*command):
    """Its output, or an exception that shows what it said."""
    done = subprocess.run([str(word) for word in command], capture_output=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{command}: {done.stderr.decode(errors='replace')[-500:]}")
    return done.stdout


def build_dump():
    """The program that prints a pprof, built once for its sources; None where that is impossible."""
    digest = hashlib.sha256()
    for name in ("main.go", "go.mod", "go.sum"):
        digest.update((DUMP_SOURCES / name).read_bytes())
    digest.update(run("go", "version"))
    program = CACHE / f"pprofdump-{digest.hexdigest()[:16]}"
    if not program.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(["go", "build", "-mod=readonly", "-o", program, "."], cwd=DUMP_SOURCES,
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            print(f"without pprofdump, which cannot be built here: {done.stderr.strip()[-200:]}")
            return None
    return program


def pprof(path, *options):
    """What go tool pprof says of a file, without asking anyone for symbols."""
    return run("go", "tool", "pprof", "-symbolize=none", *options, path)


def first_difference(a, b):
    for x, y in zip(a.splitlines(), b.splitlines()):
        if x != y:
            return f"{x[:200]!r} became {y[:200]!r}"
    return f"{len(a)} bytes became {len(b)}"


def same(what, a, b):
    check(what, a == b, "" if a == b else first_difference(a, b))


def raw(path):
    """-raw, without repeated mappings: Kiln keeps equal ones once."""
    lines = pprof(path, "-raw").splitlines()
    start = lines.index(b"Mappings") + 1
    mappings = [line.split(b": ", 1)[1] for line in lines[start:]]
    return b"\n".join(lines[:start] + list(dict.fromkeys(mappings)))


def sample_types(path):
    """From -raw: the line below "Samples:"."""
    lines = pprof(path, "-raw").decode().splitlines()
    return [word.split("/")[0] for word in lines[lines.index("Samples:") + 1].split()]


def compare(name, before, after):
    """What go tool pprof says of two files must be the same."""
    same(f"{name}: raw", raw(before), raw(after))
    same(f"{name}: traces", pprof(before, "-traces"), pprof(after, "-traces"))
    for kind in sample_types(before):
        options = ("-top", "-nodecount=1000000", "-nodefraction=0", f"-sample_index={kind}")
        same(f"{name}: top of {kind}", pprof(before, *options), pprof(after, *options))


def check_tool_output(path, folder):
    """What `go tool pprof -proto` writes is read, and the total is the same."""
    theirs = folder / "tool.pb.gz"
    pprof(path, "-proto", f"-output={theirs}")
    total = [json.loads(run(KILN, "top", "--json", file))["total"] for file in (path, theirs)]
    check(f"{path.name}: total of what go tool pprof writes", total[0] == total[1], total)


def check_profile(path, folder, dump, with_tool):
    """One profile: there and back, by way of OTLP, and as google/pprof writes it."""
    name = path.name
    direct, otlp, back = folder / "direct.pb.gz", folder / "way.otlp", folder / "back.pb.gz"
    run(KILN, "convert", path, "--to", "pprof", "-o", direct)
    if with_tool:
        compare(name, path, direct)
        check_tool_output(path, folder)
    run(KILN, "convert", path, "--to", "otlp", "-o", otlp)
    run(KILN, "convert", otlp, "--to", "pprof", "-o", back)
    if dump:
        everything = run(dump, path)
        same(f"{name}: all", everything, run(dump, direct))
        same(f"{name}: all, by way of OTLP", everything, run(dump, back))
        theirs = folder / "theirs.pb.gz"
        run(dump, "-proto", path, theirs)
        run(KILN, "convert", theirs, "--to", "pprof", "-o", back)
        same(f"{name}: all, as google/pprof writes it", everything, run(dump, back))


def check_otlp(path, folder):
    """Counts with timestamps become CPU time that go tool pprof adds up as Kiln does."""
    out = folder / "otlp.pb.gz"
    run(KILN, "convert", path, "--to", "pprof", "-o", out)
    total = json.loads(run(KILN, "top", "--json", path))["total"]
    text = pprof(out, "-top", "-unit=ns", "-nodecount=1").decode()
    check(f"{path.name}: total", f" of {total}ns total" in text, text[:400])


def main():
    if not shutil.which("go"):
        skip("there is no go here")
    if not os.access(KILN, os.X_OK):
        skip(f"{KILN} is not built")
    dump = build_dump()
    profiles = sorted((SOURCES / "examples").glob("*.pb.gz"))
    profiles += sorted(DATA.glob("pprof/*.pb")) + sorted(DATA.glob("pprof/**/*.pb.gz"))
    profiles += sorted(DATA.glob("pprof/*.gperftools")) + sorted(DATA.glob("jfr/*.pb.gz"))
    if not profiles:
        skip("there are no profiles here")
    with tempfile.TemporaryDirectory() as name:
        folder, seen = pathlib.Path(name), set()
        for path in profiles:
            # go tool pprof takes its time: of a folder of profiles that are alike it sees one
            with_tool = path.parent.name not in seen
            if path.parent.name in ALIKE:
                seen.add(path.parent.name)
            check_profile(path, folder, dump, with_tool)
        for path in sorted(DATA.glob("otlp/**/*.otlp"))[:3]:
            check_otlp(path, folder)
    print(f"{len(profiles)} profiles")
    sys.exit(exit_code())


main()
