#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: shop.py --server URL [--hours 24] [--seed 1] [--now UNIX_SECONDS] [--token TOKEN]
       shop.py --demo [--listen 127.0.0.1:4040]

Fills a Kiln server with a day of an invented shop: seven services in seven languages on four hosts, sampled as a real profiler
would, with chance and all; the same seed and time give the same profiles.  With --demo it starts such a server itself, and what is
in it is gone with it.  What happened there:

    checkout   2.15.0, 1 h 56 min ago: loadRules parses JSON on each request, + 0.85 cores; receipts save 0.08
    orders     5.1.4, 13 h 20 min ago: 9 % less CPU, but 17 % of it collects the garbage of encodeEvent
    search     8.3.0, 16 h 50 min ago: changed nothing
    payments   for 9 hours its heap has climbed 6 % an hour, in SessionCache.put
    checkout's pod 0 was recorded with times and spans in the last two minutes; SLOW_TRACE was slow
"""
import argparse
import hashlib
import json
import math
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
import uuid

from shop_frames import SOURCES, Stacks

HOUR = 3600
HZ, RECORDED_HZ = 19, 97
RECORDED_S, LATELY_S, LATELY_STEP_S, STEP_S = 120, 3 * HOUR, 120, 600
CLIMBS_S, CLIMBS_BY = 9 * HOUR, 1.06
SLOW_TRACE, SLOW_SPAN = "5b8aa5a2d2c872e8321cf37308d69df2", "051581bf3cb55c13"
HOSTS = {"web-01": "eu-1a", "web-02": "eu-1b", "data-01": "eu-1a", "batch-01": "eu-1b"}
LATE = 40  # of so much waiting, one part is for a processor
REASONS = {"poll": "epoll|poll|select|getaddrinfo", "socket": r"query|fetch|Redis|read0|recv|send|connect|smtp|socket|execute",
           "disk": "fs_|pread|fsync|File", "futex": r"[Ll]ock|park|[Mm]utex|wait|chan|take", "sleep": "sleep"}
ROUTINE = ("wall", "off_cpu", "alloc", "inuse", "mutex", "goroutines", "lag")


class Service:
    """deployed: seconds ago; pods: the host of each; wave: how much its load changes over a day; staging: it has one more pod."""
    def __init__(self, name, language, runtime, versions, deployed_s, pods, wave=0.0, staging=False):
        self.name, self.versions, self.deployed_s, self.wave = name, versions, deployed_s, wave
        self.pods = [(host, "prod", 1 / len(pods.split())) for host in pods.split()] + [("batch-01", "staging", .03)] * staging
        self.facts = {"telemetry.sdk.language": language, "process.runtime.name": runtime[0], "process.runtime.version": runtime[1]}
        self.stacks = Stacks(name)


def services():
    return [
        Service("checkout", "nodejs", ("nodejs", "22.11.0"), ("2.14.2", "2.15.0"), 116 * 60, "web-01 web-02 data-01"),
        Service("search", "java", ("OpenJDK Runtime Environment", "21.0.5"), ("8.2.6", "8.3.0"), 1010 * 60, "data-01 web-01 web-02", .12),
        Service("orders", "go", ("go", "go1.25.1"), ("5.1.3", "5.1.4"), 800 * 60, "web-01 web-02"),
        Service("payments", "java", ("OpenJDK Runtime Environment", "21.0.5"), ("3.7.1", "3.7.1"), 0, "web-02 data-01"),
        Service("gateway", "cpp", ("", ""), ("1.31.0", "1.31.0"), 0, "web-01 web-02", .15),
        Service("catalog", "python", ("cpython", "3.13.1"), ("2.2.0", "2.2.0"), 0, "batch-01 web-01", staging=True),
        Service("mailer", "ruby", ("ruby", "3.4.1"), ("0.9.8", "0.9.8"), 0, "batch-01", .1),
    ]


class Chance:
    def __init__(self, seed):
        self.random = random.Random(seed)

    def poisson(self, mean):
        if mean > 40:
            return max(0, round(self.random.gauss(mean, math.sqrt(mean))))
        limit, count, product = math.exp(-mean), 0, self.random.random()
        while product > limit:
            count, product = count + 1, product * self.random.random()
        return count

    def hex(self, digits):
        return f"{self.random.getrandbits(4 * digits):0{digits}x}"


class Request:
    """An OTLP request of one service, as JSON: tables that every profile shares, and the profiles."""
    def __init__(self):
        self.tables = {name: {} for name in ("string", "attribute", "mapping", "function", "location", "stack", "link")}
        for name in self.tables:
            self.entry(name, '""' if name == "string" else "{}")
        self.resources, self.profiles = [], []
        self.rows = {}

    def entry(self, table, text):
        return self.tables[table].setdefault(text, len(self.tables[table]))

    def string(self, text):
        return self.entry("string", json.dumps(text))

    def attribute(self, key, value):
        return self.entry("attribute", f'{{"keyStrindex":{self.string(key)},"value":{{"stringValue":{json.dumps(value)}}}}}')

    def mapping(self, module):
        build_id = self.attribute("process.executable.build_id.gnu", hashlib.sha1(module.encode()).hexdigest())
        return self.entry("mapping", f'{{"memoryStart":"4194304","memoryLimit":"104857600","filenameStrindex":{self.string(module)},'
                                     f'"attributeIndices":[{build_id}]}}') if module else 0

    def line(self, place, line):
        function = self.entry("function", f'{{"nameStrindex":{self.string(place.name)},"filenameStrindex":{self.string(place.file)},'
                                          f'"startLine":{place.first if place.file else 0}}}')
        return f'{{"functionIndex":{function}' + (f',"line":{line}}}' if place.file else "}")

    def location(self, frames):
        """A frame and, after it, what was inlined into it."""
        outer = frames[0][0]
        lines = "" if outer.nameless else ",".join(self.line(*frame) for frame in reversed(frames))
        address = int(outer.name, 16) if outer.nameless else 4194304 + int(hashlib.sha1(outer.name.encode()).hexdigest()[:6], 16) + frames[0][1]
        return self.entry("location", f'{{"mappingIndex":{self.mapping(outer.module)},"address":"{address if outer.module else 0}",'
                                      f'"lines":[{lines}],"attributeIndices":[{self.attribute("profile.frame.type", outer.kind)}]}}')

    def stack(self, frames):
        groups = []
        for frame in frames:
            if frame[0].inlined and groups and not groups[-1][0][0].nameless:
                groups[-1].append(frame)
            else:
                groups.append([frame])
        return self.entry("stack", f'{{"locationIndices":[{",".join(str(self.location(group)) for group in reversed(groups))}]}}')

    def spread(self, service, section):
        """A section as rows of (beginning of a sample's JSON, old, new, climbs, node, beginning for a thread that could run), made once."""
        if section not in self.rows:
            self.rows[section] = []
            for node, old, new, climbs in service.stacks.rows(section):
                labels = [self.attribute("thread.name", node.thread)] if node.thread else []
                if service.stacks.route(node):
                    labels.append(self.attribute("http.route", service.stacks.route(node)))
                for frames, share in node.stacks():
                    heads = [f'{{"stackIndex":{self.stack(frames)},"attributeIndices":{labels + more}'.replace(" ", "")
                             for more in self.states(frames[-1][0].name, section)]
                    self.rows[section].append((heads[0], old * share, new * share, climbs, node, heads[-1]))
        return self.rows[section]

    def states(self, leaf, section):
        """Of what waits, why, as the kernel says it; then as one that waits for a processor."""
        if section != "waiting":
            return [[]]
        reason = next((word for word, leaves in REASONS.items() if re.search(leaves, leaf)), "other")
        blocked = [self.attribute("thread.state", "blocked"), self.attribute("wait.reason", reason)]
        return [blocked, [self.attribute("thread.state", "runnable")]]

    def profile(self, kind, unit, at_s, seconds, samples, period=None):
        """period: (type, unit, value)"""
        pair = '{"typeStrindex":%d,"unitStrindex":%d}'
        text = f'{{"sampleType":{pair % (self.string(kind), self.string(unit))},"timeUnixNano":"{int(at_s * 1e9)}",' \
               f'"durationNano":"{int(seconds * 1e9)}",'
        if period:
            text += f'"periodType":{pair % (self.string(period[0]), self.string(period[1]))},"period":"{period[2]}",'
        self.profiles.append(text + f'"samples":[{",".join(samples)}]}}')

    def end_of_resource(self, attributes):
        listed = ",".join(f'{{"key":{json.dumps(key)},"value":{{"stringValue":{json.dumps(value)}}}}}' for key, value in attributes.items() if value)
        self.resources.append(f'{{"resource":{{"attributes":[{listed}]}},"scopeProfiles":[{{"profiles":[{",".join(self.profiles)}]}}]}}')
        self.profiles = []

    def json(self):
        tables = ",".join(f'"{name}Table":[{",".join(table)}]' for name, table in self.tables.items())
        return f'{{"resourceProfiles":[{",".join(self.resources)}],"dictionary":{{{tables}}}}}'.encode()


class Shop:
    def __init__(self, now_s, hours, seed):
        self.now_s, self.hours, self.seed = int(now_s) // 60 * 60, hours, seed

    def steps(self, recorded):
        """(begin, seconds) of profiles: coarse, of the last hours finer."""
        at, ends = self.now_s - int(self.hours * HOUR), self.now_s - (RECORDED_S if recorded else 0)
        while at < ends:
            lately = at >= self.now_s - LATELY_S
            step = min(LATELY_STEP_S if lately else STEP_S, ends - at)
            yield at, step
            at += step

    def load(self, service, at_s):
        """What the day does to a service; ends at 1."""
        return 1 + service.wave * math.sin(2 * math.pi * (at_s - self.now_s) / (24 * HOUR)) if service.wave else 1

    def is_new(self, service, at_s):
        return at_s >= self.now_s - service.deployed_s

    def attributes(self, service, pod, version):
        host, env, _ = service.pods[pod]
        instance = str(uuid.uuid5(uuid.NAMESPACE_DNS, f"{pod}.{service.name}.shop.example"))
        return {"service.name": service.name, "service.version": version, "service.instance.id": instance,
                "k8s.pod.name": f"{service.name}-{pod}", "host.name": host, "cloud.availability_zone": HOSTS[host],
                "deployment.environment": env, **service.facts}

    def request(self, service, pod):
        """A pod's whole day."""
        request, chance = Request(), Chance(f"{self.seed} {service.name} {pod}")
        recorded = service.name == "checkout" and pod == 0
        share = service.pods[pod][2]
        for new in (False, True):
            for at, seconds in self.steps(recorded):
                if self.is_new(service, at) == new:
                    self.cpu(request, service, chance, (at, seconds), new, share)
                    ago = self.now_s - at
                    if ago % 600 == 0 or ago <= LATELY_S and ago % 240 == 0:
                        for section in ROUTINE:
                            self.routine(request, service, chance, at, (section, new, share))
            if recorded and new:
                self.record(request, service, chance)
            if request.profiles:
                request.end_of_resource(self.attributes(service, pod, service.versions[new]))
        return request.json()

    def cpu(self, request, service, chance, when, new, share):
        (at, seconds), period = when, round(1e9 / HZ)
        scale = self.load(service, at) * seconds * HZ * share
        samples = []
        for head, *weights, _, _, _ in request.spread(service, "cpu"):
            count = chance.poisson(weights[new] * scale)
            if count:
                samples.append(f'{head},"values":["{count * period}"]}}')
        request.profile("cpu", "nanoseconds", at, seconds, samples, ("cpu", "nanoseconds", period))

    def routine(self, request, service, chance, at, what):
        """What is measured besides, over the minute after `at`."""
        section, new, share = what
        rows = request.spread(service, "waiting" if section in ("wall", "off_cpu") else section)
        load = self.load(service, at)
        whole = sum(row[1 + new] for row in rows)

        def send(kind, unit, value, period=None, more=()):
            samples = [(row, value(row)) for row in (*rows, *more)]
            request.profile(kind, unit, at, 60, [f'{row[0]},"values":["{v}"]}}' for row, v in samples if v > 0], period)

        if not rows:
            return
        if section == "off_cpu":
            waits = [(row, chance.poisson(row[1 + new] * share * 60 * 40) * 25_000_000) for row in rows]
            blocked = [f'{row[0]},"values":["{ns - ns // LATE}"]}}' for row, ns in waits if ns]
            late = [f'{row[5]},"values":["{ns // LATE}"]}}' for row, ns in waits if ns]
            request.profile("off_cpu", "nanoseconds", at, 60, blocked + late)
        elif section == "wall":
            send("wall", "nanoseconds", lambda row: chance.poisson(row[1 + new] * load * share * 60 * 10) * 100_000_000,
                 ("wall", "nanoseconds", 100_000_000), request.spread(service, "cpu"))
        elif section in ("alloc", "inuse"):
            size = service.stacks.sections[section][0][2]
            climbed = max(0.0, at - (self.now_s - CLIMBS_S)) / HOUR
            unit = 524288
            times, leak = 60 * load if section == "alloc" else 1, whole * (CLIMBS_BY ** climbed - 1)
            self.memory(send, section, lambda row: chance.poisson((row[1 + new] * times + leak * row[3]) * share / unit) * unit, size)
        elif section == "mutex":
            mean = {id(row[4]): weights[2] for row, (_, weights, _) in zip(rows, service.stacks.sections[section][1])}
            counts = {row[0]: chance.poisson(row[1 + new] * share * 60 / mean.get(id(row[4]), .002)) for row in rows}
            send("contentions", "count", lambda row: counts[row[0]], ("contentions", "count", 1))
            send("delay", "nanoseconds", lambda row: round(counts[row[0]] * mean.get(id(row[4]), .002) * 1e9), ("contentions", "count", 1))
        elif section == "goroutines":
            send("goroutine", "count", lambda row: chance.poisson(row[1 + new] * share), ("goroutine", "count", 1))
        elif section == "lag":
            send("lag", "nanoseconds", lambda row: chance.poisson(row[1 + new] * share * 60 * 100) * 10_000_000)

    @staticmethod
    def memory(send, section, value, size):
        bytes_of = {}

        def once(row):
            return bytes_of.setdefault(row[0], value(row))
        send(f"{section}_space", "bytes", once, ("space", "bytes", 524288))
        send(f"{section}_objects", "count", lambda row: round(once(row) / size), ("space", "bytes", 524288))

    def record(self, request, service, chance):
        """Two minutes of every sample with its time: the main thread works on one request after another, each a span."""
        period, begin, end = round(1e9 / RECORDED_HZ), (self.now_s - RECORDED_S) * 10 ** 9, self.now_s * 10 ** 9
        rows, samples = request.spread(service, "cpu"), []
        for thread in sorted({row[4].thread for row in rows}):
            mine = [row for row in rows if row[4].thread == thread]
            weights = [row[2] for row in mine]
            at, gap = begin, max(period, period / (sum(weights) * service.pods[0][2]))
            slow_at = begin + 70 * 10 ** 9
            while at < end:
                slow = at >= slow_at and thread == "node"
                count = 160 if slow else 1 + chance.poisson(6)
                chosen = self.burst(chance, mine, weights, count, slow)
                trace, span = (SLOW_TRACE, SLOW_SPAN) if slow else (chance.hex(32), chance.hex(16))
                link = request.entry("link", f'{{"traceId":"{trace}","spanId":"{span}"}}') if thread == "node" else 0
                slow_at = end if slow else slow_at
                for row in chosen:
                    if at < end:
                        samples.append((int(at), f'{row[0]},"values":["{period}"],"timestampsUnixNano":["{int(at)}"]'
                                                 f'{f",{chr(34)}linkIndex{chr(34)}:{link}" if link else ""}}}'))
                    at += period if slow else gap * (.7 + .6 * chance.random.random())
        for first in range(begin, end, 10 * 10 ** 9):
            part = [text for when, text in samples if first <= when < first + 10 * 10 ** 9]
            request.profile("cpu", "nanoseconds", first / 1e9, 10, part, ("cpu", "nanoseconds", period))

    @staticmethod
    def burst(chance, rows, weights, count, slow):
        """What one request does, in the order of the tree; a slow one reads rules."""
        if slow:
            inside = [(row, w) for row, w in zip(rows, weights) if any(p.name == "createOrder" for p in row[4].path)]
            rows = [row for row, _ in inside]
            weights = [w * (6 if any(p.name == "loadRules" for p in row[4].path) else 1) for row, w in inside]
        chosen = chance.random.choices(range(len(rows)), weights, k=count)
        return [rows[i] for i in sorted(chosen)]

    def requests(self):
        for service in services():
            for pod in range(len(service.pods)):
                yield self.request(service, pod)


def post(server, path, body, token=""):
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
    with urllib.request.urlopen(urllib.request.Request(server.rstrip("/") + path, body, headers), timeout=120) as answer:
        return json.loads(answer.read() or b"{}")


def fill(server, now_s=None, hours=24, seed=1, token=""):
    """Sends it all; the profiles' last second."""
    shop = Shop(time.time() if now_s is None else now_s, hours, seed)
    for body in shop.requests():
        said = post(server, "/v1development/profiles", body, token)
        if said:
            raise RuntimeError(f"not all was taken: {said}")
    post(server, "/api/v1/annotations", json.dumps({"at": shop.now_s - CLIMBS_S, "service": "payments", "text": "Guests may pay",
                                                    "tags": ["flag"]}).encode(), token)
    return shop.now_s


def demo(listen):
    """A server with a shop in it, until somebody ends it."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    folder = tempfile.mkdtemp(prefix="kiln-demo-")
    words = [os.environ.get("KILN", "build/kiln"), "server", "--listen", listen, "--otlp-grpc", "off", "--otlp-http", "off", "--data-dir",
             f"{folder}/data", "--socket", f"{folder}/kiln.sock", "--ready-file", f"{folder}/ready", "--log-level", "warn"]
    server = subprocess.Popen(words, env=os.environ | {"KILN_SOURCE": f"/srv={SOURCES}"})
    try:
        while not os.path.exists(f"{folder}/ready"):
            if server.poll() is not None:
                return server.returncode
            time.sleep(0.02)
        with open(f"{folder}/ready", encoding="utf-8") as ready:
            url = f"http://{listen.rpartition(':')[0]}:{json.load(ready)['http']}"
        fill(url)
        print(f"A day of an invented shop is at {url}; Ctrl-C ends it.", flush=True)
        return server.wait()
    except KeyboardInterrupt:
        return 0
    finally:
        server.terminate()
        server.wait()
        shutil.rmtree(folder, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n", 1)[0].removeprefix("usage: "))
    parser.add_argument("--server")
    parser.add_argument("--demo", action="store_true")
    parser.add_argument("--listen", default="127.0.0.1:4040")
    parser.add_argument("--hours", type=float, default=24)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--now", type=float)
    parser.add_argument("--token", default="")
    args = parser.parse_args()
    if args.demo:
        return demo(args.listen)
    if not args.server:
        parser.error("--server or --demo")
    print(fill(args.server, args.now, args.hours, args.seed, args.token))
    return 0


if __name__ == "__main__":
    sys.exit(main())
