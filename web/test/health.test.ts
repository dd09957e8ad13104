// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Agent, Service, Status } from "../src/api/answers";
import { healthOf, statusSentence, statusSubtitle, storageFoot, storageText } from "../src/model/health";

const NOW = Date.parse("2026-03-05T16:00:00Z");
const ago = (seconds: number) => new Date(NOW - seconds * 1000).toISOString();
const agent = (more: Partial<Agent> = {}): Agent => ({
    id: "1", host: "web-01", version: "0.9.0", kernel: "6.1", started: ago(9000), last_seen: ago(2), local: false, state: "running", problem: null,
    hz: 19, samples_per_second: 30, samples: 100000, processes: 40, drops: [], unwind: { complete: 99, all: 100, share: 0.99, ends: [] },
    cpu_cores: 0.003, memory_bytes: 61e6, ...more,
});
const status = (more: Partial<Status> = {}, store: Partial<Status["store"]> = {}): Status => ({
    scope: "server", version: "0.9.0", started: ago(86400 * 3), now: ago(0), memory: { used_bytes: 186e6, limit_bytes: 512e6 }, cpu_seconds: 2592, processors: 4,
    ingest: { profiles: 1, samples: 1, bytes: 1, profiles_per_second: 35.667, samples_per_second: 1, bytes_per_second: 1 }, drops: [],
    store: { bytes: 9e8, blocks: 3, log_bytes: 1e8, profiles: 5, oldest: ago(86400 * 13), newest: ago(1), retention_seconds: 1209600, retention_bytes: null, disk_free_bytes: 63e9, writable: true, problem: null, ...store },
    ...more,
});
const drop = { where: "store", reason: "too_old", count: 3, text: "", remedy: "" };

test("an agent is healthy, slow to report, or drops", () => {
    assert.deepEqual([healthOf(agent(), NOW).tone, healthOf(agent(), NOW).word], ["ok", "Healthy"]);
    assert.equal(healthOf(agent({ last_seen: ago(840) }), NOW).word, "Silent");
    assert.equal(healthOf(agent({ state: "failed" }), NOW).word, "Failed");
    assert.equal(healthOf(agent({ state: "paused" }), NOW).word, "Paused");
    assert.deepEqual([healthOf(agent({ state: "stopped" }), NOW).tone, healthOf(agent({ state: "waiting" }), NOW).tone], ["warn", "ok"]);
    assert.equal(healthOf(agent({ unwind: { complete: 1, all: 2, share: 0.5, ends: [{ reason: "no_table", count: 3 }] } }), NOW).end, "no table");
    const drops = healthOf(agent({ drops: [{ reason: "lost", count: 400 }, { reason: "spool_full", count: 2 }] }), NOW);
    assert.equal(drops.word, "Drops");
    assert.equal(drops.drop, "lost");
    assert.equal(drops.dropped, 402);
    assert.ok(Math.abs(drops.dropShare - 402 / 100400) < 1e-12);
});

test("the state is one sentence, and what is worst comes first", () => {
    const said = (agents: Agent[], one = status()) => statusSentence(one, agents, NOW);
    assert.equal(said([agent()]), "One agent reports; nothing was dropped");
    assert.equal(said([agent(), agent()]), "Both agents report; nothing was dropped");
    assert.equal(said([agent(), agent(), agent({ last_seen: ago(900) })]), "Two of three agents report; nothing was dropped");
    assert.equal(said([agent(), agent({ host: "data-01", drops: [{ reason: "ring", count: 400 }] })]), "Both agents report; data-01 drops 0.4\u2009%");
    assert.equal(said([], status({ drops: [drop] })), "2140 profiles a minute come in; one thing went wrong");
    assert.equal(said([], status({ ingest: null })), "No agent reports; nothing was dropped");
    assert.equal(said([agent({ state: "failed" })]), "web-01 cannot be profiled; nothing was dropped");
    assert.equal(said([agent()], status({}, { writable: false, problem: "the disk is full" })), "Nothing can be kept: the disk is full");
});

test("what the server is and keeps, in numbers", () => {
    assert.equal(statusSubtitle(status(), [agent()], NOW), "Kiln 0.9.0, up 3.00\u2009d, 186\u2009MB of 512\u2009MB memory, 2140 profiles a minute.");
    assert.equal(storageText(status()), "1.00\u2009GB, kept 14 days");
    assert.equal(storageText(status({}, { retention_seconds: null, retention_bytes: 2e9 })), "1.00\u2009GB, kept for good, at most 2.00\u2009GB");
    const foot = storageFoot(status(), [{ bytes_per_second: 1000 } as Service], NOW);
    assert.match(foot, /and goes on 6 Mar/);
    assert.match(foot, /grows by 86\.4\u2009MB a day; 63\.0\u2009GB of the disk are free\./);
});
