// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import type { GapAmounts, GapAnswer } from "../src/api/answers";
import { matcherOf, runnableOf, seenIn } from "../src/model/kernel";
import { selector } from "../src/model/selector";

const amounts = (more: Partial<GapAmounts> = {}): GapAmounts => ({ wall: 0, cpu: 0, blocked: 0, runnable: 0, gap: 0, ...more });
const gap = (reasons: [string, number][], runnable = 0): GapAnswer => ({
    overall: amounts({ runnable }),
    reasons: reasons.map(([reason, value]) => ({ reason, value })),
    rows: [{ name: "main", self: amounts(), total: amounts({ runnable }), reasons: [] }],
    basis: {} as GapAnswer["basis"],
    notes: [],
});

test("what the kernel saw stands by its time, a lack of processors last", () => {
    const seen = seenIn(gap([["page_fault", 4], ["futex", 3]], 50));
    assert.deepEqual(seen.map(({ title, value }) => [title, value]), [["Page fault", 4], ["Futex", 3], ["Runnable", 50]]);
    assert.ok(seen.every(({ means }) => means));
});

test("where no wait says a reason there is nothing to choose", () => {
    assert.deepEqual(seenIn(null), []);
    assert.deepEqual(seenIn(gap([["", 4]])), []);
    assert.deepEqual(seenIn(gap([["futex", 4], ["", 1]])).map(({ title }) => title), ["Futex", "Not said"]);
});

test("a reason chooses samples by it, a lack of processors by the state", () => {
    assert.equal(selector("off_cpu", "shop", [matcherOf("futex")]), 'off_cpu{service_name="shop",wait.reason="futex"}');
    assert.equal(selector("off_cpu", "shop", [matcherOf("runnable")]), 'off_cpu{service_name="shop",thread.state="runnable"}');
});

test("functions could have run for as long as the answer says", () => {
    const of = runnableOf(gap([["futex", 1]], 7));
    assert.equal(of("main", "total"), 7);
    assert.equal(of("main", "self"), 0);
    assert.equal(of("other", "total"), 0);
});
