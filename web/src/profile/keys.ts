// SPDX-License-Identifier: Apache-2.0
// Keys of a profile, beside those that the flame graph has itself.
import type { RefObject } from "preact";
import type { Key } from "../ui/keys";
import { addFilter, setLook, SHOWS, type Look } from "./state";
import { functionOf, type Trees } from "./trees";

export const TITLES: Record<(typeof SHOWS)[number], string> = {
    flame: "Flame", sandwich: "Sandwich", time: "By time", graph: "Graph", tree: "Tree", table: "Table",
};

interface Parts {
    look: Look;
    trees: Trees;
    selected: number;
    input: RefObject<HTMLInputElement>;
    callers: () => void;
    toSource: () => void;
}

// The table is beside the picture where there is room for both: there, its key leads to it.
function choose(show: (typeof SHOWS)[number]): void {
    const beside = document.querySelector<HTMLElement>(".profile > .profile-side .rows");
    if (show === "table" && beside) beside.focus();
    else setLook({ show });
}

export function panelKeys({ look, trees, selected, input, callers, toSource }: Parts): Key[] {
    const named = (run: (name: string) => void) => () => {
        const name = functionOf(trees, selected) || look.fn;
        if (name && !trees.grouped) run(name);
    };
    return [
        { keys: "/", does: "Find", run: () => input.current?.focus() },
        ...SHOWS.map((show, i) => ({ keys: String(i + 1), does: TITLES[show], run: () => choose(show) })),
        { keys: "s", does: "Callers and callees of the chosen function", run: () => callers() },
        { keys: "o", does: "Source lines of the chosen function", run: () => toSource() },
        { keys: "h", does: "Hide the chosen function", run: named((name) => addFilter(look, "hide", `=${name}`)) },
        { keys: "r", does: "Collapse recursion", run: () => setLook({ recursion: !look.recursion, focus: "" }) },
        { keys: "u", does: "Unfold the runtime's start", run: () => setLook({ stems: !look.stems, focus: "" }) },
        { keys: "b", does: "Bottom up", run: () => setLook({ invert: !look.invert, focus: "" }) },
        { keys: "i", does: "Root on top or at the bottom", run: () => setLook({ flip: !look.flip }) },
    ];
}
