# SPDX-License-Identifier: Apache-2.0
"""Programs with libkiln in front of them, for tests in tests/inproc.

    with Folder() as folder:
        done = under(folder, "sort", "file")        # LD_PRELOAD, everything on
        profiles_of(folder, "alloc")                # the files that it wrote
"""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

KILN = pathlib.Path(os.environ.get("KILN", "build/kiln")).resolve()
BUILD = pathlib.Path(os.environ.get("KILN_BUILD_DIR", "build")).resolve()
LIBKILN = os.environ.get("LIBKILN", str(BUILD / "libkiln.so.0"))
PROGRAMS = BUILD / "inproc"
PATIENCE_MS = "20000"  # at the end of a program: a busy machine may take longer than somebody would wait
OURS = ("KILN_", "OTEL_", "LD_PRELOAD", "ENABLE_PROFILING")

# All kinds of samples, and many more of them than anybody would take: what can go wrong does so soon.
INTENSE = {"KILN_PROFILES": "all", "KILN_ALLOC_BYTES": "2048", "KILN_ALLOC_RATE": "0", "KILN_CPU_HZ": "500", "KILN_EXPORT_INTERVAL_MS": "250",
           "KILN_PPROF_LISTEN": "127.0.0.1:0"}


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


class Folder:
    """A folder of its own; what is in it goes with it."""

    def __enter__(self):
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="kiln-inproc-"))
        return self.path

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)


def for_all(folder, *paths):
    """Copies where every user may read and run them: a build below /root is root's alone."""
    shared = pathlib.Path(tempfile.mkdtemp(dir=folder))
    for path in (pathlib.Path(folder), shared):
        path.chmod(0o755)
    return [shutil.copy(path, shared) for path in paths]


def clean(env=None):
    """Our environment without a word about profiling, and `env`."""
    return {k: v for k, v in os.environ.items() if not k.startswith(OURS)} | (env or {})


def bare(*command, env=None, timeout=200, **more):
    """Runs a command as it is.  One that hangs is ended, with all that it started, and says where it hung."""
    words = [*map(str, command)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=clean(env), start_new_session=True,
                               **more)
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        where = stacks_of_session(process.pid)
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
        err += f"hung, with LD_PRELOAD={(env or {}).get('LD_PRELOAD')}:\n{where}".encode()
    return subprocess.CompletedProcess(words, process.returncode, out, err)


def stacks_of_session(leader):
    """Stacks of all processes that a command started, where a debugger is at hand."""
    pids = subprocess.run(["pgrep", "-s", str(leader)], capture_output=True, text=True, check=False).stdout.split()
    told = ""
    for pid in pids if shutil.which("gdb") else ():
        done = subprocess.run(["gdb", "-batch", "-nx", "-p", pid, "-ex", "thread apply all bt 12"], capture_output=True, text=True,
                              check=False, timeout=60)
        told += f"-- {pid}\n" + "\n".join(line for line in done.stdout.splitlines() if line.startswith(("#", "Thread")))
    return told


def preloaded(folder, settings=None, before="", behind="", library=LIBKILN):
    """The variables that put libkiln in front, writing into `folder`."""
    pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
    preload = ":".join(filter(None, (before, str(library), behind)))
    return {"LD_PRELOAD": preload, "KILN_OUT_DIR": str(folder), "KILN_EXIT_MS": PATIENCE_MS} | (INTENSE if settings is None else settings)


def under(folder, *command, settings=None, env=None, before="", behind="", library=LIBKILN, **more):
    """Runs a command with libkiln, and everything on unless `settings` says what."""
    return bare(*command, env=preloaded(folder, settings, before, behind, library) | (env or {}), **more)


def profiles_of(folder):
    """The profiles that were written into a folder, oldest first."""
    return sorted(pathlib.Path(folder).glob("*.pb.gz"), key=lambda path: (path.stat().st_mtime_ns, path.name))


def kiln(*words, **more):
    return subprocess.run([KILN, *map(str, words)], capture_output=True, text=True, check=False, timeout=120, env=clean(),
                          **more)


def same(a, b):
    """Whether two runs gave the same."""
    return (a.returncode, a.stdout, a.stderr) == (b.returncode, b.stdout, b.stderr)


def shared_library(name):
    """The path of a library that the loader knows; None: it is not installed."""
    done = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=False)
    for line in done.stdout.splitlines():
        words = line.split()
        if words and words[0] == name and "x86-64" in line:
            return words[-1]
    return None
