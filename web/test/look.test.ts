// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { treeOf } from "../src/model/tree";
import { narrowed } from "../src/profile/bylabel";
import { formatPath, lookOf, nodeOnPath, patternFrom, patternText } from "../src/profile/state";

const texts = (names: string[]) => names.map(() => "");
const NAMES = ["all", "main", "parse", "read"];
const TREE = treeOf({
    names: NAMES, files: texts(NAMES), modules: ["", "shop", "json", "json"], kinds: ["", "native", "native", "native"],
    name: [0, 1, 2, 3, 3], depth: [0, 1, 2, 3, 2], self: [0, 0, 1, 2, 4], total: [7, 7, 3, 2, 4], other: null, nodes_all: null, error_bound: 0,
});

test("an address without a word is a flame graph with its stems folded, sorted by self", () => {
    const look = lookOf(new URLSearchParams());
    assert.deepEqual([look.show, look.stems, look.sort, look.color, look.group], ["flame", true, "self", "module", ""]);
});

test("what the address does not know is the default", () => {
    const look = lookOf(new URLSearchParams("show=pie&sort=luck&color=blue&stems=0"));
    assert.deepEqual([look.show, look.sort, look.color, look.stems], ["flame", "self", "module", false]);
});

test("a path finds its node again, and goes as far as there is a way", () => {
    for (let node = 0; node < TREE.n; node++) assert.equal(nodeOnPath(TREE, formatPath(TREE, node)), node);
    assert.equal(formatPath(TREE, 3).length, 12);
    assert.equal(nodeOnPath(TREE, formatPath(TREE, 2) + "zzzz"), 2);
});

test("a pattern is text, an expression, a whole name or a package", () => {
    const matches = (text: string) => NAMES.filter((name) => patternFrom(text, TREE)!.test(name));
    assert.deepEqual(matches("rea"), ["read"]);
    assert.deepEqual(matches("/^(main|read)$/"), ["main", "read"]);
    assert.deepEqual(matches("=main"), ["main"]);
    assert.deepEqual(matches("@json"), ["parse", "read"]);
    assert.equal(patternText("=main"), "main");
});

test("a selector can be narrowed by one label more", () => {
    assert.equal(narrowed('cpu{a="1"}', "pod", "x"), 'cpu{a="1",pod="x"}');
    assert.equal(narrowed("cpu{}", "pod", "x"), 'cpu{pod="x"}');
    assert.equal(narrowed("cpu", "pod", "x"), 'cpu{pod="x"}');
});
