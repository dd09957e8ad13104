#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`kiln record` as a person calls it: what it writes and says, how it ends, and what it says where it cannot."""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(os.environ.get("KILN_SOURCE_DIR", ".")).resolve() / "tests/support"))
from checks import check, exit_code  # noqa: E402
import readme  # noqa: E402
from host_kit import KILN, PROGRAMS, Folder, has_chain, kiln_for_all, need_host, record, stacks_of, wait_for  # noqa: E402

CHAIN = ("burn_leaf", "middle_a", "outer", "main")
EXIT_USAGE, EXIT_INPUT, EXIT_IO = 2, 3, 4


def kiln(*words, cwd=None, user=None, **more):
    return subprocess.run([pathlib.Path(KILN).resolve(), *map(str, words)], capture_output=True, text=True, check=False,
                          timeout=240, cwd=cwd, user=user, **more)


def check_summary(folder):
    done = kiln("record", "--", PROGRAMS / "chain", "0.5", cwd=folder)
    said = done.stderr
    check("it ends well", done.returncode == 0, said)
    check("it reports samples, rate and processes", re.search(r"recorded chain for \d+\.\d s at 499 Hz: [\d,]+ samples of 1 process\n", said),
          said)
    check("how many stacks are complete", re.search(r"stacks +(100\.0|\d\d\.\d) % complete", said), said)
    check("how the command ended", "chain ended with status 0" in said, said)
    files = list(folder.glob("kiln-chain-*Z.pb.gz"))
    check("where it was written, and what to do next", len(files) == 1 and f"kiln top {files[0].name}" in said, said)
    check("nothing on standard output", done.stdout == "", done.stdout)
    top = kiln("top", files[0]) if files else None
    check("kiln top shows the function", top and "burn_leaf" in top.stdout, top)
    check("the time in the name of the file is read by kiln push", "by its own" not in
          kiln("push", "--dry-run", files[0]).stderr, files)


def check_formats(folder):
    for name in ("a.pb.gz", "a.otlp", "a.json", "a.svg", "a.folded", "a.speedscope.json", "a.otlp.zst"):
        done = kiln("record", "-q", "-F", "499", "-o", folder / name, "--", PROGRAMS / "chain", "0.2")
        text = b""
        if (folder / name).exists():
            text = (folder / name).read_bytes()
        check(f"{name} is written, quietly", done.returncode == 0 and done.stderr == "" and len(text) > 20, done)
        if name.endswith(".svg"):
            check(f"{name} shows the function", b"burn_leaf" in text, text[:200])
        else:
            check(f"{name} has the chain", any(has_chain(f, CHAIN) for f in stacks_of(folder / name)), name)
    done = kiln("record", "-q", "-o", "-", "--to", "collapsed", "--", PROGRAMS / "chain", "0.3")
    check("-o - writes to standard output", re.search(r"outer;middle_a;burn_leaf \d+\n", done.stdout), done)
    done = kiln("record", "-o", folder / "b.otlp", "--json", "--", PROGRAMS / "chain", "0.2")
    said = json.loads(done.stdout)
    check("--json tells the same to programs", said["samples"] > 0 and said["file"].endswith("b.otlp") and
          said["command"]["status"] == 0 and said["ended_by"] == "command", said)
    strict = kiln("check", "--strict", folder / "b.otlp")
    check("what it writes passes kiln check --strict", strict.returncode == 0, strict)
    profcheck = os.environ.get("PROFCHECK")
    if profcheck:
        done = subprocess.run([profcheck, folder / "b.otlp"], capture_output=True, text=True, check=False)
        check("and OpenTelemetry's profcheck", done.returncode == 0, done)


def check_first(folder):
    """The command is held until it is looked at: a tenth of a second of CPU time is all it has, fifty samples."""
    rec = record(folder, PROGRAMS / "spawn", "--short", "100")
    check(f"{rec.total} samples of a tenth of a second at 499 Hz", 25 <= rec.total <= 100, rec.said)


def has_worked(pid):
    """Whether a child of it has used the processor for a quarter of a second."""
    done = subprocess.run(["ps", "--ppid", str(pid), "-o", "comm=,pid="], capture_output=True, text=True, check=False)
    for comm, child in map(str.split, done.stdout.splitlines()):
        fields = pathlib.Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
        if comm == "chain" and int(fields[11]) >= os.sysconf("SC_CLK_TCK") / 4:
            return True
    return False


def check_ends(folder):
    began = time.monotonic()
    rec = record(folder, PROGRAMS / "chain", "600", words=("-d", "0.5s"))
    check("-d ends the recording, and the command", rec.code == 0 and rec.summary["ended_by"] == "time" and
          rec.summary["command"].get("signal") == signal.SIGTERM and time.monotonic() - began < 120, rec.summary)
    process = subprocess.Popen([PROGRAMS / "chain", "3"])
    rec = record(folder, words=("-p", process.pid))
    process.wait()
    check("-p ends with the process", rec.summary.get("ended_by") == "gone", (rec.said, rec.summary))
    process = subprocess.Popen([KILN, "record", "--json", "-o", folder / "c.otlp", "--", PROGRAMS / "chain", "600"],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_for(lambda: has_worked(process.pid))
    process.send_signal(signal.SIGINT)
    out, said = process.communicate(timeout=120)
    summary = json.loads(out or "{}")
    check("an interrupt ends it in good order, and the command gets it too", process.returncode == 0 and
          summary["ended_by"] == "signal" and summary["command"].get("signal") == signal.SIGINT, (summary, said))
    rec = record(folder, "sh", "-c", f"{PROGRAMS}/chain 0.3; exit 7")
    check("the exit status is the recording's, the command's is told", rec.code == 0 and
          rec.summary["command"]["status"] == 7, rec.summary)


def check_user(folder):
    done = kiln("record", "-q", "-u", "nobody", "-o", folder / "d.otlp", "--", "sh", "-c",
                f"id -un; {shutil.copy(PROGRAMS / 'chain', folder)} 0.2")
    check("--user runs the command as somebody else", done.stdout == "nobody\n" and done.returncode == 0, done)


def check_wrong(folder):
    rows = [
        ((), EXIT_USAGE, "record what?"),
        (("-a", "--", "true"), EXIT_USAGE, "not both"),
        (("-p", "0"), EXIT_USAGE, "no process id"),
        (("-p", "2147483647"), EXIT_USAGE, "there is no process 2147483647"),
        (("-F", "1000000", "-a"), EXIT_USAGE, "between 1 and 1000 Hz"),
        (("--user", "nobody-at-all", "--", "true"), EXIT_USAGE, "there is no user"),
        (("-o", folder / "e.jfr", "-a"), EXIT_USAGE, "can be read, but not written"),
        (("-o", "/nowhere/e.svg", "-a"), EXIT_IO, "cannot be written"),
        (("-o", folder, "-a"), EXIT_IO, "cannot be written: Is a directory"),
        (("--cgroup", "/nowhere", "-o", folder / "e.svg"), EXIT_USAGE, "there is no such cgroup"),
        (("-F", "1", "-o", folder / "e.svg", "--", "sh", "-c", "exit 7"), EXIT_INPUT, "and ended with status 7"),
        (("-o", folder / "e.svg", "--", "/nowhere/program"), EXIT_USAGE, "there is no such program"),
        (("-o", folder / "e.svg", "--", "/etc/passwd"), EXIT_IO, "cannot be run"),
        (("-o", folder / "e.svg", "--", "sleep", "0.2"), 0, ""),
    ]
    for words, code, text in rows:
        done = kiln("record", *words)
        good = done.returncode == code and text in done.stderr if code else done.returncode in (0, EXIT_INPUT)
        check(f"record {' '.join(map(str, words))}: exit {code}", good and "Traceback" not in done.stderr, done)
    done = subprocess.run([kiln_for_all(folder), "record", "-a", "-d", "1s", "-o", folder / "nobody.svg"], check=False,
                          capture_output=True, text=True, timeout=60, user=65534, extra_groups=[])
    check("without privilege: exit 4, and one sentence says what is missing and how to grant it",
          done.returncode == EXIT_IO and done.stderr.count("\n") == 1 and "CAP_" in done.stderr and "root" in done.stderr,
          done)


def check_readme(folder):
    done, line = readme.run("sudo build/kiln record", folder)
    samples = re.search(r"at 499 Hz: ([\d,]+) samples", done.stderr)
    drawing = (folder / "cpu.svg").read_text(encoding="utf-8") if done.returncode == 0 else ""
    check("README: enough samples for a drawing", samples and int(samples[1].replace(",", "")) >= 100, (line, done))
    check("README: functions have names", all(name in drawing for name in ("merge_files", "kiln_pprof_decode", "kiln_merge")),
          drawing[:2000])


def main():
    need_host("chain", "spawn")
    with Folder() as folder:
        os.chmod(folder, 0o755)
        check_summary(folder)
        check_formats(folder)
        check_first(folder)
        check_ends(folder)
        check_user(folder)
        check_wrong(folder)
        check_readme(folder)
    return exit_code()


if __name__ == "__main__":
    sys.exit(main())
