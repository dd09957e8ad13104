// SPDX-License-Identifier: Apache-2.0
// Nobody is kept out: every view has names, headings, contrast and room for fingers in both themes and
// widths, and everything works without a mouse.
import { PHONE, WIDE, check, equal, world, type Params, type Theme, type Tools } from "./kit";
import { faultsOf } from "./faults";
import { painted } from "./flame";

const { test } = world();

type Visit = [name: string, path: string, params: (tools: Tools) => Params];
const lately = ({ last }: Tools): Params => ({ service: "checkout", ...last(6600) });
const VISITS: Visit[] = [
    ["overview", "/", ({ last }) => last(86400)],
    ["explore", "/explore", lately],
    ["sandwich", "/explore", (tools) => ({ ...lately(tools), fn: "loadRules", show: "sandwich" })],
    ["by time", "/explore", ({ last }) => ({ service: "checkout", show: "time", ...last(100) })],
    ["call graph", "/explore", (tools) => ({ ...lately(tools), show: "graph" })],
    ["tree", "/explore", (tools) => ({ ...lately(tools), show: "tree" })],
    ["table", "/explore", (tools) => ({ ...lately(tools), show: "table" })],
    ["source", "/explore", (tools) => ({ ...lately(tools), fn: "loadRules", src: 1 })],
    ["an empty range", "/explore", () => ({ service: "checkout", from: "2020-01-01T00:00:00Z", until: "2020-01-01T01:00:00Z" })],
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

// Light on a desk and dark on a phone, then the other way round: each view in both themes and widths.
for (const [theme, width] of [["light", WIDE], ["dark", PHONE]] as [Theme, number][]) {
    test(`nothing keeps anybody out, ${theme} at first, ${width} px wide`, async (tools) => {
        const faults: string[] = [];
        const view = await tools.open("/", {}, { theme, width, expects: [404] });
        for (const [name, path, params] of VISITS) {
            const asked = Object.entries(params(tools)).map(([key, value]) => [key, String(value)]);
            await view.page.goto(`${tools.server.url}${path}?${new URLSearchParams(asked)}`);
            await view.settled();
            for (let i = 0; i < 2; i++) {
                const found = await view.page.evaluate(faultsOf, width === PHONE);
                faults.push(...found.map((fault) => `${name}: ${fault}`));
                await view.page.keyboard.press("d");
                await view.settled();
            }
        }
        equal([...new Set(faults)], []);
    });
}

const KEYS = "/ n N 0 + - s o c h r u i 1 2 3 4 5 6 [ ] d ?".split(" ");
const PAIRS = ["g o", "g e", "g c", "g s", "Ctrl K"];

// Keys that are pressed one right after the other, while the page is too busy to look at them in time.
function pressedTogether(keys: string[]) {
    const events = keys.map((key) => new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
    for (const event of events) {
        (document.activeElement ?? document.body).dispatchEvent(event);
        for (const end = performance.now() + 1600; performance.now() < end; );
    }
}

test("each key does what the list of keys says", async (tools) => {
    const view = await tools.open("/explore", { ...lately(tools), fn: "loadRules" });
    const { page } = view;
    const press = async (...keys: string[]) => {
        for (const key of keys) await page.keyboard.press(key);
        await view.settled();
    };
    const param = async (name: string, wanted: string | null, ...keys: string[]) => {
        await press(...keys);
        equal(view.params().get(name), wanted, `${keys.join(" ")}: ${name}`);
    };
    const chosen = () => view.params().get("fn");
    const step = async (key: string) => {
        const before = await view.flame.says();
        await press(key);
        check(`${key} walks`, (await view.flame.says()) !== before, before);
    };

    await press("ArrowUp");
    equal(chosen(), "applyDiscounts");
    await press("ArrowDown");
    equal(chosen(), "loadRules");
    await step("ArrowRight");
    await step("ArrowLeft");
    await press("Enter");
    check("Enter focuses", view.params().get("focus"));
    await param("focus", null, "Escape");
    await press("Enter");
    await param("focus", null, "0");

    const seen = () => page.locator(".flame-where i").getAttribute("style");
    const all = () => page.locator(".flame-where i").isHidden();
    await press("+", "+");
    check("+ zooms in", !(await all()));
    const before = await seen();
    await press("Shift+ArrowRight");
    check("Shift and an arrow pan", (await seen()) !== before, before);
    await press("-", "-", "-", "-");
    check("- zooms out", await all());

    await param("show", "sandwich", "s");
    for (const [key, show] of [["3", "time"], ["4", "graph"], ["5", "tree"], ["2", "sandwich"], ["1", null]] as const) await param("show", show, key);
    await press("6");
    check("6 leads to the table", await page.locator(".profile-side .rows").evaluate((rows) => rows === document.activeElement));
    await param("src", "1", "o");
    await param("src", null, "o");
    await press("c");
    equal(await page.evaluate(() => navigator.clipboard.readText()), "loadRules");
    await param("recursion", "1", "r");
    await param("stems", "0", "u");
    await param("flip", "1", "i");
    await param("hide", "=loadRules", "h");

    const { from } = Object.fromEntries(view.params());
    await press("[");
    check("[ is earlier", Date.parse(view.params().get("from")!) < Date.parse(from));
    await param("from", from, "]");
    const theme = () => page.evaluate(() => document.documentElement.dataset.theme);
    await press("d");
    equal(await theme(), "dark");

    await press("?");
    const listed = await page.locator(".keyhelp dt").evaluateAll((names) => names.map((name) => [...name.children].map((key) => key.textContent).join(" ")));
    equal([...KEYS, ...PAIRS].filter((key) => !listed.includes(key)), []);
    check("arrows, Enter and Esc are listed", ["← ↑ → ↓", "Shift ← ↑ → ↓", "↵", "Esc"].every((key) => listed.includes(key)), listed);
    await press("Escape");
    equal(await page.locator("dialog").count(), 0);

    await view.flame.canvas.focus();
    for (const [key, path] of [["c", "/compare"], ["s", "/status"], ["o", "/"], ["e", "/explore"]]) {
        await page.evaluate(pressedTogether, ["g", key]);
        await view.settled();
        equal(view.path(), path);
    }
});

test("hits are walked by keys, and what is typed is no key", async (tools) => {
    const view = await tools.open("/explore", lately(tools));
    await view.page.keyboard.press("/");
    await view.page.keyboard.type("json16d?");
    await view.page.keyboard.press("Backspace");
    for (let i = 0; i < 3; i++) await view.page.keyboard.press("Backspace");
    await view.page.waitForFunction(() => new URLSearchParams(location.search).get("find") === "json");
    await view.settled();
    equal([view.params().get("show"), await view.page.locator("dialog").count()], [null, 0]);
    equal(await view.page.evaluate(() => document.documentElement.dataset.theme), "light");
    check("the share that matches is told", /%/.test(await view.text(".find [role=status]")));
    await view.flame.press("n");
    const first = await view.flame.says();
    check("n goes to a hit", /json/i.test(first), first);
    await view.flame.press("n");
    check("n goes on", (await view.flame.says()) !== first);
    await view.flame.press("N");
    equal(await view.flame.says(), first);
});

test("menus and dialogs take the focus, close with Escape, and give it back", async (tools) => {
    const view = await tools.open("/explore", lately(tools));
    const { page } = view;
    const focused = () => page.evaluate(() => document.activeElement!.getAttribute("aria-label") ?? document.activeElement!.textContent);
    const within = (selector: string) => page.evaluate((box) => !!document.activeElement!.closest(box), selector);
    for (const name of [/^Service/, /^Profile type/, /^Compare with/, /^Export/, /^Whose code/]) {
        const button = page.getByRole("button", { name }).first();
        await button.focus();
        const before = await focused();
        await page.keyboard.press("Enter");
        check(`${name} takes the focus`, await within(".menu"));
        await page.keyboard.press("Escape");
        equal(await page.locator(".menu").count(), 0);
        equal(await focused(), before);
    }
    const button = page.getByRole("button", { name: /^Export/ });
    await button.click();
    await button.click();
    equal(await page.locator(".menu").count(), 0, "the button of an open menu closes it");

    await page.getByRole("button", { name: "Keys" }).focus();
    await page.keyboard.press("Enter");
    check("the dialog takes the focus", await within("dialog"));
    await page.getByRole("button", { name: /^Close/ }).click();
    equal(await focused(), "Keys");
    await page.getByRole("button", { name: "Keys" }).click();
    await page.getByRole("button", { name: /^Close/ }).evaluate((close) => { // in one task: the first dialog's close event comes after the second opens
        (close as HTMLElement).click();
        dispatchEvent(new KeyboardEvent("keydown", { key: "k", ctrlKey: true }));
    });
    await painted(page);
    equal(await page.getByRole("dialog").getAttribute("aria-label"), "Jump to");
    await page.keyboard.type("payments");
    await page.keyboard.press("Enter");
    await page.waitForURL((url) => url.searchParams.get("service") === "payments"); // the list of services may still load
    await view.settled();
    equal(view.params().get("service"), "payments");
});

test("by Tab one comes to everything, sees where one is, and out again", async (tools) => {
    const view = await tools.open("/explore", lately(tools));
    const stops: string[] = [];
    for (let i = 0; i < 60; i++) {
        await view.page.keyboard.press("Tab");
        const stop = await view.page.evaluate(() => {
            const at = document.activeElement!;
            if (at === document.body) return "";
            const field = at.closest(".field");
            const ring = getComputedStyle(field ?? at);
            const shown = field ? ring.boxShadow !== "none" : ring.outlineStyle !== "none" && parseFloat(ring.outlineWidth) >= 2;
            return `${shown ? "" : "NO RING "}${at.getAttribute("aria-label") ?? at.textContent}`;
        });
        if (!stop) break;
        stops.push(stop);
    }
    check("the way ends", stops.length < 60, stops);
    equal(stops.filter((stop) => stop.startsWith("NO RING")), []);
    const order = ["Kiln", "Overview", "Profile type", "Copy link", "over time", "Flame", "Find functions", "Self"];
    const places = order.map((name) => stops.findIndex((stop) => stop.includes(name)));
    check("the way goes as one reads", places.every((place, i) => place >= 0 && (i === 0 || place > places[i - 1])), [places, stops]);
});

test("the profile type's menu explains it; the theme and motion are the system's", async (tools) => {
    const view = await tools.open("/explore", lately(tools), { theme: "dark" });
    equal(await view.page.evaluate(() => document.documentElement.dataset.theme), "dark");
    const moving = await view.page.evaluate(() => document.getAnimations().length);
    equal(moving, 0);
    await view.page.getByRole("button", { name: /^Profile type/ }).click();
    const words = await view.text(".knowledge");
    check("it says what it means and what looks wrong", words.length > 120 && (await view.page.locator(".knowledge li").count()) > 0, words);
    await view.page.keyboard.press("Escape");
    for (const width of [641, 660, 1001]) { // 640 px: a window of 1280 at 200 %
        await view.page.setViewportSize({ width, height: 500 });
        await view.measure();
    }
});

test("on a phone the sheet can be put away, and the forms come one at a time", async (tools) => {
    const view = await tools.open("/explore", { ...lately(tools), fn: "loadRules", show: "sandwich" }, { width: PHONE });
    const { page } = view;
    const top = async (selector: string) => (await page.locator(selector).first().boundingBox())!;
    const [plot, graph] = [await top(".time"), await top(".sandwich")];
    check("the sandwich is below the timeline", graph.y >= plot.y + plot.height, [plot, graph]);
    await page.locator(".sheet-close").click();
    await view.settled();
    equal(await page.locator(".profile-detail:visible").count(), 0);
    await page.getByRole("button", { name: "Table" }).click();
    await view.settled();
    equal([await page.locator(".profile .table").count(), await page.locator(".flame").count()], [1, 0]);
    await page.getByRole("button", { name: "Flame" }).click();
    await view.settled();
    equal([await page.locator(".profile .table").count(), await page.locator(".flame").count()], [0, 1]);
});
