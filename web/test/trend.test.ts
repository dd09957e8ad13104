// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import type { ProfileType, Series } from "../src/api/answers";
import { changeOf, climbOf, endOf, flowStep, levelStep, linesOf, NOTHING, rest, sumOf, thinned, trimmed } from "../src/model/trend";

const CPU = { kind: "flow", unit: "nanoseconds", type: "cpu" } as ProfileType;
const START = Date.parse("2026-03-01T12:00:00Z");

// One series for each name.  Asked for in quarters of a minute, so that linesOf() makes minutes of them; a
// value is what one minute has; null: nothing came.
function series(values: Record<string, (number | null)[]>): Series {
    const buckets = 4 * Math.max(...Object.values(values).map((list) => list.length));
    return {
        start: "2026-03-01T12:00:00Z", step_seconds: 15, buckets, by: ["service_name"], all: Object.keys(values).length,
        series: Object.entries(values).map(([name, list]) => {
            const at = list.flatMap((value, i) => (value === null ? [] : [4 * i, 4 * i + 1, 4 * i + 2, 4 * i + 3]));
            const value = at.map((i) => (list[i >> 2] as number) / 4);
            return { labels: { service_name: name }, sum: value.reduce((a, b) => a + b, 0), observations: value.reduce((a, b) => a + b / 10, 0), bucket: at, value, count: value.map((one) => one / 10) };
        }),
    };
}
const lines = (values: Record<string, (number | null)[]>) => linesOf(series(values), CPU, Infinity, (labels) => labels.service_name);

test("lines stand in the order of their sums, and know where nobody measured", () => {
    const { lines: made } = lines({ small: [60, null, null, null, 60], large: [600, 600, 600, 600, 600] });
    assert.deepEqual(made.map(({ label }) => label), ["large", "small"]);
    assert.deepEqual(made[1].rate.slice(2, 4), [null, null]);
    assert.deepEqual(made[0].rate, [10, 10, 10, 10, 10]);
    assert.deepEqual(made[0].count, [60, 60, 60, 60, 60]);
});

test("what is beyond the picture is one line", () => {
    const { lines: made } = lines({ a: [600, 600], b: [60, 60], c: [6, 6] });
    const other = rest(made.slice(1), "2 more");
    assert.equal(other.sum, 132);
    assert.deepEqual(other.rate, [1.1, 1.1]);
});

test("a sum is of the buckets that begin in its time", () => {
    const all = lines({ a: [60, 120, 180, 240] });
    const sum = sumOf(all, all.lines[0], START + 60000, START + 180000);
    assert.equal(sum.value, 300);
    assert.equal(sum.seconds, 120);
    assert.equal(sum.count, 30);
    assert.deepEqual(sumOf(all, undefined, START, START + 60000), { ...NOTHING, seconds: 60 });
});

test("a step up is a change, the same load with chance in it is none", () => {
    const even = [600, 610, 590, 605, 595, 600];
    const all = lines({ up: [...even, ...even.map((one) => one * 1.4)], same: [...even, ...even.map((one, i) => one + (i % 2 ? 8 : -7))] });
    const halves = (name: string) => {
        const line = all.lines.find(({ label }) => label === name)!;
        return changeOf(sumOf(all, line, START, START + 360000), sumOf(all, line, START + 360000, START + 720000))!;
    };
    assert.equal(halves("up").real, true);
    assert.ok(Math.abs(halves("up").ratio - 0.4) < 1e-9);
    assert.equal(halves("same").real, false);
});

test("load that goes up and down by itself makes no change of it", () => {
    const all = lines({ wild: [100, 1900, 300, 1500, 1700, 200, 1900, 400] });
    const change = changeOf(sumOf(all, all.lines[0], START, START + 240000), sumOf(all, all.lines[0], START + 240000, START + 480000))!;
    assert.equal(change.real, false);
});

test("what was not there before is new, and what was never there is nothing", () => {
    const after = { ...NOTHING, value: 60, count: 60, seconds: 60 };
    assert.equal(changeOf({ ...NOTHING, seconds: 60 }, after)!.ratio, Infinity);
    assert.equal(changeOf({ ...NOTHING, seconds: 60 }, { ...NOTHING, seconds: 60 }), null);
    assert.equal(changeOf(NOTHING, after), null);
});

test("a level that climbs by 6 % an hour is found, also where it began late", () => {
    const hour = 3600000;
    const climbing = Array.from({ length: 24 }, (_, i) => (i < 15 ? 3e9 : 3e9 * 1.06 ** (i - 15)));
    const climb = climbOf(climbing, hour)!;
    assert.ok(Math.abs(climb.perHour - 0.06) < 0.005, String(climb.perHour));
    assert.equal(climb.now, climbing[23]);
});

test("a level that is even, falls, or goes up and down does not climb", () => {
    const hour = 3600000;
    assert.equal(climbOf(Array.from({ length: 24 }, () => 5), hour), null);
    assert.equal(climbOf(Array.from({ length: 24 }, (_, i) => 100 - i), hour), null);
    assert.equal(climbOf(Array.from({ length: 24 }, (_, i) => 100 + 30 * Math.sin(i)), hour), null);
    assert.equal(climbOf([1, 2, 3], hour), null);
});

test("a question has hundreds of buckets at most, a sparkline at most 48 points", () => {
    for (const hours of [0.25, 1, 3, 6, 12, 24, 168, 720]) {
        assert.ok((hours * 3600) / flowStep(hours * 3600) <= 720);
        assert.ok((hours * 3600) / levelStep(hours * 3600) <= 72);
    }
    assert.deepEqual(thinned([1, 3, null, 5], 2), [2, 5]);
    assert.deepEqual(thinned([1, 3], 2), [1, 3]);
});

test("the end is where the last line ends", () => {
    assert.equal(endOf(lines({ a: [60, 60, null, null], b: [60, 60, 60, null] })), START + 180000);
});

test("a picture of a new server begins with its first profile", () => {
    const young = lines({ a: [...Array(55).fill(null), 60, 60, 60, 60, 60] });
    assert.equal(trimmed(young).start, START + 54 * 60000);
    assert.equal(trimmed(young).lines[0].rate.length, 6);
    const half = lines({ a: [null, null, 60, 60, 60, 60] });
    assert.equal(trimmed(half), half);
    assert.equal(trimmed({ ...half, lines: [] }).n, 1);
});

test("a process that runs now and then is not drawn as if it always ran", () => {
    const answer = series({ a: [60, 60, 60, 60] });
    const now = answer.series[0];
    now.bucket = [0, 5, 10];
    now.value = [15, 15, 15];
    now.count = [1, 1, 1];
    now.sum = 45;
    const { lines: [line], stepMs } = linesOf(answer, CPU, Infinity, () => "a");
    const drawn = line.rate.reduce<number>((sum, one) => sum + (one ?? 0), 0) * (stepMs / 1000);
    assert.ok(drawn <= 45 + 1e-9, String(drawn));
});
