// SPDX-License-Identifier: Apache-2.0
// Addresses that somebody mistyped, cut short or made up: each shows a view that says what is wrong and leads on,
// never an empty page or an exception.
import { check, world, type View } from "./kit";

const { test } = world({ hours: 2 });

const BAD = [400, 404, 413];
const VIEWS = ["", "explore", "compare", "labels", "memory", "waiting", "spans", "profiles", "status", "symptoms", "start", "file"];
const PARAMS = [
    "from=garbage&until=alsogarbage", "from=now&until=now-1h", "from=now-99999999999w", "from=1970-01-01T00:00:00Z", "from=2200-01-01T00:00:00Z&until=2200-01-02T00:00:00Z",
    "from=2026-01-01T00:00:00.000Z&until=2026-01-01T00:00:00.001Z", "from=&until=", "service=nobody", "type=nonsense", "type=a:b:c:d:e", "type=%7B%22", "type=__proto__",
    "where=garbage", "where=a%3D~%22(%22", "where=%22%22%3D%22%22", "find=%2F(%2F", "find=%2F(a%2B)%2B%24%2F", "fn=nothing&show=sandwich", "show=nothing&group=nothing&color=nothing&sort=nothing",
    "focus=zzzzzzzzzzzz&hide=%2F(%2F%0A%3D%0A%40", "refresh=0.0001", "refresh=99999999999", "refresh=-1", "by=__proto__", "by=%00", "sort=constructor", "tell=constructor&why=__proto__",
    "a_from=x&a_until=y&b_from=z&b_until=w", "a_where=x&b_where=%22&a_version=%22%5C", "trace=zz&span=%00", "profile=%7B%7D", "profile=zz", "limit=-1&order=constructor",
    "service=%E0%A4%A", "%FF=%FE&=&&&==", "src=1&fn=%00", "group=label:&show=time",
];

async function holds(view: View, address: string): Promise<void> {
    await view.page.evaluate((to) => {
        history.pushState(null, "", to);
        dispatchEvent(new PopStateEvent("popstate"));
    }, address);
    await view.settled();
    const text = await view.text("#app");
    check(`${address} is drawn`, !/This view failed/.test(text), text);
    check(`${address} says something`, (await view.text("main")).trim().length > 20, text);
    check(`${address} has a way out`, (await view.page.locator("header a, nav a").count()) > 5);
    check(`${address} shows no number that is none`, !/\bNaN\b|\bInfinity\b|Invalid Date|undefined|\[object/.test(text), text);
    await view.measure();
}

const part = Math.ceil(VIEWS.length / 2);
for (const views of [VIEWS.slice(0, part), VIEWS.slice(part)])
    test(`any address shows something: ${views.join(" ")}`, async ({ open }) => {
        const view = await open("/start", {}, { expects: BAD });
        for (const path of views) for (const [i, params] of PARAMS.entries()) if (i % 4 === views.indexOf(path) % 4) await holds(view, `/${path}?${params}`);
    });

test("what the server cannot read has a way to start afresh", async ({ open }) => {
    const view = await open("/explore", { service: "checkout", from: "garbage" }, { expects: BAD });
    await view.sees(/not a time/);
    await view.page.getByRole("link", { name: "Start afresh" }).first().click();
    await view.sees(/cores.*on average/);
    check("the service stays", view.params().get("service") === "checkout");
});

test("an expression that takes others for ever takes no time", async ({ open }) => {
    const view = await open("/explore", { service: "checkout", find: "/(\\w+\\s?)+$b/" });
    await view.sees("no hit");
});
