// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { idTargets, matching, score, type Target } from "../src/model/jump";
import { telling, valueIn } from "../src/model/labels";
import { parsePasted } from "../src/model/spanid";

const targets: Target[] = ["Overview", "loadRules", "JSON.parse", "checkout"].map((title) => ({ title, kind: "", href: title }));

test("a label may be called as what every object has", () => {
    assert.deepEqual(telling([{ constructor: "a" }, {}]), ["constructor"]);
    assert.equal(valueIn({}, "constructor"), "");
    assert.equal(valueIn(JSON.parse(`{"__proto__":"x"}`), "__proto__"), "x");
});

test("letters in their order find a name; beginnings of words come first", () => {
    assert.deepEqual(matching("lr", targets, 5).map((t) => t.title), ["loadRules"]);
    assert.deepEqual(matching("parse", targets, 5).map((t) => t.title), ["JSON.parse"]);
    assert.deepEqual(matching("zzz", targets, 5), []);
    assert.equal(matching("", targets, 2).length, 2);
    assert.ok(score("check", "checkout") > score("check", "a_c_h_e_c_k"));
});

test("an id that is pasted can be jumped to", () => {
    const link = (view: string, params: Record<string, string>) => `${view} ${JSON.stringify(params)}`;
    assert.equal(idTargets("00f067aa0ba902b7", link)[0].href, 'spans {"span":"00f067aa0ba902b7"}');
    assert.equal(idTargets("4bf92f3577b34da6a3ce929d0e0e4736", link).length, 2);
    assert.deepEqual(idTargets("checkout", link), []);
});

test("a span is pasted as an id, a header or two times", () => {
    assert.deepEqual(parsePasted(" 00F067AA0BA902B7 "), { kind: "span", span: "00f067aa0ba902b7" });
    assert.deepEqual(parsePasted("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
        { kind: "span", trace: "4bf92f3577b34da6a3ce929d0e0e4736", span: "00f067aa0ba902b7" });
    assert.deepEqual(parsePasted("4bf92f35-77b3-4da6-a3ce-929d0e0e4736"), { kind: "trace", trace: "4bf92f3577b34da6a3ce929d0e0e4736" });
    assert.deepEqual(parsePasted("2026-03-01T11:00:03Z 2026-03-01T11:00:05Z"),
        { kind: "window", from: "2026-03-01T11:00:03Z", until: "2026-03-01T11:00:05Z" });
    assert.equal(parsePasted("hello"), null);
});

test("labels that are everywhere the same do not tell things apart", () => {
    assert.deepEqual(telling([{ a: "1", b: "x", c: "1" }, { a: "1", b: "y" }]), ["b", "c"]);
    assert.deepEqual(telling([{ a: "1" }, { a: "2" }], ["a"]), []);
});
