// SPDX-License-Identifier: Apache-2.0
// Frames that were found, row by row from the left, and the walk through them.
import { useMemo } from "preact/hooks";
import { layoutOf } from "../model/layout";
import type { Pattern } from "../model/regex";
import { matching } from "../model/search";
import type { Tree } from "../model/tree";

export interface Hits {
    at: number; // the chosen one, from 1; 0: it is none of them
    next: (step: 1 | -1) => void;
}

export function useHits(tree: Tree, pattern: Pattern | null, selected: number, onSelect: (node: number) => void): Hits {
    const nodes = useMemo(() => {
        if (!pattern) return [];
        const names = matching(tree, pattern);
        return Array.from(layoutOf(tree).node).filter((node) => names[tree.name[node]]);
    }, [tree, pattern]);
    const at = nodes.indexOf(selected);
    const next = (step: 1 | -1) => {
        if (!nodes.length) return;
        const to = at < 0 ? (step > 0 ? 0 : nodes.length - 1) : (at + step + nodes.length) % nodes.length;
        onSelect(nodes[to]);
    };
    return { at: at + 1, next };
}
