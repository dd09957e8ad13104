// SPDX-License-Identifier: Apache-2.0
// Builds a tree frame by frame: frames of one name below one caller are one node.  The nodes are kept
// in flat arrays and found by a hash of caller and name, because a million of them as objects, or in
// a Map, takes seconds.
import type { Family } from "./family";
import type { FrameNames, Mark, Tree } from "./tree";

const FIRST = 1024;

function grown<T extends Int32Array | Float64Array>(old: T, make: (n: number) => T): T {
    const larger = make(old.length * 2);
    larger.set(old as never);
    return larger;
}

export class TreeBuilder {
    private n = 0;
    private name = new Int32Array(FIRST);
    private parent = new Int32Array(FIRST);
    private from = new Int32Array(FIRST);
    private self = new Float64Array(FIRST);
    private left: Float64Array | null;
    private slots = new Int32Array(FIRST * 4); // node + 1; 0: free

    constructor(
        private names: FrameNames,
        private other: number,
        compares: boolean,
    ) {
        this.left = compares ? new Float64Array(FIRST) : null;
    }

    get size(): number {
        return this.n;
    }
    nameOf(node: number): number {
        return this.name[node];
    }
    parentOf(node: number): number {
        return this.parent[node];
    }

    private hash(parent: number, name: number): number {
        let h = Math.imul(parent + 1, 0x9e3779b1) ^ Math.imul(name + 1, 0x85ebca6b);
        h = Math.imul(h ^ (h >>> 15), 0x2c1b3c6d);
        return (h ^ (h >>> 13)) & (this.slots.length - 1);
    }

    private rehash(): void {
        this.slots = new Int32Array(this.slots.length * 2);
        for (let node = 0; node < this.n; node++) {
            let at = this.hash(this.parent[node], this.name[node]);
            while (this.slots[at]) at = (at + 1) & (this.slots.length - 1);
            this.slots[at] = node + 1;
        }
    }

    private append(parent: number, name: number, from: number): number {
        if (this.n === this.name.length) {
            const ints = (n: number) => new Int32Array(n);
            const floats = (n: number) => new Float64Array(n);
            [this.name, this.parent, this.from] = [grown(this.name, ints), grown(this.parent, ints), grown(this.from, ints)];
            this.self = grown(this.self, floats);
            this.left &&= grown(this.left, floats);
        }
        this.name[this.n] = name;
        this.parent[this.n] = parent;
        this.from[this.n] = from;
        return this.n++;
    }

    // The child of that name, made if there is none; `from`: what to remember as its origin.
    // The root is the child of -1, and comes first.
    child(parent: number, name: number, from: number): number {
        let at = this.hash(parent, name);
        for (; this.slots[at]; at = (at + 1) & (this.slots.length - 1)) {
            const node = this.slots[at] - 1;
            if (this.parent[node] === parent && this.name[node] === name) return node;
        }
        const node = this.append(parent, name, from);
        this.slots[at] = node + 1;
        if (this.n * 2 > this.slots.length) this.rehash();
        return node;
    }

    add(node: number, self: number, left: number): void {
        this.self[node] += self;
        if (this.left) this.left[node] += left;
    }

    finish(): Tree {
        const order = this.preorder();
        return this.arranged(order);
    }

    // Children were made after their parents, and newer ones are put before older ones: the list is
    // gone through from its end, so that they come out in the order in which they were made.
    private preorder(): Int32Array {
        const first = new Int32Array(this.n).fill(-1);
        const next = new Int32Array(this.n).fill(-1);
        for (let node = this.n - 1; node > 0; node--) {
            next[node] = first[this.parent[node]];
            first[this.parent[node]] = node;
        }
        const order = new Int32Array(this.n);
        let put = 0;
        for (let at = this.n ? 0 : -1; at >= 0; ) {
            order[put++] = at;
            if (first[at] >= 0) {
                at = first[at];
                continue;
            }
            while (at >= 0 && next[at] < 0) at = this.parent[at];
            if (at >= 0) at = next[at];
        }
        return order;
    }

    private arranged(order: Int32Array): Tree {
        const { n } = this;
        const place = new Int32Array(n);
        const tree: Tree = {
            ...namesOf(this.names), n, other: this.other, height: 0,
            name: new Int32Array(n), parent: new Int32Array(n), depth: new Uint16Array(n), end: new Int32Array(n),
            self: new Float64Array(n), total: new Float64Array(n), from: new Int32Array(n),
            leftSelf: this.left && new Float64Array(n), leftTotal: this.left && new Float64Array(n),
        };
        for (let i = 0; i < n; i++) {
            const node = order[i];
            place[node] = i;
            tree.name[i] = this.name[node];
            tree.from![i] = this.from[node];
            tree.parent[i] = i ? place[this.parent[node]] : -1;
            tree.depth[i] = i ? tree.depth[tree.parent[i]] + 1 : 0;
            tree.self[i] = tree.total[i] = this.self[node];
            if (this.left) tree.leftSelf![i] = tree.leftTotal![i] = this.left[node];
            if (tree.depth[i] >= tree.height) tree.height = tree.depth[i] + 1;
        }
        addUp(tree);
        return tree;
    }
}

// Ends and totals from below; totals are those of the nodes themselves before.
export function addUp(tree: Tree): void {
    const { n, parent, end, total, leftTotal } = tree;
    for (let i = n - 1; i >= 0; i--) {
        if (!end[i]) end[i] = i + 1;
        const above = parent[i];
        if (above < 0) continue;
        total[above] += total[i];
        if (leftTotal) leftTotal[above] += leftTotal[i];
        if (end[i] > end[above]) end[above] = end[i];
    }
}

// More names at the end of a table, each once.
export class NameTable implements FrameNames {
    names: string[];
    files: string[];
    modules: string[];
    kinds: string[];
    inlined?: boolean[];
    marks?: (Mark | undefined)[];
    private added = new Map<string, number>();

    constructor(before: FrameNames | null) {
        this.names = before ? before.names.slice() : [];
        this.files = before ? before.files.slice() : [];
        this.modules = before ? before.modules.slice() : [];
        this.kinds = before ? before.kinds.slice() : [];
        if (before?.inlined) this.inlined = before.inlined.slice();
        if (before?.marks) this.marks = before.marks.slice();
    }

    add(name: string, file: string, module: string, kind: string, inlined = false): number {
        const key = [name, file, module, kind].join("\0");
        const known = this.added.get(key);
        if (known !== undefined) return known;
        const id = this.names.push(name) - 1;
        this.files.push(file);
        this.modules.push(module);
        this.kinds.push(kind);
        if (inlined || this.inlined) (this.inlined ??= [])[id] = inlined;
        this.added.set(key, id);
        return id;
    }

    // What a name that the page made says of itself.
    mark(id: number, family: Family, unit: string): void {
        (this.marks ??= [])[id] = { family, unit };
    }
}

export function namesOf({ names, files, modules, kinds, inlined, marks }: FrameNames): FrameNames {
    return { names, files, modules, kinds, inlined, marks };
}
