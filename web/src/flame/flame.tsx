// SPDX-License-Identifier: Apache-2.0
// The flame graph: a canvas, its legend, and what can be done with a frame.
import type { Measure } from "../model/measure";
import type { Tree } from "../model/tree";

export type ColorBy = "module" | "kind" | "diff";

export interface FlameAction {
    label: string;
    key: string;
    run: (node: number) => void;
}

export interface FlameProps {
    label: string; // for who does not see it
    tree: Tree;
    measure: Measure;
    samples: number; // observations behind the root's total, for uncertainties; 0: not known
    selected: number; // a node, or -1
    onSelect: (node: number) => void;
    focus: number; // the node that fills the width; 0: all of it
    onFocus: (node: number) => void;
    find?: RegExp | null; // dims all else
    flip?: boolean; // true: root at the bottom (flame), false: root on top (icicle)
    colorBy?: ColorBy;
    ownModules?: string[]; // pinned as own code
    noise?: (node: number) => boolean; // of a comparison: this change could be chance
    onRefine?: (node: number) => void; // a folded frame was clicked: bring more detail
    onMenu?: (node: number, at: { x: number; y: number }) => void; // a context menu is wanted
}

export function Flame(props: FlameProps) {
    return <canvas role="img" aria-label={props.label} />;
}
