#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long do the functions, files and lines of 1,000 addresses take, from the start of a process to
its end, and how much memory?  Random addresses of code, the same for every peer.  CPU time, because
a busy machine must not count.

KILN_BENCH_DEBUG names files with debug information beyond those that are looked for, separated by
colons: a large one is `apt-get download ceph-osd-dbg`, as it is and after objcopy
--decompress-debug-sections.  KILN_BENCH_SHOW=N shows so many addresses that differ from eu-addr2line's."""
import glob
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

BUILD = os.environ["KILN_BUILD_DIR"]
SOURCES = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCES / "tests/interop/symbols"))
import judges  # noqa: E402

N = int(os.environ.get("KILN_BENCH_N", "1000"))
RUST = pathlib.Path(os.environ["KILN_CACHE"]) / "addr2line"
RUST_VERSION = "0.27.1"


def own_debug_file(path):
    """Of a library of Debian, what its -dbg package brought; None: it did not."""
    notes = subprocess.run(["readelf", "-n", path], capture_output=True, text=True, check=False).stdout
    ids = [line.split()[-1] for line in notes.splitlines() if "Build ID:" in line]
    debug = f"/usr/lib/debug/.build-id/{ids[0][:2]}/{ids[0][2:]}.debug" if ids else ""
    return debug if os.path.exists(debug) else None


def files():
    yield f"{BUILD}/kiln"
    for pattern in ("/lib/x86_64-linux-gnu/libc.so.6", "/usr/bin/python3.*d"):
        for path in glob.glob(pattern):
            debug = own_debug_file(path) or path
            if judges.has_section(debug, ".debug_info", ".zdebug_info"):
                yield debug
    yield from filter(None, os.environ.get("KILN_BENCH_DEBUG", "").split(":"))


def rust_addr2line():
    """The example program of the crate, built once beside the sources; None and why not."""
    program = RUST / "bin" / "addr2line"
    if program.exists():
        return program, ""
    if not shutil.which("cargo"):
        return None, "there is no cargo"
    done = subprocess.run(["cargo", "install", "--quiet", "addr2line", "--version", RUST_VERSION, "--features", "bin",
                           "--root", RUST], capture_output=True, text=True, check=False)
    return (program, "") if program.exists() else (None, done.stderr.strip().splitlines()[-1:] or "it does not build")


def peers(path):
    yield "kiln symbols resolve", [f"{BUILD}/kiln", "symbols", "resolve", "--addr2line", "--timeout", "300s", path]
    yield "kiln, in one process", [f"{BUILD}/bench_cold", path]
    for name in ("eu-addr2line", "addr2line"):
        if shutil.which(name):
            yield name, [name, "-a", "-f", "-i", "-e", path]
        else:
            print(f"  {name}: not installed")
    rust, why = rust_addr2line()
    if rust:
        yield f"Rust addr2line {RUST_VERSION}", [str(rust), "-a", "-f", "-i", "-e", path]
    else:
        print(f"  Rust addr2line: {why}")


def write_addresses(path, to):
    ranges = judges.code_ranges(path)
    rng = random.Random(1)
    for begin, end in rng.choices(ranges, [end - begin for begin, end in ranges], k=N):
        to.write(f"{rng.randrange(begin, end):#x}\n")
    to.flush()


def measure(command, addresses):
    """CPU seconds and peak megabytes of a command and its children; what it found."""
    addresses.seek(0)
    with tempfile.TemporaryFile("w+", errors="replace") as out:
        process = subprocess.Popen(command, stdin=addresses, stdout=out, stderr=subprocess.PIPE, text=True)
        said = process.stderr.read().strip()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = status
        out.seek(0)
        found = judges.frames_of(out.read())
    if status:
        print(f"  {command[0]}: exit {status}: {said[-200:]}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, found


def is_same(ours, theirs):
    """File and line, and the linker's name; what has none is called with its scopes here: "a::b", not "b"."""
    if ours[1:] != theirs[1:]:
        return False
    has_linkage = theirs[0].startswith(("_Z", "_R"))
    return ours[0] == theirs[0] or not has_linkage and (theirs[0] == "operator()" or ours[0].endswith(theirs[0]))


def same_frames(ours, theirs):
    """Counted from the outermost."""
    return sum(map(is_same, reversed(ours), reversed(theirs)))


def agreement(ours, judge, others):
    """Percent of frames as the judge has them; and with those that are explained: another peer has the same files
    and lines for all of an address, or the judge has a line of no function, which is padding between functions."""
    same = explained = total = 0
    for address, expected in judge.items():
        frames = ours.get(address, [])
        n = max(len(frames), len(expected))
        found = same_frames(frames, expected)
        as_others = any(len(other.get(address, [])) == len(frames) and
                        all(a[1:] == b[1:] for a, b in zip(frames, other[address])) for other in others)
        is_padding = expected[0][0] == "??" and all(frame[0] == "??" for frame in frames)
        total += n
        same += found
        explained += n if as_others or is_padding else found
    return (100 * same / total, 100 * explained / total) if total else (0.0, 0.0)


def differences(ours, judge, most):
    for address, expected in judge.items():
        frames = ours.get(address, [])
        if most > 0 and same_frames(frames, expected) != max(len(frames), len(expected)):
            most -= 1
            print(f"    {address:#x}")
            for who, found in (("kiln", frames), ("eu-addr2line", expected)):
                for name, file, line in found:
                    print(f"      {who:12} {name[:60]} {file}:{line}")


def compare(path):
    print(f"{path}: {os.path.getsize(path) / 1e6:,.0f} MB, {N:,} addresses", flush=True)
    print(f"  {'':24} {'CPU ms':>9} {'addr/s':>8} {'MB peak':>8} {'x ours':>7} {'% eu-addr2line':>15} {'% explained':>13}",
          flush=True)
    with tempfile.TemporaryFile("w+") as addresses:
        write_addresses(path, addresses)
        rows = [(name, *measure(command, addresses)) for name, command in peers(path)]
    found = {name: frames for name, _, _, frames in rows}
    judge = found.get("eu-addr2line", {})
    for name, cpu, peak, frames in rows:
        others = [more for other, more in found.items() if other != name and not other.startswith("kiln")]
        as_judge, as_any = agreement(frames, judge, others)
        print(f"  {name:24} {cpu * 1e3:9.1f} {N / cpu:8.0f} {peak:8.1f} {cpu / rows[0][1]:7.1f} {as_judge:15.2f} "
              f"{as_any:13.2f}", flush=True)
    differences(rows[0][3], judge, int(os.environ.get("KILN_BENCH_SHOW", "0")))


def main():
    for path in filter(os.path.exists, files()):
        compare(path)


if __name__ == "__main__":
    main()
