#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The invented shop, which the page is tested and pictured with, tells the stories it is meant to tell."""
import json
import os
import sys
import time
import urllib.parse
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from checks import check, exit_code  # noqa: E402
from kiln_server import KilnServer  # noqa: E402
from shop import Shop, fill, services  # noqa: E402

CORES = {"checkout": 3.42, "search": 3.08, "orders": 2.57, "payments": 1.91, "gateway": 1.58, "catalog": 1.03, "mailer": .62}
TOP = {"checkout": "JsonParser::ParseJsonValue", "search": "org.apache.lucene.codecs.ForUtil.decode", "orders": "runtime.scanobject",
       "payments": "com.sun.crypto.provider.AESCrypt.encryptBlock", "gateway": "SSL_read", "catalog": "_PyEval_EvalFrameDefault",
       "mailer": "vm_exec_core"}
CPU = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"


def equal(what, got, wanted):
    check(what, got == wanted, got)


def ask(server, path, **words):
    url = f"http://127.0.0.1:{server.http}/api/v1/{path}?{urllib.parse.urlencode(words)}"
    with urllib.request.urlopen(url, timeout=60) as answer:
        return json.load(answer)


def query(server, kind, service, first, last, **words):
    return ask(server, "query", query=f'{kind}{{service_name="{service}"}}', **{"from": first, "until": last}, **words)


def test_table(server, now):
    for service, cores in CORES.items():
        answer = query(server, CPU, service, now - 5400, now, format="top")
        seen = answer["total"] / 1e9 / 5400
        check(f"{service} uses {cores} cores, {seen:.2f} seen", abs(seen - cores) < .05 * cores)
        equal(f"most in {TOP[service]}", answer["top"]["rows"][0]["name"], TOP[service])


def test_stories(server, now):
    answer = ask(server, "diff", query=f'{CPU}{{service_name="checkout"}}', left_from=now - 14400, left_until=now - 7200,
                 right_from=now - 6600, right_until=now, format="top", limit=1000)
    check("2.15.0 of checkout uses 40 % more", abs(answer["change"] / (answer["left"]["total"] * answer["scale"]) - .4) < .03, answer["change"])
    rules = next(row for row in answer["top"]["rows"] if row["name"] == "loadRules")
    check("for loadRules, of 0.85 cores", abs(rules["total_change"] / 1e9 / 6600 - .85) < .08 and not rules["total_is_noise"], rules)
    heap = [query(server, "memory:inuse_space:bytes:space:bytes", "payments", at - 900, at, format="top") for at in (now - 3600 * 8, now)]
    check("payments' heap has climbed by half in eight hours", heap[1]["total"] > 1.4 * heap[0]["total"])
    equal("in the cache of sessions", heap[1]["top"]["rows"][0]["name"], "shop.payments.SessionCache.put")
    found = {d["id"] for d in ask(server, "deployments")["deployments"]}
    check("three were deployed", {"checkout@2.15.0", "orders@5.1.4", "search@8.3.0"} <= found)


def main():
    now = int(time.time()) // 60 * 60
    service = services()[0]
    equal("the same seed gives the same bytes", Shop(now, 4, 7).request(service, 0), Shop(now, 4, 7).request(service, 0))
    with KilnServer() as server:
        equal("its last second is told", fill(f"http://127.0.0.1:{server.http}", now), now)
        test_table(server, now)
        test_stories(server, now)
    return exit_code()


if __name__ == "__main__":
    sys.exit(main())
