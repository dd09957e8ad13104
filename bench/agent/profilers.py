# SPDX-License-Identifier: Apache-2.0
"""Who takes part: Kiln's agent, OpenTelemetry's eBPF profiler (OTEL_PROFILER), perf record.  Each that sends has a receiver of its own
behind a relay; what it sent can be asked there."""
import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys

from relay import Relay

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/support"))
BUILD = pathlib.Path(os.environ.get("KILN_BUILD_DIR", ROOT / "build")).resolve()
KILN = os.environ.setdefault("KILN", str(BUILD / "kiln"))
from kiln_server import KilnServer  # noqa: E402
from loads import forever, real_loads  # noqa: E402

HZ = 19
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what was started ends then too
MIXED = ("g++", "python3", "node", "sqlite3", "xz")
SWARM = "sh -c 'ls / | sort | head -1' >/dev/null && sleep 0.05"  # some 80 processes a second


def load(folder):
    """Programs that keep two processors busy, a pair that wakes each other all the time, and a swarm of short ones."""
    loads = real_loads(folder)
    return [loads[name] for name in MIXED if name in loads] + [[str(BUILD / "bench_pingpong")], forever(SWARM)]


def end_with_parent(command):
    """The command, which ends also where this program is killed."""
    return ["setpriv", "--pdeathsig", "KILL", "--"] + command


@contextlib.contextmanager
def running(commands, folder, log="load.log"):
    """Each in a session of its own, all of which end."""
    with open(folder / log, "ab") as out:
        started = [subprocess.Popen(end_with_parent(c), stdout=subprocess.DEVNULL, stderr=out, stdin=subprocess.DEVNULL, start_new_session=True, cwd=folder)
                   for c in commands]
    try:
        yield started
    finally:
        for process in started:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


class Profiler:
    """One under measurement; `words` go behind its command."""

    def __init__(self, folder, *words):
        self.folder, self.words, self.process = folder / self.name.replace(" ", "-"), words, None
        self.folder.mkdir(exist_ok=True)

    def __enter__(self):
        with open(self.folder / "log", "ab") as log:
            self.process = subprocess.Popen(end_with_parent(self.command() + list(self.words)), stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                                            cwd=self.folder, start_new_session=True)
        return self

    def __exit__(self, *_):
        self.ask_to_end()
        self.end()

    def ask_to_end(self):
        """What it has not sent yet it may send now."""
        self.process.send_signal(signal.SIGINT)

    def end(self):
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(15)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def check(self):
        if self.process.poll() is not None:
            sys.exit(f"{self.name} ended with {self.process.returncode}: {(self.folder / 'log').read_text()[-2000:]}")


class Sender(Profiler):
    """One that sends to a receiver."""

    def __enter__(self):
        self.server = KilnServer()
        self.server.start()
        self.relay = Relay(self.server.otlp_grpc)
        return super().__enter__()

    def __exit__(self, *whatever):
        super().__exit__(*whatever)
        self.relay.close()
        self.server.__exit__()

    def sent(self):
        return self.relay.sent

    def first_export(self):
        return self.relay.first

    def profile(self):
        """All of it that is CPU time, as OTLP's JSON."""
        return json.loads(subprocess.run([KILN, "query", "-s", f"http://127.0.0.1:{self.server.http}", "--from", "now-1h", "--format",
                                          "otlp-json", "process_cpu:cpu:nanoseconds"], stdout=subprocess.PIPE, check=True).stdout)


class Kiln(Sender):
    name = "kiln agent"

    def command(self):
        return [KILN, "agent", "-F", str(HZ), "--endpoint", f"http://127.0.0.1:{self.relay.port}", "--protocol", "grpc", "--listen",
                "127.0.0.1:0", "--socket", "off", "--server", "off", "--data-dir", str(self.folder), "--symbol-cache", str(self.folder / "symbols"),
                "--ready-file", str(self.folder / "ready")] + self.waits()

    def waits(self):
        return ["--off-cpu", "off"] if knows_waits() else []


class KilnWaits(Kiln):
    name = "kiln, waits"

    def waits(self):
        return ["--off-cpu", "on"]


class OpenTelemetry(Sender):
    name = "OpenTelemetry's"

    def command(self):
        return [os.environ["OTEL_PROFILER"], "-collection-agent", f"127.0.0.1:{self.relay.port}", "-disable-tls",
                "-samples-per-second", str(HZ)]


class Perf(Profiler):
    """It names nothing and walks by frame pointers; what it "sends" is its file, compressed."""
    name = "perf record"

    def command(self):
        return ["perf", "record", "-q", "-F", str(HZ), "-a", "-g", "-e", "cpu-clock", "-z", "-o", str(self.folder / "perf.data")]

    def sent(self):
        path = self.folder / "perf.data"
        return path.stat().st_size if path.exists() else 0

    def first_export(self):
        return None


def knows_waits():
    return "--off-cpu" in subprocess.run([KILN, "help", "agent"], stdout=subprocess.PIPE, text=True, check=True).stdout


def all_there(only=None):
    """Those that can take part here, or of them those of the names `only`."""
    kinds = ([Kiln] + [KilnWaits] * knows_waits() + [OpenTelemetry] * bool(os.environ.get("OTEL_PROFILER"))
             + [Perf] * bool(shutil.which("perf")))
    return [kind for kind in kinds if not only or kind.name in only]


def with_tracefs():
    """OpenTelemetry's wants to see tracefs: where it is not mounted, this program starts itself anew where it is."""
    if os.path.exists("/sys/kernel/tracing/events") or not os.environ.get("OTEL_PROFILER"):
        return
    os.execvp("unshare", ["unshare", "--mount", "sh", "-c", 'mount -t tracefs tracefs /sys/kernel/tracing && exec "$@"', "sh",
                          sys.executable, *sys.argv])
