# SPDX-License-Identifier: Apache-2.0
"""Real programs at work, for walkers and profilers to look at.  Each runs until it is killed."""
import os
import pathlib
import shutil

SQL = """with recursive c(x) as (select 1 union all select x + 1 from c limit 1000000)
select count(*) from (select x, random() r from c order by r);"""
PYTHON = """
def leaf(n): return sum(i * i for i in range(n))
def middle(n): return sorted((leaf(n % 50), str(n)) for n in range(n))
while True: middle(1000)
"""
NODE = """
function leaf(n) { let s = 0; for (let i = 0; i < n; i++) s += Math.sqrt(i); return s; }
function middle(n) { return [...Array(n).keys()].map(i => leaf(i % 100)).sort((a, b) => a - b).length; }
for (;;) { middle(2000); JSON.parse(JSON.stringify({a: [...Array(500).keys()].map(String)})); }
"""
PERL = "my %h; while (1) { $h{$_ % 1000} .= sprintf('%d', $_) for 1..1000; %h = () }"
JAVA = """
import java.util.*;
public class Burn {
    static long leaf(long n) { long s = 0; for (long i = 0; i < n; i++) s += i * i % 7; return s; }
    public static void main(String[] args) {
        for (;;) { Map<String, Long> m = new TreeMap<>(); for (int i = 0; i < 5000; i++) m.put("k" + i, leaf(i % 100)); }
    }
}
"""


def write_inputs(tmp):
    text = tmp / "text"
    with open(text, "wb") as out:
        for path in sorted(pathlib.Path("/usr/include").rglob("*.h"))[:1500]:
            out.write(path.read_bytes())
    big = tmp / "big.cpp"
    big.write_text("#include <regex>\n#include <map>\n#include <iostream>\n#include <random>\n" + "\n".join(
        f"int f{i}(const std::string &s) {{ std::regex r(\"a{i}+\"); std::map<int, std::string> m; m[{i}] = s;"
        f" return std::regex_match(s, r) + (int)m.size(); }}" for i in range(60)))
    (tmp / "Burn.java").write_text(JAVA)
    return text, big


def forever(command):
    return ["sh", "-c", f"while {command}; do :; done"]


def real_loads(tmp):
    """name -> command, of those that are installed; what they read is in the folder `tmp`."""
    text, big = write_inputs(tmp)
    sources = os.environ.get("KILN_SOURCE_DIR", ".")
    commands = {
        "xz": forever(f"xz -6 -c -T2 {text} {text}"),
        "gzip": forever(f"gzip -9 -c {text}"),
        "openssl-sha": ["openssl", "speed", "-seconds", "30", "sha256", "sha512", "sha1"],
        "openssl-aes": ["openssl", "speed", "-seconds", "30", "-evp", "aes-256-gcm"],
        "openssl-rsa": ["openssl", "speed", "-seconds", "30", "rsa2048", "ecdsap256"],
        "sqlite3": forever(f"sqlite3 :memory: '{SQL}'"),
        "python3": ["/usr/bin/python3", "-c", PYTHON],
        "perl": ["perl", "-e", PERL],
        "g++": forever(f"g++ -O2 -c -o {tmp}/big.o {big}"),
        "git": forever(f"git -C {sources} log -p --stat -M --all"),
        "node": ["node", "-e", NODE],
        "go-build": forever("go vet fmt"),
        "java": ["java", f"{tmp}/Burn.java"],
    }
    return {name: c for name, c in commands.items() if shutil.which(c[2].split()[1] if c[0] == "sh" else c[0])}
