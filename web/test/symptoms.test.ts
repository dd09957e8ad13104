// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Service } from "../src/api/answers";
import { knowledgeOf } from "../src/model/know";
import { kindTitle, SYMPTOMS, typeFor, TYPES_EXPLAINED } from "../src/model/symptoms";
import { arrived, hostWord, isLoopback, waysTo } from "../src/model/ways";

const service = (name: string, ...ids: string[]) => ({ name, types: ids.map((id) => ({ id })) }) as Service;

test("each symptom has a first step, a next one, and something to look for", () => {
    assert.equal(SYMPTOMS.length, 7);
    assert.equal(new Set(SYMPTOMS.map(({ id }) => id)).size, 7);
    for (const { id, start, then, look, often } of SYMPTOMS) assert.ok(start.length && then.length && look.length >= 2 && often.fix, id);
});

test("a step leads to the type that the service sends", () => {
    const services = [service("shop", "memory:alloc_objects:count:space:bytes", "memory:alloc_space:bytes:space:bytes"), service("api", "process_cpu:cpu:nanoseconds:cpu:nanoseconds")];
    assert.equal(typeFor("allocated", services, "shop"), "memory:alloc_space:bytes:space:bytes");
    assert.equal(typeFor("cpu", services, "shop"), null);
    assert.equal(typeFor("cpu", services, ""), "process_cpu:cpu:nanoseconds:cpu:nanoseconds");
});

test("what is explained is known", () => {
    for (const id of TYPES_EXPLAINED) assert.ok(knowledgeOf(id).redFlags.length, id);
    assert.equal(kindTitle("in use"), "Memory in use");
});

test("commands have this server's address, and a token only where it wants one", () => {
    const commands = (tokens: boolean) => waysTo({ origin: "https://kiln.example:8443", tokens }).flatMap(({ variants }) => variants.map(({ command }) => command));
    const open = commands(false);
    assert.ok(open.includes("kiln push --server https://kiln.example:8443 --service shop cpu.pb.gz"));
    assert.ok(open.includes("sudo kiln agent --endpoint https://kiln.example:8443"));
    assert.ok(open.every((command) => !command.includes("TOKEN")));
    const closed = commands(true).filter((command) => !/^(sudo kiln$|scrape:)/.test(command));
    assert.ok(closed.every((command) => command.includes("TOKEN")), closed.find((command) => !command.includes("TOKEN")));
});

test("the first service that was not there before has arrived", () => {
    assert.equal(arrived(new Set(["a"]), [{ name: "a" }]), null);
    assert.equal(arrived(new Set(["a"]), [{ name: "a" }, { name: "b" }]), "b");
});

test("a machine that cannot be profiled says why", () => {
    assert.equal(hostWord({ host_profiler: "failed", host_profiler_reason: "CAP_BPF is missing" } as never)?.text, "This machine cannot be profiled: CAP_BPF is missing.");
    assert.equal(hostWord({ host_profiler: "off" } as never), null);
    assert.ok(isLoopback("127.0.0.1") && isLoopback("localhost") && isLoopback("[::1]") && !isLoopback("kiln.example"));
});
