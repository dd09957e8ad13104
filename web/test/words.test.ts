// SPDX-License-Identifier: Apache-2.0
// Numbers and times as people read them.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ago, bytes, count, digits, duration, figures, percent, plural, pluralWords, share } from "../src/model/format";
import { amountOf, measureOf } from "../src/model/measure";
import { absolute, parseTime, seconds, shifted } from "../src/model/time";
import type { ProfileType } from "../src/api/answers";

const plain = (text: string) => text.replace(/\u2009/g, " ");
const typed = (type: string, unit: string, kind: "flow" | "level"): ProfileType =>
    ({ id: "", name: "", type, unit, period_type: "", period_unit: "", kind });

test("numbers have three figures, a true minus and thin groups", () => {
    assert.deepEqual([0, 0.0001, 0.0123, 0.999, 3.4159, 34.15, 341.5, 18412].map((n) => plain(figures(n))),
        ["0", "<0.001", "0.012", "1.00", "3.42", "34.1", "342", "18 412"]);
    assert.equal(digits(-0.001, 1), "0.0");
    assert.equal(digits(-2.5, 1), "−2.5");
    assert.equal(plain(count(1234567)), "1 234 567");
});

test("shares never round something to nothing", () => {
    assert.equal(plain(percent(0.0001)), "<0.1 %");
    assert.equal(plain(percent(0)), "0.0 %");
    assert.equal(plain(share(1, 8)), "12.5 %");
    assert.equal(share(1, 0), "–");
});

test("units are those that people feel", () => {
    assert.deepEqual([bytes(999), bytes(1.5e9), duration(90), duration(5e-5), duration(7200)].map(plain),
        ["999 B", "1.50 GB", "90.0 s", "50.0 µs", "2.00 h"]);
    assert.equal(plural(1, "service"), "1 service");
    assert.equal(pluralWords(7, "service"), "Seven services");
    assert.equal(plain(ago(0, 300000)), "5 min ago");
});

test("CPU time over a range is cores; allocations are bytes a minute; what is in use is bytes", () => {
    const cpu = measureOf(typed("cpu", "nanoseconds", "flow"), 60);
    assert.equal(cpu.format(205.2e9), "3.42 cores");
    assert.equal(plain(cpu.amount(205.2e9)), "3.42 min");
    assert.equal(plain(measureOf(typed("alloc_space", "bytes", "flow"), 120).format(240e6)), "120 MB a minute");
    assert.equal(plain(measureOf(typed("inuse_space", "bytes", "level"), 3600).format(1.4e9)), "1.40 GB");
    assert.equal(measureOf(typed("contentions", "count", "flow"), 10).format(50), "5.00 a second");
    assert.equal(amountOf(12, "count"), "12");
});

test("relative times stay relative until they are made absolute", () => {
    const now = Date.parse("2026-03-01T12:00:00Z");
    assert.equal(parseTime("now-90m", now), now - 5400000);
    assert.ok(Number.isNaN(parseTime("yesterdy", now)));
    assert.deepEqual(absolute({ from: "now-1h", until: "now" }, now), { from: "2026-03-01T11:00:00Z", until: "2026-03-01T12:00:00Z" });
    assert.equal(seconds({ from: "now-1h", until: "now" }, now), 3600);
    assert.deepEqual(shifted({ from: "now-1h", until: "now" }, -1, now), { from: "2026-03-01T10:00:00Z", until: "2026-03-01T11:00:00Z" });
});
