// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import type { QueryAnswer } from "../src/api/answers";
import { breakdownOf, halfWidth, labelsInOrder, labelToStart, sentenceOf } from "../src/model/breakdown";

function answer(sums: Record<string, number>, more = { values: 0, sum: 0 }, kind = "flow"): QueryAnswer {
    const series = Object.entries(sums).map(([route, sum]) => ({ labels: { route }, sum, bucket: [0, 1], value: [sum / 2, sum / 2], count: [sum / 20, sum / 20], observations: sum / 10 }));
    const total = series.reduce((all, { sum }) => all + sum, more.sum);
    const rest = more.values ? { rest: { series: more.values, sum: more.sum, bucket: [0], value: [more.sum], count: [more.sum / 10] } } : {};
    return { total, type: { kind, unit: "nanoseconds", type: "cpu" }, series: { start: "2026-03-01T12:00:00Z", step_seconds: 60, buckets: 4, by: ["route"], series, all: series.length + more.values, ...rest } } as unknown as QueryAnswer;
}

test("shares are of everything, the largest part first", () => {
    const { parts, total, others } = breakdownOf(answer({ "/a": 100, "/b": 300, "": 600 }), "route", Infinity);
    assert.equal(total, 1000);
    assert.equal(others, null);
    assert.deepEqual(parts.map(({ value, share }) => [value, share]), [["", 0.6], ["/b", 0.3], ["/a", 0.1]]);
    assert.equal(parts[1].error, halfWidth(0.3, 100));
});

test("what is not listed is one part of the whole", () => {
    const { parts, others, total } = breakdownOf(answer({ "/a": 100, "/b": 300 }, { values: 48, sum: 600 }), "route", Infinity);
    assert.equal(total, 1000);
    assert.deepEqual(others, { values: 48, amount: 600, share: 0.6 });
    assert.equal(parts[0].share, 0.3);
});

test("what a search found has its shares of the whole", () => {
    const found = answer({ "/z": 20 });
    const { parts, total } = breakdownOf(answer({ "/a": 100, "/b": 300 }, { values: 48, sum: 600 }), "route", Infinity, found);
    assert.equal(total, 1000);
    assert.deepEqual(parts.map(({ value, share }) => [value, share]), [["/z", 0.02]]);
});

test("a level is the mean over the buckets that have any", () => {
    assert.equal(breakdownOf(answer({ a: 100, b: 300 }, undefined, "level"), "route", Infinity).total, 200);
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
    const said = (sums: Record<string, number>) => sentenceOf(breakdownOf(answer(sums), "route", Infinity), "route", "shop's CPU time");
    assert.equal(said({ "/a": 700, "/b": 300 }), "/a takes 70\u2009% of shop's CPU time");
    assert.equal(said({ "/a": 340, "/b": 330, "/c": 330 }), "Three values of route share shop's CPU time evenly");
    assert.equal(said(Object.fromEntries(Array.from({ length: 40 }, (_, i) => [`/${i}`, 3 * i + 10]))), "40 values of route share shop's CPU time; none takes more than 4.6\u2009%");
    assert.equal(said({ "/a": 340 }), "All of shop's CPU time is route /a");
    assert.equal(said({ "": 340 }), "Nothing of shop's CPU time has route");
    assert.equal(said({ "": 900, "/a": 100 }), "/a takes 10\u2009% of shop's CPU time");
});
