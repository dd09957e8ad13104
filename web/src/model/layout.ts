// SPDX-License-Identifier: Apache-2.0
// Where frames stand.  Widths are shares of the root, 0 to 1; siblings stand by total, the largest
// first, and what was folded comes last.
//
// Places ("ranks") are numbered row by row and from left to right within a row, so that a row is a
// slice of the arrays below, sorted by position: what is visible is found by binary search and not
// by looking at every frame.
import type { Tree } from "./tree";

export interface Layout {
    tree: Tree;
    n: number;
    rows: Int32Array; // rows[d] ... rows[d + 1]: the ranks of depth d
    node: Int32Array; // by rank
    left: Float64Array; // by rank, 0 ... 1
    right: Float64Array;
    rank: Int32Array; // by node
    deepest: Uint16Array; // by node: the depth of what is deepest below it
}

const FEW = 24;

// Sorts ids[from ... to) by descending key; equal ones keep their order.
function sortByKey(ids: Int32Array, from: number, to: number, key: Float64Array): void {
    if (to - from > FEW) {
        const sorted = Array.from(ids.subarray(from, to)).sort((a, b) => key[b] - key[a]);
        ids.set(sorted, from);
        return;
    }
    for (let i = from + 1; i < to; i++) {
        const id = ids[i];
        const size = key[id];
        let at = i;
        while (at > from && key[ids[at - 1]] < size) ids[at] = ids[--at];
        ids[at] = id;
    }
}

function foldedLast(tree: Tree, ids: Int32Array, from: number, to: number): void {
    for (let i = from; i < to - 1; i++) {
        if (tree.name[ids[i]] !== tree.other) continue;
        const folded = ids[i];
        ids.copyWithin(i, i + 1, to);
        ids[to - 1] = folded;
        return;
    }
}

function deepestOf(tree: Tree): Uint16Array {
    const deepest = tree.depth.slice();
    for (let i = tree.n - 1; i > 0; i--) {
        const above = tree.parent[i];
        if (deepest[i] > deepest[above]) deepest[above] = deepest[i];
    }
    return deepest;
}

export function layoutOf(tree: Tree): Layout {
    const { n, end, total } = tree;
    const rows = new Int32Array(tree.height + 1);
    const node = new Int32Array(n);
    const left = new Float64Array(n);
    const right = new Float64Array(n);
    const rank = new Int32Array(n);
    const whole = n && total[0] > 0 ? total[0] : 1;
    let put = n ? 1 : 0;
    right[0] = n ? 1 : 0;
    for (let depth = 0, from = 0; depth < tree.height; depth++) {
        const to = put;
        rows[depth] = from;
        for (let place = from; place < to; place++) {
            const above = node[place];
            rank[above] = place;
            const first = put;
            for (let child = above + 1; child < end[above]; child = end[child]) node[put++] = child;
            if (put - first > 1) {
                sortByKey(node, first, put, total);
                if (tree.other >= 0) foldedLast(tree, node, first, put);
            }
            let at = left[place];
            for (let i = first; i < put; i++) {
                left[i] = at;
                at = Math.min(right[place], at + total[node[i]] / whole);
                right[i] = at;
            }
        }
        from = to;
    }
    rows[tree.height] = n;
    return { tree, n, rows, node, left, right, rank, deepest: deepestOf(tree) };
}

// The first rank of [from, to) that ends right of x; `to` where none does.
export function firstAfter(layout: Layout, from: number, to: number, x: number): number {
    const { right } = layout;
    while (from < to) {
        const middle = (from + to) >>> 1;
        if (right[middle] > x) to = middle;
        else from = middle + 1;
    }
    return from;
}

// The node at a place, or -1.
export function nodeUnder(layout: Layout, depth: number, x: number): number {
    if (depth < 0 || depth >= layout.tree.height) return -1;
    const to = layout.rows[depth + 1];
    const place = firstAfter(layout, layout.rows[depth], to, x);
    return place < to && layout.left[place] <= x ? layout.node[place] : -1;
}

// Siblings and children as they stand, for walking; -1: there is none.
export function neighbour(layout: Layout, node: number, way: "up" | "down" | "left" | "right"): number {
    const { tree, rank } = layout;
    if (way === "up") return tree.parent[node];
    if (way === "down") {
        if (tree.end[node] === node + 1) return -1;
        const row = tree.depth[node] + 1;
        const at = firstAfter(layout, layout.rows[row], layout.rows[row + 1], layout.left[rank[node]]);
        return at < layout.rows[row + 1] && tree.parent[layout.node[at]] === node ? layout.node[at] : node + 1;
    }
    const depth = tree.depth[node];
    const at = rank[node] + (way === "left" ? -1 : 1);
    return at >= layout.rows[depth] && at < layout.rows[depth + 1] ? layout.node[at] : -1;
}
