// SPDX-License-Identifier: Apache-2.0
// Numbers as people read them.
import assert from "node:assert/strict";
import { test } from "node:test";
import { isolated, bytes, count, digits, duration, figures, percent, plural } from "../src/model/format";

const plain = (text: string) => text.replace(/\u2009/g, " ");

test("three figures count, however large the number", () => {
    assert.deepEqual([0.01234, 1.234, 12.34, 123.4, 12345].map(figures).map(plain), ["0.012", "1.23", "12.3", "123", "12 345"]);
    assert.equal(figures(0), "0");
});

test("minus is a minus, and nothing is not less than nothing", () => {
    assert.equal(digits(-2.5, 1), "−2.5");
    assert.equal(digits(-0.01, 1), "0.0");
});

test("shares, sizes and times have units that a person feels", () => {
    assert.equal(plain(percent(0.0897)), "9.0 %");
    assert.equal(plain(percent(0.0001)), "<0.1 %");
    assert.equal(plain(bytes(1.9e9)), "1.90 GB");
    assert.equal(plain(duration(0.0021)), "2.10 ms");
    assert.equal(plain(count(18412)), "18 412");
    assert.equal(plural(1, "service"), "1 service");
});

test("what turns the direction of writing ends with the name it is in", () => {
    assert.equal(isolated("shop"), "shop");
    assert.equal(isolated("\u202epohs"), "\u2068\u202epohs\u2069");
});
