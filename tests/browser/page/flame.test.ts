// SPDX-License-Identifier: Apache-2.0
// The flame graph of Explore: what is drawn where, and that pointers, wheels, keys and fingers move it.
// Where a frame must stand is computed here from the API's answer, and clicked.
import type { QueryAnswer } from "../../../web/src/api/answers";
import { percent } from "../../../web/src/model/format";
import { layoutOf, neighbour, type Layout } from "../../../web/src/model/layout";
import { prepare } from "../../../web/src/model/transform";
import { nameOf, treeOf } from "../../../web/src/model/tree";
import { PHONE, check, cpu, equal, world, type Tools, type View } from "./kit";

const { test } = world();
const HOUR = 3600;

async function explore({ open, ask, last }: Tools, params = {}, options = {}): Promise<{ view: View; layout: Layout }> {
    const answer = await ask<QueryAnswer>("query", { query: cpu("checkout"), ...last(HOUR), format: "flamegraph" });
    const view = await open("/explore", { service: "checkout", ...last(HOUR), ...params }, options);
    await view.flame.canvas.and(view.page.locator("[data-drawn]")).waitFor();
    return { view, layout: layoutOf(prepare(treeOf(answer.flamegraph!), {})) };
}

// The middle of a frame on the screen, while all of the graph is seen.
async function middle(view: View, layout: Layout, node: number): Promise<{ x: number; y: number }> {
    const box = (await view.flame.canvas.boundingBox())!;
    const all = await view.page.locator(".flame-scroll > div").first().evaluate((space) => space.getBoundingClientRect().height);
    const place = layout.rank[node];
    const row = all / layout.tree.height;
    return { x: box.x + ((layout.left[place] + layout.right[place]) / 2) * box.width, y: box.y + (layout.tree.depth[node] + 0.5) * row };
}

const shareOf = ({ tree }: Layout, node: number) => percent(tree.total[node] / tree.total[0]);

// A frame that is neither the first nor thin: the second of its row.
function beside(layout: Layout): number {
    for (let depth = 1; depth < layout.tree.height; depth++) {
        const at = layout.rows[depth] + 1;
        if (at < layout.rows[depth + 1] && layout.right[at] - layout.left[at] > 0.04) return layout.node[at];
    }
    check("there is a frame beside another", false);
    return -1;
}

test("a click chooses the frame under it, with the API's share; a second one fills the width with it", async (tools) => {
    const { view, layout } = await explore(tools);
    const node = beside(layout);
    const at = await middle(view, layout, node);
    await view.page.mouse.click(at.x, at.y);
    const said = await view.flame.says();
    check("the frame is said", said.startsWith(`${nameOf(layout.tree, node)}, ${shareOf(layout, node)} of all, depth ${layout.tree.depth[node]}`), said);
    await view.page.mouse.click(at.x, at.y);
    await view.page.locator(".flame-crumbs b").getByText(nameOf(layout.tree, node), { exact: true }).waitFor();
    const again = await view.again();
    await again.page.locator(".flame-crumbs b").getByText(nameOf(layout.tree, node), { exact: true }).waitFor();
    await view.flame.press("Escape");
    await view.page.locator(".flame-crumbs").waitFor({ state: "detached" });
});

test("a word beside the pointer says total and self as the API does", async (tools) => {
    const { view, layout } = await explore(tools);
    const node = beside(layout);
    const at = await middle(view, layout, node);
    await view.page.mouse.move(at.x, at.y);
    const tip = view.page.locator(".flame-tip");
    await tip.waitFor();
    const text = await tip.innerText();
    check("its name", text.startsWith(nameOf(layout.tree, node)), text);
    check("its total", text.includes(shareOf(layout, node)), text);
    check("its self", text.includes(percent(layout.tree.self[node] / layout.tree.total[0])), text);
    await view.picture("flame-tip");
});

test("arrows walk as the frames stand", async (tools) => {
    const { view, layout } = await explore(tools);
    const says = async (node: number) => {
        const said = await view.flame.says();
        check(`${nameOf(layout.tree, node)} is chosen`, said.startsWith(nameOf(layout.tree, node) + ","), said);
    };
    await view.flame.press("ArrowDown", "ArrowDown");
    let node = neighbour(layout, 0, "down");
    await says(node);
    for (let i = 0; i < 3; i++) {
        node = neighbour(layout, node, "down");
        await view.flame.press("ArrowDown");
        await says(node);
    }
    await view.flame.press("ArrowUp");
    await says(layout.tree.parent[node]);
});

test("a search dims all else, and its hits follow each other", async (tools) => {
    const { view, layout } = await explore(tools, { find: "json" });
    const hits = Array.from(layout.node).filter((node) => /json/i.test(nameOf(layout.tree, node)));
    check("something is found", hits.length > 1);
    await view.flame.press("n");
    const first = await view.flame.says();
    check("a hit is chosen", /json/i.test(first.split(",")[0]), first);
    await view.flame.press("n", "N");
    equal(await view.flame.says(), first);
    await view.picture("flame-search");
});

test("the wheel zooms with Ctrl where the pointer is, and pans sideways; 0 shows all again", async (tools) => {
    const { view, layout } = await explore(tools);
    const node = beside(layout);
    const at = await middle(view, layout, node);
    const seen = async () => (await view.flame.canvas.getAttribute("data-seen"))!.split(" ").map(Number);
    const until = async (what: string, good: (from: number, to: number) => boolean) => {
        for (let i = 0; i < 100 && !good(...((await seen()) as [number, number])); i++) await view.settled();
        check(what, good(...((await seen()) as [number, number])), await seen());
    };
    await view.page.mouse.move(at.x, at.y);
    await view.page.keyboard.down("Control");
    await view.page.mouse.wheel(0, -300);
    await view.page.keyboard.up("Control");
    await until("it is nearer", (from, to) => to - from < 0.7);
    await view.page.mouse.click(at.x, at.y);
    check("what is under the pointer stays there", (await view.flame.says()).startsWith(nameOf(layout.tree, node) + ","), await view.flame.says());
    const [from] = await seen();
    await view.page.mouse.move(at.x, at.y);
    await view.page.mouse.wheel(from > 0.2 ? -100 : 100, 0);
    await until("it moved sideways", (now) => now !== from);
    await view.flame.press("0");
    await until("all is seen", (now, to) => now === 0 && to === 1);
    await view.flame.press("+");
    await until("a key goes nearer", (now, to) => to - now < 0.7);
    await view.flame.press("Escape");
    await until("and back out", (now, to) => now === 0 && to === 1);
});

test("on a phone a tap chooses, and a second one fills the width", async (tools) => {
    const { view, layout } = await explore(tools, {}, { width: PHONE });
    const node = neighbour(layout, neighbour(layout, 0, "down"), "down");
    const at = await middle(view, layout, node);
    await view.page.touchscreen.tap(at.x, at.y);
    await view.page.waitForFunction((name) => document.querySelector(".flame [aria-live]")?.textContent?.startsWith(name), nameOf(layout.tree, node) + ",");
    await view.picture("flame-phone");
    const now = await middle(view, layout, node);
    await view.page.touchscreen.tap(now.x, now.y);
    await view.page.locator(".flame-crumbs b").waitFor();
});
