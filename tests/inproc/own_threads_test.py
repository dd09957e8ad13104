#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A program of one thread with libkiln's threads in it: its heap stays its own and whole, its children live, and no thread keeps a
privilege that it drops."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(os.environ.get("KILN_SOURCE_DIR", ".")).resolve() / "tests/support"))
from checks import check, exit_code  # noqa: E402
from inproc_kit import Sink, ok  # noqa: E402
from preload_kit import LIBKILN, PROGRAMS, Folder, bare, profiles_of, same, under  # noqa: E402

BUSY = {"KILN_PROFILES": "cpu,alloc,heap,lock,wall,threads,loop", "KILN_ALLOC_BYTES": "4096", "KILN_ALLOC_RATE": "0",
        "KILN_CPU_HZ": "500", "KILN_EXPORT_INTERVAL_MS": "100"}
PLUGIN = PROGRAMS / "trap_plugin.so"
# What takes locks of the C library that a fork leaves taken, reads the environment or loads libraries: thread/helper.h, hook/own.c.
NOT_OURS = re.compile(r"(f|fd|p|fre|tmp)open|(open|read|close|scan)dir|(local|gm|mk)time(_r)?|strftime|tzset|strn?dup|v?asprintf|getline|getdelim|"
                      r"reg(comp|exec)|setlocale|d?c?gettext|__tls_get_addr|realpath|get(pw|gr)\w+|s?random|tsearch|syslog")
HEAP, THOUSANDS = PROGRAMS / "one_thread_heap", "1500"


def check_heap(folder):
    alone = bare(HEAP, THOUSANDS, PLUGIN)
    check("the program ends well alone", alone.returncode == 0, alone)
    done = under(folder / "busy", HEAP, THOUSANDS, PLUGIN, settings=BUSY)
    check("the same with libkiln, exporting all the time", same(done, alone), (done, alone))
    check("and it has exported", len(profiles_of(folder / "busy")) > 4, os.listdir(folder / "busy"))
    done = under(folder / "checked", HEAP, "300", PLUGIN, behind="libc_malloc_debug.so.0",
                 settings=BUSY | {"GLIBC_TUNABLES": "glibc.malloc.check=3"})
    check("glibc finds its heap whole", same(done, alone), (done, alone))


def check_guard(folder):
    """libkiln's threads never call the program's allocator."""
    guard = str(PROGRAMS / "one_thread_guard.so")
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
    check("the guard sees a thread that looks up a name", done.returncode == 66, done)


def check_references():
    if not shutil.which("nm"):
        print("skipped: nm is not installed")
        return
    told = subprocess.run(["nm", "-D", "--undefined-only", LIBKILN], capture_output=True, text=True, check=True).stdout
    names = {line.split()[-1].split("@")[0] for line in told.splitlines()}
    check("libkiln refers to functions of the C library", "snprintf" in names or "__snprintf_chk" in names, names)
    check("and to none that its threads may not call", not [name for name in names if NOT_OURS.fullmatch(name)],
          [name for name in names if NOT_OURS.fullmatch(name)])


def check_drop(folder):
    if os.getuid() != 0:
        print("skipped: only root can give up being root")
        return
    for way in ("hooked", "bypassed"):
        done = under(folder / way, PROGRAMS / "one_thread_drop", way, settings=BUSY)
        check(f"no thread is root any more, hook {way}", done.stdout == b"0, still root: 0\nlater: 0\n", done)


def main():
    with Folder() as folder:
        folder.chmod(0o755)
        check_heap(folder)
        check_guard(folder / "guard")
        check_references()
        (folder / "open").mkdir()
        (folder / "open").chmod(0o777)
        check_drop(folder / "open")
    return exit_code()


sys.exit(main())
