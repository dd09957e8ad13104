// SPDX-License-Identifier: Apache-2.0
// A new user, with nothing but the page: which function takes most CPU in checkout since the last deploy, what changed, which
// line, and who calls it?  By clicks alone, and the line is three of them away from Overview.
import type { DiffAnswer, QueryAnswer, SourceAnswer } from "../../../web/src/api/answers";
import { PHONE, check, cpu, equal, near, number, world, type View } from "./kit";

const { test } = world();

// Counts what a person does.
class Visitor {
    clicks = 0;
    constructor(readonly view: View) {}

    async click(role: "link" | "button" | "row", name: string | RegExp): Promise<void> {
        this.clicks++;
        await this.view.page.getByRole(role, { name }).locator("visible=true").first().click();
        await this.view.settled();
    }
}

const sourcePanel = (view: View) => view.page.getByRole("region", { name: "Source" });

test("from Overview to the guilty line in three clicks", async ({ open, ask, last }) => {
    const visitor = new Visitor(await open("/", last(86400)));
    const { view } = visitor;

    // what changed: Overview says who, and since when
    await view.sees(/checkout uses (39|40|41)\s%\smore CPU/);
    await visitor.click("link", /checkout uses/);
    equal(view.path(), "/compare");
    await view.sees(/^2\.15\.0 uses/);
    const diff = await ask<DiffAnswer>("diff", {
        query: cpu("checkout"), left_version: "2.14.2", right_version: "2.15.0", ...last(86400), format: "top", limit: 1000,
    });
    const change = diff.top!.rows.find((row) => row.name === "loadRules")!;
    const seconds = diff.right.basis.rate_seconds;
    const verdict = await view.text(".verdict");
    near("what loadRules adds", number(/loadRules adds ([\d.]+)/.exec(verdict)![1]), change.total_change / 1e9 / seconds, 0.03);
    equal(view.params().get("fn"), "loadRules", "the guilty function is chosen already");

    // which line
    await visitor.click("link", /^Source/);
    const hottest = sourcePanel(view).locator("tr.hottest");
    await hottest.waitFor();
    check("the line is at most three clicks away", visitor.clicks <= 3, visitor.clicks);
    check("it parses JSON", (await hottest.innerText()).includes("JSON.parse(text)"));
    const source = await ask<SourceAnswer>("source", { query: cpu("checkout"), ...last(6600), function: "loadRules" });
    const line = source.lines.reduce((most, one) => (one.total > most.total ? one : most));
    equal(number(await hottest.innerText()), line.line);
    await view.picture("story-line");
});

test("which function takes most since the deploy, and who calls it", async ({ open, ask, last }) => {
    const since = last(110 * 60);
    const visitor = new Visitor(await open("/", since));
    const { view } = visitor;
    const answer = await ask<QueryAnswer>("query", { query: cpu("checkout"), ...since, format: "top", limit: 1 });
    const [most] = answer.top!.rows;

    await visitor.click("link", /^checkout$/);
    equal(view.path(), "/explore");
    const functions = view.page.getByRole("region", { name: "Functions" });
    check("the first of the table is the one", (await functions.locator("tbody tr").first().innerText()).startsWith(most.name));
    near("with its share", number(await functions.locator("tbody tr").first().locator("td").nth(1).innerText()), most.self_share * 100, 0.051);

    await functions.locator("tbody tr").first().click();
    visitor.clicks++;
    await view.settled();
    equal(view.params().get("fn"), most.name);
    await visitor.click("button", /^Callers/);
    equal(view.params().get("show"), "sandwich");
    check("in three clicks", visitor.clicks <= 3, visitor.clicks);
    const callers = view.page.getByRole("application", { name: /^Who calls it/ });
    await callers.focus();
    for (let i = 0; i < 2; i++) {
        await view.page.keyboard.press("ArrowUp");
        await view.settled();
    }
    check("JSON.parse calls it", /JSON\.parse/.test(await view.flame.says()), await view.flame.says());
    await view.picture("story-callers");
});

test("a phone gets to the line too", async ({ open, last }) => {
    const visitor = new Visitor(await open("/", last(86400), { width: PHONE, theme: "dark" }));
    await visitor.click("link", /^checkout$/);
    equal(visitor.view.params().get("fn"), "loadRules");
    await visitor.click("button", /^Source/);
    await sourcePanel(visitor.view).locator("tr.hottest").waitFor();
    check("in three clicks", visitor.clicks <= 3, visitor.clicks);
    await visitor.view.picture("story-line");
});
