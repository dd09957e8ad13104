#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`kiln run` as a person calls it: it becomes the command, tells the library what was asked for, and says where it cannot."""
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(os.environ.get("KILN_SOURCE_DIR", ".")).resolve() / "tests/support"))
from checks import check, exit_code  # noqa: E402

KILN = pathlib.Path(os.environ.get("KILN", "build/kiln")).resolve()
EXIT_USAGE = 2
OTHER = "libm.so.6"  # what somebody else preloads


def kiln_run(*words, cwd=None, env=None, **more):
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("KILN_", "OTEL_", "LD_PRELOAD"))}
    return subprocess.run([KILN, "run", *map(str, words)], capture_output=True, text=True, check=False, timeout=60,
                          cwd=cwd, env=clean | (env or {}), **more)


def shown(*words, **more):
    """The variables that --show prints."""
    done = kiln_run("--show", *words, **more)
    check(f"--show {' '.join(map(str, words))} ends well", done.returncode == 0 and done.stderr == "", done)
    return dict(line.partition("=")[::2] for line in done.stdout.replace("'", "").splitlines())


def check_variables(folder):
    v = shown("--profiles", "alloc,lock", "--alloc-bytes", "64K", "--cpu-hz", "50", "--depth", "40", "-e", "http://h:4318",
              "--protocol", "grpc", "--header", "a=b", "--header", "c=d", "-s", "shop", "-A", "x=y", "-A", "z=1", "-i", "5s",
              "--pprof", "127.0.0.1:0", "--heap-every", "1m", "--cpu-window", "15s", "--cpu-every", "5m", "--backoff", "80%",
              "--follow", "--", "ls")
    wanted = {"KILN_PROFILES": "alloc,lock", "KILN_ALLOC_BYTES": "65536", "KILN_CPU_HZ": "50", "KILN_MAX_STACK_DEPTH": "40",
              "OTEL_EXPORTER_OTLP_ENDPOINT": "http://h:4318", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc",
              "OTEL_EXPORTER_OTLP_HEADERS": "a=b,c=d", "OTEL_SERVICE_NAME": "shop", "OTEL_RESOURCE_ATTRIBUTES": "x=y,z=1",
              "KILN_EXPORT_INTERVAL_MS": "5000", "KILN_PPROF_LISTEN": "127.0.0.1:0", "KILN_HEAP_EVERY_MS": "60000",
              "KILN_CPU_WINDOW_MS": "15000", "KILN_CPU_EVERY_MS": "300000", "KILN_CPU_BACKOFF": "80", "KILN_FOLLOW": "1"}
    check("each option is a variable", wanted.items() <= v.items(), v)
    library = v.get("LD_PRELOAD", "")
    check("the library beside the program is preloaded", library == str(KILN.parent / "libkiln.so.0"), library)
    v = shown("-q", "ls", env={"LD_PRELOAD": OTHER, "OTEL_EXPORTER_OTLP_ENDPOINT": "http://user:1"}, cwd=folder)
    check("in front of what is there", v["LD_PRELOAD"] == f"{library}:{OTHER}", v)
    check("variables that the user set stand", "OTEL_EXPORTER_OTLP_ENDPOINT" not in v and "KILN_OUT_DIR" not in v, v)
    v = shown("--out-dir", "out", "ls", cwd=folder)
    check("a folder is meant from here", v["KILN_OUT_DIR"] == f"{folder}/out", v)


def check_ways(folder):
    with socket.socket() as busy:
        try:
            busy.bind(("127.0.0.1", 4318))
        except OSError:
            return  # a receiver runs here: then files are not the default
        if os.path.exists("/run/kiln/kiln.sock"):
            return
        v = shown("/bin/ls", cwd=folder)
        check("with nobody to send to, files in the folder kiln-NAME", v.get("KILN_OUT_DIR") == f"{folder}/kiln-ls", v)
        busy.listen()
        v = shown("/bin/ls", cwd=folder)
        check("where a receiver listens on this host, it is the one",
              v.get("OTEL_EXPORTER_OTLP_ENDPOINT") == "http://127.0.0.1:4318", v)
    done = kiln_run("--out-dir", folder / "a", "--pprof", "127.0.0.1:0", "true")
    check("one line says where data goes", done.stderr.startswith("kiln: true: ") and f"files in {folder}/a" in done.stderr
          and "/debug/pprof/" in done.stderr.splitlines()[0], done)


def check_becomes(folder):
    out = ("--out-dir", folder / "b", "-q")
    done = kiln_run(*out, "--", "sh", "-c", "echo $$; exit 7")
    check("the exit status is the command's", done.returncode == 7, done)
    check("nothing is said with -q", done.stderr == "", done)
    process = subprocess.Popen([KILN, "run", *map(str, out), "sh", "-c", "echo $$"], stdout=subprocess.PIPE, text=True)
    check("its process is the command's", process.communicate()[0] == f"{process.pid}\n")
    done = kiln_run(*out, "sh", "-c", "kill -TERM $$")
    check("so are signals", done.returncode == -15, done)
    done = kiln_run(*out, "cat", input="in and out\n")
    check("and standard input and output", done.stdout == "in and out\n", done)
    done = kiln_run("--out-dir", folder / "b", "sh", "-c", ":")
    check("a shell is warned of", "--follow" in done.stderr, done)


def check_interpreters(folder):
    script = folder / "tool"
    script.write_text("#!/usr/bin/env node\n")
    script.chmod(0o755)
    if shutil.which("node"):
        options = shown(script, env={"NODE_OPTIONS": "--max-old-space-size=99"})["NODE_OPTIONS"].split()
        check("node writes names for what V8 compiles", {"--perf-basic-prof-only-functions", "--interpreted-frames-native-stack",
                                                         "--max-old-space-size=99"} == set(options), options)
        options = shown("node", env={"NODE_OPTIONS": "--perf-basic-prof --interpreted-frames-native-stack"})
        check("options that are there are not said again", "NODE_OPTIONS" not in options, options)
    check("so does python", shown(sys.executable).get("PYTHONPERFSUPPORT") == "1")
    check("others are left alone", not {"NODE_OPTIONS", "PYTHONPERFSUPPORT"} & shown("ls").keys())


def build(folder, name, *flags):
    done = subprocess.run(["gcc", *flags, "-x", "c", "-", "-o", folder / name], input="int main(void){return 0;}", text=True,
                          capture_output=True, check=False)
    return folder / name if done.returncode == 0 else None


def check_bars(folder):
    rows = [("static", build(folder, "static", "-static"), "linked statically"),
            ("static-pie", build(folder, "static-pie", "-static-pie"), "linked statically"),
            ("go", shutil.which("go"), "written in Go"),
            ("musl", build(folder, "musl", "-Wl,--dynamic-linker=/lib/ld-musl-x86_64.so.1"), "linked with musl")]
    plain = build(folder, "plain")
    narrow = folder / "narrow"
    code = bytearray(plain.read_bytes())
    code[4] = 1  # ELFCLASS32
    narrow.write_bytes(code)
    narrow.chmod(0o755)
    rows.append(("32 bits", narrow, "not a 64-bit program"))
    if os.getuid() == 0:
        setuid = shutil.copy(plain, folder / "setuid")
        os.chown(setuid, 65534, 65534)
        os.chmod(setuid, 0o4755)
        rows.append(("setuid", setuid, "setuid"))
    for name, program, text in rows:
        if not program:
            continue
        done = kiln_run(program)
        check(f"{name}: says why not, and what to do instead", done.returncode == EXIT_USAGE and text in done.stderr
              and "kiln record" in done.stderr and done.stderr.count("\n") == 1, done)


def check_profiles():
    done = kiln_run("--profiles", "cpu,memory", "true")
    check("a profile that is none is refused, with those that are", done.returncode == EXIT_USAGE and '"memory"' in done.stderr
          and "alloc, heap" in done.stderr, done)
    check("all that are known are taken", shown("--profiles", "cpu,alloc,heap,lock,wall,threads,loop,mmap", "ls")["KILN_PROFILES"]
          == "cpu,alloc,heap,lock,wall,threads,loop,mmap")


def check_linked(folder):
    """Programs whose libraries decide which libkiln is for them, or none."""
    plain = build(folder, "asan", "-fsanitize=address")
    if plain:
        done = kiln_run("--out-dir", folder / "asan-out", plain)
        check("a program of gcc's AddressSanitizer runs without libkiln, and one line says so", done.returncode == 0
              and done.stderr.count("\n") == 1 and "sanitizer" in done.stderr, done)
    v = shown("ls", env={"LD_PRELOAD": "libjemalloc.so.2"}) if os.path.exists("/usr/lib/x86_64-linux-gnu/libjemalloc.so.2") else {}
    check("in front of jemalloc, the one with C++'s operators", not v or
          v["LD_PRELOAD"] == f"{KILN.parent}/new/libkiln.so.0:libjemalloc.so.2", v)


def check_wrong(folder):
    rows = [((), "nothing to work on"), (("/nowhere/x",), "there is no such program"), (("--", "nowhere-x"), "no such program"),
            (("--library", "/nowhere.so", "ls"), "/nowhere.so"), (("--cpu-hz", "often", "ls"), "not a whole number"),
            (("--folow", "ls"), "did you mean --follow")]
    odd = folder / "odd place"
    odd.mkdir()
    shutil.copy(KILN.parent / "libkiln.so.0", odd / "libkiln.so.0")
    rows.append((("--library", odd / "libkiln.so.0", "ls"), "a colon or a space"))
    for words, text in rows:
        done = kiln_run(*words)
        check(f"run {' '.join(map(str, words))}: usage", done.returncode == EXIT_USAGE and text in done.stderr
              and done.stderr.count("\n") == 1, done)
    text = folder / "text"
    text.write_text("no program")
    done = kiln_run(text)
    check("a file that may not be executed", done.returncode == 4 and "cannot be run" in done.stderr, done)


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name).resolve()
        check_variables(folder)
        check_ways(folder)
        check_becomes(folder)
        check_interpreters(folder)
        check_bars(folder)
        check_profiles()
        check_linked(folder)
        check_wrong(folder)
    return exit_code()


if __name__ == "__main__":
    sys.exit(main())
