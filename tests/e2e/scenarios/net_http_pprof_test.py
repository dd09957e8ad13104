#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A Go program with net/http/pprof, as the guides write it, scraped by Kiln; `go tool pprof` reads the program and Kiln alike."""
import socket
import subprocess
import time

from scenario import CPU, HERE, KilnServer, address, check, equal, finish, peers, profiles_of, query, run, shares, skip
from ports import free_port

WORK = CPU + '{service_name="work"}'
ALLOCATED = 'memory:alloc_space:bytes{service_name="work"}'
SETTINGS = """
scrape:
  - job_name: work
    scrape_interval: 3s
    static_configs:
      - targets: ["127.0.0.1:%d"]
    profiles:
      profile: {seconds: 2}
"""


def wait(what, condition, patience_s=60):
    until = time.monotonic() + patience_s
    while not condition():
        if time.monotonic() > until:
            raise RuntimeError(f"waited for {what} in vain")
        time.sleep(0.1)


def listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def flats(text):
    """{function: its own nanoseconds} of `go tool pprof -top -unit=ns`, the largest first."""
    rows = [line.split(None, 5) for line in text[text.index("cum%") + 4:].strip().splitlines()]
    values = {row[5].removesuffix(" (inline)"): int(row[0].removesuffix("ns")) for row in rows}
    return {name: value for name, value in values.items() if value}


def pprof_top(source):
    return flats(run("go", "tool", "pprof", "-top", "-unit=ns", "-nodecount=100000", "-nodefraction=0", source))


def scrape(port, server):
    settings = server.folder / "kiln.yaml"
    settings.write_text(SETTINGS % port)
    server.words = ("--config", str(settings))
    server.start()
    wait("CPU profiles", lambda: profiles_of(server, WORK) >= 2)
    # Go samples one allocation in 512 kB and shows it two collections later: this takes as long as it takes
    wait("an allocation of doWork", lambda: profiles_of(server, ALLOCATED) >= 1 and "main.doWork" in shares(query(server, ALLOCATED, limit=0)))
    server.stop()
    server.words = ()
    server.start()  # without scraping: from here on nothing changes


def questions(server):
    answer = query(server, WORK, limit=0)
    equal("doWork is on top", answer["top"]["rows"][0]["name"], "main.doWork")
    check("most is below main.main.func1", shares(answer, "total").get("main.main.func1", 0) > 0.5 * answer["total"], answer["top"])
    allocated = query(server, ALLOCATED, limit=0)
    check("it allocates", shares(allocated, "total").get("main.doWork", 0) > 0, allocated["top"])
    found = pprof_top(address(server, "/api/v1/query", query=WORK, format="pprof"))
    equal("go tool pprof has the same of Kiln, to the nanosecond", found,
          {name: value for name, value in shares(answer).items() if value})


def main():
    try:
        program = peers.build_go(HERE / "work")
    except peers.Absent as why:
        skip(f"net/http/pprof: {why}")
    port = free_port()
    server = KilnServer()
    process = subprocess.Popen([program, f"127.0.0.1:{port}"], stderr=subprocess.DEVNULL)
    try:
        wait("the program", lambda: listens(port))
        found = pprof_top(f"http://127.0.0.1:{port}/debug/pprof/profile?seconds=2")
        equal("go tool pprof finds doWork in the program itself", next(iter(found)), "main.doWork")
        scrape(port, server)
        questions(server)
    except (RuntimeError, OSError) as error:
        check("the program and the server work together", False, error)
    finally:
        process.kill()
        process.wait()
        server.__exit__()
    finish()


if __name__ == "__main__":
    main()
