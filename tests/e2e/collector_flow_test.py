#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: collector_flow_test.py [SECONDS]

`kiln collector` at the highest rate that it sustains: sixteen senders, each as fast as it is answered, gRPC in, a resource processor and a
batch processor, gRPC out, once with a queue in memory and once on disk.  Nobody is refused; what exporters accepted is what they
sent, hold and dropped whenever anybody looks; in the end the receiver behind it has exactly what was acknowledged; and memory does
not grow: its most in the last quarter of the time is not above the most of the second quarter.  10 seconds in `make test`, ten minutes
in `make soak`.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from checks import check, exit_code  # noqa: E402
from kiln_collector import Collector, exporters, not_conserved  # noqa: E402
from kiln_server import KILN, sanitized  # noqa: E402

SECONDS = int(sys.argv[1]) if len(sys.argv) > 1 else int(os.environ.get("KILN_SOAK_SECONDS", 10))
SLACK_BYTES = 6 << 20  # what an allocator keeps or not
IN = "receivers::otlp::grpc"
ACCEPTED = re.compile(r'^otelcol_receiver_accepted_profile_samples\{[^}]*\} (\d+)$', re.M)

SINK = """
receivers: {otlp: {protocols: {grpc: {endpoint: "127.0.0.1:0"}}}}
exporters: {nop: }
service:
  telemetry: {metrics: {address: "127.0.0.1:0"}, logs: {level: warn}}
  pipelines: {profiles: {receivers: [otlp], exporters: [nop]}}
"""
CONFIG = """
receivers: {otlp: {protocols: {grpc: {endpoint: "127.0.0.1:0"}}}}
processors:
  resource: {attributes: [{key: deployment.environment.name, value: production, action: upsert}]}
  batch: {timeout: 200ms, send_batch_size: 4096}
exporters: {otlp: {endpoint: "127.0.0.1:PORT", tls: {insecure: true}, sending_queue: {QUEUE}}}
extensions: {file_storage: {directory: FOLDER, create_directory: true}}
service:
  extensions: [file_storage]
  telemetry: {metrics: {address: "127.0.0.1:0"}}
  pipelines: {profiles: {receivers: [otlp], processors: [resource, batch], exporters: [otlp]}}
"""


def accepted(collector):
    return sum(map(int, ACCEPTED.findall(collector.metrics())))


def anonymous_bytes(collector):
    status = pathlib.Path(f"/proc/{collector.process.pid}/status").read_text()
    return int(re.search(r"RssAnon:\s+(\d+) kB", status)[1]) << 10


def start_senders(collector, seconds):
    return subprocess.Popen([KILN, "loadgen", "--server", f"http://127.0.0.1:{collector.ports[IN]}", "--protocol", "otlp-grpc", "--json",
                             "--timeout", "60s", "-j", "16", "--shape", "host", "--samples", "1000", "-n", str(20_000 * seconds), "--duration", f"{seconds}s"],
                            stdout=subprocess.PIPE, text=True)


def watch(collector, senders):
    """What memory was taken, look by look; and whatever did not add up."""
    memory, problems = [], []
    while senders.poll() is None:
        problems += not_conserved(collector.metrics()).items()
        memory.append(anonymous_bytes(collector))
        time.sleep(0.05)
    return memory, problems


def check_flat(what, memory):
    quarter = len(memory) // 4
    before, after = max(memory[quarter:2 * quarter]), max(memory[-quarter:])
    check(f"{what}: memory is flat", after <= before + before // 10 + SLACK_BYTES, (before, after))
    return after / 1e6


def flow(what, queue, folder, seconds):
    (folder / "sink").mkdir(parents=True)
    (folder / "sink.yaml").write_text(SINK)
    with Collector(folder / "sink", "--config", str(folder / "sink.yaml")) as sink:
        (folder / "c.yaml").write_text(CONFIG.replace("PORT", str(sink.ports[IN])).replace("QUEUE", queue)
                                       .replace("FOLDER", str(folder / "queue")))
        with Collector(folder, "--config", str(folder / "c.yaml")) as collector:
            senders = start_senders(collector, seconds)
            memory, problems = watch(collector, senders)
            account = json.loads(senders.communicate()[0])
            check(f"{what}: nobody was refused", not (account["refused"] or account["failed"] or account["rejected"]), account)
            check(f"{what}: it adds up in each of {len(memory)} looks", not problems, problems[:3])
            collector.wait_for(lambda: exporters(collector.metrics())["otlp"]["queued"] == 0)
            counts, came = exporters(collector.metrics())["otlp"], account["samples"]
            check(f"{what}: all is sent, once", counts == {"accepted": came, "sent": came, "queued": 0, "dropped": 0}, (counts, came))
            check(f"{what}: what was acknowledged is what arrived", (accepted(collector), accepted(sink)) == (came, came),
                  (accepted(collector), accepted(sink), came))
            most = 0 if sanitized() else check_flat(what, memory)
    print(f"{what}: {came / seconds:,.0f} samples a second for {seconds} s, {most:.1f} MB anonymous at most in the last quarter", flush=True)


def main():
    with tempfile.TemporaryDirectory(prefix="kiln-flow-") as folder:
        flow("in memory", "queue_size: 1000", pathlib.Path(folder) / "memory", max(SECONDS // 2, 1))
        flow("on disk", "storage: file_storage", pathlib.Path(folder) / "disk", max(SECONDS // 2, 1))
    return exit_code()


if __name__ == "__main__":
    sys.exit(main())
