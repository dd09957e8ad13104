#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The guides' incident, from the alert to the fix, each step a question and an exact answer:

  1. checkout's latency is up; tracing gives the slow spans, pricing.applyDiscounts, with their times
  2. which profiles overlap them, and what is on top?        POST /api/v1/spans
  3. the share of pricing.applyDiscounts: 38 %               GET /api/v1/query
  4. its leaf: JSON.parse
  5. the traces it ran under                                 GET /api/v1/spans?function=
  6. after the fix: the diff of the two deployments          GET /api/v1/diff
  7. a threshold for CI                                      kiln query --function --fail-above
"""
import subprocess
import time

from scenario import CPU, KILN, KilnServer, address, ask, check, children, equal, finish, query, shares
from drawn_otlp import PERIOD_NS, Drawn

MINUTE = 60_000_000_000
NOW = time.time_ns() // MINUTE * MINUTE
TRACES = ["0af7651916cd43dd8448eb211c80319c", "4bf92f3577b34da6a3ce929d0e0e4736"]
SPANS = ["b7ad6b7169203331", "00f067aa0ba902b7"]

NORMAL = """
    main;serve;checkout.handle;pricing.applyDiscounts;redis.get     3
    main;serve;checkout.handle;pricing.applyDiscounts               3
    main;serve;checkout.handle;tax.compute                         24
    main;serve;http.write                                          40
"""
SLOW = f"""
    main;serve;checkout.handle;pricing.applyDiscounts;JSON.parse   20 @ {TRACES[0]}/{SPANS[0]}
    main;serve;checkout.handle;pricing.applyDiscounts;JSON.parse   12 @ {TRACES[1]}/{SPANS[1]}
    main;serve;checkout.handle;pricing.applyDiscounts;redis.get     3
    main;serve;checkout.handle;pricing.applyDiscounts               3
    main;serve;checkout.handle;tax.compute                         22
    main;serve;http.write                                          40
"""
FIXED = """
    main;serve;checkout.handle;pricing.applyDiscounts               4
    main;serve;checkout.handle;tax.compute                         22
    main;serve;http.write                                          40
"""
# version: minutes ago of its first and behind its last profile, one a minute; what each profile holds; observations in it
DEPLOYMENTS = {"2.14.2": (50, 30, NORMAL, 70), "2.15.0": (30, 10, SLOW, 100), "2.15.1": (10, 0, FIXED, 66)}
CHECKOUT = CPU + '{service_name="checkout"}'


def of(version):
    return CPU + f'{{service_name="checkout", "service.version"="{version}"}}'


def minutes_ago(n):
    return NOW - n * MINUTE


def send(server):
    for version, (first, last, text, _) in DEPLOYMENTS.items():
        drawn = Drawn()
        for minute in range(first, last, -1):
            drawn.profile({"service.name": "checkout", "service.version": version, "deployment_id": "deploy-" + version,
                           "deployment.environment": "production"}, minutes_ago(minute), text, seconds=15)
        drawn.send(server)


def the_share(server):
    """Which version spends what in the function?"""
    for version, wanted in (("2.14.2", 6 / 70), ("2.15.0", 0.38), ("2.15.1", 4 / 66)):
        answer = query(server, of(version))
        profiles = DEPLOYMENTS[version][0] - DEPLOYMENTS[version][1]
        equal(f"{version}: everything is there", answer["total"], profiles * DEPLOYMENTS[version][3] * PERIOD_NS)
        equal(f"{version}: the share of applyDiscounts", shares(answer, "total_share")["pricing.applyDiscounts"], round(wanted, 6))
        equal(f"{version}: its observations are known", answer["basis"]["count"], profiles * DEPLOYMENTS[version][3])


def the_windows(server):
    """Slow spans of 120 ms, as tracing tells them."""
    windows = [{"from": str(minutes_ago(n) + 2_000_000_000), "until": str(minutes_ago(n) + 2_120_000_000), "name": f"span {n}"}
               for n in (28, 25, 20)]
    answer = ask(server, "/api/v1/spans", {"query": CHECKOUT, "windows": windows, "overlap_seconds": 15})
    equal("each window has its profile", [w["all"] for w in answer["windows"]], [1, 1, 1])
    equal("and its name", [w["name"] for w in answer["windows"]], ["span 28", "span 25", "span 20"])
    for window in answer["windows"]:
        equal("in the window applyDiscounts takes 38 %", shares(window, "total")["pricing.applyDiscounts"], 38 * PERIOD_NS)
        equal("of all", window["total"], 100 * PERIOD_NS)
    equal("all windows together", (answer["total"], shares(answer)["JSON.parse"]), (300 * PERIOD_NS, 96 * PERIOD_NS))
    outside = ask(server, "/api/v1/spans", {"query": CHECKOUT, "overlap_seconds": 15, "windows": [
        {"from": str(minutes_ago(20) + 20_000_000_000), "until": str(minutes_ago(20) + 21_000_000_000)}]})
    equal("a window between two profiles has none", (outside["windows"][0]["all"], outside["total"]), (0, 0))


def the_leaf(server):
    flame = query(server, of("2.15.0"), format="flamegraph")["flamegraph"]
    below = children(flame, "main", "serve", "checkout.handle", "pricing.applyDiscounts")
    equal("below it JSON.parse dominates", below, {"JSON.parse": 640 * PERIOD_NS, "redis.get": 60 * PERIOD_NS})
    only = query(server, of("2.15.0"), function="pricing.applyDiscounts")
    equal("only its stacks: 38 % of all", only["total"], 760 * PERIOD_NS)
    line = ask(server, "/api/v1/functions", query=CHECKOUT, function="pricing.applyDiscounts", step="60s",
               from_=str(minutes_ago(50)), until=str(NOW))
    wanted = [6 / 70] * 20 + [0.38] * 20 + [4 / 66] * 10
    equal("since when: since 2.15.0, minute by minute", line["share"], [round(share, 6) for share in wanted])


def the_traces(server):
    answer = ask(server, "/api/v1/spans", query=CHECKOUT, function="pricing.applyDiscounts", by="trace", order="largest")
    found = {row["trace_id"]: (row["value"], row["count"]) for row in answer["spans"]}
    equal("the traces it ran under, with counts", found, {TRACES[0]: (400 * PERIOD_NS, 400), TRACES[1]: (240 * PERIOD_NS, 240)})
    under = query(server, CHECKOUT, trace_id=TRACES[0])
    equal("under one of them only JSON.parse was seen", shares(under), {"JSON.parse": 400 * PERIOD_NS} | {
        name: 0 for name in ("main", "serve", "checkout.handle", "pricing.applyDiscounts")})


def the_fix(server):
    found = ask(server, "/api/v1/deployments", service="checkout")["deployments"]
    equal("three deployments were found", [row["version"] for row in found], ["2.15.1", "2.15.0", "2.14.2"])
    for name, sides in (("versions", {"left_version": "2.15.0", "right_version": "2.15.1"}),
                        ("deployments", {"left_deployment": found[1]["id"], "right_deployment": found[0]["id"]})):
        diff = ask(server, "/api/v1/diff", query=CHECKOUT, **sides)
        rows = {row["name"]: row for row in diff["top"]["rows"]}
        row = rows["pricing.applyDiscounts"]
        # twenty profiles against ten: the left is halved by time
        equal(f"by {name}: normalised by time", (diff["normalized"], diff["scale"]), ("time", 0.5))
        equal(f"by {name}: both numbers", (row["left_total"], row["right_total"]), (760 * PERIOD_NS, 40 * PERIOD_NS))
        equal(f"by {name}: it dropped", row["total_change"], (40 - 380) * PERIOD_NS)
        check(f"by {name}: that is no noise", not row["total_is_noise"] and row["total_noise"] < 60 * PERIOD_NS, row)
        equal(f"by {name}: JSON.parse is gone", rows["JSON.parse"]["right_total"], 0)
        equal(f"by {name}: it is the largest change", diff["top"]["rows"][0]["name"], "JSON.parse")
        check(f"by {name}: tax.compute did not change", rows["tax.compute"]["self_is_noise"] and
              rows["tax.compute"]["self_change"] == 0, rows["tax.compute"])


def the_threshold(server):
    for version, wanted in (("2.15.0", 1), ("2.15.1", 0)):
        done = subprocess.run([KILN, "query", "--server", address(server), of(version), "--function", "pricing.applyDiscounts",
                               "--fail-above", "10%"], capture_output=True, text=True, check=False)
        equal(f"kiln query --fail-above 10% on {version}", done.returncode, wanted)
        check("it says why", "pricing.applyDiscounts" in done.stdout + done.stderr, done)


def main():
    with KilnServer() as server:
        send(server)
        for step in (the_share, the_windows, the_leaf, the_traces, the_fix, the_threshold):
            try:
                step(server)
            except (RuntimeError, KeyError, IndexError) as error:
                check(step.__name__, False, repr(error))
        if server.stop() == 0:  # and once more, from blocks instead of memory
            server.start()
            the_share(server)
            the_traces(server)
    finish()


if __name__ == "__main__":
    main()
