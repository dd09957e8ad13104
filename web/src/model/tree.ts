// SPDX-License-Identifier: Apache-2.0
// A profile as a tree in flat arrays, so that a million nodes are a few arrays and not a million
// objects.  Nodes stand in preorder: the children of i begin at i + 1 and end before end[i].
import type { DiffFlamegraph, Flamegraph, Names } from "../api/answers";
import type { Family } from "./family";

// Of a name that the page made (a group, several frames in one row): what cannot be seen from it.
export interface Mark {
    family: Family;
    unit: string;
}

export interface FrameNames extends Omit<Names, "inlined"> {
    inlined?: boolean[]; // parallel to names, where any is
    marks?: (Mark | undefined)[]; // parallel to names, where there are any
}

export interface Tree extends FrameNames {
    n: number;
    name: Int32Array; // of each node: number of its name
    parent: Int32Array; // -1: the root
    depth: Uint16Array;
    end: Int32Array; // one past the last node below it
    self: Float64Array;
    total: Float64Array;
    leftSelf: Float64Array | null; // of a comparison: the values before (A), scaled to be comparable
    leftTotal: Float64Array | null;
    other: number; // the name of what was folded, or -1
    height: number; // the deepest depth + 1
    turned?: boolean; // callers are below what they call; self is only of what is right below the root
    from?: Int32Array | null; // of a tree that was made from another: the node there; -1: there is none
}

function inlinedOf({ names, inlined }: Names): boolean[] | undefined {
    if (!inlined?.length) return undefined;
    const is = new Array<boolean>(names.length).fill(false);
    for (const id of inlined) is[id] = true;
    return is;
}

function shape(name: number[], depth: number[], names: Names): Omit<Tree, "self" | "total" | "leftSelf" | "leftTotal" | "other"> {
    const n = name.length;
    const parent = new Int32Array(n).fill(-1);
    const end = new Int32Array(n).fill(n);
    const path: number[] = []; // the last node of each depth
    let height = 0;
    for (let i = 0; i < n; i++) {
        const d = depth[i];
        for (let above = path.length - 1; above >= d; above--) end[path[above]] = i;
        path.length = d;
        parent[i] = d ? path[d - 1] : -1;
        path.push(i);
        if (d >= height) height = d + 1;
    }
    const { names: texts, files, modules, kinds } = names;
    const inlined = inlinedOf(names);
    return { names: texts, files, modules, kinds, inlined, n, name: new Int32Array(name), parent, depth: new Uint16Array(depth), end, height };
}

export function treeOf(flame: Flamegraph): Tree {
    return {
        ...shape(flame.name, flame.depth, flame),
        self: new Float64Array(flame.self),
        total: new Float64Array(flame.total),
        leftSelf: null,
        leftTotal: null,
        other: flame.other ?? -1,
    };
}

// Both sides: right values as they are, left values times `scale`.
export function diffTreeOf(flame: DiffFlamegraph, scale: number): Tree {
    return {
        ...shape(flame.name, flame.depth, flame),
        self: new Float64Array(flame.right_self),
        total: new Float64Array(flame.right_total),
        leftSelf: Float64Array.from(flame.left_self, (value) => value * scale),
        leftTotal: Float64Array.from(flame.left_total, (value) => value * scale),
        other: flame.other ?? -1,
    };
}

export const nameOf = (tree: Tree, node: number) => tree.names[tree.name[node]];

// Names from the root's child down to the node.
export function pathOf(tree: Tree, node: number): string[] {
    const path: string[] = [];
    for (let at = node; at > 0; at = tree.parent[at]) path.unshift(nameOf(tree, at));
    return path;
}

// The node that a path of names leads to, or -1.
export function nodeAt(tree: Tree, path: string[]): number {
    let at = 0;
    for (const name of path) {
        let child = at + 1;
        while (child < tree.end[at] && nameOf(tree, child) !== name) child = tree.end[child];
        if (child >= tree.end[at]) return -1;
        at = child;
    }
    return tree.n ? at : -1;
}
