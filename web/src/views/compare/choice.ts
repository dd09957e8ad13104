// SPDX-License-Identifier: Apache-2.0
// The chosen frame of a comparison and the one that fills the width, both in the address: fn is the
// function, at its place (a path of names) where it has several, focus the path of the other.
import { change, usePlace } from "../../state/place";
import { nameOf, nodeAt, pathOf } from "../../model/tree";
import { nodeOf, type Compared } from "./compared";

export interface Choice {
    node: number; // 0: nothing but the whole
    name: string; // "": none
    focus: number;
    find: RegExp | null;
    select: (node: number) => void;
    selectName: (name: string) => void;
    setFocus: (node: number) => void;
}

const SEPARATOR = "\n"; // no name has one

function toRegExp(text: string | null): RegExp | null {
    try {
        return text ? new RegExp(text, "i") : null;
    } catch {
        return null;
    }
}

// Until something is chosen, it is where the largest change starts.
export function useChoice(of: Compared): Choice {
    const { params } = usePlace();
    const { tree, starts } = of;
    const fn = params.get("fn");
    const path = (name: string) => (params.get(name) ? nodeAt(tree, params.get(name)!.split(SEPARATOR)) : -1);
    const at = path("at");
    const node = fn === null ? (starts[0]?.node ?? 0) : at >= 0 && nameOf(tree, at) === fn ? at : Math.max(0, nodeOf(of, fn));
    const select = (to: number) => {
        const name = to > 0 ? nameOf(tree, to) : null;
        const usual = name !== null && nodeOf(of, name) === to;
        change({ fn: name, at: name === null || usual ? null : pathOf(tree, to).join(SEPARATOR) }, true);
    };
    return {
        node,
        name: node > 0 ? nameOf(tree, node) : "",
        focus: Math.max(0, path("focus")),
        find: toRegExp(params.get("find")),
        select,
        selectName: (name) => change({ fn: name, at: null }, true),
        setFocus: (to) => change({ focus: to > 0 ? pathOf(tree, to).join(SEPARATOR) : null }),
    };
}
