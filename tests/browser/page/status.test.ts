// SPDX-License-Identifier: Apache-2.0
// Status: what is kept, what was dropped and why, and how a service is deleted.
import type { Order, Service, Status } from "../../../web/src/api/answers";
import { bytes, count, plural } from "../../../web/src/model/format";
import { check, equal, PHONE, world } from "./kit";

const { test } = world({ hours: 3, tokens: [{ token: "all", access: "admin" }, { token: "look", access: "read" }] });

async function signIn(view: { page: import("playwright-core").Page; settled: () => Promise<void> }, token: string): Promise<void> {
    await view.page.getByLabel(/token/i).first().fill(token);
    await view.page.getByRole("button", { name: /sign in/i }).click();
    await view.page.locator(".page-head h1").waitFor();
    await view.settled();
}

test("each service has its size and its number of profiles, the largest first", async ({ open, ask }) => {
    const view = await open("/status", {}, { expects: [401] });
    await signIn(view, "all");
    const { services } = await ask<{ services: Service[] }>("services");
    const status = await ask<Status>("status");
    const wanted = services.sort((a, b) => b.bytes - a.bytes || b.profiles - a.profiles);
    const rows = await view.rows(".storage table");
    equal(rows.map(([name]) => name), wanted.map(({ name }) => name));
    equal(rows.map((row) => row[2]), wanted.map((one) => (one.bytes ? bytes(one.bytes) : "in the log")));
    equal(rows.map((row) => row[3]), wanted.map((one) => count(one.profiles)));
    await view.sees(`kept ${plural(status.store.retention_seconds! / 86400, "day")}`);
    await view.sees(`Kiln ${status.version}`);
    await view.picture("status");
});

test("what was refused is told with what to do about it", async ({ open, ask, server }) => {
    await fetch(`${server.url}/v1development/profiles`, { method: "POST", headers: { "content-type": "application/x-protobuf", authorization: "Bearer all" }, body: "\x0a\xff" });
    const view = await open("/status", {}, { expects: [401] });
    await signIn(view, "all");
    const { drops } = await ask<Status>("status");
    check("something was dropped", drops.length > 0);
    for (const drop of drops) {
        const line = view.page.locator(".drops li", { hasText: drop.text });
        await line.waitFor();
        check("its remedy stands below", (await line.innerText()).includes(drop.remedy));
    }
    await view.sees("next to nothing was dropped");
});

test("who may only read deletes nothing", async ({ open }) => {
    const view = await open("/status", {}, { expects: [401] });
    await signIn(view, "look");
    await view.sees("Deleting a service needs admin access");
    equal(await view.page.getByRole("button", { name: /^Delete/ }).count(), 0);
});

test("a service is deleted by who types its name", async ({ open, ask }) => {
    const view = await open("/status", {}, { expects: [401] });
    await signIn(view, "all");
    const before = (await ask<{ services: Service[] }>("services")).services.find(({ name }) => name === "mailer")!;
    await view.page.getByRole("button", { name: "Delete mailer" }).click();
    const run = view.page.getByRole("button", { name: `Delete ${count(before.profiles)} profiles` });
    check("not before it is typed", await run.isDisabled());
    await view.page.getByLabel("The service's name").fill("maile");
    check("nor with another name", await run.isDisabled());
    await view.page.getByLabel("The service's name").fill("mailer");
    await view.picture("status-delete");
    await run.click();
    await view.sees(`${plural(before.profiles, "profile")} of mailer deleted`);
    await view.settled();
    equal((await ask<{ services: Service[] }>("services")).services.filter(({ name }) => name === "mailer"), []);
    equal((await view.rows(".storage table")).filter(([name]) => name === "mailer"), []);
});

const post = async (url: string, token: string, json: unknown) => {
    const headers = { "content-type": "application/json", authorization: `Bearer ${token}` };
    const answer = await fetch(url, { method: "POST", headers, body: JSON.stringify(json) });
    check("it is taken", answer.ok, await answer.text());
};

test("a service is boosted and left alone again, and agents say what they follow", async ({ open, ask, server }) => {
    await post(`${server.url}/api/v1/agents/web-1`, "all", { id: "web-1", host: "web-01", version: "0.9.0", kernel: "6.18", state: "running", hz: 19 });
    const view = await open("/status", {}, { expects: [401] });
    await signIn(view, "all");
    await view.sees("Every agent samples at its own rate");
    await view.page.getByRole("button", { name: "Boost or pause…" }).click();
    const boost = view.page.getByRole("button", { name: "Boost", exact: true }).last();
    check("not before something is chosen", await boost.isDisabled());
    await view.page.getByLabel("Which").selectOption("checkout");
    await view.page.getByRole("button", { name: "5m" }).click();
    await view.page.getByRole("textbox", { name: "Why" }).fill("slow since noon");
    await view.picture("status-boost");
    await boost.click();
    await view.sees(/199 Hz\s*checkout slow since noon/);
    const { orders } = await ask<{ orders: Order[] }>("orders");
    equal(orders.map(({ kind, target, name, hz }) => [kind, target, name, hz]), [["boost", "service", "checkout", 199]]);
    await post(`${server.url}/api/v1/agents/web-1`, "all", { id: "web-1", host: "web-01", version: "0.9.0", state: "running", hz: 19, orders: [orders[0].id] });
    await view.sees("1 boost"); // by itself
    await view.sees("1 agent");
    await view.picture("status-boosted");
    await view.page.getByRole("button", { name: "End it for checkout" }).click();
    await view.sees("Every agent samples at its own rate");
    equal((await ask<{ orders: Order[] }>("orders")).orders, []);
});

test("who may only read sees pauses, and gives none", async ({ open, server }) => {
    await post(`${server.url}/api/v1/orders`, "all", { kind: "pause", target: "all", duration: "1h", why: "a race" });
    const view = await open("/status", {}, { expects: [401] });
    await signIn(view, "look");
    await view.sees(/Paused\s*everything a race/);
    equal(await view.page.getByRole("button", { name: /Boost or pause|^End/ }).count(), 0);
});

test("it fits a phone, in the dark", async ({ open }) => {
    const view = await open("/status", {}, { width: PHONE, theme: "dark", expects: [401] });
    await signIn(view, "all");
    await view.sees("Dropped, and why");
    await view.picture("status");
});
