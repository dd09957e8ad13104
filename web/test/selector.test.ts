// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import type { ProfileRow } from "../src/api/answers";
import { containing, formatMatchers, oneOf, parseMatchers, readMatchers, selector, type Matcher } from "../src/model/selector";
import { keyOf, questionOf } from "../src/model/single";

test("matchers survive their text, whatever is in their values", () => {
    const matchers: Matcher[] = [
        { name: "env", op: "=", value: "prod" },
        { name: "service.version", op: "!=", value: 'a"b\\c,d="e"' },
        { name: "pod", op: "=~", value: "a|b\nc" },
        { name: "zone", op: "!~", value: "" },
    ];
    assert.deepEqual(parseMatchers(formatMatchers(matchers)), matchers);
});

test("what is no matcher is left out", () => {
    assert.deepEqual(parseMatchers("nonsense"), []);
    assert.deepEqual(parseMatchers(""), []);
});

test("a selector has the service first", () => {
    assert.equal(selector("a:b:c:d:e", "", []), "a:b:c:d:e");
    assert.equal(selector("a:b:c:d:e", "shop", [{ name: "x", op: "=", value: "1" }]), 'a:b:c:d:e{service_name="shop",x="1"}');
    assert.equal(selector("", "", []), "{}");
});

test("a profile without an id is named by its time and labels, and found by them", () => {
    const row = { id: null, time: "2026-03-01T11:00:00Z", labels: { pod: 'a"b', service_name: "shop" } } as unknown as ProfileRow;
    const question = questionOf(keyOf(row), "a:b:c:d:e", { from: "now-1h", until: "now" });
    assert.deepEqual(question, { query: 'a:b:c:d:e{pod="a\\"b",service_name="shop"}', from: "2026-03-01T11:00:00Z", until: "2026-03-01T11:00:00.001Z" });
    const id = "4bf92f3577b34da6a3ce929d0e0e4736";
    assert.deepEqual(questionOf(id, "a:b:c:d:e", { from: "now-1h", until: "now" }), { query: "a:b:c:d:e", from: "now-1h", until: "now", profile_id: id });
});

test("names that are no words stand in quotes, and so does a type", () => {
    const matchers: Matcher[] = [
        { name: "k8s/pod", op: "=", value: "{;}%+" },
        { name: 'a "b"\\', op: "=~", value: "<script>" },
        { name: "__proto__", op: "=", value: "constructor" },
    ];
    assert.deepEqual(parseMatchers(formatMatchers(matchers)), matchers);
    assert.equal(selector("odd type:b", "shop", [matchers[0]]), '{"odd type:b",service_name="shop","k8s/pod"="{;}%+"}');
});

test("values are taken as they are in expressions", () => {
    assert.equal(oneOf("pod", ["a.b", "c|d", "", "e\\{1}"]).value, String.raw`a\.b|c\|d||e\\\{1\}`);
    assert.equal(containing("pod", "a+").value, String.raw`(?i).*a\+.*`);
});

test("what cannot be read goes to the server, which says so", () => {
    assert.deepEqual(readMatchers('a="b",c=d'), { matchers: [{ name: "a", op: "=", value: "b" }], rest: "c=d" });
    assert.equal(selector("a:b", "", [], "c=d"), "a:b{c=d}");
});
