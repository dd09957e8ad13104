// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Deployment } from "../src/api/answers";
import { formatPlace } from "../src/state/place";
import { scopeOf } from "../src/state/scope";
import { addressOf, diffParams, sidesOf, versionRanges } from "../src/views/compare/sides";

const NOW = Date.parse("2026-03-01T16:00:00Z");
const HOUR_RANGE = { from: "now-1h", until: "now" };
const ran = (version: string, first: string, last: string): Deployment => ({
    id: `shop@${version}`,
    service: "shop",
    version,
    commit: "",
    deployment_id: "",
    at: first,
    until: null,
    source: "found",
    label: "service.version",
    name: "",
    text: "",
    first,
    last,
    profiles: 9,
});
const OLD = ran("1.1", "2026-02-20T00:00:00Z", "2026-03-01T14:05:00Z");
const NEW = ran("1.2", "2026-03-01T14:10:00Z", "2026-03-01T15:59:59.5Z");
const sides = (query: string, deployments: Deployment[] = [NEW, OLD]) =>
    sidesOf(new URLSearchParams(query), deployments, HOUR_RANGE, NOW);

test("versions are compared as neighbours, each as long as the new one has run", () => {
    const { preset, a, b } = sides("");
    assert.equal(preset, "version");
    assert.deepEqual([a.version, b.version], ["1.1", "1.2"]);
    assert.deepEqual(b.range, { from: "2026-03-01T14:10:00Z", until: "2026-03-01T16:00:00Z" });
    assert.deepEqual(a.range, { from: "2026-03-01T12:15:01Z", until: "2026-03-01T14:05:01Z" });
});

test("a version that began a minute ago is held against an hour, one of last month against a day", () => {
    const [a] = versionRanges(OLD, ran("1.2", "2026-03-01T15:59:00Z", "2026-03-01T15:59:50Z"), NOW);
    assert.equal(Date.parse(a.until) - Date.parse(a.from), 3600000);
    const [, b] = versionRanges(ran("0.9", "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"), OLD, NOW);
    assert.deepEqual(b, { from: "2026-02-20T00:00:00Z", until: "2026-02-21T00:00:00Z" });
});

test("without a second version it is the time before", () => {
    const { preset, a, b } = sides("", [NEW]);
    assert.equal(preset, "before");
    assert.deepEqual(
        [a.range.from, a.range.until, b.range.until],
        ["2026-03-01T14:00:00Z", "2026-03-01T15:00:00Z", "2026-03-01T16:00:00Z"],
    );
    assert.equal(sides("preset=week").a.range.until, "2026-02-22T16:00:00Z");
});

test("sides that stand in the address by themselves come back as they were", () => {
    const said = sides('a_version=1.1&b_where=pod="a,b",env!="x"&b_from=now-2h');
    assert.equal(said.preset, "");
    assert.deepEqual(said.b.matchers, [
        { name: "pod", op: "=", value: "a,b" },
        { name: "env", op: "!=", value: "x" },
    ]);
    assert.equal(said.b.range.from, "2026-03-01T14:00:00Z");
    const address = formatPlace("compare", new URLSearchParams(), addressOf(said.a, said.b));
    assert.deepEqual(sides(address.split("?")[1]), said);
});

test("the question has each side's own part beside the common one", () => {
    const scope = scopeOf(new URLSearchParams('service=shop&where=env="prod"'));
    const params = diffParams(scope, sides('a_where=pod="a"&b_version=1.2'), true);
    assert.equal(params.query, 'process_cpu:cpu:nanoseconds:cpu:nanoseconds{service_name="shop",env="prod"}');
    assert.deepEqual(
        [params.left_query, params.left_deployment, params.right_query, params.right_deployment, params.normalize],
        ['{pod="a"}', "", "", "1.2", "total"],
    );
});
