#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What does profiling from inside cost real programs?

Each program alone, with libkiln at its default, with everything on (CPU 100 Hz, alloc, heap, lock, wall, threads, loop; depth 128; 10,000
samples; every 30 s), and with what others offer: jemalloc and its profiler, tcmalloc and its sampling, heaptrack.  Runs take
turns, each of about a second with its start and its end; the first of each are not counted.  CPU time is user and system of the
program and its children, memory the most that was resident; both are medians.  A ratio comes with its spread: half of all
turns, each compared with its own run of the program alone, lie between the two.  What a start and an end cost is the row of `true`,
which does nothing else.

  BENCH_INPROC_RUNS=12   how many of each; of what others offer a quarter, of heaptrack one
  BENCH_INPROC_OTHERS=0  libkiln alone
"""
import json
import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

BUILD = pathlib.Path(os.environ["KILN_BUILD_DIR"])
LIBKILN = BUILD / "libkiln.so.0"
RUNS = int(os.environ.get("BENCH_INPROC_RUNS", "12"))
OFTEN = ("alone", "kiln default", "kiln everything")
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
    if os.environ.get("BENCH_INPROC_OTHERS") == "0":
        return name == "alone" or name.startswith("kiln")
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


def redis_used(variables, prefix, folder, requests=100000, options=()):
    """CPU of the server alone, while its own benchmark asks it, so often in each of four ways."""
    path = folder / "redis.sock"
    path.unlink(missing_ok=True)
    server = subprocess.Popen([*prefix, "redis-server", "--port", "0", "--unixsocket", path, "--save", "", *options],
                              env=environment(variables), cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until = time.monotonic() + 60
    while not path.exists() and time.monotonic() < until:
        time.sleep(0.02)
    subprocess.run(["redis-benchmark", "-s", path, "-t", "set,get,lpush,hset", "-n", str(requests), "-P", "32", "-r", "100000",
                    "-d", "200", "-q"], stdout=subprocess.DEVNULL, check=True)
    subprocess.run(["redis-cli", "-s", path, "shutdown", "nosave"], stdout=subprocess.DEVNULL, check=True)
    _, _, usage = os.wait4(server.pid, 0)
    server.returncode = 0
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


# ---- tables ----

def is_due(way, name, turn):
    if not available(way) or (way == "heaptrack" and name in ("true", "redis")):
        return False
    return way in OFTEN or turn < (1 if way == "heaptrack" else max(1, RUNS // 4))


def measure(folder):
    """By program and way: CPU seconds and MiB of each turn."""
    found = {}
    commands = programs(folder, 1)
    names = [*commands, *(["redis"] if shutil.which("redis-benchmark") else [])]
    for turn in range(-1, RUNS):
        for name in names:
            for way, (variables, prefix) in ways(folder).items():
                if not is_due(way, name, turn) or (turn < 0 and way not in OFTEN):
                    continue
                one = (redis_used(variables, prefix, folder) if name == "redis"
                       else used([*prefix, *commands[name]], variables, folder))
                if turn >= 0:
                    found.setdefault((name, way), []).append(one)
    return found


def cpu_of(found, name, way):
    return statistics.median(cpu for cpu, _ in found[name, way])


def mib_of(found, name, way):
    return statistics.median(mib for _, mib in found[name, way])


def ratio_of(found, name, way):
    """Of the medians, and between which half of the turns lie."""
    each = [one[0] / alone[0] for one, alone in zip(found[name, way], found[name, "alone"])]
    low, _, high = statistics.quantiles(each, n=4) if len(each) > 1 else each * 3
    return cpu_of(found, name, way) / cpu_of(found, name, "alone"), low, high


def show(found, names, title, cell):
    print(f"{title:18}" + "".join(f"{name:>26}" for name in names))
    for way in dict.fromkeys(way for _, way in found):
        print(f"{way:18}" + "".join(f"{cell(name, way) if (name, way) in found else '-':>26}" for name in names))
    print()


def verdict(good):
    return "met" if good else "not met"


def show_verdicts(found, names):
    mib = max(mib_of(found, n, "kiln everything") - mib_of(found, n, "alone") for n in names)
    work = max(mib_of(found, n, "kiln alloc") - mib_of(found, n, "alone") for n in names)
    ends = cpu_of(found, "true", "kiln everything") - cpu_of(found, "true", "alone")
    print(f"start and end of a program: {ends * 1e3:+.1f} ms")
    print(f"everything on: {mib:+.1f} MiB at most; target < 50 MB: {verdict(mib < 47.7)}")
    print(f"allocations and heap: {work:+.1f} MiB at most; target <= 4 MiB: {verdict(work <= 4)}")


def main():
    subprocess.run(["cmake", "--build", BUILD, "--target", "bench_pair", "kiln_inproc_shared"], check=True,
                   stdout=subprocess.DEVNULL)
    with tempfile.TemporaryDirectory() as folder:
        found = measure(pathlib.Path(folder))
    names = list(dict.fromkeys(name for name, _ in found))
    show(found, names, "CPU s (ratio)", lambda name, way: "{:.3f} ({:.3f}, {:.3f}-{:.3f})".format(
        cpu_of(found, name, way), *ratio_of(found, name, way)))
    show(found, names, "MiB resident", lambda name, way: f"{mib_of(found, name, way):.1f}")
    show_verdicts(found, names)
    if os.environ.get("BENCH_JSON"):
        pathlib.Path(os.environ["BENCH_JSON"]).write_text(json.dumps({" / ".join(k): v for k, v in found.items()}, indent=1))


if __name__ == "__main__":
    main()
