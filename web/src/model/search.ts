// SPDX-License-Identifier: Apache-2.0
// Finding frames by name: plain text (upper case counts where it is typed), or /a regular expression/.
import type { Layout } from "./layout";
import { expression, type Pattern } from "./regex";
import type { Tree } from "./tree";

export const escaped = (text: string) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

// What was typed as an expression; null: nothing, or nothing that can be read as one.
export function patternOf(text: string): Pattern | null {
    const typed = text.trim();
    if (!typed) return null;
    const between = /^\/(.+?)\/?$/s.exec(typed);
    const source = between ? between[1] : typed;
    const asTyped = /\p{Lu}/u.test(between ? source.replace(/\\./g, "") : source);
    return between ? expression(source, !asTyped) : new RegExp(escaped(source), asTyped ? "" : "i");
}

// A function by its whole name, and no other.
export const exactly = (name: string): Pattern => ({ test: (text) => text === name, toString: () => `=${name}` });

// Of each name: does it match?  Also by the file or module that it comes from.
export function matching(tree: Tree, pattern: Pattern): Uint8Array {
    const found = new Uint8Array(tree.names.length);
    for (let i = 0; i < found.length; i++) found[i] = pattern.test(tree.names[i]) ? 1 : 0;
    if (tree.other >= 0) found[tree.other] = 0;
    return found;
}

export interface Found {
    names: Uint8Array; // of each name: it matches
    nodes: number; // that match
    functions: number; // names that match and occur
    total: number; // of the stacks through a match, each counted once
    leftTotal: number;
}

export function find(tree: Tree, pattern: Pattern): Found {
    const names = matching(tree, pattern);
    const seen = new Uint8Array(names.length);
    const found: Found = { names, nodes: 0, functions: 0, total: 0, leftTotal: 0 };
    let until = 0; // the end of the outermost match that is being gone through
    for (let i = 0; i < tree.n; i++) {
        const name = tree.name[i];
        if (!names[name]) continue;
        found.nodes++;
        if (!seen[name]) found.functions += seen[name] = 1;
        if (i < until) continue;
        until = tree.end[i];
        found.total += tree.total[i];
        found.leftTotal += tree.leftTotal?.[i] ?? 0;
    }
    return found;
}

// The next match after a node, in reading order (row by row, from the left), round the end; -1: none.
export function nextHit(layout: Layout, names: Uint8Array, node: number, step: 1 | -1): number {
    const { n, tree } = layout;
    const from = node >= 0 ? layout.rank[node] : step > 0 ? -1 : n;
    for (let i = 1; i <= n; i++) {
        const at = (((from + step * i) % n) + n) % n;
        if (names[tree.name[layout.node[at]]]) return layout.node[at];
    }
    return -1;
}
