// SPDX-License-Identifier: Apache-2.0
// From a symptom into a view that is filled in.
import type { QueryAnswer, Service } from "../../../web/src/api/answers";
import { SYMPTOMS } from "../../../web/src/model/symptoms";
import { check, equal, PHONE, world } from "./kit";

const { test } = world({ hours: 2 });

test("a symptom leads to the type that its service sends", async ({ open, ask, last }) => {
    const view = await open("/symptoms", { service: "payments", ...last(3600) });
    equal(await view.page.locator(".symptom h2").count(), SYMPTOMS.length + 3);
    const card = view.page.locator("#symptom-gc");
    await card.getByRole("link", { name: "Allocated bytes" }).click();
    await view.settled();
    const { services } = await ask<{ services: Service[] }>("services");
    const type = services.find(({ name }) => name === "payments")!.types.find(({ id }) => id.startsWith("memory:alloc_space"))!.id;
    equal([view.path(), view.params().get("service"), view.params().get("type"), view.params().get("from")], ["/explore", "payments", type, last(3600).from]);
    const answer = await ask<QueryAnswer>("query", { query: `${type}{service_name="payments"}`, ...last(3600), format: "top", limit: 1 });
    check("and there is something to see", answer.total > 0);
});

test("every step of every symptom leads somewhere", async ({ open, last }) => {
    const view = await open("/symptoms", { service: "checkout", ...last(3600) });
    const hrefs = await view.page.locator(".symptom .steps a").evaluateAll((links) => links.map((link) => (link as HTMLAnchorElement).href));
    check("there are many", hrefs.length >= 16, hrefs.length);
    for (const href of new Set(hrefs)) {
        const { pathname, searchParams } = new URL(href);
        check(href, /^\/(explore|compare|memory|waiting|start)$/.test(pathname) && (pathname === "/start" || searchParams.get("service") === "checkout"));
    }
});

test("a pill of the Overview chooses its card", async ({ open, last }) => {
    const view = await open("/", last(3600));
    await view.page.getByRole("link", { name: "Slow tail" }).click();
    await view.settled();
    equal([view.path(), view.params().get("symptom")], ["/symptoms", "tail"]);
    equal(await view.page.locator(".symptom.chosen h2").innerText(), SYMPTOMS.find(({ id }) => id === "tail")!.title);
    await view.picture("symptoms");
});

test("it fits a phone, in the dark", async ({ open }) => {
    const view = await open("/symptoms", {}, { width: PHONE, theme: "dark" });
    await view.sees("What do you see?");
    await view.picture("symptoms");
});
