// SPDX-License-Identifier: Apache-2.0
// Rows of the table of functions: the server's own, which are exact, or added up from the tree where only
// a part of it is looked at.
import { useMemo } from "preact/hooks";
import type { QueryAnswer } from "../api/answers";
import { familyOf } from "../model/family";
import { functionsOf } from "../model/join";
import type { Tree } from "../model/tree";
import type { Look } from "./state";

export interface Row {
    name: string;
    file: string;
    module: string;
    kind: string;
    self: number;
    total: number;
}

export interface Rows {
    rows: Row[]; // as they are to be shown
    all: number; // functions there are
    cut: boolean; // the server did not send all of them
    whole: number; // what shares are of
}

function rowsOf(tree: Tree, below: number): Row[] {
    const { used, self, total } = functionsOf(tree, below);
    return Array.from(used, (id) => ({
        name: tree.names[id], file: tree.files[id], module: tree.modules[id], kind: tree.kinds[id], self: self[id], total: total[id],
    }));
}

const order: Record<Look["sort"], (a: Row, b: Row) => number> = {
    self: (a, b) => b.self - a.self || b.total - a.total,
    total: (a, b) => b.total - a.total || b.self - a.self,
    name: (a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0),
};

export function useRows(answer: QueryAnswer, tree: Tree, focus: number, exact: boolean, look: Look, find: RegExp | null, pinned: ReadonlySet<string>): Rows {
    const everything = exact && focus === 0;
    const found = useMemo(() => (everything ? (answer.top?.rows ?? []) : rowsOf(tree, focus)), [everything ? answer : tree, focus]);
    return useMemo(() => {
        const own = look.own ? found.filter((row) => familyOf(row, pinned) === "own") : found;
        const rows = (find ? own.filter((row) => find.test(row.name)) : [...own]).sort(order[look.sort]);
        const all = everything ? (answer.top?.functions ?? found.length) : found.length;
        return { rows, all, cut: everything && all > found.length, whole: everything ? answer.total : (tree.total[0] ?? 0) };
    }, [found, look.own, look.sort, find?.toString(), pinned]);
}
