// SPDX-License-Identifier: Apache-2.0
// Every view, light on a desk and dark on a phone: it stands, it says something, and its address
// brings it back.  What each one says is compared with the API in numbers.test.ts.
import { PHONE, WIDE, check, equal, world, type Params, type Theme, type Tools } from "./kit";

const { test } = world();
const HEAP = "memory:inuse_space:bytes:space:bytes";
const TOLD_NOW = new Set(["status", "start", "file"]); // views whose text is of this second, or of no address

type Visit = [name: string, path: string, params: (tools: Tools) => Params];
const lately = ({ last }: Tools): Params => ({ service: "checkout", ...last(6600) });
const VISITS: Visit[] = [
    ["overview", "/", ({ last }) => last(86400)],
    ["explore", "/explore", lately],
    ["compare", "/compare", lately],
    ["labels", "/labels", lately],
    ["memory", "/memory", ({ last }) => ({ service: "payments", ...last(43200) })],
    ["waiting", "/waiting", lately],
    ["spans", "/spans", ({ last }) => ({ service: "checkout", ...last(600) })],
    ["profiles", "/profiles", lately],
    ["file", "/file", () => ({})],
    ["status", "/status", () => ({})],
    ["symptoms", "/symptoms", () => ({})],
    ["start", "/start", () => ({})],
];
const MORE: Visit[] = [
    ["explore, searched", "/explore", (tools) => ({ ...lately(tools), find: "Json" })],
    ["explore, filtered", "/explore", (tools) => ({ ...lately(tools), where: 'http.route="POST /orders"' })],
    ["explore, of memory", "/explore", ({ last }) => ({ service: "payments", type: HEAP, ...last(3600) })],
    ["explore, of everything", "/explore", ({ last }) => last(3600)],
    ["explore, one function's callers", "/explore", (tools) => ({ ...lately(tools), fn: "loadRules", show: "sandwich" })],
    ["explore, one function's lines", "/explore", (tools) => ({ ...lately(tools), fn: "loadRules", src: 1 })],
    ["explore, as a tree", "/explore", (tools) => ({ ...lately(tools), show: "tree", sort: "total" })],
    ["explore, as a graph", "/explore", (tools) => ({ ...lately(tools), show: "graph" })],
    ["explore, by time", "/explore", ({ last }) => ({ service: "checkout", show: "time", ...last(100) })],
    ["explore, cut and turned", "/explore", (tools) => ({ ...lately(tools), only: "createOrder", hide: "/^v8::/", invert: 1, own: 1 })],
    ["explore, by module", "/explore", (tools) => ({ ...lately(tools), group: "module", color: "kind", flip: 1 })],
    ["compare, of two hours", "/compare", ({ last }) => ({
        service: "checkout", a_from: last(3600, 7200).from, a_until: last(3600, 7200).until, b_from: last(3600).from, b_until: last(3600).until,
    })],
    ["compare, with the hour before", "/compare", (tools) => ({ ...lately(tools), preset: "before", fn: "matchRule" })],
    ["labels, by pod", "/labels", (tools) => ({ ...lately(tools), by: "k8s.pod.name" })],
    ["a symptom", "/symptoms", () => ({ symptom: "latency" })],
    ["spans, by trace", "/spans", ({ last }) => ({ service: "checkout", by: "trace", ...last(600) })],
    ["profiles, largest", "/profiles", (tools) => ({ ...lately(tools), order: "largest" })],
];

for (const [name, path, params] of VISITS) {
    test(`${name} stands, light and wide, dark and narrow`, async (tools) => {
        for (const [theme, width] of [["light", WIDE], ["dark", PHONE]] as [Theme, number][]) {
            const view = await tools.open(path, params(tools), { theme, width });
            check(`${name} has a sentence`, (await view.text("h1")).length > 5);
            equal(await view.page.evaluate(() => document.documentElement.dataset.theme), theme);
            await view.picture(name);
        }
    });
}

for (const [name, path, params] of [...VISITS, ...MORE]) {
    test(`the address of ${name} brings it back`, async (tools) => {
        const view = await tools.open(path, params(tools), { stopClock: true });
        for (const [key, value] of Object.entries(params(tools))) equal(view.params().get(key), String(value), `${key} stays in the address`);
        const again = await view.again();
        equal(again.page.url(), view.page.url());
        if (TOLD_NOW.has(name)) return;
        equal(await again.text(), await view.text());
        const [drawn, drawnAgain] = await Promise.all([view, again].map(({ page }) => page.locator(".profile canvas").evaluateAll((pictures) =>
            pictures.map((picture) => (picture as HTMLCanvasElement).toDataURL()))));
        check("the same is drawn", drawn.join() === drawnAgain.join());
    });
}
