// SPDX-License-Identifier: Apache-2.0
// Boosts and pauses on a server without tokens: what the page offers, and why not more.
import type { Order } from "../../../web/src/api/answers";
import { check, equal, world } from "./kit";

const { test } = world({ hours: 1 });

test("without tokens a service is boosted, and the page says why it is not paused", async ({ open, ask, server }) => {
    const status = { id: "web-1", host: "web-01", version: "0.9.0", state: "running", hz: 19 };
    const answer = await fetch(`${server.url}/api/v1/agents/web-1`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(status) });
    check("the agent reports", answer.ok, await answer.text());
    const view = await open("/status", {});
    await view.page.getByRole("button", { name: "Boost or pause…" }).click();
    await view.sees("This server has no tokens");
    check("no pause", await view.page.getByRole("button", { name: "Pause", exact: true }).isDisabled());
    equal(await view.page.getByRole("group", { name: "Samples a second" }).getByRole("button").allInnerTexts(), ["49", "99", "199"]);
    equal(await view.page.getByRole("group", { name: "For how long" }).getByRole("button").allInnerTexts(), ["5m", "10m"]);
    await view.page.getByLabel("Which").selectOption("checkout");
    await view.picture("orders-anonymous");
    await view.page.getByRole("button", { name: "Boost", exact: true }).last().click();
    await view.sees(/199 Hz\s*checkout/);
    await view.page.getByRole("button", { name: "End it for checkout" }).click();
    await view.sees("Every agent samples at its own rate");
    equal((await ask<{ orders: Order[] }>("orders")).orders, []);
});
