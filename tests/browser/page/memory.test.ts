// SPDX-License-Identifier: Apache-2.0
// Memory: the leak of the shop is named, and its numbers are those of the API.
import type { DiffAnswer, FunctionAnswer, QueryAnswer } from "../../../web/src/api/answers";
import { bytes } from "../../../web/src/model/format";
import { PHONE, check, equal, near, world, type View } from "./kit";

const { test } = world();
const PUT = "shop.payments.SessionCache.put";

const question = (view: View, path: string, has = ""): Record<string, string> => {
    const last = view.requests.filter((url) => url.includes(`/api/v1/${path}?`) && decodeURIComponent(url).includes(has)).pop();
    check(`the page asked for ${path}`, last);
    return Object.fromEntries(new URL(last!).searchParams);
};

test("what only ever grows is named first, with how much and since when", async ({ open, ask }) => {
    const view = await open("/memory", { service: "payments" });
    await view.sees(/keeps .* more than (8|9|10).h ago and never dropped/);
    const said = await view.text(".verdict");
    check("by its name", said.startsWith(PUT), said);
    const over = await ask<FunctionAnswer>("functions", question(view, "functions", PUT));
    const grown = over.value[over.value.length - 1];
    const start = over.value.filter((value) => value <= Math.min(...over.value) + 0.05 * (grown - Math.min(...over.value))).pop()!;
    check(`it grew by ${bytes(grown - start)}`, said.includes(`keeps ${bytes(grown - start)} more`), said);
    const answer = await ask<DiffAnswer>("diff", question(view, "diff"));
    check("all of the service", said.includes(`${bytes(answer.left.total)} → ${bytes(answer.right.total)}`), said);
    check("the frame is chosen", (await view.text(".diff-detail")).startsWith(PUT));
    await view.sees(/Climbs steadily/);
});

test("what is allocated stands beside what is in use, as a rate", async ({ open, ask }) => {
    const view = await open("/memory", { service: "payments", list: "both" });
    const answer = await ask<QueryAnswer>("query", question(view, "query", "alloc_space"));
    const minute = (value: number) => bytes((value * 60) / answer.basis.rate_seconds);
    for (const row of answer.top!.rows.slice(0, 4)) check(`${row.name} allocates ${minute(row.self)}`, (await view.text(".churn")).includes(minute(row.self)));
    const held = await ask<DiffAnswer>("diff", question(view, "diff"));
    const put = held.top!.rows.find(({ name }) => name === PUT)!;
    const row = (await view.rows("table.both")).find(([name]) => name.includes("SessionCache.put"))!;
    const asked = answer.top!.rows.find(({ name }) => name === PUT)!;
    equal(row.slice(1), [bytes(put.right_self), `+${bytes(put.self_change)}`, minute(asked.self)]);
});

test("a service that does not leak is not accused, nor is a new version that needs more", async ({ open, ask }) => {
    for (const service of ["search", "checkout"]) {
        const view = await open("/memory", { service });
        const answer = await ask<DiffAnswer>("diff", question(view, "diff"));
        const said = await view.text(".verdict");
        check(`${service} holds its memory`, said.startsWith(`${service} holds`) && said.includes("No function holds more with every snapshot"), said);
        check("and how much", said.includes(bytes(answer.right.total)), said);
        near("a deployment is not counted twice", answer.right.total / answer.left.total, 1, 0.2);
    }
});

test("the range and the list are in the address", async ({ open }) => {
    const view = await open("/memory", { service: "payments" });
    await view.page.getByRole("button", { name: "Day", exact: true }).click();
    await view.page.getByRole("button", { name: "Changed", exact: true }).click();
    await view.settled();
    equal([view.params().get("from"), view.params().get("list")], ["now-1d", "changed"]);
    await view.sees("Grew");
    const same = await view.again();
    equal(await same.text("table.changes"), await view.text("table.changes"));
});

test("what sends no memory profiles is told how to", async ({ open }) => {
    const view = await open("/memory", { service: "nobody" });
    await view.sees("No memory profiles of nobody");
    for (const language of ["Go", "Node", "Java"]) await view.sees(language);
});

test("it looks right, light and dark, wide and on a phone", async ({ open }) => {
    for (const theme of ["light", "dark"] as const)
        for (const width of [1280, PHONE]) await (await open("/memory", { service: "payments" }, { theme, width })).picture("memory");
});
