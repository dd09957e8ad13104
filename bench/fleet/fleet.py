# SPDX-License-Identifier: Apache-2.0
"""What the two programs of this folder share: a Kiln server with a fleet in it, and operations whose CPU time is measured."""
import contextlib
import json
import pathlib
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from servers import KILN, Kiln, running  # noqa: E402, F401

CPU = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
ALL = "{}"
ONE = '{service_name="checkout"}'


class Failed(Exception):
    """A request that was refused, with the server's sentence."""


def ask(server, path, tenant=None, timeout=300, **parameters):
    """The parsed answer of the API, and its size."""
    query = urllib.parse.urlencode(parameters)
    headers = {"X-Scope-OrgID": tenant} if tenant else {}
    request = urllib.request.Request(f"{server.url()}{path}?{query}", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            text = answer.read()
    except urllib.error.HTTPError as error:
        raise Failed(f"{error.code}: {error.read()[:300].decode(errors='replace')}") from error
    return json.loads(text), len(text)


def flame(server, selector, since, tenant=None, **more):
    return ask(server, "/api/v1/query", tenant, query=CPU + selector, **since, format="flamegraph", nodes=16384, **more)


def functions(server, selector, since, tenant=None):
    return ask(server, "/api/v1/query", tenant, query=CPU + selector, **since, format="top")


def metrics(server):
    """Every series of /metrics by its name with labels."""
    with urllib.request.urlopen(f"{server.url()}/metrics", timeout=60) as answer:
        lines = answer.read().decode().splitlines()
    return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in lines if not line.startswith("#")}


def loadgen(server, *words):
    """Starts `kiln loadgen`; account() waits for it."""
    return subprocess.Popen([KILN, "loadgen", "--server", server.url(), "--json", "--timeout", "120s", *map(str, words)],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def account(load):
    out, err = load.communicate()
    if not out:
        raise Failed(f"kiln loadgen: {err}")
    return json.loads(out) | {"stderr": err.strip()}


def quiesce(server, patience=120):
    """Waits until the server has applied all it took and is idle; returns the CPU seconds that took."""
    before, end = server.cpu(), time.monotonic() + patience
    while time.monotonic() < end:
        last = server.cpu()
        time.sleep(0.25)
        if server.cpu() - last < 0.005 and metrics(server)["kiln_store_applier_lag"] == 0:
            return server.cpu() - before
    raise Failed(f"the server was still busy after {patience} s")


def kill(server):
    server.process.send_signal(signal.SIGKILL)
    server.process.wait()


def restart(server, end):
    """Ends the server with `end` and starts it; the CPU seconds until it is ready."""
    end(server)
    server.start()
    return server.cpu()


@contextlib.contextmanager
def cpu_of(server, ret):
    """Appends the CPU seconds that the server needed inside to `ret`."""
    before = server.cpu()
    yield
    ret.append(server.cpu() - before)
