// SPDX-License-Identifier: Apache-2.0
// Rows of the table of functions: the server's own, which are exact, or added up from the tree where only
// a part of it is looked at.
import { useMemo } from "preact/hooks";
import type { QueryAnswer } from "../api/answers";
import { familyOf } from "../model/family";
import { functionsOf } from "../model/join";
import type { Pattern } from "../model/regex";
import { originOf, presentOf } from "../model/transform";
import type { Mark, Tree } from "../model/tree";
import type { Look } from "./state";
import { tableTree, type Trees } from "./trees";

export interface Row {
    name: string;
    file: string;
    module: string;
    kind: string;
    self: number;
    total: number;
    mark?: Mark; // of a group: what cannot be seen from its name
}

export const familyOfRow = (row: Row, pinned: ReadonlySet<string>) => row.mark?.family ?? familyOf(row, pinned);

export interface Rows {
    rows: Row[]; // as they are to be shown
    all: number; // functions there are
    cut: boolean; // the server did not send all of them
    whole: number; // what shares are of
}

function rowsOf(tree: Tree, below: number): Row[] {
    const { used, self, total } = functionsOf(tree, below);
    return Array.from(used, (id) => ({
        name: tree.names[id], file: tree.files[id], module: tree.modules[id], kind: tree.kinds[id], self: self[id], total: total[id], mark: tree.marks?.[id],
    }));
}

const order: Record<Look["sort"], (a: Row, b: Row) => number> = {
    self: (a, b) => b.self - a.self || b.total - a.total,
    total: (a, b) => b.total - a.total || b.self - a.self,
    name: (a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0),
};

// `focus`: a node of the shown tree.
export function useRows(answer: QueryAnswer, trees: Trees, focus: number, look: Look, find: Pattern | null, pinned: ReadonlySet<string>): Rows {
    const everything = focus === 0 && !trees.filtered;
    const found = useMemo(() => {
        if (everything) return answer.top?.rows ?? [];
        const tree = tableTree(trees.whole, look, pinned);
        const at = focus > 0 && !look.invert ? presentOf(tree, trees.whole, originOf(trees.shown, focus)) : 0;
        return rowsOf(tree, Math.max(0, at));
    }, [everything ? answer : trees.shown, focus]);
    const whole = everything ? answer.total : (trees.shown.total[0] ?? 0);
    return useMemo(() => {
        const own = look.own ? found.filter((row) => familyOfRow(row, pinned) === "own") : found;
        const rows = (find ? own.filter((row) => find.test(row.name)) : [...own]).sort(order[look.sort]);
        const all = everything ? (answer.top?.functions ?? found.length) : found.length;
        return { rows, all, cut: everything && all > found.length, whole };
    }, [found, look.own, look.sort, find?.toString(), pinned]);
}
