// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import type { DiffAnswer, DiffFlamegraph, DiffRow } from "../src/api/answers";
import {
    changeOf,
    diffMeasure,
    grouped,
    nodeChange,
    phrase,
    ratio,
    rowChange,
    startsOf,
    told,
    wholeOf,
} from "../src/model/diff";
import { diffTreeOf } from "../src/model/tree";

const CPU = {
    id: "process_cpu:cpu:nanoseconds:cpu:nanoseconds",
    name: "process_cpu",
    type: "cpu",
    unit: "nanoseconds",
    period_type: "cpu",
    period_unit: "nanoseconds",
    kind: "flow",
} as const;
const basis = (count: number, covered_seconds: number) => ({
    profiles: 1,
    count,
    first: null,
    last: null,
    covered_seconds,
    rate_seconds: covered_seconds,
    blocks: 0,
    rolled_up: 0,
    damaged: 0,
    arrival_times: 0,
});
const side = (total: number, count: number, covered: number) => ({
    query: "",
    from: "2026-03-01T11:00:00Z",
    until: "2026-03-01T12:00:00Z",
    total,
    basis: basis(count, covered),
});

function answer(change: Partial<DiffAnswer> = {}): DiffAnswer {
    const left = side(200e9, 2000, 100);
    const right = side(140e9, 1400, 50);
    return {
        type: CPU,
        left,
        right,
        normalized: "time",
        scale: 0.5,
        change: 40e9,
        noise: 8.5e9,
        is_noise: false,
        notes: [],
        ...change,
    };
}

// Lines of "indent name left right": totals; what callees do not have is a function's own.
function drawn(text: string): DiffFlamegraph {
    const flame: DiffFlamegraph = {
        names: [],
        files: [],
        modules: [],
        kinds: [],
        name: [],
        depth: [],
        left_self: [],
        left_total: [],
        right_self: [],
        right_total: [],
        other: null,
    };
    for (const line of text.split("\n").filter((one) => one.trim())) {
        const [name, left, right] = line.trim().split(/\s+/);
        if (!flame.names.includes(name)) flame.names.push(name);
        flame.name.push(flame.names.indexOf(name));
        flame.depth.push((line.length - line.trimStart().length) / 2);
        flame.left_total.push(Number(left));
        flame.right_total.push(Number(right));
    }
    flame.left_self = flame.left_total.map(() => 0);
    flame.right_self = flame.right_total.map(() => 0);
    return flame;
}

const all = { a: 1000, b: 1000, countA: 1e6, countB: 1e6, shares: false };
function startsIn(text: string, own: string[]) {
    const tree = diffTreeOf(drawn(text), 1);
    return startsOf(
        tree,
        (node) => nodeChange(tree, node, all),
        (name) => own.includes(tree.names[name]),
    ).map(({ name, by }) => `${name} ${by}`);
}

test("rates of both sides are over the time that each covers", () => {
    const measure = diffMeasure(answer());
    assert.equal(measure.unit, "cores");
    assert.equal(measure.rate(200e9 * 0.5), 200 / 100); // A: 200 s of CPU in 100 s
    assert.equal(measure.rate(140e9), 140 / 50); // B: 140 s in 50 s
    assert.equal(measure.rate(40e9), 0.8);
});

test("shares are of B's total, after A is scaled to it", () => {
    const by = answer({ normalized: "total", scale: 0.7, change: 0 });
    assert.equal(diffMeasure(by).rate(50e9 * 0.7), 25); // a quarter of A's 200 s
    assert.equal(diffMeasure(by).format(70e9), "50.0\u2009%");
});

test("without normalisation only sums are known", () => {
    const measure = diffMeasure(answer({ normalized: "none", scale: 1 }));
    assert.equal(measure.unit, "s");
    assert.equal(measure.short(140e9), "140");
});

test("bytes have the unit that suits the whole", () => {
    const type = {
        ...CPU,
        id: "memory:inuse_space:bytes:space:bytes",
        name: "memory",
        type: "inuse_space",
        unit: "bytes",
        kind: "level",
    } as const;
    const of = (total: number) =>
        diffMeasure(
            answer({ type, normalized: "none", scale: 1, left: side(total / 2, 9, 0), right: side(total, 9, 0) }),
        );
    assert.deepEqual([of(5e9).unit, of(5e9).short(1.74e9), of(5e9).format(9.7e6)], ["GB", "1.74", "9.70\u2009MB"]);
    assert.deepEqual([of(1.9e9).unit, of(1.9e9).short(1.74e9)], ["MB", "1740"]);
    assert.deepEqual([of(5e4).unit, of(5e4).short(1500)], ["kB", "1.50"]);
});

test("noise is that of two counts of independent observations", () => {
    const whole = wholeOf(answer());
    const change = changeOf(100e9, 140e9, whole);
    assert.ok(Math.abs(change.noise - 1.959964 * Math.sqrt(100e9 ** 2 / 2000 + 140e9 ** 2 / 1400)) < 1);
    assert.equal(change.isNoise, false);
    assert.equal(changeOf(100e9, 101e9, whole).isNoise, true);
    assert.equal(changeOf(0, 0, whole).isNoise, true);
});

test("one observation is the least that a side is taken to have", () => {
    const change = changeOf(0, 0.3e9, wholeOf(answer())); // three samples against none
    assert.ok(Math.abs(change.noise - 1.959964 * Math.sqrt(0.05e9 ** 2 + 0.3e9 ** 2 / 3)) < 1);
});

test("a share of everything cannot vary", () => {
    const whole = wholeOf(answer({ normalized: "total", scale: 0.7 }));
    assert.equal(changeOf(whole.a, whole.b, whole).noise, 0);
});

test("a change starts where no callee has most of it, and is told by own code", () => {
    const tree =
        "total 400 500\n  main 400 500\n    handle 300 390\n      loadRules 40 130\n        parse 40 125\n          scan 20 60\n          build 20 50\n      render 60 60\n    gc 100 110";
    assert.deepEqual(startsIn(tree, ["main", "handle", "loadRules", "render"]), ["loadRules 90", "gc 10"]);
    assert.deepEqual(startsIn(tree, []), ["parse 85", "gc 10"]);
});

test("what grows does not hide what shrinks beside it", () => {
    const tree = "total 500 500\n  main 500 500\n    fast 250 150\n    slow 250 350";
    assert.deepEqual(startsIn(tree, ["fast", "slow"]).sort(), ["fast -100", "slow 100"]);
});

test("a function in several places counts once", () => {
    const tree = "total 500 700\n  a 250 350\n    lock 50 150\n  b 250 350\n    lock 50 150";
    assert.deepEqual(startsIn(tree, ["lock"]), ["lock 200"]);
});

test("rows are the server's numbers, in three groups", () => {
    const row = (name: string, by: number, isNoise: boolean): DiffRow => ({
        name,
        file: "",
        module: "",
        kind: "",
        left_self: 10,
        right_self: 5 + by,
        left_total: 10,
        right_total: 5,
        self_change: by,
        self_noise: 1,
        self_is_noise: isNoise,
        total_change: 0,
        total_noise: 1,
        total_is_noise: true,
    });
    const of = answer({
        top: {
            functions: 90,
            rows: [row("a", 3, false), row("b", -4, false), row("c", 5, false), row("d", 0.5, true)],
        },
    });
    const { grew, shrank, noise, noiseAll, cut } = grouped(of, "self");
    assert.deepEqual(
        [grew, shrank, noise].map((rows) => rows.map(({ name }) => name).join()),
        ["c,a", "b", "d"],
    );
    assert.equal(noiseAll, 87);
    assert.equal(cut, false);
    assert.deepEqual(rowChange(grew[0], "self", 0.5), { a: 5, b: 10, by: 5, noise: 1, isNoise: false });
    assert.equal(grouped(of, "total").noise.length, 4);
});

test("changes in words", () => {
    assert.equal(ratio(changeOf(2.44, 3.42, all)), "40\u2009% more");
    assert.equal(ratio(changeOf(1, 4, all)), "4.00 times as much");
    assert.equal(ratio(changeOf(2, 1.9, all)), "5.0\u2009% less");
    assert.deepEqual(phrase(CPU, changeOf(2.44, 3.42, all)), ["uses", "40\u2009% more CPU"]);
    const starts = [
        { node: 1, name: "loadRules", by: 42.5e9 },
        { node: 2, name: "Collect", by: 7e9 },
        { node: 3, name: "render", by: -4e9 },
        { node: 4, name: "dust", by: 1e6 },
    ];
    assert.equal(told(starts, diffMeasure(answer())), "loadRules adds 0.85 cores, Collect 0.14; render saves 0.080");
});
