// SPDX-License-Identifier: Apache-2.0
// One definition of a rate: heading, chart, table, Labels, Explore and the command line show the same cores, whether
// profiles follow each other or cover 10 s of each minute.
import { execFileSync } from "node:child_process";
import type { QueryAnswer } from "../../../web/src/api/answers";
import { figures } from "../../../web/src/model/format";
import { check, CPU, near, number, world, type Tools, type View } from "./kit";
import { cpuOf, send, type Sent } from "./sender";

const { test } = world({ fill: false });
const HOUR = 3600;

// An hour of profiles of 10 s, `every` so many seconds, which use so many cores while they are taken.
function hour(service: string, from: number, every: number, cores: number): Sent[] {
    return Array.from({ length: HOUR / every }, (_, i) => ({ ...cpuOf(service, from + i * every, [{ stack: ["main"], value: cores * 1e10 }]), seconds: 10 }));
}

const begin = (now: number, ago: number) => now - ago - (now % 60);
const range = (from: number) => ({ from: new Date(from * 1000).toISOString(), until: new Date((from + HOUR) * 1000).toISOString() });
let filled = false;
async function fill({ server, now }: Tools): Promise<void> {
    if (filled) return;
    filled = true;
    await send(server.url, hour("sparse", begin(now, 4 * HOUR), 60, 3));
    await send(server.url, [...hour("sparse", begin(now, 2 * HOUR), 60, 3), ...hour("dense", begin(now, 2 * HOUR), 10, 1)]);
}

// The mean of what the chart shows, from the table that says the same.
async function chartMean(view: View): Promise<number> {
    const rows = await view.page.locator(".fleet table.hidden tbody tr").evaluateAll((all) =>
        all.map((row) => [...(row as HTMLTableRowElement).cells].slice(1).map((cell) => cell.textContent ?? "")));
    const sums = rows.map((cells) => cells.reduce((sum, text) => sum + (text === "–" ? 0 : number(text)), 0));
    return sums.reduce((sum, one) => sum + one, 0) / sums.length;
}

function commandLine(url: string, from: number): number {
    const { from: begins, until } = range(from);
    const text = execFileSync(process.env.KILN ?? "build/kiln", ["query", "--server", url, "--series", "--from", begins, "--until", until, CPU], { encoding: "utf8" });
    const head = /([\d.]+) cores/.exec(text.split("\n")[0]);
    check("the command line has a rate", head, text);
    return Number(head![1]);
}

async function agree(tools: Tools, from: number, real: number): Promise<View> {
    const { open, ask, server } = tools;
    await fill(tools);
    const answer = await ask<QueryAnswer>("query", { query: CPU, ...range(from), format: "top", limit: 1 });
    const cores = answer.total / 1e9 / answer.basis.rate_seconds;
    near("cores of the API are those that were sent, for each second of the hour", cores, real, real * 0.03);
    const view = await open("/", range(from));
    await view.sees(`${figures(cores)} cores`);
    near("the mean of the chart", await chartMean(view), cores, cores * 0.05);
    const rows = await view.rows(".services table");
    near("the sum of the table", rows.reduce((sum, [, text]) => sum + number(text), 0), cores, 0.01 * rows.length);
    check("the heading tells what the number is", /from the first profile to the last/.test((await view.page.locator("h1 [title]").getAttribute("title")) ?? ""));
    const labels = await open("/labels", { ...range(from), by: "service_name" });
    await labels.sees(`${figures(cores)} cores in all`);
    near("the chart of Labels", await chartMean(labels), cores, cores * 0.05);
    const explore = await open("/explore", range(from));
    check("Explore has the same", (await explore.text()).includes(`${figures(cores)} cores`), (await explore.text()).slice(0, 1500));
    near("the command line", commandLine(server.url, from), cores, 0.01);
    return view;
}

test("profiles that cover 10 s of each minute", async (tools) => {
    const view = await agree(tools, begin(tools.now, 4 * HOUR), 0.5);
    await view.sees("Profiles cover 17\u2009% of this time");
    await view.picture("rates-sparse");
});

test("profiles that follow each other, beside sparse ones", async (tools) => {
    const view = await agree(tools, begin(tools.now, 2 * HOUR), 1.5);
    check("nothing is said of gaps", !(await view.text(".page-head")).includes("cover"));
});
