#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The guides' two stories of memory, and the one of waiting, each step a question and an exact answer:

  1. allocations in bytes a minute: processOrder 800 MB, String.concat 420 MB of them
  2. a leak: what is in use grows from snapshot to snapshot; the diff names who keeps it, and is flat after the fix
  3. wall time without CPU time: a function that waits
"""
import re
import time

from scenario import KilnServer, address, ask, check, equal, finish, kiln, query, shares
from drawn_otlp import PERIOD_NS, Drawn

MINUTE = 60_000_000_000
MB = 1024 * 1024
NOW = time.time_ns() // MINUTE * MINUTE
SHOP = {"service.name": "shop", "process.pid": "7"}
ALLOCATED = """
    processOrder;serializeResponse;String.concat    420
    processOrder;serializeResponse                  130
    processOrder;queryDatabase;buildResultSet       150
    processOrder;queryDatabase                       30
    processOrder                                     70
"""
IN_USE = "serve;cacheResponse {cached}\nserve;pool 40\n"
LEAKS, FIXED, HEALED = 30, 15, 5  # minutes ago: it begins, the fix is there, the last snapshot


def cached(minute):
    """MB in the cache: 10 more every minute while it leaks, then what it was."""
    return 20 + 10 * (LEAKS - minute) if minute > FIXED else 20


def send(server):
    drawn = Drawn()
    for minute in range(LEAKS, 0, -1):
        at = NOW - minute * MINUTE
        drawn.profile(SHOP, at, ALLOCATED, seconds=60, kind=("alloc_space", "bytes"), period_ns=MB)
        drawn.profile(SHOP, at, IN_USE.format(cached=cached(minute)), seconds=0, kind=("inuse_space", "bytes"), period_ns=MB)
        drawn.profile(SHOP, at, "serve;compute 100\n", seconds=60)
        drawn.profile(SHOP, at, "serve;compute 100\nserve;lock 300\n", seconds=60, kind=("wall", "nanoseconds"))
    drawn.send(server)


def allocations(server):
    answer = query(server, 'alloc_space{service_name="shop"}')
    minutes = answer["basis"]["covered_seconds"] / 60
    equal("half an hour is covered", minutes, LEAKS)
    totals = {name: value / minutes / MB for name, value in shares(answer, "total").items()}
    equal("megabytes a minute, with what they call", totals, {"processOrder": 800, "serializeResponse": 550, "String.concat": 420,
                                                              "queryDatabase": 180, "buildResultSet": 150})
    equal("String.concat is on top by itself", answer["top"]["rows"][0]["name"], "String.concat")
    said = kiln("query", "--server", address(server), 'alloc_space{service_name="shop"}')
    check("kiln query says the rate", re.search(r"23\.4GB in 30min \(800 MB/min\)", said), said)


def the_leak(server):
    selector = 'inuse_space{service_name="shop"}'
    line = ask(server, "/api/v1/functions", query=selector, function="cacheResponse", step="60s", from_=str(NOW - LEAKS * MINUTE),
               until=str(NOW))
    equal("what the cache keeps, minute by minute", [value / MB for value in line["value"]],
          [cached(minute) for minute in range(LEAKS, 0, -1)])

    def diff(left, right):
        """Of two windows of five minutes that begin so many minutes ago."""
        answer = ask(server, "/api/v1/diff", query=selector, normalize="none", **{
            f"{side}_{end}": str(NOW - (begin - add) * MINUTE) for side, begin in (("left", left), ("right", right))
            for end, add in (("from", 0), ("until", 5))})
        return {row["name"]: row["self_change"] / MB for row in answer["top"]["rows"] if row["self_change"]}

    equal("the diff of two snapshots names who keeps it", diff(LEAKS, LEAKS - 10), {"cacheResponse": 100})
    equal("after the fix it is flat", diff(FIXED, HEALED), {})
    equal("a level is a mean, whatever the range", query(server, selector, from_=str(NOW - FIXED * MINUTE))["total"], 60 * MB)


def waiting(server):
    cpu, wall = (shares(query(server, kind + ':nanoseconds{service_name="shop"}')) for kind in ("process_cpu:cpu", "wall:wall"))
    equal("what waits has wall time and no CPU time", {name: wall[name] - cpu.get(name, 0) for name in wall if wall[name]},
          {"compute": 0, "lock": 300 * LEAKS * PERIOD_NS})


def main():
    with KilnServer() as server:
        send(server)
        for step in (allocations, the_leak, waiting):
            try:
                step(server)
            except (RuntimeError, KeyError, IndexError) as error:
                check(step.__name__, False, repr(error))
    finish()


if __name__ == "__main__":
    main()
