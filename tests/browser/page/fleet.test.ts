// SPDX-License-Identifier: Apache-2.0
// Many services, and labels with many values: the page says what is cut, and what it asks for and draws is bounded.
import type { QueryAnswer } from "../../../web/src/api/answers";
import { figures, percent } from "../../../web/src/model/format";
import { check, CPU, equal, world, type Tools, type View } from "./kit";
import { cpuOf, send } from "./sender";

const { test } = world({ fill: false });
const SERVICES = 45;

// Folded stacks, a hundred a second.
async function ingest(url: string, params: Record<string, string>, stacks: string): Promise<void> {
    const query = new URLSearchParams({ type: "process_cpu", ...params });
    const answer = await fetch(`${url}/ingest?name=${encodeURIComponent(`${params.service}{pod=${params.pod}}`)}&from=now-1m&until=now&sampleRate=100&${query}`, { method: "POST", body: stacks });
    check("it is taken", answer.ok, await answer.text());
}

async function fill({ server }: Tools): Promise<void> {
    for (let i = 1; i <= SERVICES; i++) await ingest(server.url, { service: `s${String(i).padStart(2, "0")}`, pod: "a" }, `main;work ${i * 20}\nmain;idle 3\n`);
    await ingest(server.url, { service: "wide", pod: "a" }, "main;work 1\n");
}

// A thousand and more values of a label, of which the first ones have least.
const VALUES = 1200;
let sent = false;
async function fillValues({ server, now }: Tools): Promise<void> {
    if (sent) return;
    sent = true;
    await send(server.url, [cpuOf("many", now - 60, Array.from({ length: VALUES }, (_, i) => ({ stack: ["main"], value: 1e6 * (i + 1), labels: [["tenant", `t${i}`]] })))]);
}

const drawn = (view: View, list: string) => view.page.locator(`${list} tr[data-row]`).count();
const first = (view: View, list: string) => view.page.locator(`${list} tr[data-row] .cover`).first();
const asked = (view: View, what: RegExp) => new Set(view.requests.filter((url) => what.test(decodeURIComponent(url)))).size;

test("of many services those in sight are drawn, and asked for", async (tools) => {
    await fill(tools);
    const view = await tools.open("/");
    await view.sees(`${SERVICES + 1} services use`);
    equal(await view.page.locator(".services table").getAttribute("aria-rowcount"), String(SERVICES + 2));
    check("a part of them is drawn", (await drawn(view, ".services")) < 30, await drawn(view, ".services"));
    const tops = () => asked(view, /format=top/);
    check("their top functions are asked for", tops() > 5 && tops() < 20, tops());
    const apart = view.requests.filter((url) => url.includes("/api/") && !/format=top/.test(url)).length;
    check("all else is a few requests", apart < 24, view.requests);
    await view.picture("overview-many");

    await first(view, ".services").focus();
    await view.page.keyboard.press("End");
    const last = view.page.locator(`.services tr[aria-rowindex="${SERVICES + 2}"]`);
    await last.waitFor();
    await view.settled();
    check("the last row has the focus", await last.locator(".cover").evaluate((link) => link === document.activeElement));
    check("its row came with what it had over time", (await last.locator("svg").count()) === 1);
    check("a part of them is still drawn", (await drawn(view, ".services")) < 30);
    check("rows that were passed are not asked for", tops() < SERVICES, tops());
    const name = await last.locator(".cover").innerText();
    await view.page.keyboard.press("Enter");
    await view.settled();
    equal(view.params().get("service"), name);
    await view.page.goBack();
    await view.settled();
    await last.waitFor();

    await view.page.getByPlaceholder("Find a service").fill("S0");
    await view.settled();
    equal(await drawn(view, ".services"), 9);
    await view.sees(`9 of ${SERVICES + 1}`);
    equal((await view.again()).params().get("find"), "S0");
});

test("values of a label that are not listed are found by a search on the server", async (tools) => {
    await fillValues(tools);
    const { open, ask } = tools;
    const view = await open("/labels", { service: "many", by: "tenant" });
    const answer = await ask<QueryAnswer>("query", { query: `${CPU}{service_name="many"}`, format: "series", by: "tenant", limit: 0 });
    equal(answer.total, (1e6 * VALUES * (VALUES + 1)) / 2);
    await view.sees(`${VALUES} values of tenant`);
    check("the total is of all", (await view.text(".page-head")).includes(figures(answer.total / 1e9 / answer.basis.rate_seconds)));
    check("a part of them is drawn", (await drawn(view, ".values")) < 40);
    check("a few requests", view.requests.length < 24, view.requests);
    const rows = await view.rows(".values table");
    equal(rows[0][2].split(" ±")[0].trim(), percent((1e6 * VALUES) / answer.total));
    await first(view, ".values").focus();
    await view.page.keyboard.press("End");
    await view.sees("200 other values");
    await view.page.getByPlaceholder("Find a value").fill("T19");
    await view.sees(`11 of ${VALUES}`);
    await view.settled();
    equal(await drawn(view, ".values"), 11);
    const found = (await view.rows(".values table")).map(([name, , share]) => [name, share.split(" ±")[0].trim()]);
    equal(found[0], ["t199", percent((1e6 * 200) / answer.total)]);
    equal(view.params().get("find"), "T19");
    check("the sentence is of all still", (await view.text("h1")).startsWith(`${VALUES} values of tenant share`), await view.text("h1"));
    await view.picture("labels-many");
});

test("long lists of choices are drawn in part and searched on the server", async (tools) => {
    await fillValues(tools);
    const view = await tools.open("/explore", { service: "many" });
    check("services are not requested before the picker is opened", asked(view, /api\/v1\/services/) === 0, view.requests);
    await view.page.getByRole("button", { name: "Narrow by a label" }).click();
    await view.page.getByRole("option", { name: "tenant" }).click();
    await view.sees(`500 of ${VALUES}`);
    const options = view.page.getByRole("option");
    check("a part of them is drawn", (await options.count()) < 40, await options.count());
    equal(await options.first().getAttribute("aria-setsize"), String(VALUES));
    await view.page.keyboard.type("t999");
    await view.page.getByRole("option", { name: "t999" }).waitFor();
    await view.page.keyboard.press("Enter");
    await view.settled();
    equal(view.params().get("where"), 'tenant="t999"');
});
