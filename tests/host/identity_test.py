#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Who a sample belongs to: services told apart by unit, container, variables and what they publish; no secret of theirs is told."""
import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(os.environ.get("KILN_SOURCE_DIR", ".")).resolve() / "tests/support"))
from agent_test import Agent, spooled  # noqa: E402
from checks import check, exit_code  # noqa: E402
from filters_test import unified  # noqa: E402
from host_kit import KILN, PROGRAMS, Folder, need_host, record, resources_of, top, wait_for  # noqa: E402
from kiln_server import KilnServer  # noqa: E402
from ports import free_port  # noqa: E402

CONTAINER = os.urandom(32).hex()
BUNDLE = pathlib.Path("/run/containerd/io.containerd.runtime.v2.task/default") / CONTAINER

# Publishes a process context (OTEP 4719) and burns; what it publishes names its arguments, as SDKs do.
PUBLISHER = """
import ctypes, mmap, os, struct, sys, time
def field(n, content): return bytes([n << 3 | 2, len(content)]) + content
def pair(key, value): return field(1, field(1, key) + field(2, field(1, value)))
secret = sys.argv[2].encode()
payload = field(1, pair(b"service.name", b"published") + pair(b"service.version", b"4.2")
                + pair(b"process.command_line", secret))
fd = os.memfd_create("OTEL_CTX")
os.ftruncate(fd, 4096)
page = mmap.mmap(fd, 4096, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE)
os.close(fd)
at = ctypes.addressof(ctypes.c_char.from_buffer(page))
page[32:32 + len(payload)] = payload
page[0:32] = struct.pack("=8sIIQQ", b"OTEL_CTX", 2, len(payload), time.clock_gettime_ns(time.CLOCK_BOOTTIME), at + 32)
print("ready", flush=True)
end = time.process_time() + float(sys.argv[1])
while time.process_time() < end: pass
"""


@contextlib.contextmanager
def burning(*words, env=None, group=None, executable=None):
    """A program that burns, in a control group; its pid."""
    process = subprocess.Popen([*map(str, words)], env=os.environ | (env or {}), executable=executable)
    try:
        if group:
            (group / "cgroup.procs").write_text(str(process.pid))
        yield process.pid
    finally:
        process.kill()
        process.wait()


@contextlib.contextmanager
def publishing(secret):
    process = subprocess.Popen([sys.executable, "-c", PUBLISHER, "600", secret], stdout=subprocess.PIPE)
    try:
        process.stdout.readline()
        yield process.pid
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@contextlib.contextmanager
def groups(*names):
    """Control groups of the unified hierarchy, gone afterwards."""
    made = []
    try:
        for name in names:
            path = unified()
            for part in pathlib.Path(name).parts:
                path = path / part
                if not path.exists():
                    path.mkdir()
                    made.append(path)
        yield [unified() / name for name in names]
    finally:
        for path in reversed(made):
            wait_for(lambda: not (path / "cgroup.procs").read_text(), 10)
            path.rmdir()


@contextlib.contextmanager
def described():
    """A container's description, where containerd leaves it."""
    made = [parent for parent in (BUNDLE, *BUNDLE.parents) if not parent.exists()]
    BUNDLE.mkdir(parents=True)
    try:
        (BUNDLE / "config.json").write_text(json.dumps({"process": {"args": ["x"]}, "annotations": {
            "nerdctl/name": "shop-1", "org.opencontainers.image.version": "1.4",
            "io.kubernetes.cri.image-name": "registry:5000/shop:1.4"}}))
        yield
    finally:
        (BUNDLE / "config.json").unlink()
        for parent in made:
            parent.rmdir()


def check_told_apart(folder):
    if unified() is None:
        print("skipped: no unified hierarchy of control groups is mounted")
        return
    own = f"kiln-test-{os.getpid()}"
    chain = PROGRAMS / "chain"
    named = {"OTEL_SERVICE_NAME": "cart", "OTEL_RESOURCE_ATTRIBUTES": "service.version=7,team=a%20b",
             "GIT_COMMIT": "1234abcd", "DEPLOYMENT_ID": "77"}
    with contextlib.ExitStack() as stack:
        unit, container = stack.enter_context(groups(f"{own}.slice/mail.service", f"{own}/default/{CONTAINER}"))
        stack.enter_context(described())
        pids = {
            "unit": stack.enter_context(burning(chain, "600", group=unit)),
            "container": stack.enter_context(burning(chain, "600", group=container)),
            "named": stack.enter_context(burning(chain, "600", env=named)),
            "plain": stack.enter_context(burning(chain, "600")),
            "published": stack.enter_context(publishing("x")),
        }
        if (PROGRAMS / "going").exists():
            pids["go"] = stack.enter_context(burning(PROGRAMS / "going", "600"))
        seconds, found = 2, {}
        while len(found) < len(pids) and seconds < 30:
            rec = record(folder, words=("-p", ",".join(map(str, pids.values())), "-d", f"{seconds}s"))
            found = {int(attributes["process.pid"]): attributes for attributes, n in resources_of(rec.path) if n}
            seconds *= 3
    who = {name: found.get(pid, {}) for name, pid in pids.items()}

    def says(name, **wanted):
        seen = {key.replace(".", "_"): value for key, value in who[name].items()}
        check(f"{name}: {', '.join(wanted.values())}", all(seen.get(key) == value for key, value in wanted.items()),
              who[name])

    says("unit", service_name="mail", systemd_unit="mail.service", process_executable_name="chain")
    says("container", service_name="shop-1", container_id=CONTAINER, container_name="shop-1", service_version="1.4",
         container_image_name="registry:5000/shop")
    says("named", service_name="cart", service_version="7", team="a b", git_commit="1234abcd", deployment_id="77")
    says("plain", service_name="chain")
    says("published", service_name="published", service_version="4.2", process_runtime_name="cpython")
    check("published: the version of Python", (who["published"].get("runtime.version", "none") + ".").startswith(
        "%d.%d." % sys.version_info[:2]), who["published"])
    if "go" in pids:
        check("go: the version of Go", who["go"].get("runtime.version", "").startswith("go1."), who["go"])


def content_of(folder):
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def stored(data, folder):
    """All that a store has, as JSON."""
    out = folder / "stored.otlp"
    done = subprocess.run([KILN, "store", "export", "--data-dir", data, "-o", out], capture_output=True, text=True, check=False)
    if done.returncode:
        return done.stderr
    return subprocess.run([KILN, "convert", out, "--to", "otlp-json"], capture_output=True, check=False, text=True).stdout


def check_secrets(folder):
    """Planted in arguments, in the environment, in a path and in what is published; looked for in what is sent and stored."""
    secrets = {what: f"{what}-{os.urandom(8).hex()}" for what in ("argument", "title", "variable", "path", "published")}
    home = folder / f"key={secrets['path']}"
    home.mkdir()
    program = shutil.copy(PROGRAMS / "chain", home / "chain")
    config = folder / "kiln.yaml"
    config.write_text("redaction:\n- {match: path, regex: 'key=[^/]+', action: replace, replacement: 'key=-'}\n"
                      "agent:\n  identity:\n  - match: {process.executable.path: '*/chain', 'env:ROLE': '*'}\n"
                      "    set: {tier: '{2}'}\n")
    port = free_port()
    env = {"OTEL_SERVICE_NAME": "planted", "API_KEY": secrets["variable"], "ROLE": "front"}
    words = ("--endpoint", f"http://127.0.0.1:{port}", "--config", config)
    with KilnServer("--otlp-grpc", f"127.0.0.1:{port}") as server, publishing(secrets["published"]), \
            burning(f"chain --key {secrets['title']}", "600", "--password", secrets["argument"], env=env,
                    executable=program), Agent(folder, *words) as agent:
        check("the program is there, by the name it has for itself",
              wait_for(lambda: '"burn_leaf"' in top(server.http, "planted")), agent.said())
        check("what a program publishes names it here, too", wait_for(lambda: '"functions"' in top(server.http, "published")),
              agent.said())
        server.stop()
        check("while the server is away, requests wait on disk",
              wait_for(lambda: agent.metric("kiln_export_spool_files") > 1), agent.said())
        agent.end()
        sent, kept = b"".join(spooled(agent)), stored(server.data, folder)
        check("its path is told, but for the secret", "key=-/chain" in kept and b"key=-/chain" in sent, kept[:2000])
        check("a rule has named it by a variable", '"front"' in kept and b"front" in sent, kept[:2000])
        places = {"sent": sent, "stored": kept.encode(), "files of the store": content_of(server.data),
                  "names on disk": content_of(folder / "symbols"), "logs": (agent.said() + server.said()).encode()}
    for what, secret in secrets.items():
        found = [name for name, content in places.items() if secret.encode() in content]
        check(f"the secret in the {what} is nowhere", not found, found)


def main():
    need_host("chain")
    for part in (check_told_apart, check_secrets):
        with Folder() as folder:
            part(folder)
    return exit_code()


if __name__ == "__main__":
    sys.exit(main())
