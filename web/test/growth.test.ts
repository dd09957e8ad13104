// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { ends, growthOf, isLeak, neverDropped, stepFor, withoutDeployments } from "../src/model/growth";

const HALF_HOUR = 1800000;
const level = (values: (number | null)[]) => ({ startMs: 0, stepMs: HALF_HOUR, values });
const grows = (values: (number | null)[]) => growthOf(level(values))!;

test("a straight climb has its slope, per hour", () => {
    const growth = grows([0, 10, 20, 30, 40, 50, 60, 70]);
    assert.equal(growth.perHour, 20);
    assert.equal(growth.by, 70);
    assert.equal(growth.steady, 1);
    assert.ok(isLeak(growth, 100) && neverDropped(growth));
});

test("an odd snapshot does not move the slope much", () => {
    const growth = grows([0, 10, 20, 30, 200, 50, 60, 70, 80, 90]);
    assert.ok(Math.abs(growth.perHour - 20) < 3, String(growth.perHour));
});

test("the climb begins where it last stood still", () => {
    const growth = grows([50, 52, 49, 51, 50, 60, 72, 80, 91, 100, 112]);
    assert.equal(growth.since, 4 * HALF_HOUR);
    assert.equal(growth.by, 62);
    assert.ok(isLeak(growth, 150));
});

test("a saw is no leak, nor is what stands still or comes back", () => {
    const saw = grows([10, 40, 70, 10, 40, 70, 10, 40, 70, 10, 40, 70]);
    assert.ok(!isLeak(saw, 100));
    assert.ok(!isLeak(grows([50, 51, 49, 50, 51, 50, 49, 50, 51, 50]), 100));
    assert.ok(!isLeak(grows([10, 30, 50, 70, 50, 30, 10, 12, 11, 10]), 100));
});

test("one step up is no leak: it does not go on", () => {
    assert.ok(!isLeak(grows([10, 10, 10, 10, 10, 10, 10, 10, 60, 60]), 100));
    assert.ok(!isLeak(grows([10, 10, 10, 10, null, 60, 61, 62, 63, 64, 65, 66]), 100));
});

test("what hardly counts is not named", () => {
    assert.ok(!isLeak(grows([0, 1, 2, 3, 4, 5, 6, 7]), 1000));
});

test("buckets without a snapshot are left out", () => {
    assert.equal(grows([0, null, 20, 30, null, 50, 60, 70]).perHour, 20);
    assert.equal(growthOf(level([1, null, null, 2])), null);
});

test("a climb with a fall on the way says so", () => {
    const growth = grows([0, 20, 40, 60, 50, 70, 90, 110, 130, 150]);
    assert.ok(isLeak(growth, 200) && !neverDropped(growth));
});

test("buckets are as many as can be seen, and the ends are quarters", () => {
    assert.equal(stepFor(12 * 3600000), 1800000);
    assert.equal(stepFor(3600000), 300000);
    assert.deepEqual(ends(0, 80), [
        [0, 20],
        [60, 80],
    ]);
});

test("a window does not reach over a deployment, whose processes would count twice", () => {
    assert.deepEqual(ends(0, 80, [5, 12, 40, 70, 75]), [
        [0, 5],
        [75, 80],
    ]);
    assert.deepEqual(ends(0, 80, [0, 30, 80]), [
        [0, 20],
        [60, 80],
    ]);
    assert.deepEqual(withoutDeployments(level([1, 2, 9, 3]), [2.5 * HALF_HOUR]).values, [1, 2, null, 3]);
});
