// SPDX-License-Identifier: Apache-2.0
// Many services, and labels with many values: what is cut is said, and what is asked stays bounded.
import type { QueryAnswer } from "../../../web/src/api/answers";
import { figures, percent } from "../../../web/src/model/format";
import { check, CPU, equal, world, type Tools } from "./kit";

const { test } = world({ fill: false });
const SERVICES = 45;
const PODS = 130;

// Folded stacks, a hundred a second.
async function send(url: string, params: Record<string, string>, stacks: string): Promise<void> {
    const query = new URLSearchParams({ type: "process_cpu", ...params });
    const answer = await fetch(`${url}/ingest?name=${encodeURIComponent(`${params.service}{pod=${params.pod}}`)}&from=now-1m&until=now&sampleRate=100&${query}`, { method: "POST", body: stacks });
    check("it is taken", answer.ok, await answer.text());
}

async function fill({ server }: Tools): Promise<void> {
    for (let i = 1; i <= SERVICES; i++) await send(server.url, { service: `s${String(i).padStart(2, "0")}`, pod: "a" }, `main;work ${i * 20}\nmain;idle 3\n`);
    for (let i = 1; i <= PODS; i++) await send(server.url, { service: "wide", pod: `p${i}` }, `main;work ${i}\n`);
}

test("of many services twenty are shown, and only their top functions asked for", async (tools) => {
    await fill(tools);
    const view = await tools.open("/");
    await view.sees(`${SERVICES + 1} services use`);
    equal((await view.rows(".services table")).length, 20);
    const tops = () => new Set(view.requests.filter((url) => /format=top/.test(url))).size;
    equal(tops(), 20);
    await view.page.getByRole("button", { name: "26 more services" }).click();
    await view.settled();
    equal((await view.rows(".services table")).length, SERVICES + 1);
    equal(tops(), SERVICES + 1);
    await view.picture("overview-many");
});

test("of many values of a label the largest are listed, and the rest is one part", async ({ open, ask }) => {
    const view = await open("/labels", { service: "wide", by: "pod" });
    const answer = await ask<QueryAnswer>("query", { query: `${CPU}{service_name="wide"}`, format: "series", by: "pod", limit: 0 });
    const all = answer.series!.series.sort((a, b) => b.sum - a.sum);
    const others = all.slice(100).reduce((sum, { sum: one }) => sum + one, 0);
    await view.sees(`${PODS} values of pod`);
    await view.sees("30 other values");
    const rows = await view.rows(".values table");
    equal(rows.length, 21);
    equal(rows[0][2].split(" ±")[0].trim(), percent(all[0].sum / answer.total));
    equal(rows[20][2], percent(others / answer.total));
    await view.page.getByPlaceholder("Find a value").fill("p12");
    await view.settled();
    equal((await view.rows(".values table")).length, 10);
    equal(view.params().get("find"), "p12");
    check("the total is of all", (await view.text(".page-head")).includes(figures(answer.total / 1e9 / answer.basis.covered_seconds)));
    await view.picture("labels-many");
});
