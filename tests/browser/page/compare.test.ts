// SPDX-License-Identifier: Apache-2.0
// Compare: its numbers are those of /api/v1/diff, its presets choose the right windows, its address
// brings everything back.
import type { DiffAnswer, DiffRow } from "../../../web/src/api/answers";
import { CPU, PHONE, check, equal, near, number, world, type Tools, type View } from "./kit";

const { test } = world();

// The question that the page itself asked last.
function asked(view: View): Record<string, string> {
    const last = view.requests.filter((url) => url.includes("/api/v1/diff?")).pop();
    check("the page asked for a comparison", last);
    return Object.fromEntries(new URL(last!).searchParams);
}

const rates = (answer: DiffAnswer) => ({
    left: (value: number) => value / 1e9 / answer.left.basis.rate_seconds,
    right: (value: number) => value / 1e9 / answer.right.basis.rate_seconds,
});

interface Shown {
    name: string;
    change: string;
    both: string;
}

const rowsOf = (view: View, group: string): Promise<Shown[]> =>
    view.page.locator(`tbody[aria-label="${group}"] tr.choosable`).evaluateAll((rows) =>
        rows.map((row) => {
            const cells = [...(row as HTMLTableRowElement).cells];
            return { name: cells[0].title.split(" · ")[0], change: cells[2].innerText.trim(), both: cells[3].innerText.trim() };
        }));

async function showAll(view: View): Promise<void> {
    for (const more = view.page.locator("table.changes tr.more button"); await more.count(); ) await more.first().click();
}

const half = (text: string) => 0.5 * 10 ** -(/\.(\d+)/.exec(text)?.[1].length ?? 0) + 1e-9; // what rounding may do

async function rowsAgree(view: View, ask: Tools["ask"], of: "self" | "total"): Promise<void> {
    const answer = await ask<DiffAnswer>("diff", asked(view));
    const { left, right } = rates(answer);
    const find = (name: string) => answer.top!.rows.find((row) => row.name === name) as DiffRow;
    const isNoise = (row: DiffRow) => (of === "self" ? row.self_is_noise : row.total_is_noise);
    let seen = 0;
    for (const [group, noise, sign] of [["Grew", false, 1], ["Shrank", false, -1], ["Within noise", true, 0]] as const) {
        const shown = await rowsOf(view, group);
        for (const { name, change, both } of shown) {
            const row = find(name);
            const by = right(row[`right_${of}`]) - left(row[`left_${of}`]);
            equal(isNoise(row), noise, `${name} is in ${group}`);
            check(`${name} has the sign of ${group}`, !sign || Math.sign(by) === sign, by);
            near(`change of ${name}`, number(change), by, half(change));
            const [a, b] = both.split("→");
            near(`A of ${name}`, number(a), left(row[`left_${of}`]), half(a));
            near(`B of ${name}`, number(b), right(row[`right_${of}`]), half(b));
        }
        if (!noise) {
            const wanted = answer.top!.rows.filter((row) => !isNoise(row) && Math.sign(of === "self" ? row.self_change : row.total_change) === sign);
            equal(shown.length, wanted.length, `all that ${group}`);
        }
        seen += shown.length;
    }
    check("there are rows", seen > 20, seen);
}

test("every row of What changed has the numbers of the API, self and total", async ({ open, ask }) => {
    const view = await open("/compare", { service: "checkout" });
    await showAll(view);
    await rowsAgree(view, ask, "self");
    await view.page.getByRole("button", { name: "Total", exact: true }).click();
    await view.settled();
    equal(view.params().get("of"), "total");
    await showAll(view);
    await rowsAgree(view, ask, "total");
});

test("the verdict says how much more, and where it starts", async ({ open, ask }) => {
    const view = await open("/compare", { service: "checkout" });
    const answer = await ask<DiffAnswer>("diff", asked(view));
    const { left, right } = rates(answer);
    const [a, b] = [left(answer.left.total), right(answer.right.total)];
    const said = await view.text(".verdict");
    check("it begins with the version", said.startsWith("2.15.0 uses"), said);
    near("percent", number(said.replace("2.15.0", "")), (b / a - 1) * 100, 0.5);
    check("both numbers", said.includes(`${a.toFixed(2)} → ${b.toFixed(2)} cores`), said);
    check("who did it", /loadRules adds 0\.8\d cores/.test(said), said);
    check("who saved", /renderReceipt saves 0\.0\d/.test(said), said);
    const detail = await view.text(".diff-detail");
    check("the guilty frame is chosen already", detail.startsWith("loadRules"), detail);
});

test("the previous version is the default, each side as long as the other", async ({ open, now }) => {
    const view = await open("/compare", { service: "checkout" });
    const question = asked(view);
    equal([question.left_deployment, question.right_deployment], ["2.14.2", "2.15.0"]);
    const deployed = now - 116 * 60;
    near("B begins with the deployment", Date.parse(question.right_from) / 1000, deployed, 1);
    check("A ends before it", Date.parse(question.left_until) / 1000 <= deployed + 1, question);
    const length = (side: string) => Date.parse(question[`${side}_until`]) - Date.parse(question[`${side}_from`]);
    near("lengths", length("left"), length("right"), 2000);
    equal(view.params().get("preset"), null);
});

test("presets compare with the time before, yesterday and last week", async ({ open, last }) => {
    const range = last(3600);
    const view = await open("/compare", { service: "checkout", ...range });
    const shift = { "Previous hour": 3600, Yesterday: 86400, "Last week": 7 * 86400 };
    for (const [name, seconds] of Object.entries(shift)) {
        await view.page.getByRole("button", { name, exact: true }).click();
        await view.settled();
        const question = asked(view);
        equal([question.right_from, question.right_until], [range.from, range.until], name);
        equal(Date.parse(question.right_from) - Date.parse(question.left_from), seconds * 1000, name);
        equal(Date.parse(question.right_until) - Date.parse(question.left_until), seconds * 1000, name);
    }
    equal(view.params().get("preset"), "week");
    await view.sees("A has no profiles");
    await view.page.getByRole("button", { name: /^Move A/ }).click();
    await view.settled();
    await view.sees(/checkout|chance/);
    check("A is where profiles are", Number(Date.parse(asked(view).left_until)) > Date.parse(range.from), asked(view));
    await view.page.goBack();
    await view.page.goBack();
    await view.settled();
    equal(view.params().get("preset"), "day");
});

test("an hour in which nothing happened is within noise, or says how little", async ({ open, ask, last }) => {
    const view = await open("/compare", { service: "search", preset: "before", ...last(3600) });
    const answer = await ask<DiffAnswer>("diff", asked(view));
    const said = await view.text(".verdict");
    if (answer.is_noise) check("it says so", said.includes("as much as before") && said.includes("could be chance"), said);
    else check("it says how much", /more CPU|less CPU/.test(said), said);
});

test("by share, every row is a share of its side", async ({ open, ask }) => {
    const view = await open("/compare", { service: "checkout", by: "share" });
    const question = asked(view);
    equal(question.normalize, "total");
    const answer = await ask<DiffAnswer>("diff", question);
    const shown = await rowsOf(view, "Grew");
    check("there are rows", shown.length > 3);
    for (const { name, both } of shown) {
        const row = answer.top!.rows.find((one) => one.name === name)!;
        const [a, b] = both.split("→");
        near(`A of ${name}`, number(a), (row.left_self / answer.left.total) * 100, half(a));
        near(`B of ${name}`, number(b), (row.right_self / answer.right.total) * 100, half(b));
    }
});

test("two label sets are compared, and each side can be opened", async ({ open, ask, last }) => {
    const view = await open("/compare", { service: "checkout", ...last(3600), a_where: 'k8s.pod.name="checkout-1"', b_where: 'k8s.pod.name="checkout-2"' });
    const question = asked(view);
    equal([question.left_query, question.right_query], ['{k8s.pod.name="checkout-1"}', '{k8s.pod.name="checkout-2"}']);
    const answer = await ask<DiffAnswer>("diff", question);
    const b = answer.right.total / 1e9 / answer.right.basis.rate_seconds;
    await view.sees(new RegExp(`→ ${b.toFixed(2)} cores`));
    const href = await view.page.getByRole("link", { name: "Explore B" }).getAttribute("href");
    const where = new URL(href!, view.server.url).searchParams;
    equal([where.get("service"), where.get("where"), where.get("from")], ["checkout", 'k8s.pod.name="checkout-2"', question.right_from]);
});

test("the address brings everything back", async ({ open }) => {
    const view = await open("/compare", { service: "checkout", type: CPU });
    await view.page.getByRole("button", { name: "Total", exact: true }).click();
    await view.page.getByRole("button", { name: "priceCart", exact: true }).first().click();
    await view.page.keyboard.press("x");
    await view.settled();
    equal([view.params().get("a_version"), view.params().get("b_version"), view.params().get("fn")], ["2.15.0", "2.14.2", "priceCart"]);
    await view.flame.press("Enter");
    await view.settled();
    check("the frame in focus is in the address", view.params().get("focus"));
    const before = [await view.text(".verdict"), await view.text("table.changes"), await view.text(".diff-detail"), await view.text(".flame-crumbs")];
    check("it shrank", before[0].includes("less CPU") && before[2].startsWith("priceCart"), before);
    const same = await view.again();
    equal([await same.text(".verdict"), await same.text("table.changes"), await same.text(".diff-detail"), await same.text(".flame-crumbs")], before);
});

test("the link that is copied has times that do not move", async ({ open }) => {
    const view = await open("/compare", { service: "checkout", preset: "before" });
    await view.page.getByRole("button", { name: "Copy link" }).click();
    await view.sees("Link copied");
    const link = new URL(await view.page.evaluate(() => navigator.clipboard.readText()));
    for (const name of ["a_from", "a_until", "b_from", "b_until"]) check(`${name} is a time`, Date.parse(link.searchParams.get(name)!) > 0, link.href);
    equal(link.searchParams.get("preset"), null);
});

test("a side is chosen in its menu", async ({ open, last }) => {
    const view = await open("/compare", { service: "checkout", preset: "before", ...last(3600) });
    await view.page.getByRole("button", { name: "Choose A" }).click();
    await view.page.getByLabel("Version").selectOption("2.14.2");
    await view.page.getByRole("button", { name: "Apply", exact: true }).click();
    await view.settled();
    equal(view.params().get("a_version"), "2.14.2");
    equal(asked(view).left_deployment, "2.14.2");
    await view.sees(/2\.14\.2/);
});

test("a service with one version says how to tell of another", async ({ open }) => {
    const view = await open("/compare", { service: "gateway", preset: "version" });
    await view.sees("No second version of gateway is known");
    await view.sees(/kiln annotate --service gateway --version/);
    await view.page.getByRole("button", { name: "Compare with the time before" }).click();
    await view.settled();
    equal(asked(view).left_deployment, undefined);
});

test("it looks right, light and dark, wide and on a phone", async ({ open }) => {
    for (const theme of ["light", "dark"] as const) {
        for (const width of [1280, PHONE]) {
            const view = await open("/compare", { service: "checkout" }, { theme, width });
            await view.picture("compare");
            const [r, g, b] = await view.flame.pixel(0.1, 0.02);
            check("the flame graph is drawn", r + g + b > 0);
        }
    }
});
