// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { layoutOf, neighbour, nodeUnder } from "../src/model/layout";
import { nameOf } from "../src/model/tree";
import { drawn } from "./drawn";

const SHOP = drawn(`
    total
     main 10
      (other) 50
      parse 10
      read 20
       wait 5
     idle 5
`);
const layout = layoutOf(SHOP);
const rowOf = (depth: number) =>
    Array.from(layout.node.subarray(layout.rows[depth], layout.rows[depth + 1]), (node) => nameOf(SHOP, node));

test("siblings stand by total, and what was folded comes last", () => {
    assert.deepEqual(rowOf(1), ["main", "idle"]);
    assert.deepEqual(rowOf(2), ["read", "parse", "(other)"]);
    assert.deepEqual(rowOf(3), ["wait"]);
});

test("a frame is as wide as its share, and begins where its caller does", () => {
    const at = (name: string) => layout.rank[SHOP.name.findIndex((id) => SHOP.names[id] === name)];
    assert.deepEqual([layout.left[at("main")], layout.right[at("main")]], [0, 0.95]);
    assert.deepEqual([layout.left[at("parse")], layout.right[at("parse")]], [0.25, 0.35]);
    assert.equal(layout.left[at("wait")], layout.left[at("read")]);
});

test("the frame under a point is found, and none where there is none", () => {
    const under = (depth: number, x: number) => {
        const node = nodeUnder(layout, depth, x);
        return node < 0 ? null : nameOf(SHOP, node);
    };
    assert.equal(under(0, 0.999), "total");
    assert.equal(under(1, 0.949), "main");
    assert.equal(under(1, 0.951), "idle");
    assert.equal(under(2, 0.24), "read");
    assert.equal(under(2, 0.25), "parse");
    assert.equal(under(2, 0.9), null);
    assert.equal(under(3, 0.3), null);
    assert.equal(under(9, 0.3), null);
    assert.equal(under(-1, 0.3), null);
});

test("arrows walk to callers, the largest callee, and what stands beside", () => {
    const node = (name: string) => SHOP.name.findIndex((id) => SHOP.names[id] === name);
    assert.equal(neighbour(layout, node("main"), "down"), node("read"));
    assert.equal(neighbour(layout, node("read"), "up"), node("main"));
    assert.equal(neighbour(layout, node("read"), "right"), node("parse"));
    assert.equal(neighbour(layout, node("read"), "left"), -1);
    assert.equal(neighbour(layout, node("wait"), "down"), -1);
});

test("the deepest row below each frame is known", () => {
    assert.equal(layout.deepest[0], 3);
    assert.equal(layout.deepest[SHOP.name.findIndex((id) => SHOP.names[id] === "idle")], 1);
});

test("an empty tree has no places", () => {
    const none = layoutOf(drawn(""));
    assert.equal(none.n, 0);
    assert.equal(nodeUnder(none, 0, 0.5), -1);
});

test("many children stand in order too", () => {
    const many = drawn(["total", ...Array.from({ length: 200 }, (_, i) => ` f${i} ${((i * 37) % 200) + 1}`)].join("\n"));
    const wide = layoutOf(many);
    for (let place = wide.rows[1] + 1; place < wide.rows[2]; place++)
        assert.ok(many.total[wide.node[place - 1]] >= many.total[wide.node[place]]);
    assert.ok(Math.abs(wide.right[wide.rows[2] - 1] - 1) < 1e-9);
});
