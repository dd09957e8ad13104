// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import type { QueryAnswer } from "../src/api/answers";
import { breakdownOf, halfWidth, labelsInOrder, labelToStart, sentenceOf } from "../src/model/breakdown";

function answer(sums: Record<string, number>, all = Object.keys(sums).length, kind = "flow"): QueryAnswer {
    const series = Object.entries(sums).map(([route, sum]) => ({ labels: { route }, sum, bucket: [0, 1], value: [sum / 2, sum / 2], count: [sum / 20, sum / 20] }));
    return { type: { kind, unit: "nanoseconds", type: "cpu" }, series: { start: "2026-03-01T12:00:00Z", step_seconds: 60, buckets: 4, by: ["route"], series, all } } as unknown as QueryAnswer;
}

test("shares are of everything, the largest part first", () => {
    const { parts, total, others } = breakdownOf(answer({ "/a": 100, "/b": 300, "": 600 }), "route", Infinity, null);
    assert.equal(total, 1000);
    assert.equal(others, null);
    assert.deepEqual(parts.map(({ value, share }) => [value, share]), [["", 0.6], ["/b", 0.3], ["/a", 0.1]]);
    assert.equal(parts[1].error, halfWidth(0.3, 100));
});

test("what is not listed is one part of the whole", () => {
    const { parts, others, total } = breakdownOf(answer({ "/a": 100, "/b": 300 }, 50), "route", Infinity, 1000);
    assert.equal(total, 1000);
    assert.deepEqual(others, { values: 48, amount: 600, share: 0.6 });
    assert.equal(parts[0].share, 0.3);
});

test("a level is the mean over the buckets that have any", () => {
    assert.equal(breakdownOf(answer({ a: 100, b: 300 }, 2, "level"), "route", Infinity, null).total, 200);
});

test("an interval is wide for few observations and never without bounds", () => {
    assert.ok(halfWidth(0.5, 10)! > 0.2 && halfWidth(0.5, 10000)! < 0.011);
    assert.equal(halfWidth(0.5, 0), null);
    assert.ok(halfWidth(0, 100)! > 0);
});

test("labels that explain come first, those that never do are not offered", () => {
    const names = ["zone", "__name__", "thread.name", "service.name", "service_name", "http.route", "process.pid", "pprof.profile.comment"];
    assert.deepEqual(labelsInOrder(names, ""), ["service_name", "http.route", "thread.name", "zone", "process.pid"]);
    assert.deepEqual(labelsInOrder(names, "shop"), ["http.route", "thread.name", "zone", "process.pid"]);
    assert.equal(labelToStart(["http.route", "zone"], new Map([["http.route", 1], ["zone", 3]])), "zone");
    assert.equal(labelToStart(["http.route"], new Map()), "http.route");
    assert.equal(labelToStart([], new Map()), "");
});

test("a breakdown says what it comes down to", () => {
    const said = (sums: Record<string, number>, all?: number) => sentenceOf(breakdownOf(answer(sums, all), "route", Infinity, null), "route", "shop's CPU time");
    assert.equal(said({ "/a": 700, "/b": 300 }), "/a takes 70\u2009% of shop's CPU time");
    assert.equal(said({ "/a": 340, "/b": 330, "/c": 330 }), "Three values of route share shop's CPU time evenly");
    assert.equal(said(Object.fromEntries(Array.from({ length: 40 }, (_, i) => [`/${i}`, 3 * i + 10]))), "40 values of route share shop's CPU time; none takes more than 4.6\u2009%");
    assert.equal(said({ "/a": 340 }), "All of shop's CPU time is route /a");
    assert.equal(said({ "": 340 }), "Nothing of shop's CPU time has route");
    assert.equal(said({ "": 900, "/a": 100 }), "/a takes 10\u2009% of shop's CPU time");
});
