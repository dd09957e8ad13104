# SPDX-License-Identifier: Apache-2.0
"""Recordings of programs of known truth (tests/host/programs), for tests on the real kernel.

    need_host("chain")                              # skips where there is no kernel, privilege or program
    with Folder() as folder:
        rec = record(folder, PROGRAMS / "chain", "1")   # kiln record -- chain 1
        rec.count_chain("burn_leaf", "middle_a", "outer", "main")
"""
import collections
import json
import math
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request

KILN = os.environ.get("KILN", "build/kiln")
PROGRAMS = pathlib.Path(os.environ.get("KILN_BUILD_DIR", "build")).resolve() / "programs"
CAP_SYS_ADMIN, CAP_PERFMON, CAP_BPF = 1 << 21, 1 << 38, 1 << 39
PROBABILITY = 1e-6  # of a check of shares that fails though all is well


def can_profile():
    """Whether a kernel is here that the host profiler runs on (6.1, with BTF), and the privilege."""
    release = re.match(r"(\d+)\.(\d+)", os.uname().release)
    with open("/proc/self/status", encoding="ascii", errors="replace") as status:
        held = int(re.search(r"^CapEff:\s*(\w+)", status.read(), re.M)[1], 16)
    wanted = CAP_PERFMON | CAP_BPF
    return (tuple(map(int, release.groups())) >= (6, 1) and os.path.exists("/sys/kernel/btf/vmlinux")
            and (held & CAP_SYS_ADMIN != 0 or held & wanted == wanted))


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def need_host(*programs):
    """Skips where nothing can be profiled, or where a program was not built."""
    if not can_profile():
        skip("no privilege to load BPF programs here, or no kernel for them")
    for program in programs:
        if not (PROGRAMS / program).exists():
            skip(f"the program {program} was not built: its compiler is not here")


def wait_for(what, patience_s=60):
    """The seconds until `what` holds, more than 0; None: it did not in time."""
    began = time.monotonic()
    while not what():
        if time.monotonic() - began > patience_s:
            return None
        time.sleep(0.05)
    return max(time.monotonic() - began, 1e-9)


class Running:
    """Programs that burn while something else is looked at; their pids."""

    def __init__(self, *programs, group=None, env=None):
        self.programs, self.group, self.processes = programs, group, []
        self.env = os.environ | (env or {})

    def __enter__(self):
        for program in self.programs:
            self.processes.append(subprocess.Popen([PROGRAMS / program, "600"], env=self.env))
            if self.group:
                (self.group / "cgroup.procs").write_text(str(self.processes[-1].pid))
        return [process.pid for process in self.processes]

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
            process.wait()


def cpu_s(pid):
    """What a process has had of the processors, as the scheduler counts it."""
    return int(pathlib.Path(f"/proc/{pid}/schedstat").read_text(encoding="ascii").split()[0]) / 1e9


class Served:
    """Something of ours that has pages, on the port `http`."""
    http = 0

    def get(self, path):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.http}{path}", timeout=30) as answer:
            return answer.read().decode()

    def metric(self, name):
        found = re.findall(rf"^{re.escape(name)} (\S+)$", self.get("/metrics"), re.M)
        return float(found[0]) if found else None

    def family(self, name):
        """Of every set of labels: the value."""
        found = re.findall(rf"^{re.escape(name)}({{.*}})? (\S+)$", self.get("/metrics"), re.M)
        return {labels: float(value) for labels, value in found}


def top(http, service):
    """What `kiln query` tells of a service of the server on this port."""
    done = subprocess.run([KILN, "query", "-s", f"http://127.0.0.1:{http}", "--json", "--from", "now-5m",
                           f'process_cpu:cpu:nanoseconds{{service_name="{service}"}}'], capture_output=True, text=True,
                          check=False)
    return done.stdout


def kiln_for_all(folder):
    """The program where everybody may run it: a build below /root is root's alone."""
    folder.chmod(0o777)
    return shutil.copy(KILN, folder / "kiln")


class Recording:
    """What `kiln record` said and wrote: stacks are tuples of names, leaf first, with their counts."""

    def __init__(self, done, path):
        self.code, self.said, self.out = done.returncode, done.stderr, done.stdout
        lines = done.stdout.strip().splitlines()
        self.summary = json.loads(lines[-1]) if lines and lines[-1].startswith("{") else {}
        self.path = path
        self.stacks = stacks_of(path) if path.exists() else collections.Counter()
        self.total = sum(self.stacks.values())

    def count(self, wanted):
        """Samples whose stack, leaf first, `wanted` says yes to."""
        return sum(n for frames, n in self.stacks.items() if wanted(frames))

    def count_chain(self, *names):
        """Samples whose stack has these frames, one right after the other."""
        return self.count(lambda frames: has_chain(frames, names))

    def worst(self, wanted, n=5):
        """The most frequent stacks that `wanted` says no to: what to print when a check failed."""
        bad = collections.Counter({f: c for f, c in self.stacks.items() if not wanted(f)})
        return "\n".join(f"{c} x {' <- '.join(f[:12])} .. {len(f)}" for f, c in bad.most_common(n))


def stacks_of(path, *selection):
    """The stacks of a file: collapsed lines are root first, one line a stack."""
    done = subprocess.run([KILN, "convert", path, "--to", "collapsed", "-t", "samples", *selection],
                          capture_output=True, text=True, check=False)
    if done.returncode:
        done = subprocess.run([KILN, "convert", path, "--to", "collapsed", *selection], capture_output=True, text=True,
                              check=False)
    stacks = collections.Counter()
    for line in done.stdout.splitlines():
        frames, _, count = line.rpartition(" ")
        stacks[tuple(reversed(frames.split(";")))] += int(count)
    return stacks


def has_chain(frames, names):
    return any(frames[i:i + len(names)] == names for i in range(len(frames) - len(names) + 1))


def starts_at_main(frames):
    """Down to libc's entry: the chain is complete, and every frame of it has a name."""
    return len(frames) > 1 and frames[-1] in ("_start", "clone3", "__clone3", "clone", "__clone", "runtime.goexit",
                                              "runtime.rt0_go", "_rt0_amd64_linux", "runtime.mstart")


class Folder:
    """A folder of its own for files of recordings."""

    def __enter__(self):
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="kiln-host-"))
        return self.path

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)


def record_running(folder, *pids, seconds=1, least=21):
    """Records processes that run.  A busy machine may hardly let them: then for longer."""
    while True:
        rec = record(folder, words=("-p", ",".join(map(str, pids)), "-d", f"{seconds}s"))
        if rec.total >= least or seconds >= 30:
            return rec
        seconds *= 3


def record(folder, *command, words=(), frequency=499, env=None):
    """Runs `kiln record WORDS -- COMMAND` and reads what came of it."""
    path = pathlib.Path(tempfile.mktemp(suffix=".otlp", dir=folder))
    tail = ["--", *map(str, command)] if command else []
    done = subprocess.run([KILN, "record", "--json", "-F", str(frequency), "-o", path, *map(str, words), *tail],
                          capture_output=True, text=True, check=False, timeout=280,
                          env=None if env is None else os.environ | env)
    return Recording(done, path)


def log_binomial(k, n, p):
    return (math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) + k * math.log(p)
            + (n - k) * math.log1p(-p))


def plausible(k, n, share, slack=0.0):
    """Whether k of n is what a share of `share` (give or take `slack`) gives, but for one time in a million."""
    if n == 0:
        return False
    low, high = max(share - slack, 1e-9), min(share + slack, 1 - 1e-9)
    if low * n <= k <= high * n:
        return True
    p = low if k < low * n else high
    tail = range(0, k + 1) if k < p * n else range(k, n + 1)
    return sum(math.exp(log_binomial(i, n, p)) for i in tail) > PROBABILITY / 2


def attributes(items):
    """OTLP's list of keys and values as a dictionary."""
    return {item["key"]: next(iter(item["value"].values()), None) for item in items}


def resources_of(path):
    """Pairs of a resource's attributes and the number of its samples."""
    done = subprocess.run([KILN, "convert", path, "--to", "otlp-json"], capture_output=True, text=True, check=True)
    found = []
    for resource in json.loads(done.stdout)["resourceProfiles"]:
        samples = [sample for scope in resource["scopeProfiles"] for profile in scope["profiles"]
                   for sample in profile["samples"]]
        count = sum(sum(map(int, s["values"])) if s.get("values") else len(s["timestampsUnixNano"]) for s in samples)
        found.append((attributes(resource.get("resource", {}).get("attributes", [])), count))
    return found
