// SPDX-License-Identifier: Apache-2.0
// The page on what the load generator sends: a fleet that is not the shop, with names nobody chose for it.
import { execFileSync } from "node:child_process";
import type { QueryAnswer } from "../../../web/src/api/answers";
import { shortName } from "../../../web/src/model/family";
import { rateSeconds, measureOf } from "../../../web/src/model/measure";
import { CPU, check, cpu, equal, number, world, type Tools } from "./kit";

const { test } = world({ fill: false });
const SERVICES = 6;

function load({ server }: Tools): void {
    execFileSync(process.env.KILN ?? "build/kiln", [
        "loadgen", "--quiet", "--server", server.url, "--shape", "pprof", "--types", "cpu,heap", "--services", String(SERVICES),
        "--profiles", "36", "--samples", "2000", "--from", "-50m",
    ]);
}

test("every service of a fleet is listed, with what it uses", async (tools) => {
    load(tools);
    const view = await tools.open("/");
    await view.sees(/services use/);
    const rows = await view.rows(".services table");
    equal(rows.length, SERVICES);
    const answer = await tools.ask<QueryAnswer>("query", { query: CPU, format: "series", by: "service_name", from: "now-1h" });
    const names = answer.series!.series.map(({ labels }) => labels.service_name).sort();
    equal(rows.map(([name]) => name.split("\n")[0]).sort(), names);
});

test("a service's functions are those of the API", async ({ open, ask }) => {
    const { services } = await ask<{ services: { name: string }[] }>("services");
    const range = { from: new Date(Date.now() - 3600_000).toISOString(), until: new Date().toISOString() };
    const view = await open("/explore", { service: services[0].name, ...range });
    const answer = await ask<QueryAnswer>("query", { query: cpu(services[0].name), ...range });
    const measure = measureOf(answer.type, rateSeconds(answer, 3600));
    check("there is something to see", answer.total > 0);
    await view.sees(measure.format(answer.total).split(" ")[0]);
    equal(number(await view.text(".profile-side")), answer.top!.functions);
    await view.sees(shortName(answer.top!.rows[0].name));
    await view.picture("explore-loadgen");
});
