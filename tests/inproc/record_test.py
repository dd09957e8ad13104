#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`kiln record --alloc`, `--heap` and `--lock` as a person calls them, and what `kiln diff` makes of two of them."""
import json
import os
import pathlib
import pty
import re
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(os.environ.get("KILN_SOURCE_DIR", ".")).resolve() / "tests/support"))
from checks import check, exit_code  # noqa: E402
import readme  # noqa: E402
from preload_kit import KILN, PROGRAMS, Folder, clean, kiln  # noqa: E402

SOURCE = pathlib.Path(__file__).resolve().parent / "programs/leak.c"
EXIT_USAGE, EXIT_INPUT = 2, 3


def leaking_line():
    return next(i for i, line in enumerate(SOURCE.read_text().splitlines(), 1) if "/* here */" in line)


def record(folder, name, *words, options=()):
    done = kiln("record", "--json", "-o", folder / name, *options, "--", *words)
    said = json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else {}
    return done, said


def check_alloc(folder):
    done, said = record(folder, "a.pb.gz", PROGRAMS / "leak", "5000", options=("--alloc", "--alloc-bytes", "128K"))
    truth = sum((i % 1000 + 500) for i in range(20000)) + 5000 * 1000 + (2 << 20)
    check("all that is allocated is there", abs(said.get("alloc_space", 0) / truth - 1) < 0.4, (said, truth, done))
    check("and how often", abs(said.get("alloc_objects", 0) / 25001 - 1) < 0.4, said)
    check("nothing else is in the file", "inuse_space" not in said and "delay" not in said, said)
    check("the command's status is told", said.get("command", {}).get("status") == 0, said)
    check("what it printed is in front of the summary", done.stdout.startswith("served\n"), done)
    top = kiln("top", "-t", "alloc_space", folder / "a.pb.gz").stdout
    check("functions of the program are named, with their file", re.search(r"\bwork\b.*leak\.c", top), top)
    lines = kiln("top", "-t", "alloc_space", "--granularity", "line", folder / "a.pb.gz").stdout
    check("and lines", f"remember:{leaking_line()}" in lines or f"leak.c:{leaking_line()}" in lines, lines)


def check_leak(folder):
    for name, blocks in (("heap1.pb.gz", 100), ("heap2.pb.gz", 10000)):
        done, said = record(folder, name, PROGRAMS / "leak", blocks, options=("--heap", "--alloc-bytes", "128K"))
        check(f"what is in use with {blocks} blocks leaked", abs(said.get("inuse_space", 0) / (blocks * 1000 + (2 << 20)) - 1)
              < 0.5, (said, done))
    told = kiln("diff", "-t", "inuse_space", "--granularity", "line", folder / "heap1.pb.gz", folder / "heap2.pb.gz")
    grew = told.stdout.partition("Grew:")[2].partition("Shrank:")[0].partition("Within")[0]
    first = next((line for line in grew.splitlines()[2:] if line.strip()), "")
    check("kiln diff heap1 heap2 names the leak, at its line", re.search(rf"(remember|leak\.c):{leaking_line()}\b", grew), told)
    check("and nothing else of the program that allocates", "work leak.c" not in grew, grew)
    print(first)


def check_lock(folder):
    done, said = record(folder, "l.otlp", PROGRAMS / "lock_convoy", "40", options=("--lock",))
    text = kiln("record", "--lock", "-o", folder / "l.pb.gz", "--", PROGRAMS / "lock_convoy", "10").stderr
    words = re.search(r"next +\S*kiln (.*)", text)
    top = kiln(*words[1].split()).stdout if words else ""
    check("what is said to be next names who held the lock", "write_journal" in top, (text, top))
    check("waits for locks are there", said.get("delay", 0) > 0 and said.get("contentions", 0) > 0, (said, done))
    top = kiln("top", "-t", "delay", "-l", "kiln.lock.role=waiter", folder / "l.otlp").stdout
    check("with who waited", "read_balance" in top and "write_journal" not in top, top)
    top = kiln("top", "-t", "delay", "-l", "kiln.lock.role=holder", folder / "l.otlp").stdout
    check("and who held the lock", "write_journal" in top, top)
    strict = kiln("check", "--strict", folder / "l.otlp")
    check("what is written passes kiln check --strict", strict.returncode == 0, strict)


def start(folder, name, *words):
    """One that runs until it is ended: it prints a line once it has something to tell."""
    return subprocess.Popen([KILN, "record", "--alloc", "--heap", "--json", "-o", folder / name, *words], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, env=clean())


def check_says(folder):
    done = kiln("record", "--alloc", "--heap", "-o", folder / "b.pb.gz", "--", PROGRAMS / "leak", "3000")
    check("a summary for people", re.search(r"recorded leak for [\d.]+ s, from inside\n", done.stderr)
          and "allocated, " in done.stderr and "in use at the end" in done.stderr and "kiln top" in done.stderr, done)
    done = kiln("record", "--alloc", "-o", folder / "one.svg", "--", "dd", "if=/dev/zero", "of=/dev/null", "bs=64M", "count=1", "status=none")
    check("one object is one object", re.search(r"allocated, [\d,]+ objects?\n", done.stderr) and ", 1 objects" not in done.stderr, done)
    drawing = (folder / "one.svg").read_text(encoding="utf-8") if done.returncode == 0 else ""
    check("a drawing shows bytes", "<title>Memory allocated: " in drawing, drawing[:1000])
    process = start(folder, "c.pb.gz", "--", "sh", "-c", f"while {PROGRAMS / 'leak'} 10; do :; done")
    process.stdout.readline()
    process.send_signal(signal.SIGTERM)
    out, said = process.communicate(timeout=120)
    told = [json.loads(line)["command"].get("signal") for line in out.splitlines() if line != "served"]
    check("a signal ends the command too", (process.returncode, told) in ((0, [signal.SIGTERM]), (EXIT_INPUT, [])), (out, said))


def check_ended(folder):
    """A program that never ends by itself, and is killed by what asks it to: what it has until then is told."""
    forever = "--", PROGRAMS / "leak", "5000", "forever"

    def check_told(what, process):
        out, why = process.communicate(timeout=120)
        said = json.loads(out.splitlines()[-1]) if process.returncode == 0 else {}
        check(f"{what}: the command is ended", said.get("command", {}).get("signal") == signal.SIGTERM, (process.returncode, out, why))
        check(f"{what}: what it has in use is told", said.get("inuse_space", 0) > 1 << 20, said)

    process = start(folder, "d.pb.gz", *forever)
    process.stdout.readline()
    process.send_signal(signal.SIGTERM)
    check_told("by a signal", process)
    seconds = 1
    while (process := start(folder, "e.pb.gz", "--duration", f"{seconds}s", *forever)).stdout.readline() != "served\n" and seconds < 60:
        process.communicate(timeout=120)  # a busy machine did not let it begin
        seconds *= 4
    check_told("after a while", process)


def press(key, *command):
    """The command in a terminal of its own, where the key is pressed once it has printed a line: its status and output."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(command[0], [str(word) for word in command], clean())
    said = b""
    try:
        while b"served" not in said and (more := os.read(terminal, 4096)):
            said += more
        os.write(terminal, key)
        while more := os.read(terminal, 4096):
            said += more
    except OSError:  # it is closed
        pass
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), said.decode()


def check_key(folder):
    """Ctrl-C reaches the command at once, which ends by it, in a handler of its own or without one: nothing is lost."""
    kept = "import signal, time\nkept = bytearray(3 << 20)\nprint('served', flush=True)\nwhile True:\n    time.sleep(100)\n"
    again = ("import os, signal\ndef end(*_):\n    signal.signal(signal.SIGINT, signal.SIG_DFL)\n    os.kill(os.getpid(), signal.SIGINT)\n"
             "assert signal.signal(signal.SIGINT, end) is signal.default_int_handler\n" + kept)
    for what, words in (("no handler", (PROGRAMS / "leak", "5000", "forever")), ("an exception", (sys.executable, "-c", kept)),
                        ("a handler that lets it end", (sys.executable, "-c", again))):
        code, said = press(b"\x03", KILN, "record", "--heap", "--alloc", "--json", "-o", folder / "k.pb.gz", "--", *words)
        told = json.loads(said[said.index('{"recorded"'):]) if code == 0 else {}
        check(f"Ctrl-C, {what}: the command ends by it", told.get("command", {}).get("signal") == signal.SIGINT, (code, said))
        check(f"Ctrl-C, {what}: what it allocated is told", told.get("alloc_space", 0) > 1 << 20, said)


def check_wrong(folder):
    rows = [(("--alloc",), EXIT_USAGE, "record what?"),
            (("--alloc", "-a"), EXIT_USAGE, "for a command that is started"),
            (("--heap", "--wall", "--", "true"), EXIT_USAGE, "not both"),
            (("--alloc", "--", "/nowhere/x"), EXIT_USAGE, "there is no such program"),
            (("--lock", "-o", folder / "n.svg", "--", "true"), EXIT_INPUT, "no samples")]
    for words, code, text in rows:
        done = kiln("record", *words)
        check(f"record {' '.join(map(str, words))}: exit {code}", done.returncode == code and text in done.stderr, done)


def check_readme(folder):
    done, line = readme.run("build/kiln record --alloc", folder, env=clean())
    drawing = (folder / "memory.svg").read_text(encoding="utf-8") if done.returncode == 0 else ""
    check("README: what a program allocates", re.search(r"allocated, [\d,]{5,} objects\n", done.stderr), (line, done))
    check("README: functions have names", all(name in drawing for name in ("merge_files", "kiln_pprof_decode", "kiln_merge")),
          drawing[:2000])


def main():
    with Folder() as folder:
        scratch = folder / "scratch"
        scratch.mkdir()
        os.environ["TMPDIR"] = str(scratch)
        check_alloc(folder)
        check_leak(folder)
        check_lock(folder)
        check_says(folder)
        check_ended(folder)
        check_key(folder)
        check_wrong(folder)
        check_readme(folder)
        check("no folder is left behind", not list(scratch.iterdir()), list(scratch.iterdir()))
    return exit_code()


if __name__ == "__main__":
    sys.exit(main())
