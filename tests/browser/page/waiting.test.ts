// SPDX-License-Identifier: Apache-2.0
// Waiting: where time passes without CPU, in the API's numbers, without threads that wait for work.
import type { GapAnswer, QueryAnswer, TopRow } from "../../../web/src/api/answers";
import { PHONE, check, cpu, equal, near, number, world, type Tools, type View } from "./kit";

const { test } = world();
const OFF = "off_cpu:off_cpu:nanoseconds::";
const WALL = "wall:wall:nanoseconds:wall:nanoseconds";

async function perSecond(ask: Tools["ask"], query: string, range: { from: string; until: string }) {
    const answer = await ask<QueryAnswer>("query", { query, ...range, format: "top", limit: 0 });
    const rate = (value: number) => value / 1e9 / answer.basis.rate_seconds;
    const of = (name: string, what: keyof Pick<TopRow, "self" | "total"> = "self") => rate(answer.top!.rows.find((row) => row.name === name)?.[what] ?? 0);
    return { all: rate(answer.total), of };
}

const rowsOf = async (view: View) => (await view.rows("table.waits")).map((cells) => ({ name: cells[0].split("\n")[0], waits: cells[2], cpu: cells[3] }));

test("the sentence is how much is waited for each second of CPU, and where", async ({ open, ask, last }) => {
    const range = last(3600);
    const view = await open("/waiting", { service: "checkout", ...range });
    const off = await perSecond(ask, `${OFF}{service_name="checkout"}`, range);
    const on = await perSecond(ask, cpu("checkout"), range);
    const said = await view.text(".verdict");
    near("seconds for each second", number(said), (off.all - off.of("epoll_wait")) / on.all, 0.006);
    check("where", said.includes("most in Client.query"), said);
    await view.sees(/Databases \d\d.%, network and files \d\d.%/);
});

test("every row has the API's numbers: what a function waits, and the CPU it uses", async ({ open, ask, last }) => {
    const range = last(3600);
    const view = await open("/waiting", { service: "checkout", ...range });
    const off = await perSecond(ask, `${OFF}{service_name="checkout"}`, range);
    const on = await perSecond(ask, cpu("checkout"), range);
    const rows = await rowsOf(view);
    equal(rows.map(({ name }) => name), ["Client.query", "fetch", "Redis.get", "getaddrinfo", "uv__fs_read"]);
    for (const { name, waits, cpu: uses } of rows) {
        near(`${name} waits`, number(waits), off.of(name), 0.0051);
        near(`${name} uses`, number(uses), on.of(name), 0.0051);
    }
    await view.page.getByRole("button", { name: "Below it" }).click();
    await view.settled();
    const below = (await rowsOf(view)).find(({ name }) => name === "saveOrder")!;
    near("below saveOrder", number(below.waits), off.of("saveOrder", "total"), 0.0051);
    near("CPU below saveOrder", number(below.cpu), on.of("saveOrder", "total"), 0.0051);
});

test("idle threads are hidden, which is said, and shown when asked for", async ({ open, ask, last }) => {
    const range = last(3600);
    const view = await open("/waiting", { service: "orders", ...range });
    const off = await perSecond(ask, `${OFF}{service_name="orders"}`, range);
    await view.sees(/Idle threads, [\d.]+, are hidden/);
    near("idle", number((await view.text(".reasons")).split("Idle threads")[1]), off.of("runtime.netpoll"), 0.0051);
    check("they are not listed", !(await rowsOf(view)).some(({ name }) => name === "runtime.netpoll"));
    await view.page.getByRole("button", { name: "Show them" }).click();
    await view.settled();
    equal(view.params().get("idle"), "1");
    const row = (await rowsOf(view)).find(({ name }) => name === "runtime.netpoll")!;
    near("netpoll", number(row.waits), off.of("runtime.netpoll"), 0.0051);
});

test("reasons choose what is shown, and stay in the address", async ({ open, last }) => {
    const view = await open("/waiting", { service: "orders", ...last(3600) });
    await view.page.getByRole("button", { name: /^Locks/ }).click();
    await view.settled();
    equal(view.params().get("why"), "lock");
    equal((await rowsOf(view)).map(({ name }) => name), ["sync.(*Mutex).Lock"]);
    const same = await view.again();
    equal(await same.text("table.waits"), await view.text("table.waits"));
    equal(await same.text(".diff-detail"), await view.text(".diff-detail"));
});

test("what the kernel saw has the API's numbers, and chooses what is shown", async ({ open, ask, last }) => {
    const range = last(3600);
    const view = await open("/waiting", { service: "checkout", ...range });
    const gap = await ask<GapAnswer>("gap", { query: '{service_name="checkout"}', ...range });
    const off = await perSecond(ask, `${OFF}{service_name="checkout"}`, range);
    const pills = view.page.getByRole("group", { name: "What the kernel saw" }).getByRole("button");
    const words = (await pills.allInnerTexts()).map((text) => text.split(/\s+/)[0].toLowerCase());
    equal(words, [...gap.reasons.map(({ reason }) => reason), "runnable"]);
    const blocked = await perSecond(ask, `${OFF}{service_name="checkout",wait.reason="socket"}`, range);
    near("socket", number((await pills.allInnerTexts())[words.indexOf("socket")]), blocked.all, 0.0051);
    await view.page.getByRole("button", { name: /^Socket/ }).click();
    await view.settled();
    equal(view.params().get("reason"), "socket");
    equal((await rowsOf(view)).map(({ name }) => name), ["Client.query", "fetch", "Redis.get"]);
    await view.sees(/checkout waits .* \(socket only\)/);
    const same = await view.again();
    equal(await same.text("table.waits"), await view.text("table.waits"));
    await view.page.getByRole("button", { name: /^Runnable/ }).click();
    await view.settled();
    near("what is left for processors", number((await rowsOf(view))[0].waits), off.of("Client.query") / 40, 0.0051);
    await view.picture("waiting-runnable");
    await view.page.getByRole("button", { name: /^Runnable/ }).click();
    await view.settled();
    equal(view.params().get("reason"), null);
});

test("wall less CPU tells the same where nothing else does", async ({ open, ask, last }) => {
    const range = last(3600);
    const view = await open("/waiting", { service: "checkout", by: "wall", ...range });
    const wall = await perSecond(ask, `${WALL}{service_name="checkout"}`, range);
    const on = await perSecond(ask, cpu("checkout"), range);
    const row = (await rowsOf(view)).find(({ name }) => name === "Client.query")!;
    near("Client.query", number(row.waits), wall.of("Client.query") - on.of("Client.query"), 0.0051);
    await view.page.getByRole("button", { name: "Off the CPU" }).click();
    await view.settled();
    equal(view.params().get("by"), null);
});

test("what does not record waiting is told how to", async ({ open }) => {
    const view = await open("/waiting", { service: "nobody" });
    await view.sees("Nothing says where nobody waits");
    await view.sees(/asprof -e wall/);
});

test("it looks right, light and dark, wide and on a phone", async ({ open, last }) => {
    for (const theme of ["light", "dark"] as const)
        for (const width of [1280, PHONE]) await (await open("/waiting", { service: "checkout", ...last(3600) }, { theme, width })).picture("waiting");
});

test("a range without profiles says where there are some", async ({ open, last }) => {
    const view = await open("/waiting", { service: "checkout", ...last(3600, -7200) });
    await view.sees("No waiting profiles of checkout in this range");
    await view.page.getByRole("button", { name: "Go there" }).click();
    await view.settled();
    await view.sees(/checkout waits/);
});
