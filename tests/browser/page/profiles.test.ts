// SPDX-License-Identifier: Apache-2.0
// Profiles: each one that came in, and what is in it.
import type { ProfileRow, QueryAnswer } from "../../../web/src/api/answers";
import { count } from "../../../web/src/model/format";
import { amountOf } from "../../../web/src/model/measure";
import { questionOf } from "../../../web/src/model/single";
import { CPU, PHONE, check, cpu, equal, number, world } from "./kit";

const { test } = world({ hours: 3 });

test("single profiles are listed as the API has them, the newest or the largest first", async ({ open, ask, last }) => {
    const range = last(3600);
    const view = await open("/profiles", { service: "checkout", ...range });
    for (const order of ["newest", "largest"]) {
        if (order === "largest") await view.page.getByRole("button", { name: "Largest" }).click();
        await view.settled();
        const answer = await ask<{ profiles: ProfileRow[]; all: number }>("profiles", { query: cpu("checkout"), ...range, order, limit: 200 });
        equal(number(await view.text("h1")), answer.all);
        const rows = await view.rows(".profiles");
        equal(rows.map((row) => [row[4], row[5]]), answer.profiles.map((one) => [amountOf(one.value, "nanoseconds"), count(one.samples)]));
    }
    await view.picture("profiles");
});

test("one that is chosen shows what is in it, and the address brings it back", async ({ open, ask, last }) => {
    const range = last(3600);
    const view = await open("/profiles", { service: "orders", ...range });
    await view.page.locator(".profiles tbody tr").nth(1).click();
    await view.settled();
    const chosen = view.params().get("profile")!;
    check("it has a name in the address", chosen);
    const answer = await ask<QueryAnswer>("query", questionOf(chosen, CPU, range) as Record<string, string>);
    check("it is one profile", answer.basis.profiles === 1, answer.basis);
    for (const one of [view, await view.again()]) await one.sees(answer.top!.rows[0].name);
    await view.picture("profiles-chosen");
});

test("a range without profiles says so", async ({ open }) => {
    const view = await open("/profiles", { service: "orders", from: "2026-01-01T00:00:00Z", until: "2026-01-01T01:00:00Z" }, { width: PHONE });
    await view.sees(/No profile of this kind/);
});
