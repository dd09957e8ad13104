#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Boost and pause on the real kernel: from the command line over the server to the agent and back out in the profiles, whoever is restarted meanwhile."""
import http.server
import json
import os
import pathlib
import re
import subprocess
import sys
import threading
import urllib.parse

sys.path.insert(0, str(pathlib.Path(os.environ.get("KILN_SOURCE_DIR", ".")).resolve() / "tests/support"))
from agent_kit import Agent  # noqa: E402
from checks import check, exit_code  # noqa: E402
from host_kit import KILN, Folder, Running, Served, need_host, wait_for  # noqa: E402
from kiln_server import KilnServer  # noqa: E402
from ports import free_port  # noqa: E402

SERVICE = "till"
BASE_HZ, BOOST_HZ = 19, 499


class Server(KilnServer, Served):
    pass


def kiln(at, *words):
    done = subprocess.run([KILN, *words, "-s", at], capture_output=True, text=True, check=False)
    if done.returncode:
        check(" ".join(words), False, done.stdout + done.stderr)
    return done.stdout


def url(server):
    """Its socket: pauses are for root and the server's user, where there are no tokens."""
    return f"unix:{server.folder}/kiln.sock"


def orders(server):
    return {order["id"]: order for order in json.loads(server.get("/api/v1/orders"))["orders"]}


def followed(server):
    """What agents say that they follow."""
    return [order for agent in json.loads(server.get("/api/v1/agents"))["agents"] for order in agent["orders"]]


def period_ns(server):
    """What a sample of the newest profile of the service stands for."""
    query = urllib.parse.urlencode({"query": f'process_cpu:cpu:nanoseconds{{service_name="{SERVICE}"}}', "limit": 1, "order": "newest"})
    rows = json.loads(server.get("/api/v1/profiles?" + query))["profiles"]
    return rows[0]["value"] / rows[0]["count"] if rows and rows[0]["count"] else 0


def is_sampled_at(server, hz):
    return abs(period_ns(server) * hz / 1e9 - 1) < 0.01


def reaches(what, seconds):
    """Agents ask every five seconds (tests/unit/api/native_orders_test.c); a busy machine may take longer than that."""
    check(f"{what}, after {seconds or 99:.1f} s", seconds is not None)


def check_boost(server, agent):
    """From the command line into profiles; the id of the order."""
    wait_for(lambda: SERVICE in server.get("/api/v1/services"))
    said = json.loads(kiln(url(server), "boost", SERVICE, "-F", str(BOOST_HZ), "-d", "5m", "--why", "a test", "--json"))
    order = said["orders"][0]["id"]
    reaches("a boost reaches the agent", wait_for(lambda: order in agent.said()))
    check("the server hears that it is followed", wait_for(lambda: order in followed(server)), followed(server))
    check("the process is sampled more often", wait_for(lambda: agent.metric("kiln_host_boosted_processes")), agent.said())
    check("and its profiles say so", wait_for(lambda: is_sampled_at(server, BOOST_HZ)), period_ns(server))
    check("nothing else is", agent.metric("kiln_host_rate_hertz") == BASE_HZ)
    check("both logs say who asked, and why", 'why="a test"' in agent.said() and 'why="a test"' in server.said(), agent.said())
    return order


def check_restarts(folder, server, words, order, agent):
    """Nobody forgets, killed together or alone; the agent that goes on."""
    server.kill()
    agent.process.kill()
    agent.process.wait()
    agent = Agent(folder, *words)
    check("an agent that was killed goes on without its server", order in agent.said() and
          wait_for(lambda: agent.metric("kiln_host_boosted_processes")), agent.said())
    server.start()
    check("a server that was killed has its orders again", order in orders(server), orders(server))
    check("and hears of its agent again", wait_for(lambda: order in followed(server)), followed(server))
    check("which follows the same order all along", "has ended here" not in agent.said(), agent.said())
    return agent


def check_pause(server, agent, folder):
    """A pause given to the agent itself counts more than the boost, for two seconds; then the boost ends, too."""
    socket = f"unix:{folder}/agent.sock"
    kiln(socket, "pause", SERVICE, "-d", "2s")
    check("a pause on the agent's socket holds at once", wait_for(lambda: agent.metric("kiln_host_paused_samples_total")))
    check("and ends by itself", wait_for(lambda: agent.metric("kiln_host_paused_processes") == 0 and
                                         re.search("has ended here.* kind=pause", agent.said())), agent.said())
    check("then the boost holds again", wait_for(lambda: agent.metric("kiln_host_boosted_processes")))
    check("the agent lists it", SERVICE in kiln(socket, "agents"))
    kiln(url(server), "boost", SERVICE, "--end")
    reaches("the end of a boost reaches the agent", wait_for(lambda: re.search("has ended here.* kind=boost", agent.said())))
    check("profiles are as before", wait_for(lambda: is_sampled_at(server, BASE_HZ)), period_ns(server))
    check("the server hears of that", wait_for(lambda: followed(server) == []), followed(server))


class Nonsense(http.server.BaseHTTPRequestHandler):
    """A server that does not know what it says."""
    heard = []

    def do_POST(self):
        status = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.heard.append((self.path, status, dict(self.headers)))
        body = b'{"now":"2026-03-01T12:00:00Z","orders":[{"id":"1","kind":"pause","target":"all","expires":"never"}]}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def check_nonsense(folder):
    """What another server says harms nobody, and it hears no more than it must."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Nonsense) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with Agent(folder, "--endpoint", "http://127.0.0.1:9", "--server", f"http://localhost:{server.server_port}",
                   env={"OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20secret"}) as agent:
            check("an answer that makes no sense is said to be so", wait_for(lambda: "makes no sense" in agent.said()), agent.said())
            check("and is not followed", "an order holds here" not in agent.said(), agent.said())
            path, status, headers = Nonsense.heard[0]
            check("a report says who it is from", path == f"/api/v1/agents/{status['id']}" and status["state"] == "running", path)
            check("secrets for the receiver of profiles go to nobody else", "Authorization" not in headers, headers)
            check("the socket works all the same", "paused" in kiln(f"unix:{folder}/agent.sock", "pause", "--all", "-d", "1m"))
            check("the clocks stand", wait_for(lambda: agent.metric("kiln_host_clock_hertz") == 0), agent.said())
        server.shutdown()


def check_all_in_one():
    """A server that profiles its own host follows its own book."""
    with Server("--host-profiler", "on", "--report-interval", "500ms") as server:
        kiln(url(server), "pause", "--all", "-d", "1m")
        reaches("the server's own profiler pauses", wait_for(lambda: server.metric("kiln_host_clock_hertz") == 0))
        (agent,) = json.loads(server.get("/api/v1/agents"))["agents"]
        check("and says so", agent["state"] == "paused" and len(agent["orders"]) == 1, agent)
        kiln(url(server), "resume", "--all")
        check("and resumes", wait_for(lambda: server.metric("kiln_host_clock_hertz") == BASE_HZ and followed(server) == []))


def main():
    need_host("chain")
    port = free_port()
    words = "--endpoint", f"http://127.0.0.1:{port}"
    with Folder() as folder, Running("chain", env={"OTEL_SERVICE_NAME": SERVICE}), Server("--otlp-grpc", f"127.0.0.1:{port}") as server:
        with Agent(folder, *words) as agent:
            order = check_boost(server, agent)
            agent = check_restarts(folder, server, words, order, agent)
        with agent:
            check_pause(server, agent, folder)
            check("it ends in good order", agent.end() == 0, agent.said())
        check_nonsense(folder)
        check_all_in_one()
    return exit_code()


if __name__ == "__main__":
    sys.exit(main())
