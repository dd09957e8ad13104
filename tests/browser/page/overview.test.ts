// SPDX-License-Identifier: Apache-2.0
// Overview: its numbers are the API's, and its rows lead on.
import type { DiffAnswer, QueryAnswer } from "../../../web/src/api/answers";
import { bytes, figures, percent } from "../../../web/src/model/format";
import { check, CPU, cpu, equal, HEAP, near, number, PHONE, world, type Tools } from "./kit";

const { test } = world();
const DAY = 86400;

async function cores(ask: Tools["ask"], range: { from: string; until: string }, where = ""): Promise<Map<string, number>> {
    const answer = await ask<QueryAnswer>("query", { query: `${CPU}{${where}}`, ...range, format: "series", by: "service_name", step: "1h" });
    const { rate_seconds: covered } = answer.basis;
    return new Map(answer.series!.series.map(({ labels, sum }) => [labels.service_name, sum / 1e9 / covered]));
}

test("every service has its cores, its memory, its top function, most first", async ({ open, ask, last }) => {
    const view = await open("/", last(DAY));
    const wanted = [...(await cores(ask, last(DAY)))].sort((a, b) => b[1] - a[1]);
    const all = wanted.reduce((sum, [, one]) => sum + one, 0);
    await view.sees(`Seven services use ${figures(all)} cores`);
    await view.sees("Four hosts");
    const rows = await view.rows(".services table");
    equal(rows.map(([name]) => name.split("\n")[0]), wanted.map(([name]) => name));
    equal(rows.map(([, value]) => value), wanted.map(([, value]) => figures(value)));
    const payments = rows.find(([name]) => name.startsWith("payments"))!;
    check("what a service is stands below its name", payments[0].includes("Java 21 · 3.7.1"), payments[0]);
    const heap = await ask<QueryAnswer>("query", { query: `${HEAP}{service_name="payments"}`, ...last(1200), format: "top", limit: 1 });
    near("memory", number(payments[4]), number(bytes(heap.total)), 0.1);
    for (const [name, ...cells] of rows) {
        const top = await ask<QueryAnswer>("query", { query: cpu(name.split("\n")[0]), ...last(DAY), format: "top", limit: 1 });
        const { name: fn, self_share: share } = top.top!.rows[0];
        check(`${fn} is on top of ${name}`, cells[4].startsWith(fn) && cells[4].endsWith(percent(share, share < 0.1 ? 1 : 0)), cells[4]);
    }
    await view.picture("overview");
});

test("what grew after a deployment is found, with the function that did it, and leads into Compare", async ({ open, ask, last }) => {
    const view = await open("/", last(DAY));
    const finding = view.page.locator(".finding", { hasText: "checkout uses" });
    await finding.waitFor();
    await view.settled();
    const row = (await view.rows(".services table")).find(([name]) => name.startsWith("checkout"))!;
    const href = new URL((await finding.getAttribute("href"))!, view.server.url);
    const side = (name: string) => ({ from: href.searchParams.get(`${name}_from`)!, until: href.searchParams.get(`${name}_until`)! });
    const diff = await ask<DiffAnswer>("diff", {
        query: cpu("checkout"), left_from: side("a").from, left_until: side("a").until, right_from: side("b").from, right_until: side("b").until, format: "top", limit: 0,
    });
    near("the change", number(row[3]), (100 * diff.change) / (diff.left.total * diff.scale), 0.5);
    check("beyond noise", !diff.is_noise);
    equal(href.searchParams.get("fn"), "loadRules");
    const grown = diff.top!.rows.find(({ name }) => name === "loadRules")!;
    await view.sees(`loadRules adds ${figures(grown.total_change / 1e9 / diff.right.basis.rate_seconds)} cores, since 2.15.0`);
    equal(href.searchParams.get("a_version"), "2.14.2");
    check("and its row says so", row[6] === "CPU after deploy", row[6]);
    await view.sees("payments memory climbs 6");
    await finding.click();
    await view.settled();
    equal(view.path(), "/compare");
    await view.page.goBack();
    await view.settled();
    await view.sees("Seven services use");
});

test("a row opens Explore with its top function chosen", async ({ open, ask, last }) => {
    const view = await open("/", last(3600));
    await view.page.locator(".services tr", { hasText: "gateway" }).locator("td").nth(5).click({ force: true });
    await view.settled();
    const top = await ask<QueryAnswer>("query", { query: cpu("gateway"), ...last(3600), format: "top", limit: 1 });
    equal([view.path(), view.params().get("service"), view.params().get("fn")], ["/explore", "gateway", top.top!.rows[0].name]);
    equal(view.params().get("from"), last(3600).from);
});

test("an environment is chosen and stays in the address", async ({ open, ask, last }) => {
    const view = await open("/", last(DAY));
    await view.page.getByRole("button", { name: "Environment: all" }).click();
    await view.page.getByRole("menuitem", { name: "staging" }).click();
    await view.settled();
    equal(view.params().get("where"), 'deployment.environment="staging"');
    const wanted = await cores(ask, last(DAY), 'deployment.environment="staging"');
    equal((await view.rows(".services table")).map(([name, value]) => [name.split("\n")[0], value]), [...wanted].map(([name, value]) => [name, figures(value)]));
    const again = await view.again();
    await again.sees("One service uses");
});

test("rows are sorted by what is clicked", async ({ open, last }) => {
    const view = await open("/", last(DAY));
    const names = async () => (await view.rows(".services table")).map(([name]) => name.split("\n")[0]);
    await view.page.getByRole("button", { name: "Service", exact: true }).click();
    equal(await names(), ["catalog", "checkout", "gateway", "mailer", "orders", "payments", "search"]);
    await view.page.getByRole("button", { name: "Change" }).click();
    equal((await names())[0], "checkout");
    equal(view.params().get("sort"), "change");
});

test("a time without profiles says where they are", async ({ open }) => {
    const view = await open("/", { from: "2026-01-01T00:00:00Z", until: "2026-01-01T01:00:00Z" });
    await view.sees("No profiles in this time");
    await view.page.getByRole("button", { name: "Go there" }).click();
    await view.sees("Seven services use");
});

test("it fits a phone, in the dark", async ({ open, ask, last }) => {
    const view = await open("/", last(DAY), { width: PHONE, theme: "dark" });
    const checkout = (await cores(ask, last(DAY))).get("checkout")!;
    const row = view.page.locator(".services tr", { hasText: "checkout" });
    equal(number((await row.locator("td.number:visible").innerText())), number(figures(checkout)));
    await view.picture("overview");
    await (await open("/", last(DAY), { theme: "dark" })).picture("overview");
});
