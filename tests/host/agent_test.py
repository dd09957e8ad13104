#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`kiln agent`: what it gathers reaches a server, also when that was away; settings, signals.

Everything that waits in its spool passes `kiln check --strict` and, where $PROFCHECK names it, profcheck.
"""
import os
import pathlib
import signal
import subprocess
import sys
import urllib.error
import urllib.request

sys.path.insert(0, str(pathlib.Path(os.environ.get("KILN_SOURCE_DIR", ".")).resolve() / "tests/support"))
from agent_kit import Agent, spooled  # noqa: E402
from checks import check, exit_code  # noqa: E402
from host_kit import KILN, Folder, Running, need_host, top, wait_for  # noqa: E402
from kiln_server import KilnServer  # noqa: E402
from ports import free_port  # noqa: E402


def check_rules(folder, requests):
    for number, content in enumerate(requests):
        path = folder / f"{number}.otlp"
        path.write_bytes(content)
        done = subprocess.run([KILN, "check", "--strict", path], capture_output=True, text=True, check=False)
        if done.returncode:
            return done.stdout + done.stderr
        if os.environ.get("PROFCHECK"):
            done = subprocess.run([os.environ["PROFCHECK"], path], capture_output=True, text=True, check=False)
            if done.returncode:
                return done.stdout + done.stderr
    return ""


def check_sends(folder):
    config = folder / "kiln.yaml"
    config.write_text("profiling:\n  cpu:\n    enabled: true\n    interval: 10ms\n  alloc:\n    enabled: true\n"
                      "    interval: 524288\nagent: {resource: {deployment.environment.name: test}}\n")
    port = free_port()
    words = ("--otlp-grpc", f"127.0.0.1:{port}")
    env = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{port}", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc",
           "OTEL_SERVICE_NAME": "not-of-others"}
    with KilnServer(*words) as server, Running("chain"), Agent(folder, "--config", config, env=env) as agent:
        check("a program is in the server, function by function",
              wait_for(lambda: all(f'"{name}"' in top(server.http, "chain") for name in ("burn_leaf", "outer", "main"))),
              agent.said())
        services = subprocess.run([KILN, "query", "-s", f"http://127.0.0.1:{server.http}", "--services"], text=True,
                                  capture_output=True, check=False).stdout
        check("the agent's own name names nobody else", "chain" in services and services.count("not-of-others") <= 1,
              services)
        check("an interval of 10ms is 100 Hz", agent.metric("kiln_host_rate_hertz") == 100, agent.said())
        check("what is not for it, it says so", "profiling.alloc" in agent.said(), agent.said())
        check("it is ready and alive", (agent.get("/ready") + agent.get("/healthz")).split() == ["ready", "alive"])
        config.write_text("profiling: {cpu: {interval: 20ms}}\nredaction: [{match: name, regex: burn_leaf, action: drop}]\n")
        agent.process.send_signal(signal.SIGHUP)
        check("SIGHUP changes the rate", wait_for(lambda: agent.metric("kiln_host_rate_hertz") == 50), agent.said())
        check("and brings rules of redaction where there were none",
              wait_for(lambda: agent.metric('kiln_redacted_total{what="text"}') > 0), agent.said())
        config.write_text("profiling: {cpu: {interval: never}}\n")
        agent.process.send_signal(signal.SIGHUP)
        check("a mistake leaves it as it was", wait_for(lambda: "settings stay as they were" in agent.said()) and
              agent.metric("kiln_host_rate_hertz") == 50, agent.said())
        check("everything was taken", agent.metric("kiln_export_up") == 1 and agent.metric(
            'kiln_export_dropped_requests_total{reason="refused"}') == 0, agent.said())
        server.stop()
        check("while the server is away, it is on disk", wait_for(lambda: agent.metric("kiln_export_spool_files") > 1))
        check("it stops in good order", agent.end() == 0, agent.said())
        waiting = spooled(agent)
        wrong = check_rules(folder, waiting)
        check(f"{len(waiting)} requests wait, all by the rules of OpenTelemetry", len(waiting) > 1 and not wrong, wrong)
        check("attributes of the host are in them", all(b"deployment.environment.name" in one for one in waiting))
        server.start()
        config.write_text("agent: {enabled: auto}\n")
        with Agent(folder, "--config", config, env=env) as again:
            check("and is sent by the next one",
                  wait_for(lambda: again.metric("kiln_export_sent_requests_total") > len(waiting) and
                           again.metric("kiln_export_spool_files") == 0), again.said())
            check("which has the usual rate", again.metric("kiln_host_rate_hertz") == 19)


def check_default(folder):
    """Without an endpoint: to the server of this host, by its socket, orders included; to no listener of another user."""
    with KilnServer() as server, Running("chain"):
        with Agent(folder, "-F", "97", env={"KILN_SOCKET": str(server.folder / "kiln.sock")}) as agent:
            check("it says where profiles go", f"endpoint=unix:{server.folder}/otlp.sock" in agent.said(), agent.said())
            check("they come there", wait_for(lambda: '"burn_leaf"' in top(server.http, "chain")), agent.said())
            check("orders come from there", wait_for(lambda: "orders come from the server" in agent.said()), agent.said())
    squatted = folder / "otlp.sock"
    squatter = subprocess.Popen(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", sys.executable, "-c", SQUATTER, squatted],
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with squatter, Running("chain"):
        folder.chmod(0o1777)
        squatter.stdin.write("listen\n")
        squatter.stdin.flush()
        check("nobody listens on a socket", squatter.stdout.readline() == "listens\n")
        with Agent(folder, "-F", "97", env={"KILN_OTLP_SOCKET": str(squatted)}) as agent:
            check("a listener of nobody is named", wait_for(lambda: "user 65534 listens here" in agent.said()), agent.said())
            check("profiles wait on disk", wait_for(lambda: agent.metric("kiln_export_spool_files") > 1), agent.said())
        came, _ = squatter.communicate("end\n")
        check("nobody got no byte", came == "0\n", came)


SQUATTER = """
import os, socket, sys
os.umask(0)
input()
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
listener.listen(64)
print("listens", flush=True)
input()
listener.setblocking(False)
came = 0
try:
    while True:
        connection, _ = listener.accept()
        connection.settimeout(30)
        while part := connection.recv(4096):
            came += len(part)
except BlockingIOError:
    print(came)
"""


def check_remembers(folder):
    words = "--endpoint", "http://127.0.0.1:9", "-F", "97", "-p"
    with Running("chain") as (chain,):
        with Agent(folder, *words, chain) as agent:
            check("names are looked for", wait_for(lambda: agent.metric("kiln_names_read_total") > 0), agent.said())
            check("and counted as such", agent.metric("kiln_names_from_disk_total") == 0, agent.said())
            agent.end()
        check("and kept", len(list((folder / "symbols").glob("*.shelf"))) > 0, agent.said())
        for path in agent.spool.glob("*.otlp"):
            path.unlink()
        with Agent(folder, *words, chain) as again:
            # Three quarters of its samples are in burn_leaf; the first name that is found may be another.
            check("after a restart they come from the disk", wait_for(lambda: again.metric("kiln_names_from_disk_total") > 0 and
                                                                      again.metric("kiln_host_samples_total") > 50), again.said())
            again.end()
            check("with the same names", any(b"burn_leaf" in one for one in spooled(again)))
    (folder / "symbols").chmod(0o777)
    with Agent(folder, *words, os.getpid()) as agent:
        check("a directory that others may write to is not believed, which is said once",
              wait_for(lambda: agent.said().count("names are not kept on disk") == 1), agent.said())


def status_for(agent, host):
    request = urllib.request.Request(f"http://127.0.0.1:{agent.http}/metrics", headers={"Host": host})
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


def check_refuses(folder):
    with Agent(folder, "--endpoint", "http://127.0.0.1:9", "--host-names", "agent.example") as agent:
        statuses = [status_for(agent, host) for host in ("localhost", "agent.example:4041", "evil.example")]
        check("its port has the names of the settings, and no other", statuses == [200, 200, 421], statuses)
        second = subprocess.run([KILN, "agent", "--listen", "off", "--spool", agent.spool], capture_output=True, text=True,
                                check=False, timeout=60)
        check("two agents do not share a spool", second.returncode == 4 and "another process" in second.stderr, second)
    for words, code, said in ((("--endpoint", "gopher://x"), 2, "no address for OTLP"),
                              (("--frequency", "0x"), 2, "not a whole number"),
                              (("--listen", "0.0.0.0:0"), 2, "loopback")):
        done = subprocess.run([KILN, "agent", "--spool", "off", *words], capture_output=True, text=True, check=False,
                              timeout=60)
        check(f"{' '.join(words)}: {said}", done.returncode == code and said in done.stderr, done)
    off = folder / "off.yaml"
    off.write_text("profiling: {cpu: {enabled: false}}\n")
    done = subprocess.run([KILN, "agent", "--config", off, "--listen", "off", "--spool", "off"], capture_output=True,
                          text=True, check=False, timeout=60)
    check("nothing to do is said", done.returncode == 2 and "nothing to do" in done.stderr, done)


def main():
    need_host("chain")
    for part in (check_sends, check_default, check_remembers, check_refuses):
        with Folder() as folder:
            part(folder)
    return exit_code()


if __name__ == "__main__":
    sys.exit(main())
