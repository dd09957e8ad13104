// SPDX-License-Identifier: Apache-2.0
// Tests of the page, in a real browser on a real server.
//
//   import { equal, world } from "./kit";
//
//   const { test } = world();                    // a server with the invented shop in it, for all tests of the file
//
//   test("Explore says how much checkout uses", async ({ open, ask, last }) => {
//     const view = await open("/explore", { service: "checkout", ...last(3600) });
//     const answer = await ask<QueryAnswer>("query", { query: cpu("checkout"), ...last(3600), format: "top" });
//     await view.sees(measureOf(answer.type, 3600).format(answer.total));     // a number on the page is that of the API
//     await view.page.getByRole("button", { name: "Sandwich" }).click();       // anything Playwright can do
//     await view.settled();
//     await view.picture("explore-sandwich");
//   });
//
// A test fails by itself on any error or warning of the console, an exception, an answer of 400 or
// more that it did not say it expects, a request to another server, and a page that scrolls sideways.
//
// world({fill: false})          nothing in the server; {words: ["--retention", "1d"]} for its command line;
//                               {tokens: [{token: "a", access: "admin"}, {token: "r", access: "read"}]} for who may come in
// open(path, params, {theme: "dark", width: 390})     themes light, dark; widths WIDE (1280), PHONE (390); any other too;
//                               {stopClock: true} where the text must not change from minute to minute
// view.sees(text)               waits until the text (or RegExp) is there to be seen
// view.settled()                waits until nothing is asked or loading any more; open() has done that
// view.params()                 what stands in the address
// view.expects(404)             from now on such an answer is no complaint; open(..., {expects: [404]}): from the start
// view.again()                  a fresh page at the same address: for "the address brings it back"
// view.flame.*                  the flame graph: frames by name, see class FlameGraph
// view.picture(name)            build/screenshots/NAME-{theme}-{width}.png
// ask(path, params)             the API's own answer, /api/v1/PATH
// last(seconds)                 {from, until} of the shop's last so many seconds, as absolute times
// number("−9.1 % of all")       the first number of a text as people read it: -9.1
//
// A file x.test.ts is CTest's browser/page_x; `node web/run.mjs tests/browser/page/x.test.ts` runs it alone.
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { after, before, test as nodeTest } from "node:test";
import { chromium, type Browser, type ConsoleMessage, type Page, type Request } from "playwright-core";
import { BUILD, Server, fillWithShop, type ServerOptions } from "./server";
import { FlameGraph, painted } from "./flame";

export const WIDE = 1280;
export const PHONE = 390;
export const CPU = "process_cpu:cpu:nanoseconds:cpu:nanoseconds";
export const HEAP = "memory:inuse_space:bytes:space:bytes";
export const cpu = (service: string) => `${CPU}{service_name="${service}"}`;
const PATIENCE_MS = 30_000;
const QUIET_ROUNDS = 4; // of painting: one answer may lead to the next question, however slow the page is just now

export type Theme = "light" | "dark";
export type Params = Record<string, string | number>;

export interface ViewOptions {
    theme?: Theme;
    width?: number;
    height?: number;
    scrollsSideways?: boolean; // the page may be wider than the window
    expects?: number[]; // bad answers that are no complaint
    stopClock?: boolean; // the page's clock stands at the shop's last second
}

export const equal = (got: unknown, wanted: unknown, what?: string): void => assert.deepEqual(got, wanted, what);
export const check = (what: string, good: unknown, detail: unknown = "") =>
    assert.ok(good, detail === "" ? what : `${what}: ${typeof detail === "string" ? detail : JSON.stringify(detail)}`);
export const near = (what: string, got: number, wanted: number, by: number) =>
    check(`${what}: ${got} is not ${wanted} ± ${by}`, Math.abs(got - wanted) <= by);

// The first number of a text, as people read it: "18 412 samples", "−9.1 %", "3.42 → 2.44".
export function number(text: string): number {
    const found = /[−-]?\d{1,3}(?:[\u2009\u202f\u00a0 ]\d{3})+(?:\.\d+)?|[−-]?\d+(?:\.\d+)?/.exec(text);
    check("there is a number", found, text);
    return Number(found![0].replace(/[\u2009\u202f\u00a0 ]/g, "").replace("−", "-"));
}

const withParams = (path: string, params: Params) => {
    const query = new URLSearchParams(Object.entries(params).map(([name, value]) => [name, String(value)])).toString();
    return query ? `${path}${path.includes("?") ? "&" : "?"}${query}` : path;
};

// In the page: counts its questions until their answers were read, which is later than when they came.
function countQuestions(): void {
    const ask = window.fetch;
    const page = window as unknown as { questions: number };
    page.questions = 0;
    window.fetch = async (...words) => {
        page.questions++;
        const end = () => void page.questions--;
        try {
            const answer = await ask(...words);
            if (!answer.body) end();
            else for (const read of ["json", "text", "blob", "arrayBuffer"] as const)
                answer[read] = () => Response.prototype[read].call(answer).finally(end);
            return answer;
        } catch (error) {
            end();
            throw error;
        }
    };
}
const questions = (page: Page) => page.evaluate(() => (window as unknown as { questions: number }).questions);

// A tab of the browser, and everything that is wrong with it.
export class View {
    readonly complaints: string[] = [];
    readonly requests: string[] = [];
    private readonly expected = new Set<number>();
    private readonly asked = new Set<Request>();

    constructor(
        readonly page: Page,
        readonly server: Server,
        readonly options: Required<ViewOptions>,
        private readonly reopen: (address: string) => Promise<View>,
    ) {
        this.expects(...options.expects);
        page.on("console", (message) => this.listen(message));
        page.on("pageerror", (error) => this.complaints.push(`exception: ${error.message}`));
        page.on("request", (request) => this.begin(request));
        page.on("requestfinished", (request) => this.end(request));
        page.on("requestfailed", (request) => this.end(request));
        page.on("response", (response) => {
            if (response.status() >= 400 && !this.expected.has(response.status()))
                this.complaints.push(`${response.status()} for ${response.url()}`);
        });
    }

    private listen(message: ConsoleMessage): void {
        if (!["error", "warning"].includes(message.type())) return;
        if (/^Failed to load resource/.test(message.text())) return; // the answer itself is complained of
        this.complaints.push(`console: ${message.text()}`);
    }

    private begin(request: Request): void {
        this.asked.add(request);
        this.requests.push(request.url());
        if (!/^(data|blob):/.test(request.url()) && new URL(request.url()).origin !== this.server.url)
            this.complaints.push(`asked another server: ${request.url()}`);
    }

    private end(request: Request): void {
        this.asked.delete(request);
    }

    expects(...statuses: number[]): void {
        statuses.forEach((status) => this.expected.add(status));
    }

    get flame(): FlameGraph {
        return new FlameGraph(this.page);
    }

    // Nothing is on its way, nothing is drawn as loading, and nothing came of painting that a few times.
    async settled(): Promise<void> {
        const end = Date.now() + PATIENCE_MS;
        for (let quiet = 0; quiet < QUIET_ROUNDS; ) {
            const before = this.requests.length;
            await painted(this.page);
            const busy = (await this.page.locator("[aria-busy=true]").count()) + (await questions(this.page)) + this.asked.size;
            quiet = busy || this.requests.length > before ? 0 : quiet + 1;
            check("the page still waits", Date.now() < end, [...this.asked].map((one) => one.url()));
            await new Promise((done) => setTimeout(done, 20));
        }
    }

    async sees(text: string | RegExp): Promise<void> {
        const found = this.page.locator("#app").getByText(text).locator("visible=true").first();
        try {
            await found.waitFor({ state: "visible", timeout: PATIENCE_MS });
        } catch {
            assert.fail(`${text} is not on the page, which says: ${(await this.text()).slice(0, 3000)}`);
        }
    }

    async text(selector = "#app"): Promise<string> {
        return (await this.page.locator(selector).first().innerText()).replace(/[ \t]+/g, " ");
    }

    // Texts of the cells of a table's rows; of the first table that is to be seen, unless another is named.
    rows(selector = "table.table"): Promise<string[][]> {
        return this.page.locator(selector).first().locator("tbody tr").evaluateAll((rows) =>
            rows.map((row) => [...(row as HTMLTableRowElement).cells].filter((cell) => cell.getClientRects().length).map((cell) => cell.innerText.trim())));
    }

    params(): URLSearchParams {
        return new URL(this.page.url()).searchParams;
    }

    path(): string {
        return new URL(this.page.url()).pathname;
    }

    again(): Promise<View> {
        return this.reopen(this.page.url());
    }

    async picture(name: string): Promise<void> {
        const folder = join(BUILD, "screenshots");
        mkdirSync(folder, { recursive: true });
        await this.settled();
        await this.page.screenshot({ path: join(folder, `${name}-${this.options.theme}-${this.options.width}.png`) });
    }

    // Is the page wider than its window?
    async measure(): Promise<void> {
        const wider = await this.page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        if (wider > 0) this.complaints.push(`the page is ${wider} px wider than its window of ${this.options.width} px`);
    }

    async close(): Promise<string[]> {
        if (!this.options.scrollsSideways) await this.measure();
        await this.page.context().close();
        return this.complaints.map((text) => `${this.page.url()}: ${text}`);
    }
}

export interface Tools {
    server: Server;
    now: number; // the shop's last second, Unix
    open: (path: string, params?: Params, options?: ViewOptions) => Promise<View>;
    ask: <T>(path: string, params?: Params) => Promise<T>;
    last: (seconds: number, endedAgo?: number) => { from: string; until: string };
}

export interface WorldOptions extends ServerOptions {
    fill?: boolean; // with the shop; true unless said
    hours?: number; // of the shop
}

export interface World {
    tools: Tools;
    test: (name: string, body: (tools: Tools) => Promise<void>) => void;
}

// What a test or a picture needs, without a test around it.
export class Stage {
    private readonly views: View[] = [];
    private browser: Browser | null = null;
    readonly tools: Tools;

    constructor(private readonly options: WorldOptions = {}) {
        const server = new Server(options);
        this.tools = {
            server,
            now: 0,
            open: (path, params = {}, view = {}) => this.open(withParams(path, params), view),
            ask: async <T>(path: string, params: Params = {}) => {
                const headers: Record<string, string> = server.token ? { authorization: `Bearer ${server.token}` } : {};
                const answer = await fetch(withParams(`${server.url}/api/v1/${path}`, params), { headers });
                check(`the API answers ${path}`, answer.ok, `${answer.status}`);
                return (await answer.json()) as T;
            },
            last: (seconds, endedAgo = 0) => {
                const at = (ago: number) => new Date((this.tools.now - ago) * 1000).toISOString().replace(".000Z", "Z");
                return { from: at(endedAgo + seconds), until: at(endedAgo) };
            },
        };
    }

    async start(): Promise<void> {
        const { server } = this.tools;
        await server.start();
        this.tools.now = this.options.fill === false
            ? Math.floor(Date.now() / 1000)
            : fillWithShop(server.url, ["--hours", String(this.options.hours ?? 24), ...(server.token ? ["--token", server.token] : [])]);
        this.browser = await chromium.launch({ executablePath: process.env.KILN_CHROMIUM ?? "/usr/bin/chromium", args: ["--disable-dev-shm-usage"] });
    }

    async open(path: string, options: ViewOptions = {}): Promise<View> {
        const height = options.width === PHONE ? 844 : 800;
        const all = { theme: "light" as Theme, width: WIDE, height, scrollsSideways: false, expects: [], stopClock: false, ...options };
        const context = await this.browser!.newContext({
            viewport: { width: all.width, height: all.height }, colorScheme: all.theme, hasTouch: all.width === PHONE,
            locale: "en-GB", timezoneId: "UTC", reducedMotion: "reduce", permissions: ["clipboard-read", "clipboard-write"],
        });
        await context.addInitScript(countQuestions);
        if (all.stopClock) await context.clock.setFixedTime(this.tools.now * 1000);
        const view = new View(await context.newPage(), this.tools.server, all, (address) => this.open(address, options));
        this.views.push(view);
        await view.page.goto(new URL(path, this.tools.server.url).href);
        await view.settled();
        return view;
    }

    // Closes all tabs; what was wrong with them.
    async clear(): Promise<string[]> {
        const complaints = await Promise.all(this.views.splice(0).map((view) => view.close()));
        return complaints.flat();
    }

    async stop(): Promise<void> {
        await this.browser?.close();
        await this.tools.server.stop();
    }
}

export function world(options: WorldOptions = {}): World {
    const stage = new Stage(options);
    before(() => stage.start());
    after(() => stage.stop());
    const test = (name: string, body: (tools: Tools) => Promise<void>) =>
        void nodeTest(name, async () => {
            let failed = true;
            try {
                await body(stage.tools);
                failed = false;
            } finally {
                const complaints = await stage.clear();
                if (failed && complaints.length) console.error(complaints.join("\n"));
                if (!failed) equal(complaints, []);
            }
        });
    return { tools: stage.tools, test };
}
