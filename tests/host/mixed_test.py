#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A mixed load of real programs: at least 99.5 % of the stacks reach the entry point, lost samples counted as failures.

Compilers, interpreters, a database, a compressor, programs in Go and Rust; whichever of them are here.  Java is asked to
keep frame pointers: its code has no tables.
"""
import os
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(os.environ.get("KILN_SOURCE_DIR", ".")).resolve() / "tests/support"))
from checks import check, exit_code  # noqa: E402
from host_kit import KILN, PROGRAMS, Folder, need_host, plausible, record  # noqa: E402

PROMISED = 0.995
SECONDS = 1  # of each, of CPU time where it can be told
LEAST = 30  # samples that show something
APART = ("no_user", "compat")

CPP = """#include <map>
#include <regex>
#include <string>
#include <algorithm>
int main() { std::map<std::string, std::regex> m; m.emplace("a", std::regex("[a-z]+")); return (int)m.size(); }
"""
PYTHON = """
import json, re, time
end = time.process_time() + %d
while time.process_time() < end:
    text = json.dumps([{"key-%%d" %% i: [i] * 5} for i in range(300)])
    sorted(re.findall(r"key-(\\\\d+)", text)); json.loads(text)
"""
NODE = """
while (process.cpuUsage().user < %d * 1e6) {
  const a = Array.from({ length: 2000 }, (_, i) => ({ key: "k" + (i * 7919) %% 1009, list: [i, i + 1] }));
  JSON.parse(JSON.stringify(a)).sort((x, y) => (x.key < y.key ? -1 : 1)).map((x) => x.list.reduce((s, v) => s + v, 0));
}
"""
SQL = """WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
SELECT count(DISTINCT hex(i * 7919 %% 10007)), sum(length(printf('%%d-%%x', i, i * i))) FROM n;"""
JAVA = """
public class Burn {
    static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
    public static void main(String[] a) {
        long end = System.nanoTime() + %dL * 1000000000L; long sum = 0;
        while (System.nanoTime() < end) sum += fib(25);
        System.out.println(sum);
    }
}
"""


def loads(folder, seconds):
    """Commands by name; each works for some seconds."""
    (folder / "a.cpp").write_text(CPP)
    (folder / "a.py").write_text(PYTHON % seconds)
    (folder / "a.js").write_text(NODE % seconds)
    rows = {
        "g++": f"g++ -O2 -c {folder}/a.cpp -o {folder}/a.o",
        "python3": f"/usr/bin/python3 {folder}/a.py",
        "node": f"node {folder}/a.js",
        "sqlite3": f"sqlite3 :memory: \"{SQL % 2000000}\"",
        "xz": f"head -c 6000000 {KILN} | xz -9c",
        "perl": f"perl -e 'while ((times)[0] < {seconds}) {{ my %h; $h{{$_ * 7919 % 10007}}++ for 1..5000 }}'",
        "going": f"{PROGRAMS}/going {seconds}",
        "rusty": f"{PROGRAMS}/rusty {seconds}",
    }
    return {name: command for name, command in rows.items() if shutil.which(name) or (PROGRAMS / name).exists()}


def record_at_work(folder, command_of, seconds=SECONDS):
    """Some programs go by the clock on the wall: a busy machine may hardly let them, and then it takes longer."""
    rec = record(folder, "sh", "-c", f"{command_of(seconds)} >{folder}/out 2>&1", frequency=199)
    walked = sum(n for end, n in rec.summary.get("stacks", {}).items() if end not in APART)
    return rec if walked > LEAST or seconds > 10 else record_at_work(folder, command_of, 4 * seconds)


def check_mixed(folder):
    total = complete = lost = 0
    for name in loads(folder, SECONDS):
        rec = record_at_work(folder, lambda seconds, name=name: loads(folder, seconds)[name])
        ends = rec.summary.get("stacks", {})
        walked = sum(n for end, n in ends.items() if end not in APART)
        bad = {end: n for end, n in ends.items() if end not in (*APART, "complete")}
        print(f"{name}: {ends.get('complete', 0)} of {walked} complete, {rec.summary.get('lost')} lost, {bad}", flush=True)
        check(f"{name}: it was seen at work", walked > LEAST, (rec.said, rec.summary, (folder / "out").read_bytes()[-300:]))
        total, complete, lost = total + walked, complete + ends.get("complete", 0), lost + rec.summary.get("lost", 0)
    check(f"all together: {complete / max(total, 1):.2%} of {total} stacks, and {lost} lost",
          complete >= PROMISED * (total + lost) or plausible(complete, total + lost, PROMISED))


def check_java(folder):
    if not shutil.which("java"):
        return

    def command(seconds):
        (folder / "Burn.java").write_text(JAVA % seconds)
        return f"java -XX:+PreserveFramePointer {folder}/Burn.java"

    rec = record_at_work(folder, command)
    check(f"java with frame pointers: {rec.summary.get('complete', 0):.1%} complete", rec.total > LEAST and
          rec.summary["complete"] > 0.95, (rec.said, rec.summary))


def main():
    need_host("chain")
    with Folder() as folder:
        check_mixed(folder)
        check_java(folder)
    return exit_code()


if __name__ == "__main__":
    sys.exit(main())
