#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The container images run: compose.yaml as it stands, the usual `docker run` of a profiler, the server alone.

Images come from tools/image-oci; tests/support/containers.py is the container engine.
"""
import contextlib
import os
import pathlib
import shutil
import subprocess
import sys

SOURCE = pathlib.Path(os.environ.get("KILN_SOURCE_DIR", ".")).resolve()
sys.path.insert(0, str(SOURCE / "tests/support"))
from checks import check, exit_code  # noqa: E402
from containers import Container, Network, compose, docker_run  # noqa: E402
from host_kit import KILN, Folder, Running, need_host, skip, wait_for  # noqa: E402

# As articles on OpenTelemetry's profiler have it, but for the image.
DOCKER_RUN = """docker run --rm -d \\
  --name otel-profiler \\
  --privileged \\
  --pid=host \\
  -v /sys/kernel:/sys/kernel:ro \\
  -v /lib/modules:/lib/modules:ro \\
  -e OTEL_EXPORTER_OTLP_ENDPOINT=http://collector:4317 \\
  -e OTEL_PROFILER_SAMPLING_FREQUENCY=19 \\
  kiln-agent"""
TYPE = "process_cpu:cpu:nanoseconds"


def make_images(folder):
    tool, tree = SOURCE / "tools/image-oci", folder / "tree"
    environment = os.environ | {"SOURCE_DATE_EPOCH": "1700000000"}  # whatever the sources came by
    archives = {f"kiln-{target}": folder / f"{target}.tar" for target in ("agent", "server")}
    subprocess.run([tool, "tree", pathlib.Path(KILN).parent, tree], check=True)
    for name, archive in archives.items():
        subprocess.run([tool, "pack", tree, name.removeprefix("kiln-"), archive], check=True, env=environment)
    return archives


def names_at(server, service):
    return server.network.run(KILN, "query", "-s", f"http://{server.network.address('server')}:4040", "--json", "--from",
                              "now-5m", f'{TYPE}{{service_name="{service}"}}').stdout


def agents_of(server):
    return server.network.run(KILN, "agents", "-s", f"http://{server.network.address('server')}:4040", "--json").stdout


def status_of(server, host):
    """Of a query for this host name, with which containers of the network ask."""
    address = f"http://{server.network.address('server')}:4040/api/v1/services"
    return server.network.run("curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "-H", f"Host: {host}", address).stdout


def check_functions(what, server, service, agent):
    check(f"{what}: the server has the functions of {service}, through agent and collector",
          wait_for(lambda: all(f'"{name}"' in names_at(server, service) for name in ("burn_leaf", "outer", "main"))),
          agent.said())


def check_agent(what, agent):
    check(f"{what}: it is healthy", agent.wait_healthy(), agent.said())
    rate = agent.network.run("nsenter", "-t", agent.pid, "-n", "curl", "-s", "http://127.0.0.1:4041/metrics").stdout
    check(f"{what}: the variable is its frequency", "\nkiln_host_rate_hertz 19\n" in rate, rate)
    doctor = agent.run("/usr/bin/kiln", "doctor")
    check(f"{what}: the doctor finds nothing missing", doctor.returncode == 0 and "  missing " not in doctor.stdout,
          doctor.stdout + doctor.stderr)


def check_compose(services):
    server, collector, agent = (services[name] for name in ("server", "collector", "agent"))
    check_functions("compose.yaml", server, "chain", agent)
    check_agent("the agent of compose.yaml", agent)
    check("the agent asks the server for orders", wait_for(lambda: '"state":"running"' in agents_of(server)),
          agents_of(server) + agent.said())
    statuses = [status_of(server, host) for host in ("pyroscope:4040", "server:4040", "evil.example:4040")]
    check("the server is queried by its names, and by no other", statuses == ["200", "200", "421"], statuses)
    published = [port for one in services.values() for port in one.spec.ports]
    check("without tokens, ports are published on loopback only",
          published and all(port.startswith("127.0.0.1:") for port in published), published)
    for one in (server, collector):
        owner = os.stat(f"/proc/{one.pid}").st_uid
        check(f"{one.spec.name} does not run as root", owner == one.user[0] != 0, owner)
    check("the agent stops in good order", agent.end() == 0, agent.said())


def check_docker_run(network, folder, archives, services):
    server, collector = services["server"], services["collector"]
    with Running("chain-static"), \
            Container(network, folder, archives, docker_run(DOCKER_RUN), hosts=[collector.spec]) as agent:
        check_functions("docker run", server, "chain-static", agent)
        check_agent("the agent of docker run", agent)


def check_services(folder, archives):
    specs = compose(SOURCE / "compose.yaml")
    check("compose.yaml has these services", [spec.name for spec in specs] == ["server", "collector", "agent"])
    with contextlib.ExitStack() as stack, Running("chain"):
        network, services = stack.enter_context(Network()), {}
        for spec in specs:
            for other, condition in spec.needs.items():
                check(f"{other} is healthy before {spec.name} starts",
                      condition == "service_healthy" and services[other].wait_healthy(), services[other].said())
            services[spec.name] = stack.enter_context(Container(network, folder, archives, spec, hosts=specs))
        check_compose(services)
        check_docker_run(network, folder, archives, services)
        for name in ("collector", "server"):
            check(f"the {name} stops in good order", services[name].end() == 0, services[name].said())
    check("the profiles are in the volume", any((folder / "volumes/profiles").rglob("*.kb")),
          list((folder / "volumes/profiles").rglob("*")))


def check_refuses(folder, archives):
    """A server that everybody on the network could use does not start unasked."""
    with Network() as network, Container(network, folder, archives, docker_run("docker run --name open kiln-server")) as open_:
        status = open_.process.wait(60)
        check("without tokens the server refuses, and says what to do", status == 2 and
              "--allow-anonymous" in open_.said() and "--tokens" in open_.said(), (status, open_.said()))


def check_preload(folder, archives):
    """libkiln is where the program looks for it."""
    line = "docker run --name preload kiln-server run --show -- /usr/bin/kiln"
    with Network() as network, Container(network, folder, archives, docker_run(line)) as shown:
        status = shown.process.wait(60)
        check("libkiln is in the image", status == 0 and "LD_PRELOAD='/usr/lib/libkiln.so.0'" in shown.said(), shown.said())


def root_is_mounted():
    with open("/proc/self/mountinfo", encoding="utf-8") as mounts:
        return any(line.split()[4] == "/" for line in mounts)


def main():
    need_host("chain", "chain-static")
    if os.geteuid() or not shutil.which("ip") or not root_is_mounted():
        skip("containers take root, the program ip, and a root folder that is not that of a chroot")
    with Folder() as folder:
        archives = make_images(folder)
        for part in (check_services, check_refuses, check_preload):
            part(folder, archives)
    return exit_code()


if __name__ == "__main__":
    sys.exit(main())
