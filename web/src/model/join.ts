// SPDX-License-Identifier: Apache-2.0
// Trees put together, and functions added up.
import { NameTable, TreeBuilder } from "./build";
import { ROOT_KIND } from "./family";
import { nodeAt, pathOf, type Tree } from "./tree";

// Numbers of a table's names in another, by name: two functions of one name are one.
class Merged {
    table: NameTable;
    private ids = new Map<string, number>();

    constructor(first: Tree) {
        this.table = new NameTable(first);
        first.names.forEach((name, id) => this.ids.set(name, id));
    }

    idsOf(tree: Tree): Int32Array {
        return Int32Array.from(tree.names, (name, i) => {
            const known = this.ids.get(name);
            if (known !== undefined) return known;
            const id = this.table.add(name, tree.files[i], tree.modules[i], tree.kinds[i], tree.inlined?.[i]);
            this.ids.set(name, id);
            return id;
        });
    }
}

function copyBelow(builder: TreeBuilder, tree: Tree, ids: Int32Array, from: number, below: number): void {
    const to = new Int32Array(tree.end[from] - from);
    to[0] = below;
    builder.add(below, tree.self[from], tree.leftSelf?.[from] ?? 0);
    for (let i = from + 1; i < tree.end[from]; i++) {
        to[i - from] = builder.child(to[tree.parent[i] - from], ids[tree.name[i]], -1);
        builder.add(to[i - from], tree.self[i], tree.leftSelf?.[i] ?? 0);
    }
}

// A tree with what is below one node taken from a finer tree of the same profile; the tree itself where
// the finer one does not know that node.
export function graft(tree: Tree, node: number, finer: Tree): Tree {
    const there = nodeAt(finer, pathOf(tree, node));
    if (there < 0) return tree;
    const merged = new Merged(tree);
    const ids = merged.idsOf(finer);
    const other = tree.other >= 0 ? tree.other : finer.other < 0 ? -1 : ids[finer.other];
    const builder = new TreeBuilder(merged.table, other, tree.leftSelf !== null);
    const to = new Int32Array(tree.n);
    for (let i = 0; i < tree.n; i++) {
        to[i] = builder.child(i ? to[tree.parent[i]] : -1, tree.name[i], i);
        if (i === node) {
            copyBelow(builder, finer, ids, there, to[i]);
            i = tree.end[i] - 1;
        } else builder.add(to[i], tree.self[i], tree.leftSelf?.[i] ?? 0);
    }
    return { ...builder.finish(), from: null };
}

// Several trees under one root, each under a row with its label.
export function underLabels(parts: { label: string; tree: Tree }[]): Tree | null {
    const first = parts[0]?.tree;
    if (!first) return null;
    const merged = new Merged(first);
    const ids = parts.map(({ tree }) => merged.idsOf(tree));
    const labels = parts.map(({ label }) => merged.table.add(label, "", "", ROOT_KIND));
    const others = parts.map(({ tree }, i) => (tree.other < 0 ? -1 : ids[i][tree.other]));
    const builder = new TreeBuilder(merged.table, Math.max(-1, ...others), first.leftSelf !== null);
    const root = builder.child(-1, first.name[0] ?? labels[0], -1);
    parts.forEach(({ tree }, i) => tree.n && copyBelow(builder, tree, ids[i], 0, builder.child(root, labels[i], -1)));
    return { ...builder.finish(), from: null };
}

export interface Functions {
    self: Float64Array; // by number of the name
    total: Float64Array; // what recurses counts once
    leftSelf: Float64Array | null;
    leftTotal: Float64Array | null;
    used: Int32Array; // names that occur, the root and what was folded left out
}

export function functionsOf(tree: Tree, below = 0): Functions {
    const n = tree.names.length;
    const compares = tree.leftSelf !== null;
    const seen = new Uint8Array(n);
    const used: number[] = [];
    const outermost = new Int32Array(n).fill(-1);
    const rows: Functions = {
        self: new Float64Array(n), total: new Float64Array(n), used: new Int32Array(0),
        leftSelf: compares ? new Float64Array(n) : null, leftTotal: compares ? new Float64Array(n) : null,
    };
    for (let i = below; i < (tree.end[below] ?? 0); i++) {
        const name = tree.name[i];
        if (i === 0 || name === tree.other) continue;
        if (!seen[name]) seen[name] = used.push(name) ? 1 : 0;
        rows.self[name] += tree.self[i];
        if (compares) rows.leftSelf![name] += tree.leftSelf![i];
        if (outermost[name] >= 0 && i < tree.end[outermost[name]]) continue;
        outermost[name] = i;
        rows.total[name] += tree.total[i];
        if (compares) rows.leftTotal![name] += tree.leftTotal![i];
    }
    rows.used = Int32Array.from(used);
    return rows;
}
