// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import type { ProfileType, Series } from "../src/api/answers";
import { betterStep, bucketsOf, fineStep } from "../src/model/series";

const CPU = { kind: "flow" } as ProfileType;
const HEAP = { kind: "level" } as ProfileType;
const series = (step: number, buckets: number, at: Record<number, number>): Series => ({
    start: "2026-03-01T00:00:00Z", step_seconds: step, buckets, by: [], all: 1,
    series: [{ labels: {}, sum: 0, observations: 0, count: [], bucket: Object.keys(at).map(Number), value: Object.values(at) }],
});

test("a step is fine enough to see single profiles, and a thousand buckets are enough", () => {
    assert.equal(fineStep(3600), 5);
    assert.equal(fineStep(43200), 60);
});

test("a sum is spread over the time up to the next profile", () => {
    const { values } = bucketsOf(series(10, 8, { 0: 80, 4: 40 }), 0, CPU);
    assert.deepEqual(values, [2, 1]);
});

test("a long silence is not filled", () => {
    const { values } = bucketsOf(series(10, 28, { 0: 30, 3: 30, 6: 30, 24: 30 }), 0, CPU);
    assert.deepEqual(values.map((value) => value !== null), [true, true, true, false, false, false, true]);
});

test("profiles that become rarer or more frequent are no silence", () => {
    const { values } = bucketsOf(series(10, 32, { 0: 100, 10: 100, 20: 30, 23: 30, 26: 30, 29: 30 }), 0, CPU);
    assert.deepEqual([...new Set(values)], [1]);
});

test("frequent profiles are averaged, so that their rhythm does not show", () => {
    const often = Object.fromEntries(Array.from({ length: 16 }, (_, i) => [i, i % 2 ? 20 : 10]));
    const { values, stepMs } = bucketsOf(series(10, 16, often), 0, CPU);
    assert.deepEqual(values, [1.5, 1.5, 1.5, 1.5]);
    assert.equal(stepMs, 40000);
});

test("single samples with times count with the profiles around them", () => {
    const { values } = bucketsOf(series(10, 8, { 0: 20, 2: 20, 4: 20, 6: 15, 7: 5 }), 0, CPU);
    assert.deepEqual(values, [1, 1]);
});

test("where whole profiles come at an even pace, what lies between them belongs to them", () => {
    const at: Record<number, number> = {};
    for (let i = 0; i < 32; i++) at[i] = i % 8 ? 2 : 66;
    assert.deepEqual([...new Set(bucketsOf(series(10, 32, at), 0, CPU).values)], [1]);
});

test("a profile alone stands for the time that it covers", () => {
    assert.deepEqual(bucketsOf(series(10, 12, { 0: 80 }), 0, CPU, Infinity, 80).values, [1, 1, null]);
});

test("a last bucket that is not over does not count", () => {
    const often = Object.fromEntries(Array.from({ length: 8 }, (_, i) => [i, i === 7 ? 1 : 10]));
    const { values } = bucketsOf(series(10, 8, often), 0, CPU, Date.parse("2026-03-01T00:01:12Z"));
    assert.deepEqual(values, [1, 1]);
});

test("a level is held, and asked for in a step that has all processes", () => {
    const heap = series(10, 6, { 0: 100, 2: 120, 4: 110 });
    assert.deepEqual(bucketsOf(heap, 0, HEAP).values, [100, 100, 120, 120, 110, 110]);
    assert.equal(betterStep(heap), 20);
    assert.equal(betterStep(series(10, 2, { 0: 1, 1: 1 })), null);
});
