#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A Go program with Pyroscope's library and five profile types, then the guides' curl line: which function is on top?"""
import json
import os
import shutil
import subprocess
import time

from scenario import CPU, HERE, KilnServer, address, check, equal, finish, peers, profiles_of, query, run, shares, skip

TYPES = {  # three parts of a type: a function that must be in it
    CPU: "main.parseOrder",
    "memory:alloc_space:bytes": "main.serializeResponse",
    "memory:alloc_objects:count": "main.serializeResponse",
    "memory:inuse_space:bytes": "main.serializeResponse",
    "memory:inuse_objects:count": "main.serializeResponse",
}

LIMIT_S = 180


def curl(server):
    """The line of the guides, with another host."""
    return json.loads(run("curl", "-sSG", address(server, "/api/v1/query"),
                          "--data-urlencode", f'query={CPU}{{service_name="order-service"}}',
                          "--data-urlencode", "from=now-1h", "--data-urlencode", "until=now"))


def pprof_top(server, folder):
    """{function: flat} as `go tool pprof -top` reads format=pprof."""
    file = folder / "cpu.pb.gz"
    run("curl", "-sSG", address(server, "/api/v1/query"), "-o", file, "--data-urlencode",
        f'query={CPU}{{service_name="order-service"}}', "--data-urlencode", "format=pprof")
    text = run("go", "tool", "pprof", "-top", "-unit=ns", "-nodecount=100000", "-nodefraction=0", file)
    rows = [line.split(None, 5) for line in text[text.index("cum%") + 4:].strip().splitlines()]
    return {row[5].removesuffix(" (inline)"): int(row[0].removesuffix("ns")) for row in rows if int(row[0].removesuffix("ns"))}


def run_until_uploaded(program, server):
    """Runs the program until profiles of every type have arrived: allocations, which are differences, with the second upload."""
    # On a busy machine the signal that asks a goroutine to yield waits with the profiler's, comes before it, and has its
    # function on top of most samples.
    with subprocess.Popen([program, address(server), str(LIMIT_S)], env=os.environ | {"GODEBUG": "asyncpreemptoff=1"}) as running:
        while not all(profiles_of(server, type_id + '{service_name="order-service"}') for type_id in TYPES):
            if running.poll() is not None:
                raise RuntimeError(f"the program ended with status {running.returncode} before all its types had arrived")
            time.sleep(0.5)
        running.terminate()


def main():
    if not shutil.which("curl"):
        skip("there is no curl")
    try:
        program = peers.build_go(HERE / "order-service")
    except peers.Absent as why:
        skip(f"pyroscope-go: {why}")
    with KilnServer() as server:
        run_until_uploaded(program, server)
        answer = curl(server)
        first = answer["top"]["rows"][0]
        equal("the hot function is on top", first["name"], "main.parseOrder")
        check("it takes more than half", first["self_share"] > 0.5, first)
        equal("the type is resolved", answer["type"]["id"], "process_cpu:cpu:nanoseconds:cpu:nanoseconds")
        equal("the selves add up to the total", sum(row["self"] for row in query(
            server, f'{CPU}{{service_name="order-service"}}', limit=0)["top"]["rows"]), answer["total"])
        equal("go tool pprof reads the same", pprof_top(server, server.folder),
              {name: value for name, value in shares(query(server, CPU + '{service_name="order-service"}', limit=0)).items() if value})
        for type_id, function in TYPES.items():
            found = shares(query(server, type_id + '{service_name="order-service"}', limit=0), "total")
            check(f"{function} is in {type_id}", found.get(function, 0) > 0, found)
    finish()


if __name__ == "__main__":
    main()
