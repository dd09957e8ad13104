#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Our unwind rows say what elfutils' libdw says, at random addresses of this machine's programs.

A rule that rows cannot say must be said to be unknown, and must be rare; another rule is a bug.
"""
import glob
import os
import pathlib
import shutil
import subprocess
import sys

LIBRARIES = """libc.so.6 ld-linux-x86-64.so.2 libm.so.6 libstdc++.so.6 libgcc_s.so.1 libcrypto.so.3 libssl.so.3
    libpcre2-8.so.0 libsqlite3.so.0 libz.so.1 libzstd.so.1 libgmp.so.10 libcurl.so.4 libevent-2.1.so.7
    libxxhash.so.0 liblzma.so.5 libLLVM-14.so.1""".split()
PROGRAMS = "git python3.11 node perl bash gcc gdb xz openssl cmake ninja clang-14 perf".split()
ADDRESSES = 3000


def has_frames(path):
    """Whether libdw has something to say: of a stripped Go program we read Go's own table."""
    found = subprocess.run(["readelf", "-SW", path], capture_output=True, text=True)
    return " .eh_frame" in found.stdout or " .debug_frame" in found.stdout


def files():
    found = [f"/lib/x86_64-linux-gnu/{name}" for name in LIBRARIES]
    found += [path for path in map(shutil.which, PROGRAMS) if path]
    found.append(os.environ["KILN"])
    found += glob.glob(os.environ["KILN_BUILD_DIR"] + "/programs/*")
    real = {os.path.realpath(path) for path in found if os.path.exists(path)}
    return sorted(path for path in real if has_frames(path))


def main():
    program = pathlib.Path(os.environ["KILN_BUILD_DIR"]) / "cfi_peer"
    if not program.exists():
        print("skipped: libdw-dev is not installed, or cfi_peer was not built")
        return 77
    done = subprocess.run([program, str(ADDRESSES), *files()], stdout=subprocess.PIPE, text=True)
    print(done.stdout, end="")
    asked, agreed, unfollowed, different = map(int, done.stdout.splitlines()[-1].split())
    if done.returncode != 0 or asked < 10 * ADDRESSES:
        print("some files could not be read")
        return 1
    if different or agreed < asked * 0.998:
        print(f"{different} rules differ, {unfollowed} of {asked} are not followed")
        return 1
    return 0


sys.exit(main())
