// SPDX-License-Identifier: Apache-2.0
// From below: who calls a function.  A tree of callers can be as large as all stacks together, so it
// is made level by level, and what has too little weight to be seen is folded on the way.
import { TreeBuilder, NameTable } from "./build";
import type { FrameNames, Tree } from "./tree";

const SMALL = 50000; // nodes: nothing is folded in a tree up to this size
const SEEN = 2e-5; // of the whole, in larger ones

interface Entries {
    at: Int32Array; // the node of the tree that a stack has come up to
    value: Float64Array;
    left: Float64Array | null;
}

interface Range {
    from: number;
    to: number;
    node: number; // of the builder: what these stacks have in common
}

export const FOLDED = "other"; // as the server calls it

function withFolded(tree: Tree): { names: FrameNames; other: number } {
    if (tree.other >= 0) return { names: tree, other: tree.other };
    const table = new NameTable(tree);
    const other = table.add(FOLDED, "", "", "");
    return { names: table, other };
}

class Inversion {
    private least: number;
    private builder: TreeBuilder;
    private other: number;
    private sums = new Map<number, { n: number; value: number; left: number; put: number; small: boolean }>();
    private spare: Entries;

    constructor(
        private tree: Tree,
        private entries: Entries,
    ) {
        const { names, other } = withFolded(tree);
        this.other = other;
        this.builder = new TreeBuilder(names, other, tree.leftSelf !== null);
        const n = entries.at.length;
        this.spare = { at: new Int32Array(n), value: new Float64Array(n), left: entries.left && new Float64Array(n) };
        const whole = Math.max(tree.total[0] ?? 0, tree.leftTotal?.[0] ?? 0);
        this.least = tree.n > SMALL ? whole * SEEN : 0;
    }

    run(root: number, up: boolean): Tree {
        const stack: Range[] = [{ from: 0, to: this.entries.at.length, node: this.builder.child(-1, root, -1) }];
        if (!up) this.split(stack.pop()!, stack, true);
        for (let range = stack.pop(); range; range = stack.pop()) this.split(range, stack, false);
        return this.builder.finish();
    }

    // Parts the stacks of a range by their next caller; `stay`: by where they are.
    private split(range: Range, stack: Range[], stay: boolean): void {
        const { tree, entries, sums, builder } = this;
        if (!stay && range.to - range.from === 1) return this.climb(range);
        sums.clear();
        for (let i = range.from; i < range.to; i++) {
            const at = stay ? entries.at[i] : tree.parent[entries.at[i]];
            const name = at > 0 ? tree.name[at] : -1;
            let sum = sums.get(name);
            if (!sum) sums.set(name, (sum = { n: 0, value: 0, left: 0, put: 0, small: false }));
            sum.n++;
            sum.value += entries.value[i];
            sum.left += entries.left?.[i] ?? 0;
            if (!stay) entries.at[i] = at;
        }
        let put = range.from;
        for (const [name, sum] of sums) {
            sum.put = put;
            put += sum.n;
            sum.small = Math.max(sum.value, sum.left) < this.least;
            if (name < 0) builder.add(range.node, sum.value, sum.left); // nobody calls it
            else if (sum.small) builder.add(builder.child(range.node, this.other, -1), sum.value, sum.left);
        }
        if (sums.size > 1) this.arrange(range);
        let from = range.from;
        for (const [name, sum] of sums) {
            const at = entries.at[from];
            if (name >= 0 && !sum.small) stack.push({ from, to: from + sum.n, node: builder.child(range.node, name, at) });
            from += sum.n;
        }
    }

    // One stack alone: its callers follow each other.
    private climb({ from, node }: Range): void {
        const { tree, entries, builder } = this;
        let below = node;
        for (let at = tree.parent[entries.at[from]]; at > 0; at = tree.parent[at]) below = builder.child(below, tree.name[at], at);
        builder.add(below, entries.value[from], entries.left?.[from] ?? 0);
    }

    // Puts entries of one name beside each other.
    private arrange({ from, to }: Range): void {
        const { entries, spare, sums, tree } = this;
        for (let i = from; i < to; i++) {
            const at = entries.at[i];
            const sum = sums.get(at > 0 ? tree.name[at] : -1)!;
            spare.at[sum.put] = at;
            spare.value[sum.put] = entries.value[i];
            if (spare.left) spare.left[sum.put] = entries.left![i];
            sum.put++;
        }
        entries.at.set(spare.at.subarray(from, to), from);
        entries.value.set(spare.value.subarray(from, to), from);
        entries.left?.set(spare.left!.subarray(from, to), from);
    }
}

function entriesOf(tree: Tree, nodes: number[] | Int32Array, value: Float64Array, left: Float64Array | null): Entries {
    const at = Int32Array.from(nodes);
    return {
        at,
        value: Float64Array.from(at, (node) => value[node]),
        left: tree.leftSelf && Float64Array.from(at, (node) => left![node]),
    };
}

// What a stack took is what its innermost function took itself: that of a caller is of no stack.
function ownOnTop(tree: Tree): Tree {
    const own = (total: Float64Array) => total.map((value, i) => (tree.depth[i] === 1 ? value : 0));
    return { ...tree, turned: true, self: own(tree.total), leftSelf: tree.leftTotal && own(tree.leftTotal) };
}

// The whole tree upside down: below the root the functions that took the time, below each who calls it.
export function callersTree(tree: Tree): Tree {
    const nodes: number[] = [];
    for (let i = 1; i < tree.n; i++) if (tree.self[i] > 0 || (tree.leftSelf?.[i] ?? 0) > 0) nodes.push(i);
    return ownOnTop(new Inversion(tree, entriesOf(tree, nodes, tree.self, tree.leftSelf)).run(tree.name[0] ?? 0, false));
}

// Where a function is entered: it is not on the stack already.
export function outermost(tree: Tree, name: number): number[] {
    const nodes: number[] = [];
    for (let i = 0; i < tree.n; ) {
        if (tree.name[i] === name) nodes.push(i);
        i = tree.name[i] === name ? tree.end[i] : i + 1;
    }
    return nodes;
}

// Its callers, with the function as the root; a total is what was spent in it when called that way.
export function callersOf(tree: Tree, name: number): Tree {
    const callers = new Inversion(tree, entriesOf(tree, outermost(tree, name), tree.total, tree.leftTotal)).run(name, true);
    return { ...callers, turned: true, self: new Float64Array(callers.n), leftSelf: callers.leftSelf && new Float64Array(callers.n) };
}

// What it calls, with the function as the root.
export function calleesOf(tree: Tree, name: number): Tree {
    const builder = new TreeBuilder(tree, tree.other, tree.leftSelf !== null);
    const to = new Int32Array(tree.n);
    for (const start of outermost(tree, name))
        for (let i = start; i < tree.end[start]; i++) {
            to[i] = builder.child(i === start ? -1 : to[tree.parent[i]], tree.name[i], i);
            builder.add(to[i], tree.self[i], tree.leftSelf?.[i] ?? 0);
        }
    return builder.finish();
}

export interface Sandwich {
    name: number;
    total: number;
    self: number;
    callers: Tree;
    callees: Tree;
}

// null: the function does not occur.
export function sandwich(tree: Tree, function_: string): Sandwich | null {
    const name = tree.names.indexOf(function_);
    const callees = name < 0 ? null : calleesOf(tree, name);
    if (!callees?.n) return null;
    let self = 0;
    for (let i = 0; i < tree.n; i++) if (tree.name[i] === name) self += tree.self[i];
    return { name, total: callees.total[0], self, callers: callersOf(tree, name), callees };
}
