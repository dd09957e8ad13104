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

// Sorts ids[0 ... n) by descending key; equal ones keep their order.
function sortByKey(ids: Int32Array, n: number, key: Float64Array): void {
    if (n > FEW) {
        ids.set(Array.from(ids.subarray(0, n)).sort((a, b) => key[b] - key[a]));
        return;
    }
    for (let i = 1; i < n; i++) {
        const id = ids[i];
        const size = key[id];
        let at = i;
        while (at > 0 && key[ids[at - 1]] < size) ids[at] = ids[--at];
        ids[at] = id;
    }
}

function foldedLast(tree: Tree, ids: Int32Array, n: number): void {
    for (let i = 0; i < n - 1; i++) {
        if (tree.name[ids[i]] !== tree.other) continue;
        const folded = ids[i];
        ids.copyWithin(i, i + 1, n);
        ids[n - 1] = folded;
        return;
    }
}

// Links of each node to the child that stands first and to the sibling that stands next.  Nodes are
// gone through as they lie, and a family lies close together: a cache is worth more than an order.
function linksOf(tree: Tree): { first: Int32Array; next: Int32Array } {
    const { n, end, total } = tree;
    const first = new Int32Array(n).fill(-1);
    const next = new Int32Array(n).fill(-1);
    let ids = new Int32Array(64);
    for (let i = 0; i < n; i++) {
        if (end[i] === i + 1) continue;
        if (end[i + 1] === end[i]) {
            first[i] = i + 1;
            continue;
        }
        let many = 0;
        for (let child = i + 1; child < end[i]; child = end[child]) {
            if (many === ids.length) {
                const more = new Int32Array(many * 2);
                more.set(ids);
                ids = more;
            }
            ids[many++] = child;
        }
        sortByKey(ids, many, total);
        if (tree.other >= 0) foldedLast(tree, ids, many);
        first[i] = ids[0];
        for (let k = 1; k < many; k++) next[ids[k - 1]] = ids[k];
    }
    return { first, next };
}

function rowsOf(tree: Tree): Int32Array {
    const rows = new Int32Array(tree.height + 1);
    for (let i = 0; i < tree.n; i++) rows[tree.depth[i] + 1]++;
    for (let depth = 0; depth < tree.height; depth++) rows[depth + 1] += rows[depth];
    return rows;
}

function deepestOf(tree: Tree): Uint16Array {
    const deepest = tree.depth.slice();
    for (let i = tree.n - 1; i > 0; i--) {
        const above = tree.parent[i];
        if (deepest[i] > deepest[above]) deepest[above] = deepest[i];
    }
    return deepest;
}

const known = new WeakMap<Tree, Layout>();

// Made once for each tree.
export function layoutOf(tree: Tree): Layout {
    let layout = known.get(tree);
    if (!layout) known.set(tree, (layout = laidOut(tree)));
    return layout;
}

function laidOut(tree: Tree): Layout {
    const { n, total, depth, parent } = tree;
    const { first, next } = linksOf(tree);
    const rows = rowsOf(tree);
    const node = new Int32Array(n);
    const left = new Float64Array(n);
    const right = new Float64Array(n);
    const rank = new Int32Array(n);
    const whole = n && total[0] > 0 ? total[0] : 1;
    const free = rows.slice(); // the next place of each row
    const edge = new Float64Array(tree.height + 1); // where the next frame of each row begins
    const ends = new Float64Array(tree.height + 1); // where the last one ended
    ends[0] = 1;
    for (let at = n ? 0 : -1; at >= 0; ) {
        const row = depth[at];
        const place = free[row]++;
        const x = edge[row];
        // Rounding must not push a frame out of its caller.
        const y = row ? Math.min(ends[row - 1], x + total[at] / whole) : 1;
        node[place] = at;
        rank[at] = place;
        left[place] = x;
        right[place] = ends[row] = edge[row] = y;
        if (first[at] >= 0) {
            edge[row + 1] = x;
            at = first[at];
            continue;
        }
        while (at >= 0 && next[at] < 0) at = parent[at];
        if (at >= 0) at = next[at];
    }
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
