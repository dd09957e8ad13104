# SPDX-License-Identifier: Apache-2.0
"""Frames of addresses, as others find them and as Kiln does: for each address a list of
(linker's name, file, line), innermost first; unknown is "??", 0."""
import json
import os
import re
import shutil
import subprocess

KILN = os.environ.get("KILN", "build/kiln")
UNKNOWN = [("??", "??", 0)]


def ask(command, addresses, seconds=600):
    text = "".join(f"{address:#x}\n" for address in addresses)
    done = subprocess.run([str(word) for word in command], input=text, capture_output=True, text=True, check=False,
                          errors="replace", timeout=seconds)
    return done


def place(text):
    """file:line, with what the tools append to it."""
    text = re.sub(r" \(discriminator \d+\)$", "", text)
    row = re.match(r"(.*?):(\d+|\?)(?::\d+)?$", text)
    if not row:
        return "??", 0
    line = int(row[2]) if row[2] != "?" else 0
    # Without a line it may be the linker's name of an object's source, which has no folder.
    if row[1] in ("??", "") or line == 0 and "/" not in row[1]:
        return "??", 0
    return os.path.normpath(row[1]), line


def frames_of(text):
    """Blocks of an address and pairs of lines: addr2line -a -f -i and its relatives."""
    found, pair = {}, []
    frames = None
    for line in text.splitlines():
        if re.match(r"0x[0-9a-f]+$", line) and not pair:
            frames = []
            found[int(line, 16)] = frames
            continue
        if not line and not pair:
            continue
        pair.append(line)
        if len(pair) == 2:
            file, number = place(pair[1])
            frames.append((re.split(" inlined (?:at|in) ", pair[0])[0] or "??", file, number))
            pair = []
    return found


def elfutils(program, addresses):
    paths = [f"--debuginfo-path={program.debug_dir}"] if program.debug_dir else []
    return frames_of(ask(["eu-addr2line", *paths, "-e", program.path, "-a", "-f", "-i"], addresses).stdout)


def binutils(program, addresses):
    """Knows no directory of debug files but its own: it is shown the debug file itself."""
    return frames_of(ask(["addr2line", "-e", program.debug or program.path, "-a", "-f", "-i"], addresses).stdout)


def llvm(program, addresses):
    tool = shutil.which("llvm-symbolizer") or "llvm-symbolizer-14"
    paths = [f"--debug-file-directory={program.debug_dir}"] if program.debug_dir else []
    return frames_of(ask([tool, f"--obj={program.path}", *paths, "-a", "-i", "--functions=linkage", "--no-demangle",
                          "--output-style=GNU"], addresses).stdout)


def gimli(program, addresses):
    """The addr2line crate's program, where GIMLI_ADDR2LINE names it."""
    return frames_of(ask([os.environ["GIMLI_ADDR2LINE"], "-e", program.debug or program.path, "-a", "-f", "-i"], addresses).stdout)


def kiln_command(program, *more):
    words = ["--debug-dir", str(program.debug_dir)] if program.debug_dir else []
    return [KILN, "symbols", "resolve", *words, *more, str(program.path)]


def kiln(program, addresses):
    done = ask(kiln_command(program, "--json", "--timeout", "300s"), addresses)
    if done.returncode:
        raise RuntimeError(f"{program.path}: exit {done.returncode}: {done.stderr.strip()}")
    found = {}
    for row in json.loads(done.stdout)["addresses"]:
        frames = [(f.get("system_name") or f["function"],
                   os.path.normpath(f["file"]) if f.get("file") else "??", f.get("line", 0)) for f in row["frames"]]
        found[int(row["address"], 16)] = frames or UNKNOWN
    return found


def has_section(path, *names):
    done = subprocess.run(["readelf", "-SW", str(path)], capture_output=True, text=True, check=False)
    return any(re.search(rf"\s{re.escape(name)}\s", done.stdout) for name in names)


def code_ranges(path):
    """Sections with code, but stubs, which only the linker knows."""
    done = subprocess.run(["readelf", "-SW", str(path)], capture_output=True, text=True, check=True)
    ranges = []
    for line in done.stdout.splitlines():
        row = re.match(r"\s*\[\s*\d+\] (\S+)\s+\S+\s+([0-9a-f]{16}) [0-9a-f]+ ([0-9a-f]+) \S+\s+(\S*)", line)
        if row and "X" in row[4] and not row[1].startswith((".plt", ".iplt")):
            begin = int(row[2], 16)
            ranges.append((begin, begin + int(row[3], 16)))
    return ranges


def addresses_of(path, most, rng):
    """Every 7th byte of code where that is not more than `most`; else half of it runs, half anywhere."""
    ranges = code_ranges(path)
    total = sum(end - begin for begin, end in ranges)
    if total // 7 <= most:
        return sorted({a for begin, end in ranges for a in range(begin, end, 7)})
    chosen = set()
    while len(chosen) < most:
        begin, end = rng.choices(ranges, [end - begin for begin, end in ranges])[0]
        start = rng.randrange(begin, end)
        chosen.update(range(start, min(start + 7 * 16, end), 7) if len(chosen) < most // 2 else [start])
    return sorted(chosen)
