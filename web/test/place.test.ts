// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { formatPlace, parsePlace, VIEWS } from "../src/state/place";

test("every view has an address, and the address leads back to it", () => {
    for (const view of VIEWS) {
        const [path, search = ""] = formatPlace(view, new URLSearchParams("service=a b&x=1"), {}, "all").split("?");
        const place = parsePlace(path, search);
        assert.equal(place.view, view);
        assert.equal(place.params.get("service"), "a b");
        assert.equal(place.params.get("x"), "1");
    }
});

test("another view keeps what is looked at, not how", () => {
    const before = new URLSearchParams("service=shop&from=now-6h&find=json&fn=parse");
    assert.equal(formatPlace("compare", before), "/compare?from=now-6h&service=shop");
});

test("what is empty is not in the address", () => {
    const before = new URLSearchParams("service=shop&find=x");
    assert.equal(formatPlace("explore", before, { find: "", service: null, flip: false }, "all"), "/explore");
    assert.equal(formatPlace("explore", before, { flip: true }), "/explore?flip=1&service=shop");
});

test("an address that nobody knows is the overview", () => {
    assert.equal(parsePlace("/nowhere", "").view, "overview");
});
