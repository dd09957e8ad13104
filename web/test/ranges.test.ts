// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Deployment } from "../src/api/answers";
import { deploymentRanges, lengthText, moved, rangeText } from "../src/model/ranges";

const NOW = new Date(2026, 2, 5, 16, 0, 0).getTime();
const at = (hours: number, minutes = 0, day = 5) => new Date(2026, 2, day, hours, minutes).toISOString().replace(".000Z", "Z");
const deployed = (version: string, when: string) => ({ id: version, version, name: "", commit: "", at: when }) as Deployment;

test("a range is called as people call it", () => {
    assert.deepEqual(rangeText({ from: "now-1h", until: "now" }, NOW), { text: "Last hour", day: "" });
    assert.deepEqual(rangeText({ from: "now-7d", until: "now" }, NOW), { text: "Last 7 days", day: "" });
    assert.deepEqual(rangeText({ from: at(14, 10), until: at(15) }, NOW), { text: "14:10 – 15:00", day: "today" });
    assert.deepEqual(rangeText({ from: at(14, 10, 4), until: at(15, 0, 4) }, NOW), { text: "14:10 – 15:00", day: "yesterday" });
    assert.deepEqual(rangeText({ from: at(14, 10), until: "now" }, NOW), { text: "Since 14:10", day: "today" });
    assert.equal(rangeText({ from: at(23, 0, 4), until: at(1) }, NOW).text, "yesterday 23:00 – today 01:00");
    assert.equal(rangeText({ from: at(14, 0), until: at(14, 2) }, NOW).text, "14:00:00 – 14:02:00");
});

test("what cannot be read as a time is shown as it is", () => {
    assert.equal(rangeText({ from: "soon", until: "later" }, NOW).text, "soon – later");
});

test("earlier is the window before, later comes back to now and stays there", () => {
    const before = moved({ from: "now-1h", until: "now" }, -1, NOW);
    assert.deepEqual(before, { from: at(14), until: at(15) });
    assert.deepEqual(moved(before, 1, NOW), { from: "now-1h", until: "now" });
    assert.deepEqual(moved({ from: at(15, 10), until: at(15, 50) }, 1, NOW), { from: at(15, 20), until: "now" });
});

test("each version ran from its deployment to the next", () => {
    const ran = deploymentRanges([deployed("1.0", at(9)), deployed("1.1", at(12))], NOW);
    assert.deepEqual(ran.map(({ title, from, until }) => [title, from, until]), [
        ["Since 1.1", at(12), "now"],
        ["1.0, until 1.1", at(9), at(12)],
    ]);
});

test("a length is said in its largest unit that has more than one", () => {
    assert.deepEqual([60, 3600, 86400, 7 * 86400].map(lengthText), ["1 minute", "60 minutes", "24 hours", "7 days"]);
});

test("times that are none, or far away, are no exception", () => {
    for (const from of ["garbage", "now-99999999999999w", "now+1h", "+275760-09-13T00:00:00Z", "0000-01-01T00:00:00Z", ""])
        for (const until of ["now", "garbage", "now-1h"]) {
            assert.match(moved({ from, until }, -1, NOW).from, /^(\d{4}-\d\d-\d\dT|now)/);
            assert.ok(rangeText({ from, until }, NOW).text);
        }
});
