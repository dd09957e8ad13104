#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How many addresses a second and processor are looked up once they are known?  The same random
addresses for every peer, in Kiln's own program, which has debug information.  CPU time, because a
busy machine must not count."""
import os
import random
import shutil
import subprocess
import tempfile

BUILD = os.environ["KILN_BUILD_DIR"]
SOURCE = os.environ["KILN_SOURCE_DIR"]
N, MANY, MS, PASSES = 20000, 400000, 2000, 4
WANTED = 5e6


def addresses(path, n):
    out = subprocess.run(["readelf", "-sW", path], check=True, capture_output=True, text=True).stdout
    rows = [line.split() for line in out.splitlines()]
    functions = [(int(row[1], 16), int(row[2], 0)) for row in rows
                 if len(row) > 7 and row[3] == "FUNC" and row[6] not in ("UND", "ABS")]
    rng = random.Random(1)
    chosen = rng.choices([f for f in functions if f[1] > 0], k=n)
    return "".join(f"{start + rng.randrange(size):#x}\n" for start, size in chosen)


def cpu_s(command, text):
    with tempfile.TemporaryFile("w+") as file:
        file.write(text)
        file.seek(0)
        process = subprocess.Popen(command, stdin=file, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = status
    return usage.ru_utime + usage.ru_stime


def by_passes(command, text):
    """Look-ups a second of what only reads and prints: a pass more, without the first."""
    once = cpu_s(command, text)
    return N * PASSES / max(cpu_s(command, text * (1 + PASSES)) - once, 1e-9)


def ours(path, text):
    subprocess.run(["cmake", "--build", BUILD, "--target", "bench_warm"], check=True, stdout=subprocess.DEVNULL)
    out = subprocess.run([f"{BUILD}/bench_warm", path, str(MS)], input=text, check=True, capture_output=True, text=True).stdout
    for line in out.splitlines():
        name, rate, frames = line.split()
        yield f"kiln, from {'its memory' if name == 'memory' else 'the cache on disk'}", float(rate), frames


def rust(path, text):
    target = f"{BUILD}/addr2line-rust"
    manifest = f"{SOURCE}/bench/peers/addr2line-rust/Cargo.toml"
    if not shutil.which("cargo") or subprocess.run(
            ["cargo", "build", "--release", "--locked", "--quiet", "--manifest-path", manifest, "--target-dir", target],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode:
        return
    out = subprocess.run([f"{target}/release/addr2line-warm", path, str(MS)], input=text, check=True, capture_output=True,
                         text=True).stdout
    yield "addr2line of Rust, as a library", float(out.split()[0]), out.split()[1]


def tools(path, text):
    for command in (["eu-addr2line", "-i", "-f", "-C", "-e", path], ["addr2line", "-i", "-f", "-C", "-e", path]):
        if shutil.which(command[0]):
            yield f"{command[0]}, printing", by_passes(command, text), "-"


def main():
    path = f"{BUILD}/kiln"
    text = addresses(path, N)
    print(f"warm: {N:,} addresses of {os.path.basename(path)}, look-ups a second of CPU time")
    mine = 0
    for who in (ours, rust, tools):
        for name, rate, frames in who(path, text):
            mine = rate if name.startswith("kiln") else mine
            ratio = "" if name.startswith("kiln") else f"   kiln, from disk, {mine / rate:.1f}x"
            print(f"  {name:34} {rate:12,.0f}   frames {frames}{ratio}", flush=True)
            if name.startswith("kiln") and rate < WANTED:
                print(f"  below {WANTED:,.0f}: missed")
    print(f"warm: {MANY:,} addresses, far more than the processor's caches hold")
    for name, rate, frames in ours(path, addresses(path, MANY)):
        print(f"  {name:34} {rate:12,.0f}   frames {frames}", flush=True)


if __name__ == "__main__":
    main()
