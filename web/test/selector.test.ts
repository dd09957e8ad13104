// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { formatMatchers, parseMatchers, selector, type Matcher } from "../src/model/selector";

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
