#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Profiles that need more memory than there is at the moment wait for it: 16 senders, 96 profiles of 20,430 samples (2.5 MB), a limit
of 256 MB.  None is refused, all are found afterwards, the server answers other requests meanwhile and stays below its limit.  A profile
that needs more than the limit is refused at once.
"""
import http.client
import json
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from kiln_server import KILN, KilnServer, sanitized  # noqa: E402

SENDERS, PROFILES, LIMIT_MB = 16, 96, 256
TIME_NANOS = 9  # field of a pprof
CPU = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"


# ---- one profile, as many times as wanted ----

def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift += 7
        at += 1
        if data[at - 1] < 128:
            return value, at


def encode(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out) + bytes([value])


def without_time(data):
    """The bytes of a pprof without its time; it has varints and messages alone."""
    kept, at = [], 0
    while at < len(data):
        start = at
        key, at = varint(data, at)
        size, at = varint(data, at)
        at += size if key & 7 == 2 else 0
        if key >> 3 != TIME_NANOS:
            kept.append(data[start:at])
    return b"".join(kept)


def at_time(base, time_ns):
    return base + encode(TIME_NANOS << 3) + encode(time_ns)


def invent(folder):
    subprocess.run([KILN, "loadgen", "--shape", "pprof", "--services", "1", "--hosts", "1", "-n", "1", "--churn", "0", "--compression",
                    "none", "--out", folder, "-q"], check=True)
    done = subprocess.run([KILN, "convert", str(folder / "00000000.otlp"), "--to", "pprof", "--no-compression"], check=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return without_time(done.stdout)


# ---- requests ----

def post(server, body):
    connection = http.client.HTTPConnection("127.0.0.1", server.http, timeout=600)
    connection.request("POST", "/ingest?name=big&format=pprof", body)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


def get(server, path):
    with urllib.request.urlopen(f"http://127.0.0.1:{server.http}{path}", timeout=600) as answer:
        return answer.read().decode()


def send_all(server, base, first_ns):
    """The answers to all profiles, from so many senders; other requests are answered meanwhile."""
    todo, answers = list(range(PROFILES)), []

    def send():
        try:
            while True:
                answers.append(post(server, at_time(base, first_ns + todo.pop() * 10**9)))
        except IndexError:
            pass

    senders = [threading.Thread(target=send) for _ in range(SENDERS)]
    for sender in senders:
        sender.start()
    while any(sender.is_alive() for sender in senders):
        assert get(server, "/ready").startswith("ready")
        json.loads(get(server, "/api/v1/services"))
        time.sleep(0.05)
    return answers


def found(server, first_ns):
    words = urllib.parse.urlencode({"query": CPU + "{}", "from": first_ns // 10**9 - 60, "until": first_ns // 10**9 + 3600,
                                    "format": "top"})
    return json.loads(get(server, f"/api/v1/query?{words}"))["basis"]["profiles"]


def peak_mb(server):
    status = (pathlib.Path("/proc") / str(server.process.pid) / "status").read_text()
    return next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM"))


def check(server, base):
    first_ns = (int(time.time()) - 7200) * 10**9
    answers = send_all(server, base, first_ns)
    refused = [answer for answer in answers if answer[0] != 200]
    assert len(answers) == PROFILES and not refused, f"{len(refused)} of {len(answers)} refused: {refused[:3]}"
    assert found(server, first_ns) == PROFILES
    status, text = post(server, at_time(base * 24, first_ns))  # 60 MB: it is more when it is decoded
    assert status == 413, (status, text)
    assert peak_mb(server) < LIMIT_MB
    print(f"{PROFILES} profiles taken, at most {peak_mb(server):.0f} MB")


def main():
    if sanitized():
        print("skipped: sanitizers take the memory")
        return 77
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        folder.chmod(0o755)
        base = invent(folder)
        settings = folder / "kiln.yaml"  # no request times out because this machine is slow
        settings.write_text("server: {memory_wait: 10m}\n")
        with KilnServer("--memory-limit", f"{LIMIT_MB}M", "--config", str(settings)) as server:
            check(server, base)
    return 0


if __name__ == "__main__":
    sys.exit(main())
