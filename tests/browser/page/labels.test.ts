// SPDX-License-Identifier: Apache-2.0
// Labels: shares and cores of each value are the API's; a value leads into Explore and Compare.
import type { QueryAnswer } from "../../../web/src/api/answers";
import { figures, percent } from "../../../web/src/model/format";
import { check, cpu, equal, HEAP, near, number, PHONE, world } from "./kit";

const { test } = world();

test("each route has its share and its cores, the largest first", async ({ open, ask, last }) => {
    const view = await open("/labels", { service: "checkout", ...last(3600) });
    equal(view.params().get("by"), null);
    const answer = await ask<QueryAnswer>("query", { query: cpu("checkout"), ...last(3600), format: "series", by: "http.route", step: "1h" });
    const wanted = answer.series!.series.sort((a, b) => b.sum - a.sum);
    const rows = await view.rows(".values table");
    equal(rows.map(([name]) => name), wanted.map(({ labels }) => labels["http.route"] || "without it"));
    equal(rows.map(([, , share]) => share.split(" ±")[0].trim()), wanted.map(({ sum }) => percent(sum / answer.total)));
    equal(rows.map(([, , , cores]) => cores), wanted.map(({ sum }) => figures(sum / 1e9 / answer.basis.rate_seconds)));
    const top = wanted.find(({ labels }) => labels["http.route"])!;
    await view.sees(`${top.labels["http.route"]} takes ${percent(top.sum / answer.total, 0)} of checkout’s CPU time`);
    await view.picture("labels");
});

test("a label is chosen, and its value opens in Explore", async ({ open, ask, last }) => {
    const view = await open("/labels", { service: "checkout", ...last(3600) });
    await view.page.getByRole("button", { name: /^service.version/ }).or(view.page.getByRole("button", { name: /^k8s.pod.name/ })).last().click();
    await view.settled();
    const by = view.params().get("by")!;
    const answer = await ask<QueryAnswer>("query", { query: cpu("checkout"), ...last(3600), format: "series", by, step: "1h" });
    const [first] = answer.series!.series.sort((a, b) => b.sum - a.sum);
    const again = await view.again();
    equal((await again.rows(".values table"))[0][0], first.labels[by]);
    await again.page.locator(".values tbody tr").first().locator("td").first().click({ force: true });
    await again.settled();
    equal([again.path(), again.params().get("where")], ["/explore", `${by}="${first.labels[by]}"`]);
});

test("a value is compared with all others", async ({ open, last }) => {
    const view = await open("/labels", { service: "checkout", by: "host.name", ...last(3600) });
    await view.page.locator(".values tr", { hasText: "web-01" }).getByRole("link", { name: "With the rest" }).click();
    await view.settled();
    equal([view.path(), view.params().get("a_where"), view.params().get("b_where")], ["/compare", 'host.name!="web-01"', 'host.name="web-01"']);
});

test("memory in use is a level: the values are means, not sums", async ({ open, ask, last }) => {
    const view = await open("/labels", { service: "payments", type: HEAP, by: "host.name", ...last(3600) });
    const whole = await ask<QueryAnswer>("query", { query: `${HEAP}{service_name="payments"}`, ...last(3600), format: "top", limit: 1 });
    const rows = await view.rows(".values table");
    equal(rows.length, 2);
    near("together", rows.reduce((sum, row) => sum + number(row[3]), 0), whole.total / 1e6, (whole.total / 1e6) * 0.02);
});

test("it fits a phone, in the dark", async ({ open, last }) => {
    const view = await open("/labels", { ...last(3600) }, { width: PHONE, theme: "dark" });
    check("services are told apart first", (await view.rows(".values table")).length === 7);
    await view.picture("labels");
    await (await open("/labels", { service: "checkout", ...last(3600) }, { theme: "dark" })).picture("labels");
});
