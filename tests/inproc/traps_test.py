#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs that do what breaks profilers in a process give the same with libkiln in front as without."""
import os
import pathlib
import resource
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(os.environ.get("KILN_SOURCE_DIR", ".")).resolve() / "tests/support"))
from checks import check, exit_code  # noqa: E402
from preload_kit import (INTENSE, LIBKILN, PROGRAMS, Folder, bare, clean, preloaded, profiles_of,  # noqa: E402
                        same, shared_library, under)

TRAPS = [("fork, vfork, posix_spawn, exec", ["trap_fork"]),
         ("descriptors that are known by number", ["trap_descriptors"]),
         ("an allocator that is the program's own", ["trap_heap"]),
         ("threads that end", ["trap_threads"]),
         ("a main thread that ends first", ["trap_last"]),
         ("signals in a child of vfork", ["trap_vfork"]),
         ("small, alternate and foreign stacks", ["trap_stack"]),
         ("dlopen, dlclose, RTLD_DEEPBIND, dlmopen", ["trap_dlopen", PROGRAMS / "trap_plugin.so"]),
         ("constructors, exceptions, destructors", ["trap_constructor"]),
         ("system calls that are given up", ["trap_sandbox"]),
         ("nearly all of them", ["trap_strict"]),
         ("signals that end a process", ["trap_ending"]),
         ("code that cannot be read", ["trap_code"]),
         ("privileges of one thread", ["trap_alone"]),
         ("errno, failures, signals, sleeps", ["trap_kept"])]
# tcmalloc walks stacks with its lock held whenever its heap grows, by a library that calls read(): a thread that is cancelled
# there leaves the lock behind for ever.  So nothing of ours may make that heap grow.
ALLOCATORS = {"libjemalloc.so.2": ("trap_allocator", "trap_threads", "trap_constructor", "trap_fork"),
              "libtcmalloc_minimal.so.4": ("trap_allocator", "trap_threads", "trap_fork"),
              "libtcmalloc.so.4": ("trap_allocator", "trap_threads", "trap_constructor", "trap_fork")}
NOISY = {"KILN_PROFILES": "cpu,alloc,heap,lock", "KILN_ALLOC_BYTES": "256", "KILN_ALLOC_RATE": "0"}


def check_traps(folder):
    folder.chmod(0o755)
    for what, (program, *words) in TRAPS:
        (folder / program).mkdir()
        (folder / program).chmod(0o777)  # for who is somebody else by its end
        command = [PROGRAMS / program, *words]
        alone = bare(*command)
        check(f"{program} ends well alone", alone.returncode in (0, 5), alone)
        for name, settings in (("at its default", {}), ("with everything on", INTENSE), ("at 256 bytes", NOISY)):
            done = under(folder / program, *command, settings=settings, env={"KILN_SIGNAL_MS": "5000"})
            check(f"{what}: the same {name}", same(done, alone), (done, alone))
        check(f"{what}: samples were taken", profiles_of(folder / program), os.listdir(folder))


def check_allocators(folder):
    for library, programs in ALLOCATORS.items():
        path = shared_library(library)
        if not path:
            print(f"skipped: {library} is not installed")
            continue
        for program in programs:
            alone = bare(PROGRAMS / program, env={"LD_PRELOAD": path})
            for order in ("before", "behind"):
                done = under(folder / library, PROGRAMS / program, **{order: path})
                check(f"{library} {order} libkiln: {program} is the same", same(done, alone), (done, alone))


def check_opened(folder):
    """The library behind ours is initialised before it."""
    opener, plugin = PROGRAMS / "trap_opener.so", {"TRAP_PLUGIN": str(PROGRAMS / "trap_plugin.so")}
    alone = bare(PROGRAMS / "trap_opened", env=plugin | {"LD_PRELOAD": str(opener)})
    check("trap_opened ends well alone", alone.returncode == 0, alone)
    done = under(folder, PROGRAMS / "trap_opened", settings=NOISY, env=plugin, behind=str(opener))
    check("a plugin that a constructor opened is closed: the same", same(done, alone), (done, alone))


def check_children(folder):
    show = ["sh", "-c", "env sh -c 'grep -c libkiln /proc/$$/maps; echo \"[$LD_PRELOAD]\"'"]
    done = under(folder, *show, settings={})
    check("a child does not inherit the preload", done.stdout == b"0\n[]\n", done)
    done = under(folder, *show, settings={"KILN_FOLLOW": "1"})
    check("unless it is asked for", done.stdout.decode().endswith(f"[{LIBKILN}]\n") and done.stdout[:1] != b"0", done)
    other = shared_library("libm.so.6")
    done = under(folder, *show, settings={}, behind=other)
    check("what others preload is left to the child", done.stdout == f"0\n[{other}]\n".encode(), done)
    done = under(folder, *show, settings={}, before=other)
    check("on either side", done.stdout == f"0\n[{other}]\n".encode(), done)
    done = under(folder / "off", "sh", "-c", "echo x | cat", settings={"KILN_ENABLED": "0"})
    check("KILN_ENABLED=0: nothing is written", done.stdout == b"x\n" and done.stderr == b"" and not profiles_of(folder / "off"),
          done)


def check_limits(folder):
    """What the program has not used up of a limit, we have not either; nothing of ours is worth a signal."""
    for what, limit, value in (("files may not grow", resource.RLIMIT_FSIZE, 0), ("no signal may wait", resource.RLIMIT_SIGPENDING, 0),
                               ("hardly any file", resource.RLIMIT_NOFILE, 12), ("a stack of 64 KiB", resource.RLIMIT_STACK, 65536)):
        def within(limit=limit, value=value):
            resource.setrlimit(limit, (value, value))

        alone = bare(PROGRAMS / "trap_kept", preexec_fn=within)
        done = under(folder, PROGRAMS / "trap_kept", preexec_fn=within)
        check(f"{what}: the same", (done.returncode, done.stdout) == (alone.returncode, alone.stdout) and alone.returncode == 0,
              (done, alone))
    with open(folder / "log", "wb") as log:
        log.write(b"." * 1000)
        log.flush()
        done = subprocess.run([PROGRAMS / "trap_kept"], stdout=subprocess.DEVNULL, stderr=log, check=False, timeout=200,
                              env=clean(preloaded(folder) | {"KILN_CPU_HZ": "many"}),
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)))
    check("a log that is as long as it may be gets no word", done.returncode == 0 and (folder / "log").stat().st_size == 1000, done)


def check_setuid(folder):
    if os.getuid() != 0:
        print("skipped: only root can make a setuid program of somebody else's")
        return
    program = folder / "setuid"
    shutil.copy("/usr/bin/id", program)
    os.chown(program, 65534, 65534)
    program.chmod(0o4755)
    folder.chmod(0o755)
    alone, done = bare(program, "-u"), under(folder, program, "-u")
    check("a setuid program runs as if nothing were preloaded", done.stdout == alone.stdout == b"65534\n", (done, alone))
    check("and has no profile", not profiles_of(folder), os.listdir(folder))


def stands_aside(what, folder, *command, alone, **more):
    done = under(folder, *command, **more)
    lines = done.stderr.decode(errors="replace").splitlines()
    ours = [line for line in lines if line.startswith("kiln: ")]
    check(f"{what}: the same, and one line says why", done.returncode == alone.returncode and done.stdout == alone.stdout
          and len(ours) == 1 and len(lines) == 1 + len(alone.stderr.splitlines()), (done, alone))
    check(f"{what}: nothing is sampled", not profiles_of(folder), profiles_of(folder))


def check_sanitizers(folder):
    source = folder / "plain.c"
    source.write_text('#include <stdio.h>\n#include <stdlib.h>\n'
                      'int main(void){for(int i=0;i<100000;i++)free(malloc(i%999));puts("done");return 3;}\n')
    for compiler, name in (("clang", "address"), ("clang", "thread"), ("clang", "memory"), ("gcc", "thread")):
        program = folder / f"{compiler}-{name}"
        made = subprocess.run([compiler, "-g", f"-fsanitize={name}", source, "-o", program], capture_output=True, check=False)
        if made.returncode == 0:
            stands_aside(f"{name} sanitizer of {compiler}", folder / f"out-{compiler}-{name}", program, alone=bare(program))
        else:
            print(f"skipped: {compiler} cannot build with -fsanitize={name}")
    if shutil.which("valgrind"):
        made = subprocess.run(["gcc", "-g", source, "-o", folder / "plain"], check=True)
        command = ["valgrind", "-q", "--error-exitcode=9", folder / "plain"]
        alone = bare(*command)
        # valgrind itself, a script, and its launcher are programs too: only the last one is of interest.
        env = preloaded(folder / "out-valgrind") | {"KILN_FOLLOW": "1"}
        done = subprocess.run([*map(str, command)], capture_output=True, check=False, timeout=300, env=clean(env))
        ours = [line for line in done.stderr.splitlines() if line.startswith(b"kiln: ")]
        check("valgrind: the same, and a line says why", done.returncode == alone.returncode and done.stdout == alone.stdout
              and len(ours) == 1, (done, alone))


def main():
    with Folder() as folder:
        check_traps(folder)
        check_allocators(folder / "allocators")
        check_opened(folder / "opened")
        check_children(folder / "children")
        check_limits(folder / "limits")
    with Folder() as folder:
        check_setuid(folder)
    with Folder() as folder:
        check_sanitizers(folder)
    return exit_code()


if __name__ == "__main__":
    sys.exit(main())
