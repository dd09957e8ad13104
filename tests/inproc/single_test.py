#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A program of one thread stays one for the C library, with libkiln's threads beside it, and nothing breaks that counts on that."""
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(os.environ.get("KILN_SOURCE_DIR", ".")).resolve() / "tests/support"))
from checks import check, exit_code  # noqa: E402
from inproc_kit import Sink, ok  # noqa: E402
from preload_kit import LIBKILN, PROGRAMS, Folder, bare, for_all, profiles_of, same, skip, under  # noqa: E402

KNOWN = [f"2.{minor}" for minor in range(36, 43)]
BUSY = {"KILN_PROFILES": "cpu,alloc,heap,lock,wall,threads,loop", "KILN_ALLOC_BYTES": "4096", "KILN_ALLOC_RATE": "0",
        "KILN_CPU_HZ": "500", "KILN_EXPORT_INTERVAL_MS": "100", "KILN_SINGLE_THREADED": "1"}
BY_ITSELF = {name: value for name, value in BUSY.items() if name != "KILN_SINGLE_THREADED"}
PLUGIN = PROGRAMS / "trap_plugin.so"
# What allocates, locks or loads in the C library on a thread that may be ours: thread/single.h, hook/own.c.
NOT_OURS = re.compile(r"(f|fd|p|fre|tmp)open|(open|read|close|scan)dir|(local|gm|mk)time(_r)?|strftime|tzset|strn?dup|v?asprintf|getline|getdelim|"
                      r"reg(comp|exec)|setlocale|pthread_(mutex|cond|rwlock)_\w+|__tls_get_addr|realpath|get(pw|gr)\w+|s?random|tsearch|syslog")
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


def check_references():
    if not shutil.which("nm"):
        print("skipped: nm is not installed")
        return
    told = subprocess.run(["nm", "-D", "--undefined-only", LIBKILN], capture_output=True, text=True, check=True).stdout
    names = {line.split()[-1].split("@")[0] for line in told.splitlines()}
    check("libkiln knows what it refers to", "snprintf" in names or "__snprintf_chk" in names, names)
    check("and nothing that helpers may not call", not [name for name in names if NOT_OURS.fullmatch(name)],
          [name for name in names if NOT_OURS.fullmatch(name)])


def check_privileges(folder):
    """Who has none to drop, and who has."""
    nobody = {"user": 65534, "group": 65534, "extra_groups": []} if os.getuid() == 0 else {}
    heap, plugin, library = for_all(folder, HEAP, PLUGIN, LIBKILN)
    done = under(folder / "nobody", heap, "100", plugin, settings=BY_ITSELF, library=library, **nobody)
    check("without privileges it is so by itself", done.returncode == 0 and flags(done) == ["1 1"] * 3 + ["0 0"] * 2, done)
    if nobody:
        done = under(folder / "root", HEAP, "100", PLUGIN, settings=BY_ITSELF)
        check("with some it is not", done.returncode == 0 and "1 1" not in flags(done), done)


def check_drop(folder):
    if os.getuid() != 0:
        print("skipped: only root can give up being root")
        return
    program, none = PROGRAMS / "single_drop", b"0, still root: 0\nlater: 0\n"
    for name, settings in (("told to", BUSY), ("by itself", BY_ITSELF)):
        done = under(folder / name, program, "hooked", settings=settings)
        check(f"no thread is root any more, {name}", done.stdout == none, done)
    done = under(folder / "bypassed", program, "bypassed", settings=BY_ITSELF)
    check("nor where the hook was bypassed", done.stdout == none, done)


def main():
    kind, version = platform.libc_ver()
    if kind != "glibc" or version not in KNOWN:
        skip(f"{kind} {version} is not one that is known")
    with Folder() as folder:
        folder.chmod(0o755)
        check_heap(folder)
        check_guard(folder / "guard")
        check_references()
        (folder / "open").mkdir()
        (folder / "open").chmod(0o777)
        check_privileges(folder / "open")
        check_drop(folder / "open")
    return exit_code()


sys.exit(main())
