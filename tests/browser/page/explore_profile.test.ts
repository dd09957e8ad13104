// SPDX-License-Identifier: Apache-2.0
// One profile in all its forms: each says the same numbers as the API, and the address brings each back.
import type { QueryAnswer, SourceAnswer } from "../../../web/src/api/answers";
import { count, percent, share } from "../../../web/src/model/format";
import { check, cpu, equal, world, type Tools, type View } from "./kit";

const { test } = world({ hours: 3 });
const HOUR = 3600;

const button = (view: View, name: string | RegExp) => view.page.getByRole("button", { name });
const ofCheckout = (last: Tools["last"], more: Record<string, string> = {}) => ({ service: "checkout", ...last(HOUR), ...more });
const query = (ask: Tools["ask"], last: Tools["last"], more: Record<string, string | number>) =>
    ask<QueryAnswer>("query", { query: cpu("checkout"), ...last(HOUR), ...more });

async function sandwiched(ask: Tools["ask"], last: Tools["last"], name: string) {
    const all = await query(ask, last, { format: "top", limit: 1000 });
    const row = all.top!.rows.find((one) => one.name === name)!;
    return { total: share(row.total, all.total), self: share(row.self, all.total) };
}

test("a sandwich shows a function with the API's numbers, its callers and what it calls", async ({ open, ask, last }) => {
    const view = await open("/explore", ofCheckout(last));
    await view.page.getByRole("cell", { name: "loadRules" }).click();
    await view.settled();
    await view.page.keyboard.press("s");
    await view.settled();
    equal(view.params().get("show"), "sandwich");
    const { total, self } = await sandwiched(ask, last, "loadRules");
    const said = await view.text(".filling");
    check("total and self", said.includes(`${total} total`) && said.includes(`${self} self`), said);
    equal(await view.page.locator(".half canvas").count(), 2);
    await view.picture("explore-sandwich");
});

test("finding says how much of the profile matches, and filters the table", async ({ open, ask, last }) => {
    const view = await open("/explore", ofCheckout(last));
    await view.page.keyboard.press("/");
    await view.page.keyboard.type("Json");
    await view.page.waitForFunction(() => location.search.includes("find=Json"));
    await view.settled();
    const all = await query(ask, last, { format: "top", limit: 1 });
    const matched = await query(ask, last, { format: "top", with: "Json", limit: 1000 });
    check("the share", (await view.text(".found")).startsWith(share(matched.total, all.total)), await view.text(".found"));
    const rows = await view.rows(".profile-side .table");
    equal(rows.length, matched.top!.rows.filter((row) => row.name.includes("Json")).length);
    await view.picture("explore-find");
    await view.page.keyboard.press("Enter");
    await view.page.waitForFunction(() => location.search.includes("fn="));
    check("a hit is chosen", /Json/.test(view.params().get("fn")!), view.params().get("fn"));
});

test("an expression that cannot be read is said to be wrong, and nothing breaks", async ({ open, last }) => {
    const view = await open("/explore", ofCheckout(last, { find: "/(/" }));
    equal(await view.page.locator(".find input").getAttribute("aria-invalid"), "true");
});

test("source lines have the API's costs, and the hottest is in sight", async ({ open, ask, last }) => {
    const view = await open("/explore", ofCheckout(last, { fn: "loadRules" }));
    await view.page.keyboard.press("o");
    await view.settled();
    const source = await ask<SourceAnswer>("source", { query: cpu("checkout"), ...last(HOUR), function: "loadRules" });
    const all = await query(ask, last, { format: "top", limit: 1 });
    const hottest = source.lines.reduce((most, line) => (line.total > most.total ? line : most));
    const row = view.page.locator(".source-lines .hottest");
    check("it is in sight", await row.isVisible());
    await view.sees(new RegExp(`rules\\.js:${hottest.line} · your code`)); // below the picture, without opening anything
    const cells = await row.locator("td").allInnerTexts();
    equal(cells.slice(0, 2), [String(hottest.line), share(hottest.total, all.total)]);
    await view.picture("explore-source");
    const again = await view.again();
    check("the address opens it again", await again.page.locator(".source-lines .hottest").isVisible());
});

test("the text tree opens along the hottest way and says the same", async ({ open, ask, last }) => {
    const view = await open("/explore", ofCheckout(last, { show: "tree" }));
    const flame = (await query(ask, last, { format: "flamegraph" })).flamegraph!;
    const node = flame.name.findIndex((name) => flame.names[name] === "createOrder");
    const row = view.page.getByRole("row", { name: /createOrder/ }).first();
    check("its share", (await row.innerText()).includes(share(flame.total[node], flame.total[0])), await row.innerText());
    const rows = await view.page.locator(".text-row").count();
    await row.click();
    await view.page.locator(".text-tree").focus();
    await view.page.keyboard.press("ArrowLeft");
    check("an arrow closes it", (await view.page.locator(".text-row").count()) < rows);
    await button(view, "Copy as text").click();
    const copied = await view.page.evaluate(() => navigator.clipboard.readText());
    check("the copy has it too", new RegExp(`${percent(flame.total[node] / flame.total[0]).replace("\u2009", " ")}.*createOrder`).test(copied), copied);
    await view.picture("explore-tree");
});

test("by time there is a lane for each thread, and what has no time is said", async ({ open, ask, last }) => {
    const view = await open("/explore", ofCheckout(last, { show: "time" }));
    const { timeline } = await query(ask, last, { format: "timeline" });
    await view.sees(`${timeline!.threads.length} threads`);
    await view.sees(`${count(timeline!.timed)} of ${count(timeline!.all)} samples have a time.`);
    await view.page.locator(".chart canvas").focus();
    await view.page.keyboard.press("+");
    await view.picture("explore-time");
    const other = await open("/explore", { service: "mailer", show: "time", ...last(HOUR) });
    await other.sees(/has a timestamp, so nobody knows their order/);
});

test("the call graph has each function once, with its total", async ({ open, ask, last }) => {
    const view = await open("/explore", ofCheckout(last, { show: "graph", fn: "priceCart" }));
    const { total, self } = await sandwiched(ask, last, "priceCart");
    const box = button(view, `priceCart, ${total} · self ${self}`);
    check("it is there and chosen", (await box.getAttribute("aria-pressed")) === "true");
    equal(await box.count(), 1);
    await view.picture("explore-graph");
});

test("focus, hide, only and group are in the address, and the way back undoes them", async ({ open, ask, last }) => {
    const view = await open("/explore", ofCheckout(last, { fn: "createOrder" }));
    const start = view.page.url();
    await view.flame.press("Enter");
    await view.settled();
    check("the focus is a short path", /^([0-9a-z]{4})+$/.test(view.params().get("focus") ?? ""), view.params().get("focus"));
    await view.sees("in focus");
    const again = await view.again();
    await again.sees("Show all");
    await view.page.keyboard.press("h");
    await view.settled();
    equal(view.params().get("hide"), "=createOrder");
    await view.sees("hidden createOrder");
    const { functions } = (await query(ask, last, { format: "top", limit: 1 })).top!;
    await view.page.goBack();
    await view.page.goBack();
    equal(view.page.url(), start);
    check("all functions are back", (await view.text(".profile-side .panel-head")).includes(count(functions)));
});

test("groups of packages and of a label add up to the whole", async ({ open, last }) => {
    const view = await open("/explore", ofCheckout(last, { group: "package" }));
    await view.sees("Groups");
    await view.sees("by package");
    const label = await open("/explore", ofCheckout(last, { group: "label:host.name" }));
    for (const host of ["web-01", "web-02", "data-01"]) {
        await label.page.keyboard.press("/");
        await label.page.locator(".find input").fill(host);
        await label.page.waitForFunction((text) => location.search.includes(text), host);
        await label.settled();
        const found = Number.parseFloat(await label.text(".found"));
        check(`${host} has about a third`, found > 25 && found < 42, found);
        await label.page.keyboard.press("Escape");
    }
});

test("a frame has a menu, and a function a life over time", async ({ open, last }) => {
    const view = await open("/explore", ofCheckout(last, { fn: "loadRules" }));
    await view.flame.press("Shift+F10");
    await view.page.getByRole("menuitem", { name: "This function over time" }).click();
    await view.settled();
    await view.sees(/on average, by time/);
    await view.page.keyboard.press("Escape");
    await view.flame.press("Shift+F10");
    await view.page.getByRole("menuitem", { name: "Only stacks with it" }).click();
    await view.settled();
    equal(view.params().get("only"), "=loadRules");
    await view.sees("only loadRules");
});

test("a menu that is closed gives the focus back", async ({ open, last }) => {
    const view = await open("/explore", ofCheckout(last));
    await button(view, "Export").focus();
    await view.page.keyboard.press("Enter");
    await view.page.getByRole("menuitem", { name: /pprof/ }).waitFor();
    await view.page.keyboard.press("Escape");
    equal(await view.page.evaluate(() => document.activeElement?.getAttribute("aria-label")), "Export");
});

test("keys choose the form, and each form is its own address", async ({ open, last }) => {
    const view = await open("/explore", ofCheckout(last, { fn: "loadRules" }));
    for (const [key, show] of [["2", "sandwich"], ["3", "time"], ["4", "graph"], ["5", "tree"], ["1", null]] as const) {
        await view.page.keyboard.press(key);
        await view.settled();
        equal(view.params().get("show"), show);
    }
});
