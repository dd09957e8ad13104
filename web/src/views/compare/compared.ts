// SPDX-License-Identifier: Apache-2.0
// An answer of /api/v1/diff with all that pictures, tables and sentences need of it.
import { useMemo } from "preact/hooks";
import type { DiffAnswer } from "../../api/answers";
import { diffMeasure, nodeChange, startsOf, wholeOf, type Change, type Start } from "../../model/diff";
import { familyOf } from "../../model/family";
import type { Measure } from "../../model/measure";
import { frameOf } from "../../model/palette";
import { diffTreeOf, nameOf, type Tree } from "../../model/tree";

export interface Compared {
    answer: DiffAnswer;
    tree: Tree;
    measure: Measure;
    changes: Change[]; // of each node
    starts: Start[];
}

const known = new WeakMap<DiffAnswer, Compared>(); // worked out once for each answer

export function comparedOf(answer: DiffAnswer): Compared | null {
    const before = known.get(answer);
    if (before || !answer.flamegraph) return before ?? null;
    const tree = diffTreeOf(answer.flamegraph, answer.scale);
    const whole = wholeOf(answer);
    const changes = Array.from({ length: tree.n }, (_, node) => nodeChange(tree, node, whole));
    const starts = startsOf(
        tree,
        (node) => changes[node],
        (name) => familyOf(frameOf(tree, name)) === "own",
    );
    const compared = { answer, tree, measure: diffMeasure(answer), changes, starts };
    known.set(answer, compared);
    return compared;
}

export const useCompared = (answer: DiffAnswer | null): Compared | null =>
    useMemo(() => answer && comparedOf(answer), [answer]);

// The node that stands for a function: the one that changed most.
export function nodeOf({ tree, changes }: Compared, name: string): number {
    let best = -1;
    for (let node = 1; node < tree.n; node++) {
        if (nameOf(tree, node) !== name) continue;
        if (best < 0 || Math.abs(changes[node].by) > Math.abs(changes[best].by)) best = node;
    }
    return best;
}
