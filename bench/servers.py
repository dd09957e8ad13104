# SPDX-License-Identifier: Apache-2.0
"""Servers under measurement: Kiln, and Pyroscope where $PYROSCOPE names its program.

A server runs in a folder of its own (below $BENCH_DIR, else the place for temporary files), on loopback.  CPU is user
and system time of its process, memory what the kernel says of it, disk all files below its data folder.
"""
import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.request

KILN = os.path.abspath(os.environ.get("KILN", "build/kiln"))
PYROSCOPE = os.environ.get("PYROSCOPE")
DATA = pathlib.Path(os.environ.get("KILN_TEST_DATA", "../shared/data"))


class Server:
    """A server's process, its folder, and what the kernel knows of it."""
    name = "?"

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="kiln-bench-", dir=os.environ.get("BENCH_DIR")))

    def start(self):
        (self.folder / "ready.json").unlink(missing_ok=True)
        self.log = open(self.folder / "log", "ab")
        began = time.monotonic()
        self.process = subprocess.Popen(self.command(), cwd=self.folder, stdin=subprocess.DEVNULL, stdout=self.log,
                                        stderr=self.log)
        while not self.ready():
            if self.process.poll() is not None:
                raise RuntimeError(f"{self.name} ended: {(self.folder / 'log').read_text()[-2000:]}")
            time.sleep(0.002)
        return time.monotonic() - began

    def ready(self):
        with contextlib.suppress(OSError, KeyError, ValueError):
            return urllib.request.urlopen(f"{self.url()}/ready", timeout=5).status == 200
        return False

    def cpu(self):
        """From the process's CPU clock (clock_getcpuclockid(3)), which has no ticks of 10 ms as /proc/PID/stat has."""
        return time.clock_gettime(~self.process.pid << 3 | 2)

    def memory(self, what="VmRSS"):
        status = (pathlib.Path("/proc") / str(self.process.pid) / "status").read_text()
        return next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith(what))

    def forget_peak(self):
        (pathlib.Path("/proc") / str(self.process.pid) / "clear_refs").write_text("5")

    def disk(self):
        return sum(f.stat().st_size for f in self.data().rglob("*") if f.is_file())

    def settle(self):
        """Everything taken is written, merged, and out of the way; the CPU seconds that took."""
        before = self.cpu()
        self.compact()
        return self.cpu() - before

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(60)
        self.process.kill()
        self.process.wait()

    def restart(self, cold=False):
        """Ends and starts it; `cold`: its files are not in the system's memory any more, as far as it lets us say so."""
        self.stop()
        for file in self.data().rglob("*") if cold else ():
            if file.is_file():
                with open(file, "rb") as data:
                    os.fsync(data.fileno())
                    os.posix_fadvise(data.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        return self.start()

    def close(self):
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


class Kiln(Server):
    name = "kiln"

    def command(self):
        return [KILN, "server", "--data-dir", "data", "--listen", "127.0.0.1:0", "--otlp-grpc", "127.0.0.1:0",
                "--otlp-http", "127.0.0.1:0", "--socket", str(self.folder / "sock"), "--ready-file", "ready.json",
                "--retention", "36500d", *self.words]

    def url(self):
        return f"http://127.0.0.1:{json.loads((self.folder / 'ready.json').read_text())['http']}"

    def data(self):
        return self.folder / "data"

    def compact(self):
        subprocess.run([KILN, "store", "compact", "--server", self.url()], check=True, capture_output=True)


class Pyroscope(Server):
    name = "pyroscope"
    port = 14040
    here = ("compactor.ring.instance-addr", "distributor.ring.instance-addr", "overrides-exporter.ring.instance-addr",
            "query-frontend.instance-addr", "query-scheduler.ring.instance-addr", "segment-writer.lifecycler.addr",
            "store-gateway.sharding-ring.instance-addr", "ingester.lifecycler.addr", "memberlist.bind-addr",
            "memberlist.advertise-addr", "server.http-listen-address", "server.grpc-listen-address")

    def command(self):
        return [PYROSCOPE, f"-server.http-listen-port={self.port}", "-self-profiling.disable-push=true",
                "-usage-stats.enabled=false", "-tracing.enabled=false", "-storage.backend=filesystem",
                "-storage.filesystem.dir=data/store", "-pyroscopedb.data-path=data/db",
                "-distributor.ingestion-rate-limit-mb=4096", "-distributor.ingestion-burst-size-mb=4096",
                "-validation.max-profile-stacktrace-samples=0", "-validation.max-profile-size-bytes=0",
                "-ingester.max-global-series-per-tenant=0", "-log.level=error",
                *(f"-{flag}=127.0.0.1" for flag in self.here), *self.words]

    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def data(self):
        return self.folder / "data"

    def compact(self):
        """It compacts by itself, some seconds after the last write."""
        size = None
        while size != self.disk():
            size = self.disk()
            time.sleep(20)


@contextlib.contextmanager
def running(kind, *words):
    """A server of this kind; `words` are more options of it."""
    server = kind()
    server.words = words
    try:
        server.took = server.start()
        yield server
    finally:
        server.close()


def kinds():
    return [Kiln] + ([Pyroscope] if PYROSCOPE else [])


def templates(shape):
    """Options of `kiln loadgen` that make it mutate real captures, where they are."""
    if shape == "pprof":
        files = [DATA / "pprof/large.cpu.pb.gz"]
    else:
        files = sorted((DATA / "otlp/host-mix.1.11").glob("*.otlp"))
    return [word for file in files if file.exists() for word in ("--template", str(file))]


def load(server, *words):
    """Sends a load, made before the clock starts; its account, with the CPU seconds of the server in `cpu`."""
    before = server.cpu()
    done = subprocess.run([KILN, "loadgen", "--server", server.url(), "--json", "--prepare", "--timeout", "60s", "-j", "16",
                           *map(str, words)], capture_output=True, text=True)
    if not done.stdout:
        raise RuntimeError(f"kiln loadgen: {done.stderr}")
    account = json.loads(done.stdout)
    account["cpu"] = server.cpu() - before
    return account


def show(what, value, note=""):
    print(f"  {what:<50} {value:>16}  {note}".rstrip(), flush=True)
