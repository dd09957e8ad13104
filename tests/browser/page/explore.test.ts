// SPDX-License-Identifier: Apache-2.0
// Explore: the sentence, the timeline, the scope bar and the way out of an empty range.
import type { QueryAnswer } from "../../../web/src/api/answers";
import { shortName } from "../../../web/src/model/family";
import { percent } from "../../../web/src/model/format";
import { measureOf } from "../../../web/src/model/measure";
import { CPU, HEAP, PHONE, check, cpu, equal, near, number, world, type Tools, type View } from "./kit";

const { test } = world({ hours: 26 });
const HOUR = 3600;

// As the page reckons: over the time that has profiles.
function rate(answer: QueryAnswer, seconds: number): string {
    const covered = answer.basis.rate_seconds;
    return measureOf(answer.type, covered > 0 && covered < seconds ? covered : seconds).format(answer.total);
}

const askTop = (ask: Tools["ask"], query: string, range: { from: string; until: string }) =>
    ask<QueryAnswer>("query", { query, ...range, format: "top", limit: 20 });

const button = (view: View, name: string | RegExp) => view.page.getByRole("button", { name });

test("the first sentence says what the service uses, and that it is more than yesterday", async ({ open, ask, last }) => {
    const range = last(HOUR);
    const view = await open("/explore", { service: "checkout", ...range });
    const answer = await ask<QueryAnswer>("query", { query: cpu("checkout"), ...range, format: "top" });
    const said = await view.text(".said");
    check("it begins with the rate", said.startsWith(rate(answer, HOUR)), said);
    check("it grew by about two fifths", /\d+\u2009% more than yesterday/.test(said), said);
    near("the change", number(said.split("average, ")[1]), 40, 12);
    await view.picture("explore");
});

test("the table is the server's own, row for row", async ({ open, ask, last }) => {
    const range = last(HOUR);
    const view = await open("/explore", { service: "checkout", ...range });
    const { top } = await askTop(ask, cpu("checkout"), range);
    const rows = await view.rows(".profile-side .table");
    equal(
        rows.slice(0, 10),
        top!.rows.slice(0, 10).map((row) => [shortName(row.name), percent(row.self_share), percent(row.total_share)]),
    );
    await button(view, "Total").click();
    await view.settled();
    equal(view.params().get("sort"), "total");
    const all = await ask<QueryAnswer>("query", { query: cpu("checkout"), ...range, format: "top", limit: 0 });
    equal((await view.rows(".profile-side .table"))[0][2], percent(Math.max(...all.top!.rows.map((row) => row.total_share))));
});

test("service, type and labels are chosen in the bar, and the numbers follow", async ({ open, ask, last }) => {
    const range = last(HOUR);
    const view = await open("/explore", range);
    await button(view, /^Service:/).click();
    await view.page.getByRole("combobox", { name: "Find a service" }).fill("paym");
    await view.page.keyboard.press("Enter");
    await view.settled();
    equal(view.params().get("service"), "payments");
    await button(view, /^Profile type:/).click();
    await view.page.getByRole("option", { name: /Memory in use/ }).hover();
    await view.sees(/Memory that was still held/);
    await view.page.getByRole("option", { name: /Memory in use/ }).click();
    await view.settled();
    equal(view.params().get("type"), HEAP);
    await button(view, "Narrow by a label").click();
    await view.page.getByRole("option", { name: "host.name" }).click();
    await view.page.getByRole("option", { name: "web-02" }).click();
    await view.settled();
    equal(view.params().get("where"), 'host.name="web-02"');
    const answer = await ask<QueryAnswer>("query", { query: `${HEAP}{service_name="payments",host.name="web-02"}`, ...range, format: "top" });
    check("the sentence is of that host", (await view.text(".said")).startsWith(rate(answer, HOUR)), await view.text(".said"));
    await button(view, "Remove host.name").click();
    await view.settled();
    equal(view.params().get("where"), null);
});

test("a range is brushed on the timeline, moved with the keyboard, and left with the way back", async ({ open, ask, last, now }) => {
    const view = await open("/explore", { service: "checkout", ...last(HOUR) });
    const before = view.page.url();
    const brush = view.page.locator(".brush");
    const box = (await brush.boundingBox())!;
    await view.page.mouse.move(box.x + box.width * 0.3, box.y + 20);
    await view.page.mouse.down();
    await view.page.mouse.move(box.x + box.width * 0.6, box.y + 24, { steps: 5 });
    await view.page.mouse.up();
    await view.settled();
    const from = Date.parse(view.params().get("from")!);
    const until = Date.parse(view.params().get("until")!);
    near("three tenths of three hours", (until - from) / 1000, 0.3 * 3 * HOUR, 120);
    const brushed = { from: view.params().get("from")!, until: view.params().get("until")! };
    const answer = await ask<QueryAnswer>("query", { query: cpu("checkout"), ...brushed, format: "top" });
    check("the sentence is of the brushed range", (await view.text(".said")).startsWith(rate(answer, (until - from) / 1000)), await view.text(".said"));
    await brush.focus();
    await view.page.keyboard.press("ArrowLeft");
    await view.page.waitForFunction((old) => new URL(location.href).searchParams.get("from") !== old, brushed.from);
    check("it moved to the left", Date.parse(view.params().get("from")!) < from);
    await view.page.goBack();
    await view.page.goBack();
    equal(view.page.url(), before);
    check("the shop ended now", now > 0);
});

test("deployments stand on the timeline and lead to before and after", async ({ open, last }) => {
    const view = await open("/explore", { service: "checkout", ...last(2 * HOUR) });
    const flag = button(view, /^Deployment: checkout 2\.15\.0/);
    equal(await flag.innerText(), "2.15.0");
    await flag.click();
    await view.settled();
    equal(view.path(), "/compare");
    equal(view.params().get("a_until"), view.params().get("b_from"));
});

test("earlier and later have keys, and the picker knows the deployments", async ({ open, last }) => {
    const range = last(HOUR);
    const view = await open("/explore", { service: "checkout", ...range });
    await view.page.keyboard.press("[");
    await view.settled();
    equal(Date.parse(view.params().get("until")!), Date.parse(range.from));
    await button(view, /^Time:/).click();
    await view.page.getByRole("menuitem", { name: /^Since 2\.15\.0/ }).click();
    await view.settled();
    await view.sees(/Since \d\d:\d\d/);
    equal(view.params().get("until"), null);
});

test("an empty range says where the data is, and leads there", async ({ open, last }) => {
    const view = await open("/explore", { service: "checkout", ...last(HOUR, 40 * HOUR) });
    await view.sees(/^Nothing from/);
    await view.sees(/last profile is of/);
    await view.picture("explore-empty");
    await button(view, "Go there").click();
    await view.settled();
    await view.sees(/cores on average/);
});

test("a service that does not send a type is told what it sends, and one that is not there how to begin", async ({ open, last }) => {
    const view = await open("/explore", { service: "gateway", type: "event_loop:lag:nanoseconds::", ...last(HOUR) }, { expects: [404] });
    await view.sees(/gateway has sent no/);
    await view.page.getByRole("link", { name: "CPU time" }).click();
    await view.settled();
    await view.sees(/cores on average/);
    const nobody = await open("/explore", { service: "nobody", ...last(HOUR) });
    await nobody.sees("No profiles of nobody");
});

test("a link is copied as it is, or with times that do not move", async ({ open }) => {
    const view = await open("/explore", { service: "checkout", from: "now-6h" });
    await button(view, "Copy link").click();
    equal(await view.page.evaluate(() => navigator.clipboard.readText()), view.page.url());
    await button(view, "Which link").click();
    await view.page.getByRole("menuitem", { name: /absolute/ }).click();
    const copied = new URL(await view.page.evaluate(() => navigator.clipboard.readText()));
    const { from, until } = Object.fromEntries(copied.searchParams);
    equal((Date.parse(until) - Date.parse(from)) / 1000, 6 * HOUR);
    equal(copied.searchParams.get("service"), "checkout");
});

test("the profile can be taken along: the server's files, a picture and a table", async ({ open, ask, last }) => {
    const range = last(HOUR);
    const view = await open("/explore", { service: "checkout", ...range });
    await button(view, "Export").click();
    const href = await view.page.getByRole("menuitem", { name: /Speedscope/ }).getAttribute("href");
    const file = await (await fetch(new URL(href!, view.server.url))).json();
    check("it is a Speedscope file", String(file.$schema).includes("speedscope"), file.$schema);
    const download = view.page.waitForEvent("download");
    await view.page.getByRole("menuitem", { name: /Table/ }).click();
    const csv = await (await download).createReadStream().then(async (stream) => {
        let text = "";
        for await (const part of stream) text += part;
        return text.split("\r\n");
    });
    const answer = await ask<QueryAnswer>("query", { query: cpu("checkout"), ...range, format: "top", limit: 1 });
    const { name, self } = answer.top!.rows[0];
    check("its first row is the largest", csv[1].startsWith(name) && csv[1].includes(`,${self},`), csv[1]);
    await button(view, "Export").click();
    const picture = view.page.waitForEvent("download");
    await view.page.getByRole("menuitem", { name: /PNG/ }).click();
    equal((await picture).suggestedFilename(), "checkout-cpu.png");
});

test("nothing scrolls but the panels at 1280 by 800, and a phone shows one form at a time", async ({ open, last }) => {
    const wide = await open("/explore", { service: "checkout", fn: "loadRules", ...last(HOUR) }, { theme: "dark" });
    equal(await wide.page.evaluate(() => document.documentElement.scrollHeight), 800);
    await wide.picture("explore");
    const phone = await open("/explore", { service: "checkout", fn: "loadRules", ...last(HOUR) }, { width: PHONE });
    await phone.sees("loadRules");
    check("the table is not there yet", !(await phone.page.locator(".profile-side").isVisible()));
    await phone.picture("explore");
    await button(phone, "Table").click();
    await phone.settled();
    equal(phone.params().get("show"), "table");
    check("now it is", await phone.page.locator(".profile-side").isVisible());
    await phone.picture("explore-table");
});

test("every type of every kind has a sentence", async ({ open, ask, last }) => {
    const { types } = await ask<{ types: { id: string }[] }>("types", { query: '{service_name="orders"}', ...last(HOUR) });
    for (const { id } of types.filter(({ id }) => id !== CPU)) {
        const view = await open("/explore", { service: "orders", type: id, ...last(HOUR) });
        const answer = await ask<QueryAnswer>("query", { query: `${id}{service_name="orders"}`, ...last(HOUR), format: "top" });
        check(id, (await view.text(".said")).startsWith(rate(answer, HOUR)), await view.text(".said"));
    }
});
