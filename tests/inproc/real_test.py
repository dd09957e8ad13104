#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Real programs do the same with libkiln in front of them and everything on as without: their results, their output,
their exit status.  real_test.py --all takes those along that take longer (make soak)."""
import importlib.util
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(os.environ.get("KILN_SOURCE_DIR", ".")).resolve() / "tests/support"))
from checks import check, exit_code  # noqa: E402
from preload_kit import LIBKILN, Folder, bare, clean, for_all, preloaded, profiles_of, same, under  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent / "real"
# Everything that can be sampled, at a hundred times the usual rate of allocations.
SETTINGS = {"KILN_PROFILES": "all", "KILN_ALLOC_BYTES": "5000", "KILN_ALLOC_RATE": "0", "KILN_EXPORT_INTERVAL_MS": "1000"}
PYTHON_TESTS = ("test_json test_dict test_list test_struct test_heapq test_thread test_select test_poll test_epoll test_context "
                "test_generators test_asyncgen test_zlib test_mmap test_popen test_threading_local test_bz2 test_array").split()
PYTHON_MORE = ("test_re test_threading test_bytes test_pickle test_itertools test_queue test_socketserver test_fork1 "
               "test_subprocess test_signal test_threadsignals test_posix test_asyncio test_multiprocessing_fork test_multiprocessing_spawn test_concurrent_futures test_ctypes "
               "test_decimal test_sqlite test_hashlib test_ssl test_io test_os test_mmap test_lzma test_bz2 test_gc "
               "test_exceptions test_unicode test_long test_set test_xml_etree test_faulthandler test_eintr").split()


def has(*programs):
    for program in programs:
        if not shutil.which(program):
            print(f"skipped: {program} is not installed")
            return False
    return True


def take_signals():
    """A shell's background jobs ignore these two, and so would all that we start: Python's tests of interrupts wait for one
    that never comes."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)


def compare(what, folder, *command, sampled=True, **more):
    alone, done = bare(*command, **more), under(folder / what, *command, settings=SETTINGS, **more)
    check(f"{what}: works alone", alone.returncode in (0, 3) and alone.stdout, alone)
    check(f"{what}: the same with libkiln", same(done, alone), (done, alone))
    check(f"{what}: was sampled", not sampled or profiles_of(folder / what), done)


def check_sqlite(folder):
    if has("sqlite3"):
        compare("sqlite", folder, "sqlite3", ":memory:", ".read " + str(HERE / "work.sql"))


def check_git(folder):
    if not has("git"):
        return
    results = []
    for name, env in (("alone", {}), ("with", preloaded(folder / "git", SETTINGS) | {"KILN_FOLLOW": "1"})):
        (folder / f"git-{name}").mkdir()
        results.append(bare(HERE / "work.sh", folder / f"git-{name}", env=env))
    check("git: works alone", results[0].returncode == 0 and results[0].stdout, results[0])
    check("git: the same with libkiln in each of its processes", same(*results), results)
    check("git: was sampled", profiles_of(folder / "git"))


def check_node(folder):
    if has("node"):
        compare("node", folder, "node", HERE / "work.js")


def check_python(folder, tests):
    """Each test by itself, so that one result can be held against the other."""
    if bare(sys.executable, "-c", "import test.test_json, test.test_re").returncode:
        print("skipped: Python's own tests are not installed")
        return
    tests = [name for name in tests if importlib.util.find_spec(f"test.{name}")]  # this Python has
    command = [sys.executable, "-m", "test", "-q", "-j2", "--timeout", "200", *tests]
    results = []
    for env in ({}, preloaded(folder / "python", SETTINGS) | {"KILN_FOLLOW": "1"}):
        done = bare(*command, env=env, cwd=folder, timeout=60 * len(tests))
        results.append(outcome(done.stdout.decode(errors="replace")))
    check(f"python: {len(tests)} of its own tests end as without: {results[0]}", results[0] == results[1] and None not in results,
          results)
    check("python: was sampled", profiles_of(folder / "python"))


def outcome(said):
    """The tests that failed, of which some only crashed or took too long, and how many cases ran and were skipped where this
    Python says so; None where it cannot be told."""
    if not re.search(r"^(Result: |== Tests result: )", said, re.M) and "OK" not in said:
        return None
    failed = re.search(r"^\d+ tests? failed:\n((?: {4}.*\n)+)", said, re.M)
    return failed.group(1).split() if failed else [], *re.findall(r"^Total tests: (.*)", said, re.M)


class Redis:
    """A server of its own on a Unix socket."""

    def __init__(self, folder, env):
        self.folder, self.env = folder, env
        folder.mkdir(parents=True, exist_ok=True)
        self.socket = folder / "s"

    def __enter__(self):
        self.process = subprocess.Popen(["redis-server", "--port", "0", "--unixsocket", self.socket, "--save", "", "--dir",
                                         self.folder, "--enable-debug-command", "local", "--appendonly", "yes"],
                                        stdout=subprocess.DEVNULL, env=clean(self.env))
        until = time.monotonic() + 60
        while self.cli("ping") != "PONG" and time.monotonic() < until:
            time.sleep(0.02)
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        self.status = self.process.wait(60)

    def cli(self, *words, text=None):
        done = subprocess.run(["redis-cli", "-s", self.socket, *words], input=text, capture_output=True, text=True,
                              check=False)
        return done.stdout.strip()

    def benchmark(self, requests):
        done = subprocess.run(["redis-benchmark", "-s", self.socket, "-n", str(requests), "-P", "16", "-q", "-r", "10000",
                               "-t", "set,get,incr,lpush,rpop,sadd,hset,zadd,lrange_100"], capture_output=True, check=False)
        return done.returncode == 0 and b"rror" not in done.stdout + done.stderr


def commands(n):
    """The same commands each time, of every kind of value."""
    rng = random.Random(7)
    for i in range(n):
        key = rng.randrange(500)
        yield rng.choice((f"SET s{key} {'x' * rng.randrange(2000)}", f"LPUSH l{key} {i}", f"HSET h{key} f{i % 50} {i}",
                          f"ZADD z{key} {i % 97} m{i % 301}", f"SADD t{key} {i % 401}", f"APPEND s{key} y",
                          f"RPOP l{key}", f"XADD x{key} {i + 1}-1 a {i}", f"DEL s{key}", f"EXPIRE h{key} 10000",
                          f"EVAL \"return redis.call('INCR', KEYS[1])\" 1 n{key}"))


def check_redis(folder, requests):
    if not has("redis-server", "redis-benchmark"):
        return
    results = []
    for name, env in (("alone", {}), ("with", preloaded(folder / "redis", SETTINGS))):
        with Redis(folder / f"redis-{name}", env) as redis:
            answers = redis.cli(text="\n".join(commands(8000)))
            rewritten = redis.cli("bgrewriteaof"), redis.cli("debug", "reload")
            digest = redis.cli("debug", "digest")
            well = redis.benchmark(requests)
        results.append((answers, rewritten[1], digest, well, redis.status))
    check("redis: answers, forks, loads, serves its benchmark and ends alone", results[0][1:2] + results[0][3:] ==
          ("OK", True, 0), results[0][1:])
    check("redis: the same with libkiln", results[0] == results[1], (results[0][1:], results[1][1:]))
    check("redis: was sampled", profiles_of(folder / "redis"))


def check_gcc(folder):
    """The same object, byte by byte."""
    if not has("g++"):
        return
    source = folder / "big.cpp"
    source.write_text("".join(f"#include <{name}>\n" for name in ("regex", "map", "iostream", "algorithm", "functional")) +
                      "int main(){std::regex r(\"a+\");std::map<std::string,int> m;std::cout<<m.size();}\n")
    made = []
    for name, env in (("alone", {}), ("with", preloaded(folder / "gcc", SETTINGS) | {"KILN_FOLLOW": "1"})):
        done = bare("g++", "-O2", "-c", source, "-o", folder / f"{name}.o", env=env)
        made.append((done.returncode, done.stderr, (folder / f"{name}.o").read_bytes()))
    check("gcc: the same object", made[0] == made[1] and made[0][0] == 0, made[1][:2])
    check("gcc: was sampled", profiles_of(folder / "gcc"))


def check_postgres(folder):
    bins = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin"))
    if not bins or os.getuid() != 0:
        print("skipped: postgres is not installed, or we are not root")
        return
    for path in (folder, folder / "postgres"):
        path.mkdir(exist_ok=True)
        path.chmod(0o777)
    results = []
    library, = for_all(folder, LIBKILN)
    with_it = preloaded(folder / "postgres", SETTINGS, library=library) | {"KILN_FOLLOW": "1"}
    for name, env in (("alone", {}), ("with", with_it)):
        results.append(run_postgres(bins[-1], folder / f"pg-{name}", env))
    check("postgres: works alone", results[0][0] == 0 and results[0][1], results[0])
    check("postgres: the same with libkiln in each of its processes", results[0] == results[1], results)
    check("postgres: was sampled", profiles_of(folder / "postgres"))


def run_postgres(bins, data, env):
    script = f"""set -e
{bins}/initdb -D {data} --no-sync -A trust -U postgres --locale=C >/dev/null
{bins}/pg_ctl -D {data} -w -o "-k {data} -h '' -c fsync=off" -l {data}/log start >/dev/null
trap '{bins}/pg_ctl -D {data} -m fast -w stop >/dev/null' EXIT
{bins}/psql -h {data} -U postgres -qAt <<'END'
create table t as select i, md5(i::text) m, i % 97 g from generate_series(1, 100000) i;
create index on t(g, m);
select g, count(*), min(m), max(m) from t group by g order by g;
select sum(hashtext(a.m || b.m)) from t a join t b on a.g = b.g and a.i < 2000 and b.i < 2000;
update t set m = upper(m) where g < 10;
delete from t where i % 3 = 0;
vacuum full analyze t;
select count(*), min(m) from t;
END
{bins}/pgbench -h {data} -U postgres -i -q -s 1 postgres >/dev/null 2>&1
{bins}/pgbench -h {data} -U postgres -n -c 4 -j 2 -t 200 postgres >/dev/null
{bins}/psql -h {data} -U postgres -qAt -c 'select count(*), sum(tbalance) = sum(tbalance) from pgbench_tellers'
grep -cE 'PANIC|terminated by signal' {data}/log || true
"""
    done = subprocess.run(["setpriv", "--reuid", "nobody", "--regid", "nogroup", "--clear-groups", "bash", "-c", script],
                          capture_output=True, check=False, timeout=300, env=clean(env), cwd="/")
    return done.returncode, done.stdout, done.stderr


def main():
    everything = "--all" in sys.argv
    if not os.path.exists(LIBKILN):
        print("skipped: libkiln was not built")
        return 77
    take_signals()
    with Folder() as folder:
        check_sqlite(folder)
        check_git(folder)
        check_node(folder)
        check_redis(folder, 500000 if everything else 20000)
        check_python(folder, PYTHON_TESTS + PYTHON_MORE if everything else PYTHON_TESTS)
        if everything:
            check_gcc(folder)
            check_postgres(folder)
    return exit_code()


if __name__ == "__main__":
    sys.exit(main())
