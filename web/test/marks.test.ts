// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Deployment } from "../src/api/answers";
import { flagsOf } from "../src/ui/timeline/marks";

const AREA = { left: 40, top: 16, width: 1000, height: 60, from: 0, until: 1000 }; // a pixel is a millisecond
const deployed = (at: number, version: string, service = "shop") =>
    ({ id: `${service} ${version}`, service, version, name: "", commit: "", at: new Date(at).toISOString() }) as Deployment;

test("deployments far from each other are flags with their names", () => {
    const flags = flagsOf([deployed(100, "1"), deployed(700, "2")], AREA);
    assert.deepEqual(flags.map(({ text, x, more }) => [text, x, more]), [["2", 700, 0], ["1", 100, 0]]);
});

test("many close to each other become few, and none is lost", () => {
    const many = Array.from({ length: 200 }, (_, i) => deployed(400 + i, `v${i}`));
    const flags = flagsOf(many, AREA);
    assert.ok(flags.length <= 200 / 12 + 1);
    assert.equal(flags.reduce((sum, { more }) => sum + 1 + more, 0), 200);
    assert.equal(flags[0].deployment.version, "v199");
});

test("other services are other marks, and a long name takes no more room than a flag may", () => {
    assert.equal(flagsOf([deployed(500, "1", "a"), deployed(501, "1", "b")], AREA).length, 2);
    assert.equal(flagsOf([deployed(500, "x".repeat(5000))], AREA)[0].leftwards, false);
});
