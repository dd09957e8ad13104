#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: kill_test.py [KILLS [SEED]]

A real `kiln server` is killed (SIGKILL) at random moments while senders load it with profiles (OTLP in JSON, and
pprofs by Pyroscope's Push, which are logged as received), each with an id of its own, and while its heads are cut into blocks and merged.  A sender that gets no answer sends the
same profile again once the server is back, as real ones do.  In the end every acknowledged profile must be
in the store, once, and `kiln store check` must find no damage.  The CPU time of each start is measured;
in `make torture` more than two seconds fail.

Kills alone would pass without any sync: the kernel keeps what was written.  Power cuts are
tests/torture/power_cut.c.
"""
import collections
import http.client
import json
import os
import pathlib
import random
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from kiln_server import KILN, KilnServer  # noqa: E402

SENDERS = 4
START_CPU_S_MAX = 2
SERVICES = ("checkout", "cart", "search")


def request_of(number, time_ns):
    """An OTLP/JSON request with two profiles of one process: processor time and allocations."""
    names = ["", "cpu", "nanoseconds", "alloc_space", "bytes", "main", f"work_{number % 40}", f"leaf_{number % 400}",
             "test.id"]
    profiles = [{
        "sampleType": {"typeStrindex": kind, "unitStrindex": kind + 1},
        "timeUnixNano": str(time_ns),
        "durationNano": "1000000000",
        "attributeIndices": [attribute],
        "samples": [{"stackIndex": 1, "values": [str(number + 1)]}, {"stackIndex": 2, "values": ["7"]}],
    } for kind, attribute in ((1, 1), (3, 2))]
    dictionary = {
        "stringTable": names,
        "mappingTable": [{}],
        "linkTable": [{}],
        "functionTable": [{}] + [{"nameStrindex": at} for at in (5, 6, 7)],
        "locationTable": [{}] + [{"lines": [{"functionIndex": at}]} for at in (1, 2, 3)],
        "stackTable": [{}, {"locationIndices": [3, 2, 1]}, {"locationIndices": [2, 1]}],
        "attributeTable": [{}] + [{"keyStrindex": 8, "value": {"stringValue": f"{number}-{kind}"}}
                                  for kind in ("cpu", "alloc")],
    }
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": SERVICES[number % len(SERVICES)]}}]}
    return json.dumps({"resourceProfiles": [{"resource": resource, "scopeProfiles": [{"profiles": profiles}]}],
                       "dictionary": dictionary})


def field(number, value):
    """One field of a protobuf message: a number, or bytes."""
    def varint(n):
        return bytes([n & 127 | 128]) + varint(n >> 7) if n > 127 else bytes([n])
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def push_of(number, time_ns):
    """The same as a pprof in a PushRequest; its id is the number."""
    names = ["", "cpu", "nanoseconds", "alloc_space", "bytes", "main", f"work_{number % 40}", f"leaf_{number % 400}"]
    pprof = b"".join(field(1, field(1, kind) + field(2, kind + 1)) for kind in (1, 3))
    pprof += b"".join(field(2, field(1, bytes(stack)) + b"".join(field(2, value) for value in (number + 1, 7)))
                      for stack in ((3, 2, 1), (2, 1)))
    pprof += b"".join(field(4, field(1, at) + field(4, field(1, at))) for at in (1, 2, 3))
    pprof += b"".join(field(5, field(1, at) + field(2, at + 4)) for at in (1, 2, 3))
    pprof += b"".join(field(6, name.encode()) for name in names) + field(9, time_ns) + field(10, 10**9)
    labels = {b"__name__": b"process_cpu", b"service_name": SERVICES[number % len(SERVICES)].encode()}
    series = b"".join(field(1, field(1, name) + field(2, value)) for name, value in labels.items())
    return field(1, series + field(2, field(1, pprof) + field(2, f"{number + 1:032x}".encode())))


class Load:
    """Senders and somebody who has the store merged, all of them until told to stop."""

    def __init__(self):
        self.lock = threading.Lock()
        self.acknowledged, self.refused, self.resent = [], collections.Counter(), 0
        self.next, self.port, self.stopping, self.merging = 0, None, False, True
        self.base_ns = time.time_ns() - 3600 * 10**9
        self.threads = [threading.Thread(target=self.send) for _ in range(SENDERS)]
        self.threads.append(threading.Thread(target=self.merge))
        for thread in self.threads:
            thread.start()

    def take(self):
        with self.lock:
            self.next += 1
            return self.next - 1

    def post(self, connection, path, body=None):
        headers = {"Content-Type": "application/proto" if isinstance(body, bytes) else "application/json"} if body else {}
        connection.request("POST", path, body, headers)
        answer = connection.getresponse()
        answer.read()
        return answer.status

    def deliver(self, number, path, body):
        """Sends until it is acknowledged, or it is time to stop."""
        connection = None
        tries = 0
        while not self.stopping:
            port = self.port
            if port is None:
                time.sleep(0.001)
                continue
            try:
                connection = connection or http.client.HTTPConnection("127.0.0.1", port, timeout=30)
                tries += 1
                status = self.post(connection, path, body)
            except (OSError, http.client.HTTPException):
                connection = None
                time.sleep(0.002)
                continue
            if status == 200:
                with self.lock:
                    self.acknowledged.append(number)
                    self.resent += tries > 1
                return connection
            with self.lock:
                self.refused[status] += 1
            time.sleep(0.01)
        return None

    def send(self):
        while not self.stopping:
            number = self.take()
            time_ns = self.base_ns + number * 10**6
            if number % 2:
                self.deliver(number, "/push.v1.PusherService/Push", push_of(number, time_ns))
            else:
                self.deliver(number, "/v1development/profiles", request_of(number, time_ns))

    def merge(self):
        dice = random.Random(1)
        while not self.stopping:
            time.sleep(dice.uniform(0, 0.06))
            if self.port is None or not self.merging:
                continue
            try:
                self.post(http.client.HTTPConnection("127.0.0.1", self.port, timeout=30), "/api/v1/store/compact")
            except (OSError, http.client.HTTPException):
                pass

    def stop(self):
        self.stopping = True
        for thread in self.threads:
            thread.join()


def ids_in(exported):
    """How often each id is in an OTLP/JSON export."""
    request = json.loads(exported)
    dictionary = request["dictionary"]
    strings, table = dictionary["stringTable"], dictionary["attributeTable"]
    found = collections.Counter()
    for resource in request["resourceProfiles"]:
        for scope in resource["scopeProfiles"]:
            for profile in scope["profiles"]:
                if int(profile.get("profileId") or "0", 16):
                    kind = strings[profile["sampleType"]["typeStrindex"]].removesuffix("_space")
                    found[f"{int(profile['profileId'], 16) - 1}-{kind}"] += 1
                for at in profile.get("attributeIndices", []):
                    if strings[table[at].get("keyStrindex", 0)] == "test.id":
                        found[table[at]["value"]["stringValue"]] += 1
    return found


def compare(data, load):
    """What is wrong with the store, as a list of sentences."""
    checked = subprocess.run([KILN, "store", "check", "--data-dir", data], capture_output=True, text=True, check=False)
    wrong = [] if checked.returncode == 0 else [f"kiln store check: {checked.stdout}{checked.stderr}"]
    exported = subprocess.run([KILN, "store", "export", "--data-dir", data, "--format", "otlp-json", "-o", "-"],
                              capture_output=True, check=False)
    if exported.returncode:
        return wrong + [f"kiln store export: {exported.stderr.decode()}"]
    found = ids_in(exported.stdout)
    expected = {f"{number}-{kind}" for number in load.acknowledged for kind in ("cpu", "alloc")}
    lost = sorted(expected - found.keys())
    twice = sorted(name for name, n in found.items() if n > 1)
    if lost:
        wrong.append(f"{len(lost)} acknowledged profiles are lost: {' '.join(lost[:10])}")
    if twice:
        wrong.append(f"{len(twice)} profiles are there twice: {' '.join(twice[:10])}")
    return wrong


def main():
    kills = int(sys.argv[1]) if len(sys.argv) > 1 else 25
    dice = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    starts = []
    server = KilnServer("--log-level", "warn")
    load = Load()
    try:
        for _ in range(kills):
            server.start()
            starts.append(server.cpu_seconds())
            load.port = server.http
            load.merging = dice.random() > 0.03  # a long life now and then, in which only the log grows
            time.sleep(dice.uniform(0.005, 0.15) if load.merging else 2)
            server.kill()
            load.port = None
        server.start()
        starts.append(server.cpu_seconds())
        load.port = server.http
        time.sleep(0.1)
        load.stop()
        code = server.stop()
        wrong = compare(server.data, load) + ([] if code == 0 else [f"kiln server ended with {code}"])
        said = server.said()
    finally:
        load.stop()
        server.__exit__()
    starts.sort()
    print(f"{kills} kills: {len(load.acknowledged)} requests acknowledged, {load.resent} of them sent more than once, "
          f"refused {dict(load.refused)}; a start takes {1000 * starts[len(starts) // 2]:.0f} ms of CPU time, at "
          f"most {1000 * starts[-1]:.0f} ms")
    if os.environ.get("KILN_TORTURE") and starts[-1] > START_CPU_S_MAX:
        wrong.append(f"a start took {starts[-1]:.1f} s of CPU time")
    if not load.acknowledged:
        wrong.append("nothing was acknowledged")
    for sentence in wrong:
        print(f"FAILED: {sentence}")
    if wrong:
        print(said)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
