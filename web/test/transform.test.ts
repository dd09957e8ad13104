// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { callersOf, callersTree, calleesOf, sandwich } from "../src/model/invert";
import { functionsOf, graft, underLabels } from "../src/model/join";
import { exactly } from "../src/model/search";
import { collapseRecursion, foldStems, groupBy, hide, ignore, only, originOf, prepare, presentOf } from "../src/model/transform";
import { nameOf, nodeAt, type Tree } from "../src/model/tree";
import { draw, drawn, plain } from "./drawn";

const equal = (tree: Tree, text: string) => assert.equal(draw(tree), plain(text));

// And its numbers hold together.
const becomes = (tree: Tree, text: string) => {
    equal(tree, text);
    for (let i = 0; i < tree.n; i++) {
        let below = tree.self[i];
        for (let child = i + 1; child < tree.end[i]; child = tree.end[child]) {
            assert.equal(tree.parent[child], i);
            assert.equal(tree.depth[child], tree.depth[i] + 1);
            below += tree.total[child];
        }
        assert.equal(tree.total[i], below);
    }
};

const SHOP = drawn(`
    total
     main 1
      handle 2
       parse 10
        alloc 5
       save 4
        alloc 3
      idle 7
`);

test("only: stacks through a function, with their callers", () => {
    becomes(only(SHOP, exactly("alloc")), `
        total
         main
          handle
           parse
            alloc 5
           save
            alloc 3
    `);
});

test("only: what a match calls stays, also where it matches again", () => {
    becomes(only(SHOP, /parse|alloc/), `
        total
         main
          handle
           parse 10
            alloc 5
           save
            alloc 3
    `);
});

test("ignore: stacks through a function are gone", () => {
    becomes(ignore(SHOP, exactly("alloc")), `
        total
         main 1
          handle 2
           parse 10
           save 4
          idle 7
    `);
});

test("hide: a frame goes, its children move up, its own time is its caller's", () => {
    becomes(hide(SHOP, exactly("handle")), `
        total
         main 3
          idle 7
          parse 10
           alloc 5
          save 4
           alloc 3
    `);
});

test("hide: what moves up meets its like", () => {
    becomes(hide(SHOP, /parse|save/), `
        total
         main 1
          handle 16
           alloc 8
          idle 7
    `);
});

test("recursion becomes one frame, also round a corner", () => {
    const tree = drawn(`
        total
         walk 1
          walk 2
           visit 3
            walk 4
             leaf 5
          leaf 1
    `);
    becomes(collapseRecursion(tree), `
        total
         walk 7
          leaf 6
          visit 3
    `);
});

test("frames of one module are one row", () => {
    const tree = drawn(`
        total
         main 1
          handle 2
           malloc 3
            brk 4
           callback 5
    `, {
        main: { module: "shop" }, handle: { module: "shop" }, callback: { module: "shop" },
        malloc: { module: "libc.so.6" }, brk: { module: "libc.so.6" },
    });
    const grouped = groupBy(tree, "module");
    becomes(grouped, `
        total
         shop 8
          libc.so.6 7
    `);
    const family = (name: string) => grouped.marks![grouped.names.indexOf(name)]!.family;
    assert.deepEqual([family("shop"), family("libc.so.6")], ["own", "library"]);
});

test("frames of one package are one row", () => {
    const tree = drawn(`
        total
         main.main 1
          shop/cart.Add 2
           shop/cart.sum 3
            strings.Index 4
    `, { "main.main": { kind: "go" }, "shop/cart.Add": { kind: "go" }, "shop/cart.sum": { kind: "go" }, "strings.Index": { kind: "go" } });
    becomes(groupBy(tree, "package"), `
        total
         main 1
          shop/cart 5
           strings 4
    `);
});

const STARTS = drawn(`
    total
     _start
      __libc_start_main 1
       node::Start
        handle 60
        uv_run
         uv__io_poll 40
`, { _start: { module: "node" }, __libc_start_main: { module: "libc.so.6" }, "node::Start": { module: "node" }, handle: { module: "shop" },
    uv_run: { module: "node" }, uv__io_poll: { module: "node" } });

test("a chain of the runtime is one row, up to where it parts", () => {
    const folded = foldStems(STARTS);
    becomes(folded, `
        total
         _start › __libc_start_main › node::Start 1
          handle 60
          uv_run › uv__io_poll 40
    `);
    assert.equal(nameOf(STARTS, originOf(folded, 1)), "node::Start");
});

test("a stem ends where much is spent on the way", () => {
    const tree = drawn(`
        total
         _start
          start_thread 30
           clone 60
    `);
    becomes(foldStems(tree), `
        total
         _start › start_thread 30
          clone 60
    `);
});

test("upside down: who took it, and below it who called", () => {
    const turned = callersTree(SHOP);
    equal(turned, `
        total
         alloc 8
          parse
           handle
            main
          save
           handle
            main
         handle 2
          main
         idle 7
          main
         main 1
         parse 10
          handle
           main
         save 4
          handle
           main
    `);
    const at = (...path: string[]) => turned.total[nodeAt(turned, path)];
    assert.deepEqual([at("alloc"), at("alloc", "parse"), at("alloc", "save"), at()], [8, 5, 3, 32]);
});

test("upside down, functions have the same numbers", () => {
    const before = functionsOf(SHOP);
    const turned = callersTree(SHOP);
    const after = functionsOf(turned);
    for (const id of before.used) {
        const there = turned.names.indexOf(SHOP.names[id]);
        assert.deepEqual([after.self[there], after.total[there]], [before.self[id], before.total[id]], SHOP.names[id]);
    }
});

test("a sandwich: callers and callees of a function, each with its total", () => {
    const tree = drawn(`
        total
         main 1
          a 1
           f 10
            g 5
             f 2
          b
           f 20
            h 1
    `);
    const found = sandwich(tree, "f")!;
    assert.deepEqual([found.total, found.self], [38, 32]);
    equal(found.callers, `
        f
         a
          main
         b
          main
    `);
    assert.deepEqual(["a", "b"].map((name) => found.callers.total[nodeAt(found.callers, [name])]), [17, 21]);
    becomes(found.callees, `
        f 30
         g 5
          f 2
         h 1
    `);
    assert.equal(sandwich(tree, "nobody"), null);
});

test("both sides of a comparison go the same way", () => {
    const tree = drawn(`
        total
         main 0>1
          parse 5>9
          gone 4>0
    `);
    becomes(hide(tree, exactly("main")), `
        total 0>1
         gone 4>0
         parse 5>9
    `);
    equal(callersTree(tree), `
        total
         gone 4>0
          main
         main 0>1
         parse 5>9
          main
    `);
    assert.deepEqual(Array.from(calleesOf(tree, tree.names.indexOf("main")).leftTotal!.slice(0, 1)), [9]);
    assert.equal(callersOf(tree, tree.names.indexOf("gone")).leftTotal![0], 4);
});

test("a finer answer takes the place of what was folded", () => {
    const rough = drawn(`
        total
         main 1
          handle 2
           (other) 18
          idle 7
    `);
    becomes(graft(rough, rough.name.findIndex((id) => rough.names[id] === "handle"), SHOP), `
        total
         main 1
          handle 2
           parse 10
            alloc 5
           save 4
            alloc 3
          idle 7
    `);
    assert.equal(graft(rough, 2, drawn("total\n elsewhere 1")), rough);
});

test("trees stand side by side under their labels", () => {
    const joined = underLabels([{ label: "pod-1", tree: drawn("total\n main 1\n  a 2") }, { label: "pod-2", tree: drawn("total\n main 3\n  b 4") }])!;
    becomes(joined, `
        total
         pod-1
          main 1
           a 2
         pod-2
          main 3
           b 4
    `);
    assert.equal(joined.kinds[joined.names.indexOf("pod-2")], "root");
    assert.equal(underLabels([]), null);
});

test("functions: what recurses counts once", () => {
    const tree = drawn(`
        total
         walk 1
          walk 2
           leaf 3
         leaf 4
    `);
    const rows = functionsOf(tree);
    const of = (name: string) => [rows.self[tree.names.indexOf(name)], rows.total[tree.names.indexOf(name)]];
    assert.deepEqual(of("walk"), [3, 6]);
    assert.deepEqual(of("leaf"), [7, 7]);
    assert.equal(rows.used.length, 2);
});

test("prepared: every node knows the node that it was", () => {
    assert.equal(prepare(SHOP, { stems: false }), SHOP);
    const made = prepare(SHOP, { hide: [exactly("handle")], recursion: true, ignore: [exactly("idle")] });
    becomes(made, `
        total
         main 3
          parse 10
           alloc 5
          save 4
           alloc 3
    `);
    for (let i = 0; i < made.n; i++) assert.equal(nameOf(SHOP, originOf(made, i)), nameOf(made, i));
    const save = SHOP.name.findIndex((id) => SHOP.names[id] === "save");
    assert.equal(nameOf(made, presentOf(made, SHOP, save)), "save");
    const handle = SHOP.name.findIndex((id) => SHOP.names[id] === "handle");
    assert.equal(nameOf(made, presentOf(made, SHOP, handle)), "main");
});

test("a large tree upside down folds what nobody could see", () => {
    const n = 60000;
    const tree = drawn("total\n main 1");
    const wide: Tree = {
        ...tree, n: n + 1, names: ["total", ...Array.from({ length: n }, (_, i) => `f${i}`)], height: 2,
        files: [], modules: [], kinds: [], name: Int32Array.from({ length: n + 1 }, (_, i) => i),
        parent: new Int32Array(n + 1).fill(0), depth: new Uint16Array(n + 1).fill(1), end: Int32Array.from({ length: n + 1 }, (_, i) => i + 1),
        self: new Float64Array(n + 1).fill(1), total: new Float64Array(n + 1).fill(1),
    };
    wide.parent[0] = -1;
    wide.depth[0] = 0;
    wide.end[0] = n + 1;
    wide.self[0] = 0;
    wide.self[7] = wide.total[7] = 100;
    wide.total[0] = n + 99;
    const made = callersTree(wide);
    assert.equal(made.n, 3);
    assert.equal(made.total[0], n + 99);
    assert.deepEqual([...made.names].slice(-1), ["other"]);
});
