// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { layoutOf } from "../src/model/layout";
import { exactly, find, nextHit, patternOf } from "../src/model/search";
import { nameOf } from "../src/model/tree";
import { drawn } from "./drawn";

const TREE = drawn(`
    total
     main 1
      parseJson 10
       parseString 5
      render 30
       parseTemplate 4
     (other) 50
`);

test("plain text is found anywhere, signs are only signs, upper case counts where it is typed", () => {
    assert.ok(patternOf("json")!.test("parseJson"));
    assert.ok(!patternOf("JSON")!.test("parseJson"));
    assert.ok(patternOf("operator[]")!.test("std::map::operator[]"));
    assert.ok(!patternOf("a.c")!.test("abc"));
    assert.equal(patternOf("  "), null);
});

test("/between strokes/ it is an expression, and half an expression is none", () => {
    assert.ok(patternOf("/^parse(Json|String)$/")!.test("parseString"));
    assert.ok(!patternOf("/^parse$/")!.test("parseJson"));
    assert.equal(patternOf("/(/"), null);
});

test("a name of its own is that name alone", () => {
    assert.ok(exactly("f(int*)").test("f(int*)"));
    assert.ok(!exactly("f").test("ff"));
});

test("the share counts what is nested in a hit once", () => {
    const found = find(TREE, /parse/);
    assert.equal(found.total, 19);
    assert.equal(found.nodes, 3);
    assert.equal(found.functions, 3);
});

test("what was folded is never a hit", () => {
    assert.equal(find(TREE, /other/).nodes, 0);
});

test("hits follow each other in reading order, round the end", () => {
    const layout = layoutOf(TREE);
    const { names } = find(TREE, /parse/);
    const way: string[] = [];
    let node = -1;
    for (let i = 0; i < 4; i++) {
        node = nextHit(layout, names, node, 1);
        way.push(nameOf(TREE, node));
    }
    assert.deepEqual(way, ["parseJson", "parseTemplate", "parseString", "parseJson"]);
    assert.equal(nameOf(TREE, nextHit(layout, names, -1, -1)), "parseString");
    assert.equal(nextHit(layout, find(TREE, /nothing/).names, 0, 1), -1);
});
