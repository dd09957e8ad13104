# SPDX-License-Identifier: Apache-2.0
"""`kiln agent` for tests on the real kernel.

    with Folder() as folder, Agent(folder, "--endpoint", "http://127.0.0.1:9") as agent:
        agent.metric("kiln_host_rate_hertz")
"""
import gzip
import json
import os

from host_kit import KILN, Served, wait_for
from service import Service


class Agent(Service, Served):
    """An agent on a free port, with its spool in the folder; what it sends is gzip, which Python reads."""

    def __init__(self, folder, *words, env=None, before=()):
        self.ready, self.spool = folder / "agent.json", folder / "spool"
        self.ready.unlink(missing_ok=True)
        budget = () if "--cpu-budget" in words else ("--cpu-budget", "off")  # a busy machine shall not change rates
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "KILN_"))}
        (folder / "agent.log").unlink(missing_ok=True)
        super().__init__(folder / "agent.log", *before, KILN, "agent", "--listen", "127.0.0.1:0", "--ready-file", self.ready,
                         "--spool", self.spool, "--data-dir", folder / "agent", "--socket", folder / "agent.sock",
                         "--symbol-cache", folder / "symbols", "--report-interval", "500ms", "--compression", "gzip",
                         *budget, *words, env=environment | (env or {}))
        if not wait_for(lambda: self.ready.exists() or self.process.poll() is not None) or not self.ready.exists():
            raise RuntimeError(self.said())
        self.http = json.loads(self.ready.read_text())["http"]


def spooled(agent):
    """Every request in the spool, uncompressed, oldest first."""
    return [gzip.decompress(path.read_bytes()[48:]) for path in sorted(agent.spool.glob("*.otlp"))]
