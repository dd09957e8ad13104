// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Agent, Order } from "../src/api/answers";
import { followers, leftText, mayGive, ordersOf, orderText, ratesFor, targetText, timesFor } from "../src/model/orders";

const NOW = Date.parse("2026-03-05T16:00:00Z");
const order = (more: Partial<Order> = {}): Order => ({
    id: "o1", kind: "boost", target: "service", name: "shop", pid: null, host: null, hz: 199, by: null, why: null,
    created: "2026-03-05T15:55:00Z", expires: "2026-03-05T16:05:00Z", ...more,
});

test("an order is told by what it is about", () => {
    assert.equal(orderText(order()), "shop, 199 times a second");
    assert.equal(orderText(order({ kind: "pause", hz: null, host: "web-01" })), "shop on web-01");
    assert.equal(targetText(order({ target: "all", name: null })), "everything");
    assert.equal(targetText(order({ target: "host", name: "web-01" })), "host web-01");
    assert.equal(targetText(order({ target: "process", name: null, pid: 7, host: "web-01" })), "process 7 on web-01");
    assert.equal(targetText(order({ target: "container", name: "c1" })), "container c1");
});

test("what is left of it is told in the unit people would say", () => {
    const left = (until: string) => leftText(order({ expires: until }), NOW);
    assert.equal(left("2026-03-05T16:00:40Z"), "40 s");
    assert.equal(left("2026-03-05T16:05:00Z"), "5 min");
    assert.equal(left("2026-03-05T19:00:00Z"), "3 h");
    assert.equal(left("2026-03-15T16:00:00Z"), "10 days");
    assert.equal(left("2026-03-05T15:00:00Z"), "0 s");
});

test("where only boosts may be given, they are short and slow", () => {
    assert.deepEqual([mayGive("all", "pause"), mayGive("boost", "pause"), mayGive("boost", "boost"), mayGive("off", "boost")], [true, false, true, false]);
    assert.deepEqual([ratesFor("all").at(-1), ratesFor("boost").at(-1)], ["499", "199"]);
    assert.deepEqual([timesFor("all", "boost").at(-1), timesFor("boost", "boost").at(-1), timesFor("all", "pause").at(-1)], ["1h", "10m", "24h"]);
});

test("agents follow some orders, and an older agent says nothing of it", () => {
    const agents = [{ orders: ["o1"] }, { orders: [] }, {}] as unknown as Agent[];
    assert.equal(followers(order(), agents), 1);
    assert.deepEqual(agents.map((agent) => ordersOf(agent, [order()]).length), [1, 0, 0]);
});
