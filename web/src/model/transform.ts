// SPDX-License-Identifier: Apache-2.0
// A tree made into another: some stacks only, without some frames, grouped.  Each says by `from`
// which node of the tree before a node comes from (the first, where several became one).
import { addUp, NameTable, namesOf, TreeBuilder } from "./build";
import { familyOf, unitOf, type Family } from "./family";
import { callersTree } from "./invert";
import { frameOf } from "./palette";
import type { Pattern } from "./regex";
import { matching } from "./search";
import type { FrameNames, Tree } from "./tree";

const builderLike = (tree: Tree, names: FrameNames = tree, other = tree.other) => new TreeBuilder(names, other, tree.leftSelf !== null);

// Rebuilds a tree: `place` says for each node, given where its parent went, where it goes.
function rebuilt(tree: Tree, builder: TreeBuilder, place: (node: number, above: number) => number): Tree {
    const to = new Int32Array(tree.n);
    for (let i = 0; i < tree.n; i++) {
        to[i] = place(i, i ? to[tree.parent[i]] : -1);
        builder.add(to[i], tree.self[i], tree.leftSelf?.[i] ?? 0);
    }
    return builder.finish();
}

// Leaves out the nodes that are not kept; what is below one of these goes to the nearest caller that is.
// Nothing can meet its like by that, so that it is a copy and no more: quick.
function compacted(tree: Tree, keep: Uint8Array, self: Float64Array, left: Float64Array | null, name = tree.name, names: FrameNames = tree): Tree {
    let n = 0;
    for (let i = 0; i < tree.n; i++) n += keep[i];
    const made: Tree = {
        ...namesOf(names), n, other: tree.other, height: 0, name: new Int32Array(n), parent: new Int32Array(n), depth: new Uint16Array(n),
        end: new Int32Array(n), self: new Float64Array(n), total: new Float64Array(n), from: new Int32Array(n),
        leftSelf: left && new Float64Array(n), leftTotal: left && new Float64Array(n),
    };
    const to = new Int32Array(tree.n);
    let put = 0;
    for (let i = 0; i < tree.n; i++) {
        const above = i ? to[tree.parent[i]] : -1;
        to[i] = keep[i] ? put : above;
        if (!keep[i]) continue;
        made.name[put] = name[i];
        made.parent[put] = above;
        made.from![put] = i;
        made.depth[put] = above < 0 ? 0 : made.depth[above] + 1;
        made.self[put] = made.total[put] = self[i];
        if (left) made.leftSelf![put] = made.leftTotal![put] = left[i];
        if (made.depth[put] >= made.height) made.height = made.depth[put] + 1;
        put++;
    }
    addUp(made);
    return made;
}

// Stacks through a match, and no others.
export function only(tree: Tree, pattern: Pattern): Tree {
    const match = matching(tree, pattern);
    const inside = new Uint8Array(tree.n);
    const keep = new Uint8Array(tree.n); // it is inside of a match, or leads to one
    for (let i = 1; i < tree.n; i++) keep[i] = inside[i] = inside[tree.parent[i]] | match[tree.name[i]];
    for (let i = tree.n - 1; i > 0; i--) if (keep[i]) keep[tree.parent[i]] = 1;
    if (tree.n) keep[0] = 1;
    const counted = (self: Float64Array) => self.map((value, i) => (inside[i] ? value : 0));
    return compacted(tree, keep, counted(tree.self), tree.leftSelf && counted(tree.leftSelf));
}

// Without the stacks through a match.
export function ignore(tree: Tree, pattern: Pattern): Tree {
    const match = matching(tree, pattern);
    const keep = new Uint8Array(tree.n);
    for (let i = 0; i < tree.n; i++) keep[i] = !i || (keep[tree.parent[i]] && !match[tree.name[i]]) ? 1 : 0;
    return compacted(tree, keep, tree.self, tree.leftSelf);
}

// Without these frames: what they called is called by their callers, and what they took is their callers'.
export function hide(tree: Tree, pattern: Pattern): Tree {
    const match = matching(tree, pattern);
    const builder = builderLike(tree);
    return rebuilt(tree, builder, (i, above) => (i && match[tree.name[i]] ? above : builder.child(above, tree.name[i], i)));
}

// A function that is on the stack already is not put there again.
export function collapseRecursion(tree: Tree): Tree {
    const builder = builderLike(tree);
    const outermost = new Int32Array(tree.names.length).fill(-1);
    const placed = new Int32Array(tree.n);
    return rebuilt(tree, builder, (i, above) => {
        const name = tree.name[i];
        const before = outermost[name];
        if (name !== tree.other && before >= 0 && i < tree.end[before]) return placed[before];
        outermost[name] = i;
        return (placed[i] = builder.child(above, name, i));
    });
}

export type Grouping = "module" | "package";

// Frames by what they belong to; calls inside of it are not shown.
export function groupBy(tree: Tree, grouping: Grouping, pinned?: ReadonlySet<string>): Tree {
    const table = new NameTable(null);
    const group = new Int32Array(tree.names.length).fill(-1);
    const groupOf = (id: number) => {
        if (group[id] >= 0) return group[id];
        const frame = frameOf(tree, id);
        const unit = tree.marks?.[id]?.unit ?? unitOf(frame);
        const text = (grouping === "module" ? frame.module : unit) || unit || "(not said)";
        const family: Family = tree.marks?.[id]?.family ?? familyOf(frame, pinned);
        if (id === tree.other || family === "root") return (group[id] = table.add(frame.name, "", "", frame.kind));
        group[id] = table.add(text, "", text, "");
        table.mark(group[id], family, unit);
        return group[id];
    };
    for (let id = 0; id < tree.names.length; id++) groupOf(id);
    const builder = builderLike(tree, table, tree.other < 0 ? -1 : group[tree.other]);
    return rebuilt(tree, builder, (i, above) => {
        const name = group[tree.name[i]];
        return i && builder.nameOf(above) === name && tree.name[i] !== tree.other ? above : builder.child(above, name, i);
    });
}

const STEM = 0.98; // of its caller's total: there is but one way through

// A chain of runtime frames, each with one child, is one row: main › node::Start › uv_run.
export function foldStems(tree: Tree, pinned?: ReadonlySet<string>): Tree {
    const families: (Family | undefined)[] = [];
    const familyAt = (i: number) => (families[tree.name[i]] ??= tree.marks?.[tree.name[i]]?.family ?? familyOf(frameOf(tree, tree.name[i]), pinned));
    const continues = (i: number) =>
        tree.end[i] > i + 1 && tree.end[i + 1] === tree.end[i] && tree.name[i + 1] !== tree.other &&
        tree.total[i + 1] >= tree.total[i] * STEM && familyAt(i + 1) === "runtime";
    const table = new NameTable(tree);
    const keep = new Uint8Array(tree.n).fill(1);
    const name = tree.name.slice();
    const self = tree.self.slice();
    const left = tree.leftSelf?.slice() ?? null;
    for (let i = 1; i < tree.n; i++) {
        if (tree.end[i] === i + 1 || tree.end[i + 1] !== tree.end[i] || familyAt(i) !== "runtime" || !continues(i)) continue;
        const chain = [tree.names[tree.name[i]]];
        for (; continues(i); i++) {
            keep[i] = 0;
            self[i + 1] += self[i];
            if (left) left[i + 1] += left[i];
            chain.push(tree.names[tree.name[i + 1]]);
        }
        const last = tree.name[i];
        name[i] = table.add(chain.join(STEM_SIGN), tree.files[last], tree.modules[last], tree.kinds[last]);
        table.mark(name[i], "runtime", unitOf(frameOf(tree, last)));
    }
    return compacted(tree, keep, self, left, name, table);
}

export const STEM_SIGN = " › ";

// ---- all of them ----

export interface FlameOptions {
    only?: Pattern[]; // stacks through each of these
    ignore?: Pattern[]; // none through any of these
    hide?: Pattern[];
    recursion?: boolean; // collapse it
    stems?: boolean; // fold them; true unless said otherwise
    group?: Grouping | null;
    invert?: boolean; // bottom-up: callers below what they call
    pinned?: ReadonlySet<string>; // modules that are own code
}

// `from` of a tree made in several steps, of the very first.
function through(first: Tree, second: Tree): Tree {
    if (first === second || !first.from || !second.from) return second;
    return { ...second, from: second.from.map((node) => (node < 0 ? -1 : first.from![node])) };
}

// A tree as the options want it; the same tree where they want nothing.  Node i of the answer comes
// from node originOf(answer, i) of what was given.
export function prepare(tree: Tree, options: FlameOptions): Tree {
    const steps: ((tree: Tree) => Tree)[] = [
        ...(options.only ?? []).map((pattern) => (t: Tree) => only(t, pattern)),
        ...(options.ignore ?? []).map((pattern) => (t: Tree) => ignore(t, pattern)),
        ...(options.hide ?? []).map((pattern) => (t: Tree) => hide(t, pattern)),
    ];
    if (options.recursion) steps.push(collapseRecursion);
    if (options.group) steps.push((t) => groupBy(t, options.group!, options.pinned));
    if (options.invert) steps.push(callersTree);
    else if (options.stems !== false) steps.push((t) => foldStems(t, options.pinned));
    const bare: Tree = { ...tree, from: null };
    const made = steps.reduce((t, step) => through(t, step(t)), bare);
    return made === bare ? tree : made;
}

// The node that a node of a prepared tree stands for; itself, where nothing was done.
export const originOf = (tree: Tree, node: number) => (tree.from ? (tree.from[node] ?? -1) : node);

// The node of a prepared tree that a node of the original became part of, or -1: of all that come from
// it or from one of its callers, the nearest.
export function presentOf(prepared: Tree, original: Tree, node: number): number {
    if (!prepared.from) return node < prepared.n ? node : -1;
    let best = -1;
    let nearest = -1;
    for (let i = 0; i < prepared.n; i++) {
        const from = prepared.from[i];
        if (from === node) return i;
        if (from > nearest && from < node && original.end[from] > node) [best, nearest] = [i, from];
    }
    return best;
}
