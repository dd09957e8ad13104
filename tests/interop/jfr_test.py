#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""JFR as others read it: recordings beside which their profiles lie as pprof must give the same
stacks and values, and what a JDK of this machine records must be what its own `jfr print` says.
Also a recording whose JVM was killed, and, where $ASYNC_PROFILER names its library, recordings of
async-profiler.  Everything goes through `kiln convert --to pprof` and a
small pprof reader of this file, which knows nothing of Kiln.
"""
import collections
import glob
import gzip
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "support"))
from checks import check, exit_code  # noqa: E402

KILN = os.environ.get("KILN", "build/kiln")
SOURCES = pathlib.Path(os.environ.get("KILN_SOURCE_DIR", "."))
DATA = pathlib.Path(os.environ.get("KILN_TEST_DATA", "../shared/data")) / "jfr"
SECONDS = 2
THRESHOLDS = ",jdk.ThreadPark#threshold=1ms,jdk.JavaMonitorEnter#threshold=1ms"


# ---- pprof ----

def fields(data):
    """(number, value) of each field of a protobuf message; numbers or bytes."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        tag = varint()
        if tag & 7 == 0:
            yield tag >> 3, varint()
        else:
            assert tag & 7 == 2, tag
            size = varint()
            yield tag >> 3, data[at:at + size]
            at += size


def numbers(values):
    """A repeated number, packed or not."""
    for value in values:
        if isinstance(value, int):
            yield value
        else:
            yield from (v for _, v in fields(b"".join(b"\x08" + part for part in split(value))))


def split(packed):
    start = 0
    for i, byte in enumerate(packed):
        if byte < 0x80:
            yield packed[start:i + 1]
            start = i + 1


def message(data):
    found = collections.defaultdict(list)
    for number, value in fields(data):
        found[number].append(value)
    return found


class Pprof:
    """Stacks, leaf first, as tuples of name:line; one counter of values for each sample type."""

    def __init__(self, data):
        profile = message(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
        strings = [s.decode() for s in profile[6]]
        types = [message(t) for t in profile[1]]
        self.types = [(strings[t[1][0]], strings[t[2][0]]) for t in types]
        functions = {}
        for function in map(message, profile[5]):
            functions[function[1][0]] = strings[function[2][0]] if function[2] else ""
        frames = {}
        for location in map(message, profile[4]):
            lines = [message(line) for line in location[4]]
            frames[location[1][0]] = tuple(
                f"{functions[line[1][0]]}:{line[2][0] if line[2] else 0}" for line in lines)
        self.values = [collections.Counter() for _ in types]
        self.labels = [collections.Counter() for _ in types]
        for sample in map(message, profile[2]):
            stack = tuple(frame for i in numbers(sample[1]) for frame in frames[i])
            labels = [message(label) for label in sample[3]]
            for i, value in enumerate(numbers(sample[2])):
                self.values[i][stack] += value
                for label in labels:
                    if label[2]:
                        self.labels[i][strings[label[1][0]], strings[label[2][0]]] += value

    def of(self, name):
        """The values of a type, without the stacks that have none of it."""
        names = [t for t, _ in self.types]
        return +self.values[names.index(name)] if name in names else collections.Counter()

    def by_thread(self, name):
        counts = self.labels[[t for t, _ in self.types].index(name)]
        return {value: n for (key, value), n in counts.items() if key == "thread.name" and n}


def convert(path):
    with tempfile.NamedTemporaryFile(suffix=".pb") as out:
        subprocess.run([KILN, "convert", "--to", "pprof", "-o", out.name, str(path)], check=True)
        return Pprof(pathlib.Path(out.name).read_bytes())


def difference(ours, theirs):
    return f"only ours {list((ours - theirs).items())[:2]}, only theirs {list((theirs - ours).items())[:2]}"


def test_expected():
    for recording in sorted(DATA.glob("*.jfr.gz")):
        ours = convert(recording)
        stem = recording.name.removesuffix(".jfr.gz")
        for expected in sorted(DATA.glob(f"{stem}.expected.*.pb.gz")):
            theirs = Pprof(expected.read_bytes())
            for name, _ in theirs.types:
                a, b = ours.of(name), theirs.of(name)
                check(f"{stem}: {name} has the {len(b)} stacks and values of its pprof",
                      a == b and len(b) > 0, difference(a, b))


# ---- the JDK ----

def find_jdks():
    """Folders of JDKs that can record and print, each once."""
    homes = glob.glob("/usr/lib/jvm/*") + [os.environ.get("JAVA_HOME", "/nowhere")]
    homes = {os.path.realpath(home) for home in homes}
    return sorted(h for h in homes if os.access(f"{h}/bin/jfr", os.X_OK)
                  and os.access(f"{h}/bin/javac", os.X_OK))


def plain(name):
    """A frame's name without what differs between the ways to write it."""
    name = name.replace("/", ".")
    name = re.sub(r"\$\$Lambda[^:]*\.(?=[^.:]*:)", "$$Lambda.", name)
    return re.sub(r"(LambdaForm\$\w+?)(?:_|[.+]0x[^:]*?)\.(?=[^.:]*:)", r"\1.", name)


EVENTS = """jdk.ExecutionSample jdk.CPUTimeSample jdk.ObjectAllocationSample jdk.JavaMonitorEnter
    jdk.ThreadPark jdk.ObjectAllocationInNewTLAB profiler.WallClockSample profiler.LiveObject
    profiler.Malloc""".split()


def printed(jdk, path):
    """The events of a recording by their types, as the JDK's own tool reads them."""
    out = subprocess.run([f"{jdk}/bin/jfr", "print", "--json", "--stack-depth", "2048", "--events",
                          ",".join(EVENTS), str(path)], check=True, capture_output=True, text=True)
    found = collections.defaultdict(list)
    for event in json.loads(out.stdout)["recording"]["events"]:
        found[event["type"]].append(event["values"])
    return found


def stack_of(event):
    frames = (event["stackTrace"] or {"frames": []})["frames"]
    return tuple(plain(f"{f['method']['type']['name']}.{f['method']['name']}:{max(f['lineNumber'], 0)}")
                 for f in frames)


def nanoseconds(duration):
    seconds = re.fullmatch(r"PT(?:(\d+)M)?(?:([\d.]+)S)?", duration)
    return int(seconds[1] or 0) * 60 * 10**9 + round(float(seconds[2] or 0) * 10**9)


def total_of(events, value):
    counts = collections.Counter()
    for event in events:
        counts[stack_of(event)] += value(event)
    return counts


def plain_stacks(counts):
    merged = collections.Counter()
    for stack, value in counts.items():
        merged[tuple(map(plain, stack))] += value
    return merged


def compare_stacks(label, ours, name, what, events, value):
    a, b = plain_stacks(ours.of(name)), +total_of(events, value)
    check(f"{label}: {name} equals {len(events)} {what}", a == b and len(events) > 0, difference(a, b))


def compare(jdk, path, label):
    ours, theirs = convert(path), printed(jdk, path)
    period = 10**7  # settings=profile
    rules = [
        ("jdk.ObjectAllocationSample", "alloc_objects", lambda e: 1),
        ("jdk.ObjectAllocationSample", "alloc_space", lambda e: e["weight"]),
    ]
    samples = theirs["jdk.ExecutionSample"]
    if theirs["jdk.CPUTimeSample"]:
        rules += [("jdk.CPUTimeSample", "cpu", lambda e: nanoseconds(e["samplingPeriod"])),
                  ("jdk.ExecutionSample", "samples", lambda e: 1)]
    else:
        rules += [("jdk.ExecutionSample", "cpu", lambda e: period)]
        # A thread that has ended before it was written down has no name.
        threads = collections.Counter(e["sampledThread"]["javaName"] for e in samples if e["sampledThread"])
        times = {name: n * period for name, n in threads.items()}
        check(f"{label}: CPU time of each thread", ours.by_thread("cpu") == times,
              (ours.by_thread("cpu"), times))
    check(f"{label}: there are execution samples", len(samples) > 10, len(samples))
    for event, name, value in rules:
        compare_stacks(label, ours, name, event, theirs[event], value)
    waits = theirs["jdk.JavaMonitorEnter"] + theirs["jdk.ThreadPark"]
    a, b = sum(ours.of("contentions").values()), len(waits)
    check(f"{label}: {b} locks and parks", a == b > 0, (a, b))
    a, b = sum(ours.of("delay").values()), sum(nanoseconds(e["duration"]) for e in waits)
    check(f"{label}: {b / 1e6:.0f} ms of waiting", abs(a - b) <= len(waits) * 100, (a, b))


def command(jdk, seconds, *options):
    return [f"{jdk}/bin/java", *options, str(SOURCES / "tests/interop/jfr/Busy.java"), str(seconds)]


def version(jdk):
    out = subprocess.run([f"{jdk}/bin/java", "-version"], check=True, capture_output=True, text=True)
    return int(re.search(r'version "(\d+)', out.stderr)[1])


def test_live(jdk, folder):
    number = version(jdk)
    path = folder / f"{number}.jfr"
    settings = "settings=profile" + (THRESHOLDS if number >= 17 else "")
    extras = [""] + ([",jdk.CPUTimeSample#enabled=true"] if number >= 25 else [])
    for extra in extras:
        option = f"-XX:StartFlightRecording=filename={path},{settings}{extra}"
        subprocess.run(command(jdk, SECONDS, option), check=True, stdout=subprocess.DEVNULL)
        compare(jdk, path, f"JDK {number}{extra and ' with CPU time'}")
        path.unlink()


def test_async_profiler(jdk, library, folder):
    """Each engine, as async-profiler's events are defined and as Pyroscope reads them."""
    path = folder / "async.jfr"
    ms = 10**6

    def record(options):
        agent = f"-agentpath:{library}=start,{options},jfr,file={path}"
        subprocess.run(command(jdk, SECONDS, agent), check=True, stdout=subprocess.DEVNULL)
        return convert(path), printed(jdk, path), f"async-profiler {options}"

    ours, theirs, label = record("event=itimer,interval=5ms,wall=20ms")
    events = theirs["jdk.ExecutionSample"]
    compare_stacks(label, ours, "cpu", "execution samples", events, lambda e: 5 * ms)
    events = theirs["profiler.WallClockSample"]
    compare_stacks(label, ours, "wall", "wall-clock samples", events, lambda e: e["samples"] * 20 * ms)
    ours, theirs, label = record("event=wall")
    events = theirs["profiler.WallClockSample"]
    compare_stacks(label, ours, "wall", "wall-clock samples", events, lambda e: e["samples"] * 50 * ms)
    running = [e for e in events if e["state"] == "STATE_RUNNABLE"]
    compare_stacks(label, ours, "cpu", "of threads that run", running, lambda e: e["samples"] * 50 * ms)
    ours, theirs, label = record("alloc=100k,live,lock=1us")
    for event, name, value in (
            ("jdk.ObjectAllocationInNewTLAB", "alloc_in_new_tlab_objects", lambda e: 1),
            ("jdk.ObjectAllocationInNewTLAB", "alloc_in_new_tlab_bytes", lambda e: e["tlabSize"]),
            ("profiler.LiveObject", "inuse_objects", lambda e: 1),
            ("profiler.LiveObject", "inuse_space", lambda e: e["allocationSize"]),
            ("jdk.JavaMonitorEnter", "delay", lambda e: nanoseconds(e["duration"]))):
        compare_stacks(label, ours, name, event, theirs[event], value)
    ours, theirs, label = record("nativemem=10k")
    events = theirs["profiler.Malloc"]
    compare_stacks(label, ours, "malloc_bytes", "profiler.Malloc", events, lambda e: e["size"])


def wait_for_chunk(repository):
    """Until the JVM has written pools and metadata of its open chunk for the second time."""
    seen = set()
    for _ in range(600):
        for path in repository.rglob("*.jfr"):
            header = path.open("rb").read(32)
            if len(header) == 32 and any(header[16:24]):
                seen.add(header)
        if len(seen) > 1:
            return True
        time.sleep(0.1)
    return False


def test_killed(jdk, folder):
    """A JVM that dies leaves its last chunk open in the repository; older ones leave nothing."""
    number = version(jdk)
    if number < 14:
        return
    repository = folder / f"repository-{number}"
    repository.mkdir()
    with subprocess.Popen(command(jdk, 60, f"-XX:FlightRecorderOptions=repository={repository}",
                                  "-XX:StartFlightRecording=settings=profile"),
                          stdout=subprocess.DEVNULL) as java:
        check(f"JDK {number}: records into its repository", wait_for_chunk(repository))
        java.send_signal(signal.SIGKILL)
    for path in repository.rglob("*.jfr"):
        ours = convert(path)
        check(f"JDK {number}: killed, {sum(ours.of('alloc_objects').values())} allocations are left",
              len(ours.of("alloc_space")) > 0)


def main():
    jdks = find_jdks()
    if not DATA.is_dir() and not jdks:
        print("skipped: neither recordings with their pprof, nor a JDK with its jfr tool")
        return 77
    if DATA.is_dir():
        test_expected()
    else:
        print(f"left out: no recordings in {DATA}")
    if not jdks:
        print("left out: no JDK with its jfr tool in /usr/lib/jvm or $JAVA_HOME")
    with tempfile.TemporaryDirectory() as folder:
        for jdk in jdks:
            test_live(jdk, pathlib.Path(folder))
            test_killed(jdk, pathlib.Path(folder))
        if jdks and os.environ.get("ASYNC_PROFILER"):
            test_async_profiler(jdks[0], os.environ["ASYNC_PROFILER"], pathlib.Path(folder))
    return exit_code()


if __name__ == "__main__":
    sys.exit(main())
