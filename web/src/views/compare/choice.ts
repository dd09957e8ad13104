// SPDX-License-Identifier: Apache-2.0
// The chosen frame of a comparison and the one that fills the width, both in the address: fn is the
// function, at its place where it has several, focus that of the other.
import type { Pattern } from "../../model/regex";
import { patternOf } from "../../model/search";
import { nameOf, type Tree } from "../../model/tree";
import { formatPath, nodeOnPath } from "../../profile/state";
import { change, usePlace } from "../../state/place";
import { nodeOf, type Compared } from "./compared";

export interface Choice {
    node: number; // 0: nothing but the whole
    name: string; // "": none
    focus: number;
    find: Pattern | null;
    select: (node: number) => void;
    selectName: (name: string) => void;
    setFocus: (node: number) => void;
}

// The node where a function has most, or -1.
export function largestNamed(tree: Tree, name: string): number {
    let best = -1;
    for (let node = 1; node < tree.n; node++)
        if (nameOf(tree, node) === name && (best < 0 || tree.total[node] > tree.total[best])) best = node;
    return best;
}

// Until something is chosen, it is where the largest change starts.
export function useChoice(of: Compared): Choice {
    const { params } = usePlace();
    const { tree, starts } = of;
    const fn = params.get("fn");
    const at = nodeOnPath(tree, params.get("at") ?? "");
    const node =
        fn === null ? (starts[0]?.node ?? 0) : at > 0 && nameOf(tree, at) === fn ? at : Math.max(0, nodeOf(of, fn));
    const select = (to: number) => {
        const name = to > 0 ? nameOf(tree, to) : null;
        const usual = name !== null && nodeOf(of, name) === to;
        change({ fn: name, at: name === null || usual ? null : formatPath(tree, to) }, true);
    };
    return {
        node,
        name: node > 0 ? nameOf(tree, node) : "",
        focus: nodeOnPath(tree, params.get("focus") ?? ""),
        find: patternOf(params.get("find") ?? ""),
        select,
        selectName: (name) => change({ fn: name, at: null }, true),
        setFocus: (to) => change({ focus: to > 0 ? formatPath(tree, to) : null }),
    };
}
