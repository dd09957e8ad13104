// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Deployment, DiffAnswer, Finding, QueryAnswer, Service } from "../src/api/answers";
import { exactRows, fleetOf, identitiesOf, realDeployments, runtimeText, type FleetAnswers } from "../src/model/fleet";
import { CPU_TYPE, MEMORY_TYPE } from "../src/model/know";
import { noticesOf, suspects } from "../src/model/notice";

const START = Date.parse("2026-03-01T12:00:00Z");
const HOUR = 3600000;
const time = (ms: number) => new Date(ms).toISOString();

// An hour in quarters of a minute, of which a flow's minutes are made; in cores, or bytes in use.
function answer(start: number, cores: Record<string, (minute: number) => number>, level = false): QueryAnswer {
    const bucket = Array.from({ length: 240 }, (_, i) => i).filter((i) => Object.values(cores).some((of) => of(i >> 2) > 0));
    const value = (of: (minute: number) => number) => bucket.map((i) => (level ? of(i >> 2) : of(i >> 2) * 15e9));
    const rows = Object.entries(cores).map(([name, of]) => ({
        labels: { service_name: name }, bucket, value: value(of), count: bucket.map((i) => of(i >> 2) * 285), sum: value(of).reduce((a, b) => a + b, 0), observations: bucket.length * 285,
    }));
    return {
        type: { id: level ? MEMORY_TYPE : CPU_TYPE, kind: level ? "level" : "flow", unit: level ? "bytes" : "nanoseconds", type: level ? "inuse_space" : "cpu" },
        from: time(start), until: time(start + HOUR), total: rows.reduce((all, { sum }) => all + sum, 0), notes: [],
        basis: { first: time(start), last: time(start + HOUR - 60000), profiles: 60, covered_seconds: 3600, rate_seconds: 3600, count: 1 },
        series: { start: time(start), step_seconds: 15, buckets: 240, by: ["service_name"], all: rows.length, series: rows },
    } as unknown as QueryAnswer;
}
const service = (name: string, types = [CPU_TYPE]) =>
    ({ name, oldest: time(START - 10 * HOUR), newest: time(START + HOUR), types: types.map((id) => ({ id })) }) as Service;
const deployed = (name: string, version: string, at: number) =>
    ({ id: `${name}@${version}`, service: name, version, name: "", commit: "", at: time(at), source: "found" }) as Deployment;
const answers = (more: Partial<FleetAnswers>): FleetAnswers => ({
    cpu: answer(START, { shop: () => 2, api: () => 1 }), before: null, memory: null, services: [service("shop"), service("api")],
    deployments: [], identities: new Map(), now: START + HOUR, ...more,
});

test("cores are CPU time over the time from the first profile to the last, most first", () => {
    const fleet = fleetOf(answers({}));
    assert.deepEqual(fleet.rows.map(({ service, cores }) => [service, Number(cores!.toFixed(6))]), [["shop", 2], ["api", 1]]);
    assert.equal(fleet.cores, 3);
    assert.equal(fleet.rows[0].change, null);
});

test("a server that has run for ten minutes of the hour does not look idle", () => {
    const cpu = answer(START, { shop: (minute) => (minute >= 50 ? 2 : 0) });
    cpu.basis.covered_seconds = cpu.basis.rate_seconds = 600;
    assert.ok(Math.abs(fleetOf(answers({ cpu })).cores - 2) < 1e-9);
});

test("a change is since the last deployment where there was one, else against the window before", () => {
    const cpu = answer(START, { shop: (minute) => (minute < 30 ? 2 : 3), api: () => 1.5 });
    const before = answer(START - HOUR, { shop: () => 2, api: () => 1 });
    const deployments = [deployed("shop", "1", START - 20 * HOUR), deployed("shop", "2", START + 30 * 60000)];
    const [shop, api] = fleetOf(answers({ cpu, before, deployments })).rows;
    assert.equal(shop.change!.deployment!.version, "2");
    assert.equal(shop.change!.previous, "1");
    assert.ok(Math.abs(shop.change!.ratio - 0.5) < 0.02, String(shop.change!.ratio));
    assert.equal(shop.change!.real, true);
    assert.equal(api.change!.deployment, null);
    assert.ok(Math.abs(api.change!.ratio - 0.5) < 1e-9);
});

test("services without points are in the total, in the chart as one line, and get points from details", () => {
    const all = answer(START, { a: () => 6, b: () => 5, c: () => 4, d: () => 3, e: () => 2, f: () => 1 });
    const series = all.series!.series;
    const [e, f] = series.slice(4);
    const bare = (one: typeof e) => ({ ...one, bucket: [], value: [], count: [] });
    const rest = { series: 2, sum: e.sum + f.sum, bucket: e.bucket, value: e.value.map((one, i) => one + f.value[i]), count: e.count };
    const cpu = { ...all, series: { ...all.series!, series: [...series.slice(0, 4), bare(e), bare(f)], rest } };
    const fleet = fleetOf(answers({ cpu, services: [] }));
    assert.equal(Number(fleet.cores.toFixed(6)), 21);
    assert.deepEqual(fleet.chart.lines.map(({ label, rate }) => [label, Number((rate[30]! / 1e9).toFixed(6))]), [["a", 6], ["b", 5], ["c", 4], ["d", 3], ["2 more", 3]]);
    assert.deepEqual(fleet.rows.map(({ spark }) => spark.length > 0), [true, true, true, true, false, false]);
    const detail = { cpu: { ...all, series: { ...all.series!, series: [e] } }, before: null, memory: null };
    const detailed = fleetOf(answers({ cpu, services: [], details: [detail] }));
    assert.deepEqual(detailed.rows.map(({ spark }) => spark.length > 0), [true, true, true, true, true, false]);
    assert.deepEqual(detailed.chart, fleet.chart);
});

test("without points a change is that of the sums", () => {
    const bare = (of: QueryAnswer) => ({ ...of, series: { ...of.series!, series: of.series!.series.map((one) => ({ ...one, bucket: [], value: [], count: [] })) } });
    const cpu = bare(answer(START, { shop: () => 3 }));
    const before = bare(answer(START - HOUR, { shop: () => 2 }));
    const { change } = fleetOf(answers({ cpu, before })).rows[0];
    assert.ok(Math.abs(change!.ratio - 0.5) < 1e-9, String(change!.ratio));
});

test("a version that was there with the first profile was not deployed then", () => {
    const first = deployed("shop", "1", START - 10 * HOUR);
    const told = { ...first, source: "told" } as Deployment;
    assert.deepEqual(realDeployments([first, told, deployed("shop", "2", START)], [service("shop")]).map(({ version, source }) => version + source), ["1told", "2found"]);
});

test("a service that sends memory alone has a row without cores", () => {
    const memory = answer(START, { cache: (minute) => 1e9 + minute }, true);
    const fleet = fleetOf(answers({ memory, services: [service("shop"), service("api"), service("cache", [MEMORY_TYPE])] }));
    const row = fleet.rows.find(({ service }) => service === "cache")!;
    assert.equal(row.cores, null);
    assert.equal(row.memory, 1e9 + 59);
});

test("runtimes are called as people call them", () => {
    assert.equal(runtimeText("nodejs", "22.11.0", "nodejs"), "Node 22");
    assert.equal(runtimeText("OpenJDK Runtime Environment", "21.0.5+11", "java"), "Java 21");
    assert.equal(runtimeText("go", "go1.25.1", "go"), "Go 1.25");
    assert.equal(runtimeText("", "", "cpp"), "C++");
    assert.equal(runtimeText("", "", ""), "");
});

test("a service is what it said last, hosts are counted once", () => {
    const set = (labels: Record<string, string>, last: number) => ({ labels, last: time(last) });
    const sets = [
        set({ service_name: "shop", "service.version": "2", "host.name": "b", "process.runtime.name": "go" }, START),
        set({ service_name: "shop", "service.version": "1", "host.name": "a", "process.runtime.name": "go" }, START - HOUR),
        set({ service_name: "api", "service.version": "", "host.name": "a" }, START),
    ];
    assert.deepEqual(identitiesOf(sets).get("shop"), { runtime: "Go", version: "2", hosts: 2 });
    assert.equal(identitiesOf(sets).get("api")!.version, "");
});

const grown = () => {
    const cpu = answer(START, { shop: (minute) => (minute < 30 ? 2 : 3), api: () => 1 });
    return fleetOf(answers({ cpu, deployments: [deployed("shop", "2", START + 30 * 60000)] })).rows;
};

test("where both sides were compared to the sample, that counts", () => {
    const diff = { left: { total: 100 }, scale: 2, change: 90, noise: 10, is_noise: false, normalized: "time" } as DiffAnswer;
    const [shop, api] = exactRows(grown(), new Map([["shop", diff], ["api", null]]));
    assert.deepEqual([shop.change!.ratio, shop.change!.noise, shop.change!.real], [0.45, 0.05, true]);
    assert.equal(api.change, null);
});

test("a service that grew after a deployment is noticed, with the function that it starts in", () => {
    const rows = grown();
    assert.deepEqual(suspects(rows).map(({ service }) => service), ["shop"]);
    const [notice, ...others] = noticesOf({ findings: [], rows, causes: new Map([["shop", { name: "parse", text: "parse adds 0.98 cores" }]]), collected: new Map() });
    assert.equal(others.length, 0);
    assert.equal(notice.title, "shop uses 50\u2009% more CPU");
    assert.equal(notice.text, "parse adds 0.98 cores, since 2");
    assert.equal(notice.fn, "parse");
    assert.equal(notice.bad, true);
});

test("what the server found stands for what the page noticed, and garbage collection counts from 15 %", () => {
    const finding = { id: "7", kind: "regression", severity: "warning", service: "shop", text: "shop grew", function: "f", at: time(START), until: null } as Finding;
    const notices = noticesOf({ findings: [finding], rows: grown(), causes: new Map(), collected: new Map([["shop", 0.14], ["api", 0.17]]) });
    assert.deepEqual(notices.map(({ id }) => id), ["7", "gc:api"]);
    assert.equal(notices[1].text, "0.17 of its 1.00 cores collect garbage");
});
