// SPDX-License-Identifier: Apache-2.0
// Measures the page in a headless Chromium.  The same movement is made several times, and each of its
// steps counts as the quickest of these took: what the machine does beside it is not the page's.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { cpus, loadavg, tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { gzipSync } from "node:zlib";
import { chromium, type Browser, type CDPSession, type Page } from "playwright-core";
import { BUILD, Server, fillWithShop } from "../../tests/browser/page/server";
import type { Bench } from "./page";

const SIZES = [10_000, 100_000, 1_000_000];
const STEPS = 60;
const ROUNDS = 3;
const rows: { what: string; value: number; unit: string; target?: number }[] = [];

function note(what: string, value: number, unit: string, target?: number): void {
    rows.push({ what, value, unit, target });
    const met = target === undefined ? "" : `   target ${target} ${unit}: ${value <= target ? "met" : "NOT met"}`;
    console.log(`  ${what.padEnd(56)} ${value.toFixed(unit === "kB" ? 1 : value < 10 ? 2 : 0).padStart(9)} ${unit}${met}`);
}

const quickest = (rounds: number[][]) => rounds[0].map((_, i) => Math.min(...rounds.map((round) => round[i])));
const at = (values: number[], share: number) => [...values].sort((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * share))];

// ---- the flame graph alone ----

function bundle(folder: string): void {
    const words = ["bench/page/page.tsx", "--bundle", "--minify", "--format=esm", "--target=es2022", "--jsx=automatic", "--jsx-import-source=preact",
        `--outfile=${join(folder, "bench.js")}`, "--log-level=warning"];
    const env = { ...process.env, NODE_PATH: resolve("web/node_modules") };
    if (spawnSync("web/node_modules/.bin/esbuild", words, { stdio: "inherit", env }).status !== 0) throw new Error("the bundle failed");
    writeFileSync(join(folder, "index.html"), '<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,"><link rel="stylesheet" href="bench.css">' +
        '<div id="app"></div><script type="module" src="bench.js"></script>');
}

const TYPES: Record<string, string> = { html: "text/html", js: "text/javascript", css: "text/css" };

async function served<T>(folder: string, use: (url: string) => Promise<T>): Promise<T> {
    const server = createServer((request, response) => {
        const name = request.url === "/" ? "index.html" : request.url!.slice(1);
        if (!readdirSync(folder).includes(name)) return void response.writeHead(404).end();
        response.writeHead(200, { "content-type": TYPES[name.split(".").pop()!] }).end(readFileSync(join(folder, name)));
    });
    await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
    try {
        return await use(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
    } finally {
        server.close();
    }
}

// CPU time of the page's main thread so far, in ms.
async function threadTime(cdp: CDPSession): Promise<number> {
    const { metrics } = await cdp.send("Performance.getMetrics");
    return metrics.find(({ name }) => name === "TaskDuration")!.value * 1000;
}

type Move = "pan" | "zoom" | "scroll";

async function moves(page: Page, cdp: CDPSession, n: string, which: Move): Promise<void> {
    const rounds: number[][] = [];
    const before = await threadTime(cdp);
    for (let i = 0; i < ROUNDS; i++)
        rounds.push(await page.evaluate(([move, steps]) => (window as unknown as { bench: Bench }).bench[move](steps), [which, STEPS] as const));
    const cpu = (await threadTime(cdp)) - before;
    const steps = quickest(rounds);
    note(`${n}: ${which}, CPU time of a frame, mean`, cpu / (ROUNDS * STEPS), "ms");
    note(`${n}: ${which}, frame to frame, median`, at(steps, 0.5), "ms");
    note(`${n}: ${which}, frame to frame, slowest of ${STEPS}`, Math.max(...steps), "ms", 33.4);
    note(`${n}: the same with what the machine did beside it`, Math.max(...rounds.flat()), "ms");
}

async function flames(browser: Browser, url: string): Promise<void> {
    for (const size of SIZES) {
        const n = `${size / 1000} k nodes`;
        const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
        const cdp = await page.context().newCDPSession(page);
        await cdp.send("Performance.enable", { timeDomain: "threadTicks" });
        await page.goto(url);
        const call = <K extends "make" | "read" | "model" | "draw">(name: K, ...words: Parameters<Bench[K]>) =>
            page.evaluate(([f, w]) => (window as unknown as { bench: Record<string, (...w: unknown[]) => unknown> }).bench[f](...w), [name, words] as const) as Promise<Awaited<ReturnType<Bench[K]>>>;
        note(`${n}: the answer, as JSON`, (await call("make", size)) / 1000, "kB");
        const read = await call("read");
        note(`${n}: JSON.parse`, read.parse, "ms");
        note(`${n}: treeOf`, read.tree, "ms");
        const draws: number[] = [];
        const before = await threadTime(cdp);
        draws.push(await call("draw"));
        note(`${n}: first draw, from tree to picture, CPU time`, (await threadTime(cdp)) - before, "ms", 300);
        for (let i = 1; i < ROUNDS; i++) draws.push(await call("draw"));
        note(`${n}: first draw, by the clock`, draws[0], "ms", 300);
        note(`${n}: the same, quickest of ${ROUNDS}`, Math.min(...draws), "ms");
        for (const which of ["pan", "zoom", "scroll"] as const) await moves(page, cdp, n, which);
        for (const [what, ms] of Object.entries(await call("model"))) note(`${n}: ${what}`, ms, "ms");
        await page.close();
    }
}

// ---- the whole page ----

function size(): void {
    const folder = join(BUILD, "web");
    const files = [join(folder, "index.html"), ...readdirSync(join(folder, "assets")).map((name) => join(folder, "assets", name))];
    note("bundle, gzip", files.reduce((sum, file) => sum + gzipSync(readFileSync(file), { level: 9 }).length, 0) / 1000, "kB", 150);
    note("bundle, plain", files.reduce((sum, file) => sum + readFileSync(file).length, 0) / 1000, "kB");
}

async function navigations(browser: Browser): Promise<void> {
    const server = new Server({});
    await server.start();
    try {
        fillWithShop(server.url, ["--hours", "24"]);
        const paints: number[] = [];
        const flameTimes: number[] = [];
        for (let i = 0; i < 5; i++) {
            const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
            const page = await context.newPage();
            await page.goto(`${server.url}/explore?service=checkout`);
            await page.waitForSelector("canvas[data-drawn]");
            flameTimes.push(await page.evaluate(() => performance.now()));
            paints.push(await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? NaN));
            await context.close();
        }
        note("Explore: first paint after navigation, median of 5", at(paints, 0.5), "ms");
        note("Explore: flame graph seen after navigation, median of 5", at(flameTimes, 0.5), "ms", 1000);
        note("Explore: flame graph seen, slowest", Math.max(...flameTimes), "ms", 1000);
    } finally {
        await server.stop();
    }
}

// ---- a wide fleet ----

const FLEET = ["--hosts", "10000", "--services", "1000", "-n", "10000", "--from", "-30m", "--quiet"];

// What a view of 1,000 services on 10,000 hosts costs until its first row is seen, and in all.
async function wide(browser: Browser, server: Server, view: string): Promise<void> {
    const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
    const page = await context.newPage();
    const cdp = await context.newCDPSession(page);
    await cdp.send("Network.enable");
    let requests = 0;
    let received = 0;
    page.on("request", () => requests++);
    cdp.on("Network.loadingFinished", ({ encodedDataLength }) => (received += encodedDataLength));
    await page.goto(server.url + view);
    await page.waitForSelector("[data-row]");
    note(`${view}, 1,000 services, 10,000 hosts: first picture`, await page.evaluate(() => performance.now()), "ms", 1000);
    await page.waitForLoadState("networkidle");
    note(`${view}: requests`, requests, "");
    note(`${view}: received`, received / 1000, "kB");
    note(`${view}: elements`, await page.evaluate(() => document.querySelectorAll("*").length), "");
    await context.close();
}

async function fleet(browser: Browser): Promise<void> {
    const server = new Server({});
    await server.start();
    try {
        const sent = spawnSync(process.env.KILN ?? "build/kiln", ["loadgen", "--server", server.url, ...FLEET], { stdio: "inherit" });
        if (sent.status !== 0) throw new Error("the fleet was not sent");
        for (const view of ["/", "/labels", "/labels?by=host.name"]) await wide(browser, server, view);
    } finally {
        await server.stop();
    }
}

const folder = mkdtempSync(join(tmpdir(), "kiln-bench-page-"));
const browser = await chromium.launch({ executablePath: process.env.KILN_CHROMIUM ?? "/usr/bin/chromium", args: ["--disable-dev-shm-usage"] });
try {
    console.log(`Chromium ${browser.version()}, without a GPU; ${cpus().length} processors, load ${loadavg()[0].toFixed(1)}`);
    size();
    bundle(folder);
    await served(folder, (url) => flames(browser, url));
    await navigations(browser);
    await fleet(browser);
} finally {
    await browser.close();
    rmSync(folder, { recursive: true, force: true });
}
const words = process.argv.slice(2);
if (words[0] === "--json") writeFileSync(words[1], JSON.stringify(rows, null, 1));
