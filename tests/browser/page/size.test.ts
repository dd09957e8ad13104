// SPDX-License-Identifier: Apache-2.0
// Much of everything, and very little: thousands of services, stacks a thousand deep, a hundred thousand functions,
// numbers at the end of what there is, and types that nobody knows.
import { check, cpu, number, world, type View } from "./kit";
import { cpuOf, send, type Sample, type Sent } from "./sender";

const { test, tools } = world({ fill: false, words: ["--log-level", "warn"] });

const SERVICES = 2000;
const VALUES = 300;
const DEPLOYMENTS = 200;
const FUNCTIONS = 100_000;
const DEEP = 1000;
const one = (value: number | string, ...stack: string[]): Sample[] => [{ stack, value }];

let filled = false;
async function fill(now: number): Promise<void> {
    if (filled) return;
    filled = true;
    const { url } = tools.server;
    const at = now - 60;
    const pages = Array.from({ length: SERVICES }, (_, i) => cpuOf(`service-${i}`, at, one(1e9 + i * 1e5, "main", `work${i}`)));
    for (let i = 0; i < pages.length; i += 500) await send(url, pages.slice(i, i + 500));
    await send(url, [cpuOf("labels", at, Array.from({ length: VALUES }, (_, i) => ({ stack: ["main"], value: 1e7 * (i + 1), labels: [["tenant", `t${i}`]] })))]);
    const deployments: Sent[] = Array.from({ length: DEPLOYMENTS }, (_, i) => cpuOf("deploys", now - 3000 + i * 14, one(1e9, "main"), [["service.version", `v${i}`]]));
    for (const deployment of deployments) await send(url, [deployment]);
    await send(url, [cpuOf("deep", at, one(1e9, ...Array.from({ length: DEEP }, (_, i) => `f${i}`)))]);
    await send(url, [cpuOf("wide", at, Array.from({ length: FUNCTIONS }, (_, i) => ({ stack: ["main", `g${i % 300}`, `function_${i}`], value: 1e6 + i })))]);
    const odd = (service: string, type: string, unit: string, samples: Sample[]): Sent => ({ labels: [["service.name", service]], type, unit, at, samples });
    await send(url, [
        odd("unknown", "wibbles", "furlongs", one(7, "main", "wobble")), odd("huge", "bytes_copied", "bytes", [...one("9223372036854775807", "a"), ...one("9223372036854775807", "b")]),
        odd("zero", "nothing", "count", one(0, "main")), cpuOf("single", at, one(1, "main")), odd("negative", "credit", "count", [...one(-5, "a"), ...one(3, "b")]),
    ]);
}

const nonsense = /\bNaN\b|Infinity|undefined|Invalid Date|\[object|e\+\d\d|This view failed/;
async function sound(view: View): Promise<string> {
    const text = await view.text();
    check("no number is none", !nonsense.test(text), text.slice(0, 2000));
    await view.measure();
    return text;
}

test("two thousand services are listed, counted and found", async ({ open, ask, now }) => {
    await fill(now);
    const { services } = await ask<{ services: unknown[] }>("services");
    check("they are there", services.length >= SERVICES);
    const view = await open("/");
    const text = await sound(view);
    check("the Overview tells how many use CPU", number(/[\d\u2009 ]+ services use/.exec(text)?.[0] ?? "0") >= SERVICES, text.slice(0, 400));
    check("not each is asked for before it is seen", view.requests.length < 200, view.requests.length);
    await view.page.keyboard.press("Control+k");
    await view.page.keyboard.type("service-1999");
    await view.sees("service-1999");
});

test("every view of a large store is drawn", async ({ open, now }) => {
    await fill(now);
    for (const path of ["/explore", "/compare", "/labels", "/memory", "/waiting", "/profiles", "/status", "/symptoms"])
        await sound(await open(path, {}, { expects: [413] })); // all at once may be too much to compare
});

test("three hundred values of a label add up", async ({ open, ask, now }) => {
    await fill(now);
    const view = await open("/labels", { service: "labels", by: "tenant" });
    const { total } = await ask<{ total: number }>("query", { query: cpu("labels"), format: "top" });
    check("the API has all", total === (1e7 * VALUES * (VALUES + 1)) / 2);
    check("so many values", /300 values/.test(await sound(view)));
});

test("two hundred deployments are on a timeline and leave it readable", async ({ open, now }) => {
    await fill(now);
    const view = await open("/explore", { service: "deploys" });
    await sound(view);
    await view.picture("many-deployments");
    check("close ones are one mark", (await view.page.locator(".mark").count()) < 40);
    await sound(await open("/compare", { service: "deploys" }));
});

test("a stack of a thousand frames, and a hundred thousand functions", async ({ open, now }) => {
    await fill(now);
    for (const show of ["flame", "sandwich", "graph", "tree"]) {
        const view = await open("/explore", { service: "deep", show, fn: "f500" });
        check("it is drawn", /f500/.test(await sound(view)));
        await view.page.goto(`${view.server.url}/explore?service=wide&show=${show}&fn=main&find=/_9{3}/`);
        await view.settled();
        await sound(view);
    }
});

test("numbers at the end of what there is, nothing, one sample, less than nothing, and types that nobody knows", async ({ open, ask, now }) => {
    await fill(now);
    const { services } = await ask<{ services: { name: string; types: { id: string }[] }[] }>("services");
    for (const { name, types } of services.filter((service) => ["unknown", "huge", "zero", "single", "negative"].includes(service.name)))
        for (const path of ["/explore", "/labels", name === "huge" ? "/compare" : "/waiting", name === "huge" ? "/memory" : "/profiles"])
            await sound(await open(path, { service: name, ...(path === "/explore" || path === "/labels" ? { type: types[0].id } : {}) }));
    const unknown = await open("/explore", { service: "unknown" });
    await unknown.sees(/It has sent something else/);
});
