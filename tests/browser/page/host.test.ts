// SPDX-License-Identifier: Apache-2.0
// `kiln`, and nothing else: who has the page open sees a program that was started, function by function.
import { spawn } from "node:child_process";
import { join } from "node:path";
import { check, cpu, world } from "./kit";
import { BUILD } from "./server";

const { test } = world({ fill: false, host: true });

test("a program that burns shows up by itself, with its functions", async ({ open, ask }) => {
    const burning = spawn(join(BUILD, "programs/chain"), ["600"], { stdio: "ignore" });
    try {
        const began = Date.now();
        const overview = await open("/", { refresh: 2 });
        await overview.sees(/^chain$/);
        const explore = await open("/explore", { service: "chain", refresh: 2 });
        await explore.sees("burn_leaf");
        console.log(`seen after ${((Date.now() - began) / 1000).toFixed(1)} s`);
        await explore.picture("host");
        const answer = await ask<{ top: { rows: { name: string }[] } }>("query", { query: cpu("chain"), from: "now-5m", format: "top" });
        check("as the API has it", answer.top.rows.some((row) => row.name === "burn_leaf"), answer.top.rows);
    } finally {
        burning.kill("SIGKILL");
    }
});

test("Status names this host, and how well its stacks are seen", async ({ open, ask }) => {
    const { agents } = await ask<{ agents: { host: string }[] }>("agents");
    const view = await open("/status");
    await view.sees(agents[0].host);
});
