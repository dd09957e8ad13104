// SPDX-License-Identifier: Apache-2.0
// The shell: every view has an address, the bars lead to them, and it is never wider than its window.
import { PHONE, check, equal, world } from "./kit";

const { test } = world({ hours: 2 });
const TABS = ["overview", "explore", "compare", "labels", "memory", "waiting", "spans", "profiles", "status"];
const VIEWS = [...TABS, "file", "symptoms", "start"];

test("every view is at its own address and says so in its title", async ({ open }) => {
    for (const name of VIEWS) {
        const view = await open(`/${name}`);
        check(`${name} has a title`, /^\S.* · Kiln$/.test(await view.page.title()), await view.page.title());
        equal(view.path(), `/${name}`);
    }
});

test("tabs lead from view to view, and the way back", async ({ open }) => {
    const view = await open("/");
    for (const name of TABS.slice(1)) {
        await view.page.getByRole("navigation", { name: "Views" }).first().getByRole("link", { name: new RegExp(`^${name}$`, "i") }).click();
        await view.settled();
        equal(view.path(), `/${name}`);
        equal(await view.page.locator(".tabs [aria-current=page]").innerText(), name[0].toUpperCase() + name.slice(1));
    }
    await view.page.goBack();
    equal(view.path(), "/profiles");
});

test("what is looked at stays when the view changes", async ({ open }) => {
    const view = await open("/explore", { service: "checkout", find: "Json" });
    await view.page.keyboard.press("g");
    await view.page.keyboard.press("l");
    await view.settled();
    equal(view.path(), "/labels");
    equal(view.params().get("service"), "checkout");
    equal(view.params().get("find"), null);
});

test("the theme is the system's until one is chosen, and then stays", async ({ open }) => {
    const view = await open("/status", {}, { theme: "dark" });
    const theme = () => view.page.evaluate(() => document.documentElement.dataset.theme);
    equal(await theme(), "dark");
    await view.page.getByRole("button", { name: "Switch light and dark" }).click();
    equal(await theme(), "light");
    await view.page.reload();
    equal(await theme(), "light");
});

test("a phone has a bar below, and More has the rest", async ({ open }) => {
    const view = await open("/", {}, { width: PHONE });
    check("the tabs on top are not shown", !(await view.page.locator(".tabs").isVisible()));
    await view.page.locator(".tabbar").getByRole("button", { name: "More" }).click();
    await view.page.getByRole("menuitem", { name: "Memory" }).click();
    await view.settled();
    equal(view.path(), "/memory");
});

test("what a browser loads is small, named by its content and kept", async ({ server }) => {
    const got = async (path: string) => {
        const answer = await fetch(server.url + path, { headers: { "accept-encoding": "gzip" } });
        return { answer, bytes: Number(answer.headers.get("content-length")), text: await answer.text() };
    };
    const page = await got("/");
    const assets = await Promise.all([...page.text.matchAll(/"(\/assets\/[^"]+)"/g)].map(([, path]) => got(path)));
    equal(assets.length, 2);
    const bytes = assets.reduce((sum, { bytes: one }) => sum + one, page.bytes);
    check(`it is at most 150 kB: ${bytes}`, bytes > 10_000 && bytes <= 150_000);
    equal(assets.map(({ answer }) => answer.headers.get("cache-control")), Array(2).fill("public, max-age=31536000, immutable"));
    equal(page.answer.headers.get("cache-control"), "no-cache");
    check("nothing of others may be loaded", page.answer.headers.get("content-security-policy")!.startsWith("default-src 'none'; script-src 'self';"));
});
