#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A program of one thread stays one for the C library, with libkiln's threads beside it, and nothing breaks that counts on that."""
import os
import pathlib
import platform
import sys

sys.path.insert(0, str(pathlib.Path(os.environ.get("KILN_SOURCE_DIR", ".")).resolve() / "tests/support"))
from checks import check, exit_code  # noqa: E402
from inproc_kit import Sink, ok  # noqa: E402
from preload_kit import PROGRAMS, Folder, bare, profiles_of, same, skip, under  # noqa: E402

KNOWN = [f"2.{minor}" for minor in range(36, 43)]
BUSY = {"KILN_PROFILES": "cpu,alloc,heap,lock,wall,threads,loop", "KILN_ALLOC_BYTES": "4096", "KILN_ALLOC_RATE": "0",
        "KILN_CPU_HZ": "500", "KILN_EXPORT_INTERVAL_MS": "100", "KILN_SINGLE_THREADED": "1"}
PLUGIN = PROGRAMS / "trap_plugin.so"
HEAP, THOUSANDS = PROGRAMS / "single_heap", "1500"


def flags(done):
    """What the program saw of the flag, in order."""
    return [line.split(": ")[1] for line in done.stdout.decode().splitlines() if ": " in line]


def check_heap(folder):
    alone = bare(HEAP, THOUSANDS, PLUGIN)
    check("alone it has one thread until it makes some", flags(alone) == ["1 1"] * 3 + ["0 0"] * 2, alone)
    done = under(folder / "always", HEAP, THOUSANDS, PLUGIN, settings=BUSY)
    check("the same with libkiln, exporting all the time", same(done, alone), (done, alone))
    check("and it has exported", len(profiles_of(folder / "always")) > 4, os.listdir(folder / "always"))
    done = under(folder / "checked", HEAP, "300", PLUGIN, behind="libc_malloc_debug.so.0",
                 settings=BUSY | {"GLIBC_TUNABLES": "glibc.malloc.check=3"})
    check("glibc finds its heap whole", same(done, alone), (done, alone))
    done = under(folder / "never", HEAP, "100", PLUGIN, settings=BUSY | {"KILN_SINGLE_THREADED": "0"})
    check("unless it is not wanted", done.returncode == 0 and "1 1" not in flags(done), done)


def check_guard(folder):
    """Whatever helpers do, they stay out of the program's allocator."""
    guard = str(PROGRAMS / "single_guard.so")
    alone = bare(HEAP, "300", PLUGIN, "guarded")

    def guarded(what, name, settings):
        done = under(folder / name, HEAP, "300", PLUGIN, "guarded", settings=BUSY | settings, behind=guard)
        check(f"helpers allocate nothing of the program's: {what}", same(done, alone), (done, alone))

    guarded("files", "files", {})
    guarded("nobody listens", "nobody", {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"})
    guarded("another language", "language", {"LC_ALL": "C.UTF-8", "LANGUAGE": "de", "TZ": "Europe/Berlin"})
    with Sink(ok()) as sink:
        guarded("HTTP by a number", "number", {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{sink.port}"})
        guarded("HTTP by localhost", "localhost", {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://localhost:{sink.port}"})
        check("and what they sent arrived", sink.requests, sink)
    # And the guard is one: a thread that looks a name up does allocate.
    done = under(folder / "name", HEAP, "300", PLUGIN, "guarded", behind=guard,
                 settings=BUSY | {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://nobody.invalid:4318"})
    check("a helper that looks up a name counts", done.returncode == 66 or "1 1" not in flags(done)[1:], done)


def check_drop(folder):
    if os.getuid() != 0:
        print("skipped: only root can give up being root")
        return
    folder.chmod(0o777)
    program, none = PROGRAMS / "single_drop", b"0, still root: 0\nlater: 0\n"
    for name, settings in (("told to", BUSY), ("by itself", {k: v for k, v in BUSY.items() if k != "KILN_SINGLE_THREADED"})):
        done = under(folder / name, program, "hooked", settings=settings)
        check(f"no thread is root any more, {name}", done.stdout == none, done)
    done = under(folder / "bypassed", program, "bypassed", settings=settings)
    check("nor where the hook was bypassed", done.stdout == none, done)


def main():
    kind, version = platform.libc_ver()
    if kind != "glibc" or version not in KNOWN:
        skip(f"{kind} {version} is not one that is known")
    with Folder() as folder:
        folder.chmod(0o755)
        check_heap(folder)
        check_guard(folder / "guard")
        (folder / "drop").mkdir()
        check_drop(folder / "drop")
    return exit_code()


sys.exit(main())
