// SPDX-License-Identifier: Apache-2.0
// Answers that do not come, come late, or are not what was asked for: what was there stays to be read, the page
// says what is wrong, and is well again by itself or by one click.
import assert from "node:assert/strict";
import type { Route } from "playwright-core";
import { check, equal, world, type View } from "./kit";

const { test } = world({ hours: 2 });

const QUERY = "**/api/v1/query?**";
const isProfile = (url: string) => /\/query\?/.test(url) && !/format=/.test(url);
const json = (status: number, code: string, message: string, headers: Record<string, string> = {}) => (route: Route) =>
    route.fulfill({ status, headers, contentType: "application/json", body: JSON.stringify({ error: { code, message, where: "" } }) });

const drawn = async (view: View) => check("the view is drawn", !/This view failed/.test(await view.text()), await view.text());

// To another address of the page, without loading it anew.
const go = (view: View, address: string) => view.page.evaluate((to) => {
    history.pushState(null, "", to);
    dispatchEvent(new PopStateEvent("popstate"));
}, address);

test("each kind of refusal is told in words, and another try heals it", async ({ open }) => {
    const view = await open("/explore", { service: "checkout" }, { expects: [403, 413, 429, 500, 502, 503, 504] });
    const refusals: [number, string, string][] = [
        [403, "forbidden", "this token may not read"], [413, "limit", "the question needs more memory than it may have"], [429, "rate", "too many requests"],
        [503, "busy", "the server is busy"], [504, "timeout", "the question took longer than 60 s"],
    ];
    for (const [status, code, message] of refusals) {
        await view.page.route(QUERY, json(status, code, message, { "retry-after": "1" }));
        await view.page.reload();
        await view.sees(message);
        await drawn(view);
        await view.page.unroute(QUERY);
    }
    await view.page.getByRole("button", { name: "Try again" }).first().click();
    await view.sees(/cores.*on average/);
});

test("a proxy's page, half an answer and no answer at all are told in words", async ({ open }) => {
    const view = await open("/explore", { service: "checkout" }, { expects: [502] });
    const bad: [(route: Route) => Promise<void>, RegExp][] = [
        [(route) => route.fulfill({ status: 502, contentType: "text/html", body: "<html><h1>Bad gateway</h1></html>" }), /answered 502/],
        [(route) => route.fulfill({ status: 200, contentType: "application/json", body: `{"type":{"id":"a` }), /cut off/],
        [(route) => route.fulfill({ status: 200, contentType: "text/html", body: "<html>sign in here</html>" }), /cut off/],
        [(route) => route.abort("connectionreset"), /does not answer/],
    ];
    for (const [answer, said] of bad) {
        await view.page.route(QUERY, answer);
        await view.page.reload();
        await view.sees(said);
        await drawn(view);
        await view.page.unroute(QUERY);
    }
    await view.page.getByRole("button", { name: "Try again" }).first().click();
    await view.sees(/cores.*on average/);
});

test("every view says that the server does not answer, and none is empty", async ({ open }) => {
    const view = await open("/start");
    await view.page.route("**/api/v1/**", (route) => route.abort("connectionrefused"));
    for (const path of ["/", "/explore", "/compare", "/labels", "/memory", "/waiting", "/spans", "/profiles", "/status", "/symptoms", "/start"]) {
        await go(view, `${path}?service=checkout`);
        await view.settled().catch((error: Error) => assert.fail(`${path}: ${error.message}`));
        await drawn(view);
        const text = await view.text("main");
        check(`${path} says so`, /does not answer|No answer/.test(text) || ["/symptoms", "/start"].includes(path), text);
    }
});

test("an answer that comes late does not stand in for a newer one", async ({ open }) => {
    const view = await open("/explore", { service: "orders" });
    const late: (() => Promise<void>)[] = [];
    await view.page.route(QUERY, async (route) => {
        if (!route.request().url().includes("search")) return route.continue();
        late.push(() => route.continue().catch(() => {}));
    });
    await go(view, "/explore?service=search");
    await view.page.waitForFunction(() => document.title.startsWith("search"));
    while (!late.length) await view.page.waitForTimeout(10);
    await view.page.goBack();
    await view.page.waitForFunction(() => document.title.startsWith("orders"));
    await Promise.all(late.map((go) => go()));
    await view.settled();
    const text = await view.text("main");
    check("it is still orders", /runtime\.|orders/.test(text) && !/lucene/.test(text), text);
});

test("a question that nobody waits for any more is given up", async ({ open }) => {
    const view = await open("/start");
    const given: string[] = [];
    view.page.on("requestfailed", (request) => given.push(request.url()));
    await view.page.route(QUERY, () => {}); // never answered
    const asked = view.page.waitForRequest((request) => isProfile(request.url()));
    await go(view, "/explore?service=checkout");
    await asked;
    await go(view, "/start");
    await view.settled();
    check("it was given up", given.some(isProfile), given);
});

test("a view that cannot be drawn leaves the others, and says how to go on", async ({ open }) => {
    const view = await open("/explore", { service: "checkout" });
    await view.page.route(QUERY, (route) => route.fulfill({ status: 200, contentType: "application/json", body: `{"flamegraph":7,"basis":{"profiles":1,"count":1}}` }));
    await view.page.reload();
    await view.sees("This view failed");
    check("it is told to who looks for it", view.complaints.length > 0);
    view.complaints.length = 0;
    await view.page.unroute(QUERY);
    await view.page.getByRole("link", { name: "Status" }).first().click();
    await view.sees(/nothing was dropped/);
    await view.page.goBack();
    await view.sees(/cores.*on average/);
});

test("a server that goes away and comes back is asked again", async ({ open, server }) => {
    const view = await open("/explore", { service: "checkout", refresh: 1 });
    await view.sees(/cores.*on average/);
    await server.kill();
    await view.sees(/does not answer/);
    await drawn(view);
    await server.start();
    await view.sees(/cores.*on average/);
    equal(view.params().get("service"), "checkout");
});

test("many refreshes leave no more behind than a few", async ({ open }) => {
    const view = await open("/explore", { service: "checkout" });
    const session = await view.page.context().newCDPSession(view.page);
    const refresh = async (times: number) => {
        for (let i = 0; i < times; i++) {
            await go(view, `/explore?service=checkout&from=now-${60 + (i % 5)}m`);
            await view.settled();
        }
    };
    const measured = async () => {
        await session.send("HeapProfiler.collectGarbage");
        const { metrics } = await session.send("Performance.getMetrics");
        const of = (name: string) => metrics.find((one) => one.name === name)!.value;
        return { heap: of("JSHeapUsedSize"), nodes: of("Nodes"), listeners: of("JSEventListeners") };
    };
    await session.send("Performance.enable");
    await refresh(20);
    const before = await measured();
    await refresh(60);
    const after = await measured();
    check("the heap does not grow", after.heap < before.heap * 1.3 + 4e6, { before, after });
    check("nodes and listeners do not grow", after.nodes < before.nodes * 1.2 + 200 && after.listeners < before.listeners * 1.2 + 50, { before, after });
});
