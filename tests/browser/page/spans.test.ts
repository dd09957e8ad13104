// SPDX-License-Identifier: Apache-2.0
// Spans: what ran under a trace or a span, or while a slow span was open.
import type { QueryAnswer, SpansAnswer } from "../../../web/src/api/answers";
import { amountOf } from "../../../web/src/model/measure";
import { CPU, PHONE, check, cpu, equal, world } from "./kit";

const { test } = world({ hours: 3 });

test("spans are listed with their cost, the most costly first", async ({ open, ask, last }) => {
    const range = last(3600);
    const view = await open("/spans", { service: "checkout", ...range });
    const answer = await ask<SpansAnswer>("spans", { query: cpu("checkout"), ...range, order: "largest", limit: 100 });
    const rows = await view.rows(".spans");
    check("there are spans in the shop", answer.spans.length > 10, answer.spans.length);
    equal(rows.slice(0, 10).map((row) => [row[0], row[4]]),
        answer.spans.slice(0, 10).map((span) => [span.span_id, amountOf(span.value, "nanoseconds")]));
    await view.sees(new RegExp(`took ${amountOf(answer.spans[0].value, "nanoseconds")} in checkout`));
    await view.picture("spans");
});

test("a span that is chosen shows its profile, and the address brings it back", async ({ open, ask, last }) => {
    const range = last(3600);
    const view = await open("/spans", { service: "checkout", ...range });
    await view.page.locator(".spans tbody tr").first().click();
    await view.settled();
    const span = view.params().get("span")!;
    const answer = await ask<QueryAnswer>("query", { query: cpu("checkout"), ...range, span_id: span });
    for (const one of [view, await view.again()]) {
        equal(one.params().get("span"), span);
        await one.sees(answer.top!.rows[0].name);
    }
    await view.picture("spans-chosen");
});

test("an id, a header or two times can be pasted", async ({ open, ask, last }) => {
    const range = last(3600);
    const { spans } = await ask<SpansAnswer>("spans", { query: cpu("checkout"), ...range, order: "largest", limit: 1 });
    const [{ span_id: span, trace_id: trace, first, duration_seconds: lasted }] = spans;
    const view = await open("/spans", { service: "checkout", ...range });
    const paste = async (text: string) => {
        await view.page.getByLabel(/Trace or span id/).fill(text);
        await view.page.getByRole("button", { name: "Show", exact: true }).click();
        await view.settled();
    };
    await paste("nonsense");
    await view.sees(/Not an id of 16 or 32/);
    await paste(trace!);
    equal([view.params().get("trace"), view.params().get("span")], [trace, null]);
    await paste(`00-${trace}-${span}-01`);
    equal([view.params().get("trace"), view.params().get("span")], [trace, span]);
    const until = new Date(Date.parse(first) + lasted * 1000 + 1).toISOString();
    await paste(`${first} ${until}`);
    equal(view.params().get("slow_from"), first);
    await view.sees(/profiles? overlap/);
    const during = await ask<QueryAnswer>("query", { query: cpu("checkout"), from: first, until });
    await view.sees(during.top!.rows[0].name);
});

test("without spans it says how they come", async ({ open, last }) => {
    const view = await open("/spans", { service: "mailer", ...last(3600) }, { width: PHONE, theme: "dark" });
    await view.sees("No sample is linked to a span here");
    await view.picture("spans-none");
});

test("jump to finds a pasted trace", async ({ open, ask, last }) => {
    const { spans } = await ask<SpansAnswer>("spans", { query: CPU, ...last(3600), limit: 1 });
    const view = await open("/", last(3600));
    await view.page.keyboard.press("Control+k");
    await view.page.keyboard.type(spans[0].trace_id!);
    await view.page.keyboard.press("Enter");
    await view.settled();
    equal([view.path(), view.params().get("trace")], ["/spans", spans[0].trace_id]);
});
