// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { graphOf } from "../src/model/graph";
import { treeOf } from "../src/model/tree";

interface Drawn {
    name: number;
    self: number;
    kids: Map<number, Drawn>;
}

// Each line a stack and what it took: "main;parse;read 3".
function drawn(...stacks: string[]) {
    const names = ["all"];
    const id = (name: string) => (names.includes(name) ? names.indexOf(name) : names.push(name) - 1);
    const root: Drawn = { name: 0, self: 0, kids: new Map() };
    for (const stack of stacks) {
        const [path, value] = stack.split(" ");
        let at = root;
        for (const frame of path.split(";")) {
            const next: Drawn = at.kids.get(id(frame)) ?? { name: id(frame), self: 0, kids: new Map() };
            at.kids.set(id(frame), next);
            at = next;
        }
        at.self += Number(value);
    }
    const flame = { names, files: names.map(() => ""), modules: names.map(() => ""), kinds: names.map(() => ""), name: [] as number[], depth: [] as number[], self: [] as number[], total: [] as number[], other: null, nodes_all: null, error_bound: 0 };
    const walk = (node: Drawn, depth: number): number => {
        const i = flame.name.push(node.name) - 1;
        flame.depth.push(depth);
        flame.self.push(node.self);
        flame.total.push(0);
        flame.total[i] = [...node.kids.values()].reduce((sum, kid) => sum + walk(kid, depth + 1), node.self);
        return flame.total[i];
    };
    walk(root, 0);
    return treeOf(flame);
}

const WIDE = () => 100;
function lines(tree: ReturnType<typeof drawn>, most?: number) {
    const { nodes, edges } = graphOf(tree, WIDE, most, 0);
    const name = (i: number) => tree.names[nodes[i].name];
    return edges.map(({ from, to, total, back }) => `${name(from)} ${back ? "<-" : "->"} ${name(to)} ${total}`).sort();
}

test("each function is there once, with what goes along each call", () => {
    assert.deepEqual(lines(drawn("main;a;c 2", "main;b;c 3", "main 1")), ["a -> c 2", "b -> c 3", "main -> a 2", "main -> b 3"]);
});

test("recursion goes back, and is not counted twice", () => {
    assert.deepEqual(lines(drawn("main;a;b;a;b 4")), ["a -> b 4", "b <- a 4", "main -> a 4"]);
});

test("a call through what is not shown goes to the next that is", () => {
    assert.deepEqual(lines(drawn("main;small;big 9", "main;big 1"), 2), ["main -> big 10"]);
});

test("callers stand above what they call, and boxes beside each other do not touch", () => {
    const { nodes, edges } = graphOf(drawn("main;a;x 1", "main;b;x 2", "main;c 3", "main;d;y 4"), WIDE, 60, 0);
    for (const { from, to } of edges) assert.ok(nodes[from].layer < nodes[to].layer);
    for (const a of nodes) for (const b of nodes) if (a !== b && a.layer === b.layer) assert.ok(Math.abs(a.x - b.x) >= 100);
});

test("what is not connected stands beside the rest, not far away", () => {
    const { width } = graphOf(drawn("a;b;c 9", "d;e 5", "f;g 4", "h 3"), WIDE, 60, 0);
    assert.ok(width <= 4 * 100 + 3 * 28, `${width}`);
});
