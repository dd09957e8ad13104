#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What does profiling from inside cost real programs?

Each program alone, with libkiln at its default, with everything on (CPU 100 Hz, alloc, heap, lock, wall, threads, loop; depth 128; 10,000
samples; every 30 s), and with what others offer: jemalloc and its profiler, tcmalloc and its sampling, heaptrack.  Runs take turns; CPU time is
the least of all runs, user and system of the program and its children; memory is the most that was resident.  What a start and
an end cost is the row of `true`, which does nothing else.  Instructions are callgrind's, with libkiln forced to work there,
without timers, which callgrind has no clock for: the difference of a longer and a shorter run, so that start and end are not in it.

  BENCH_INPROC_RUNS=5   how many of each
"""
import json
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

BUILD = pathlib.Path(os.environ["KILN_BUILD_DIR"])
LIBKILN = BUILD / "libkiln.so.0"
RUNS = int(os.environ.get("BENCH_INPROC_RUNS", "5"))
LIBRARIES = pathlib.Path("/usr/lib/x86_64-linux-gnu")
EVERYTHING = {"KILN_PROFILES": "cpu,alloc,heap,lock,wall,threads,loop", "KILN_CPU_HZ": "100", "KILN_ALLOC_BYTES": "524288",
              "KILN_MAX_STACK_DEPTH": "128", "KILN_MAX_SAMPLES": "10000", "KILN_EXPORT_INTERVAL_MS": "30000"}
JEMALLOC, TCMALLOC = LIBRARIES / "libjemalloc.so.2", LIBRARIES / "libtcmalloc.so.4"


def ways(folder):
    """Name: variables, and words in front of the command."""
    out = {"KILN_OUT_DIR": str(folder / "profiles"), "KILN_FOLLOW": "1"}
    return {
        "alone": ({}, []),
        "kiln alloc": ({"LD_PRELOAD": str(LIBKILN), "KILN_PROFILES": "alloc,heap"} | out, []),
        "kiln default": ({"LD_PRELOAD": str(LIBKILN)} | out, []),
        "kiln everything": ({"LD_PRELOAD": str(LIBKILN)} | EVERYTHING | out, []),
        "jemalloc": ({"LD_PRELOAD": str(JEMALLOC)}, []),
        "jemalloc prof": ({"LD_PRELOAD": str(JEMALLOC), "MALLOC_CONF": "prof:true,lg_prof_sample:19"}, []),
        "tcmalloc": ({"LD_PRELOAD": str(TCMALLOC)}, []),
        "tcmalloc sampling": ({"LD_PRELOAD": str(TCMALLOC), "TCMALLOC_SAMPLE_PARAMETER": "524288"}, []),
        "heaptrack": ({}, ["heaptrack", "-o", str(folder / "heaptrack")]),
    }


def available(name):
    if name.startswith("jemalloc"):
        return JEMALLOC.exists()
    if name.startswith("tcmalloc"):
        return TCMALLOC.exists()
    return name != "heaptrack" or shutil.which("heaptrack") is not None


def environment(more):
    return {k: v for k, v in os.environ.items() if not k.startswith(("KILN_", "OTEL_", "LD_PRELOAD"))} | more


def used(command, variables, cwd):
    """CPU seconds of a command and its children, and the most memory that one of them had, in MiB."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    process = subprocess.Popen([*map(str, command)], env=environment(variables), cwd=cwd, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if process.returncode:
        raise RuntimeError(f"{command}: exit {process.returncode}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return cpu, usage.ru_maxrss / 1024


# ---- programs ----

SQL = """WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT {rows}) SELECT 1 FROM n WHERE i < 0;
CREATE TABLE t(i INTEGER PRIMARY KEY, a TEXT, b REAL);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT {rows}) INSERT INTO t SELECT i, 'name ' || (i * 7919 % 10007), i / 7.0 FROM n;
CREATE INDEX x ON t(a, b);
SELECT a, count(*), sum(b) FROM t GROUP BY a ORDER BY 3 DESC LIMIT 10;
SELECT count(*) FROM t WHERE a LIKE '%77%';
UPDATE t SET a = upper(a) WHERE i % 3 = 0;
"""
PYTHON = """import json, re
rows = [{"id": i, "name": f"customer {i}", "tags": ["a", "b", str(i)], "price": i / 7} for i in range(4000)]
for _ in range(ROUNDS):
    text = json.dumps(rows)
    back = json.loads(text)
    found = re.findall(r"customer (\\d+)", text)
    words = sorted(set(re.split(r"\\W+", text)))
    index = {row["name"]: row for row in back}
print(len(found), len(words), len(index))
"""


def programs(folder, scale):
    """Name: a command; at `scale` of its usual length."""
    (folder / "work.sql").write_text(SQL.format(rows=int(300000 * scale)))
    (folder / "work.py").write_text(PYTHON.replace("ROUNDS", str(max(1, int(40 * scale)))))
    cc1plus = subprocess.run(["g++", "-print-prog-name=cc1plus"], capture_output=True, text=True, check=False).stdout.strip()
    source = folder / "big.cpp"
    source.write_text("#include <map>\n#include <string>\n" + "".join(
        f"struct T{i} {{ std::map<std::string, int[{i + 1}]> m; int f() {{ m[\"a\"][0]++; return (int)m.size(); }} }};\n"
        f"int g{i}() {{ return T{i}().f(); }}\n" for i in range(int(15 * scale))))
    subprocess.run(["g++", "-E", source, "-o", folder / "big.ii"], check=True)
    found = {
        "true": ["true"],
        "mix": [BUILD / "bench_pair", "mix", "0", str(int(3_000_000 * scale))],
        "sqlite3": ["sqlite3", ":memory:", f".read {folder / 'work.sql'}"],
        "python3": [sys.executable, folder / "work.py"],
        "cc1plus": [cc1plus, "-quiet", "-O1", "-fpreprocessed", folder / "big.ii", "-o", "/dev/null"],
    }
    return {name: command for name, command in found.items() if shutil.which(str(command[0]))}


def redis_used(variables, prefix, folder):
    """CPU of the server alone, while its own benchmark asks it."""
    path = folder / "redis.sock"
    path.unlink(missing_ok=True)
    server = subprocess.Popen([*prefix, "redis-server", "--port", "0", "--unixsocket", path, "--save", ""],
                              env=environment(variables), cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until = time.monotonic() + 60
    while not path.exists() and time.monotonic() < until:
        time.sleep(0.02)
    subprocess.run(["redis-benchmark", "-s", path, "-t", "set,get,lpush,hset", "-n", "100000", "-P", "32", "-r", "100000", "-d",
                    "200", "-q"], stdout=subprocess.DEVNULL, check=True)
    server.send_signal(signal.SIGTERM)
    _, _, usage = os.wait4(server.pid, 0)
    server.returncode = 0
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


# ---- tables ----

def measure(folder):
    found = {}
    commands = programs(folder, 3)
    for turn in range(RUNS):
        for way, (variables, prefix) in ways(folder).items():
            if not available(way) or (way == "heaptrack" and turn):
                continue
            for name, command in commands.items():
                if (name, way) == ("true", "heaptrack"):
                    continue
                keep(found, name, way, used([*prefix, *command], variables, folder))
            if shutil.which("redis-benchmark") and way != "heaptrack":
                keep(found, "redis", way, redis_used(variables, prefix, folder))
    return found


def keep(found, name, way, measured):
    cpu, mib = measured
    before = found.get((name, way), (cpu, mib))
    found[name, way] = min(before[0], cpu), min(before[1], mib)


def instructions(command, variables, folder):
    counted = folder / "callgrind"
    subprocess.run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={counted}", *map(str, command)], cwd=folder,
                   env=environment(variables), capture_output=True, check=True)
    with open(counted, encoding="utf-8", errors="replace") as lines:
        return int(next(line for line in lines if line.startswith(("summary:", "totals:"))).split()[1])


def count(folder):
    """Share of instructions that libkiln adds, by program."""
    out = {"LD_PRELOAD": str(LIBKILN), "KILN_OUT_DIR": str(folder / "profiles"), "KILN_FOLLOW": "1", "KILN_FORCE": "1",
           "KILN_PROFILES": "alloc,heap,lock"}
    more = {}
    counted = {}
    for scale in (0.2, 0.6):
        for name, command in programs(folder, scale).items():
            for way, variables in (("alone", {}), ("with", out)):
                counted[name, way, scale] = instructions(command, variables | {"PYTHONHASHSEED": "0"}, folder)
    for name in dict.fromkeys(name for name, _, _ in counted):
        alone, with_it = (counted[name, way, 0.6] - counted[name, way, 0.2] for way in ("alone", "with"))
        if name != "true":
            more[name] = with_it / alone - 1
    return more


def verdict(good):
    return "met" if good else "not met"


def main():
    subprocess.run(["cmake", "--build", BUILD, "--target", "bench_pair", "kiln_inproc_shared"], check=True,
                   stdout=subprocess.DEVNULL)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        found = measure(folder)
        names = list(dict.fromkeys(name for name, _ in found))
        print(f"{'CPU s (ratio)':20}" + "".join(f"{name:>18}" for name in names))
        for way in dict.fromkeys(way for _, way in found):
            cells = [found.get((name, way)) for name in names]
            print(f"{way:20}" + "".join(f"{c[0]:10.2f} ({c[0] / found[n, 'alone'][0]:.3f})" if c else f"{'-':>18}"
                                        for n, c in zip(names, cells)))
        print(f"\n{'MiB resident':20}" + "".join(f"{name:>18}" for name in names))
        for way in dict.fromkeys(way for _, way in found):
            print(f"{way:20}" + "".join(f"{found[n, way][1]:18.1f}" if (n, way) in found else f"{'-':>18}" for n in names))
        real = [n for n in names if n not in ("true", "mix")]
        cpu = max(found[n, "kiln everything"][0] / found[n, "alone"][0] - 1 for n in real)
        mib = max(found[n, "kiln everything"][1] - found[n, "alone"][1] for n in names)
        work = max(found[n, "kiln alloc"][1] - found[n, "alone"][1] for n in names)
        ends = found["true", "kiln everything"][0] - found["true", "alone"][0]
        print(f"\nstart and end of a program: {ends * 1e3:+.1f} ms")
        print(f"everything on: {cpu:+.1%} CPU at most; target < 2 %: {verdict(cpu < 0.02)}")
        print(f"everything on: {mib:+.1f} MiB at most; target < 50 MB: {verdict(mib < 47.7)}")
        print(f"allocations and heap: {work:+.1f} MiB at most; target <= 4 MiB: {verdict(work <= 4)}")
        if shutil.which("valgrind"):
            more = count(folder)
            print("instructions added: " + ", ".join(f"{n} {share:+.2%}" for n, share in more.items()))
            real = [share for n, share in more.items() if n != "mix"]
            print(f"on the real programs: {max(real):+.2%} at most; target <= 1 %: {verdict(max(real) <= 0.01)}")
        if os.environ.get("BENCH_JSON"):
            pathlib.Path(os.environ["BENCH_JSON"]).write_text(json.dumps({" / ".join(k): v for k, v in found.items()}, indent=1))


if __name__ == "__main__":
    main()
