// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Timeline } from "../src/api/answers";
import { firstAfter, lanesOf, type Lane } from "../src/model/lanes";

const NAMES = ["all", "main", "parse", "read"];
const MS = 1e6;

// "0 main;parse" : at 0 ms, in thread 0
function drawn(samples: [ms: number, thread: number, stack: string][]): Timeline {
    const name = [0];
    const parent = [-1];
    const nodeOf = (stack: string) =>
        stack.split(";").reduce((above, frame) => {
            const id = NAMES.indexOf(frame);
            const known = parent.findIndex((one, i) => one === above && name[i] === id);
            if (known >= 0) return known;
            parent.push(above);
            return name.push(id) - 1;
        }, 0);
    const node = samples.map(([, , stack]) => nodeOf(stack));
    return {
        start: "2026-03-01T00:00:00Z", threads: [{ id: "7", name: "main" }, { id: "8", name: "pool" }],
        names: NAMES, files: [], modules: [], kinds: [], name, parent, node,
        thread: samples.map(([, thread]) => thread), at_ns: samples.map(([ms]) => ms * MS), value: samples.map(() => 10 * MS),
        all: samples.length, timed: samples.length,
    };
}

const blocks = (timeline: Timeline, lane: Lane) =>
    lane.rows.map(({ from, to, node }) => from.map((start, i) => `${NAMES[timeline.name[node[i]]]} ${start / MS}-${to[i] / MS}`).join(", "));

test("a call that goes on is one block, what it calls comes and goes", () => {
    const timeline = drawn([[0, 0, "main;parse"], [10, 0, "main;parse"], [20, 0, "main;read"], [30, 0, "main"]]);
    const { lanes, from, to } = lanesOf(timeline, true);
    assert.deepEqual(blocks(timeline, lanes[0]), ["main 0-40", "parse 0-20, read 20-30"]);
    assert.deepEqual([from, to], [0, 40 * MS]);
});

test("a pause ends every call", () => {
    const timeline = drawn([[0, 0, "main"], [10, 0, "main"], [200, 0, "main"]]);
    assert.deepEqual(blocks(timeline, lanesOf(timeline, true).lanes[0]), ["main 0-20, main 200-210"]);
});

test("each thread has its lane, the busiest first", () => {
    const timeline = drawn([[0, 0, "main"], [5, 1, "read"], [15, 1, "read"]]);
    assert.deepEqual(lanesOf(timeline, true).lanes.map(({ name, samples }) => [name, samples]), [["pool 8", 2], ["main 7", 1]]);
});

test("what is seen first is found without looking at all", () => {
    const row = { from: [0, 10, 20], to: [10, 20, 30], node: [1, 2, 3] };
    assert.deepEqual([firstAfter(row, 0), firstAfter(row, 10), firstAfter(row, 25), firstAfter(row, 30)], [0, 1, 2, 3]);
});
