// SPDX-License-Identifier: Apache-2.0
// What can be done with a frame: the context menu.
import { frameOf } from "../model/palette";
import { unitOf } from "../model/family";
import { pathOf } from "../model/tree";
import { linkTo } from "../state/place";
import { copy } from "../ui/kit";
import { Menu, type MenuEntry, type Point } from "../ui/menu";
import { togglePinned } from "./pinned";
import { addFilter, setLook, type Look } from "./state";
import { functionOf, type Trees } from "./trees";

export interface FrameMenuProps {
    trees: Trees;
    node: number;
    at: Point;
    look: Look;
    pinned: string[];
    canSource: boolean;
    canTime: boolean;
    onFocus: (node: number) => void;
    onOverTime: (name: string) => void;
    onClose: () => void;
}

function entriesOf(props: FrameMenuProps): MenuEntry[] {
    const { trees, node, look, pinned } = props;
    const { shown } = trees;
    const name = functionOf(trees, node);
    const id = shown.name[node];
    const frame = frameOf(shown, id);
    const unit = trees.grouped ? "" : unitOf(frame);
    const isPinned = pinned.includes(unit) || pinned.includes(frame.module);
    const folded = id === shown.other;
    if (folded) return [{ label: "Load what was folded here", disabled: !trees.refine, onChoose: () => trees.refine?.(node) }];
    const exact = `=${name}`;
    return [
        { label: "Focus", aside: "↵", onChoose: () => props.onFocus(node) },
        { label: "Only stacks with it", disabled: trees.grouped, onChoose: () => addFilter(look, "only", exact) },
        { label: "Without stacks that have it", disabled: trees.grouped, onChoose: () => addFilter(look, "ignore", exact) },
        { label: "Hide this function", aside: "h", disabled: trees.grouped, onChoose: () => addFilter(look, "hide", exact) },
        "line",
        { label: "Callers and callees", aside: "s", disabled: trees.grouped, onChoose: () => setLook({ fn: name, show: "sandwich" }) },
        { label: "Source lines", aside: "o", disabled: !props.canSource || trees.grouped, onChoose: () => setLook({ fn: name, source: true }) },
        { label: "This function over time", disabled: !props.canTime || trees.grouped, onChoose: () => props.onOverTime(name) },
        { label: "Compare with before", href: linkTo("compare", { fn: name }) },
        "line",
        ...(unit
            ? ([
                  { label: `Only stacks through ${unit}`, onChoose: () => addFilter(look, "only", `@${unit}`) },
                  { label: `Hide ${unit}`, onChoose: () => addFilter(look, "hide", `@${unit}`) },
                  { label: isPinned ? `${unit} is not my code` : `${unit} is my code`, onChoose: () => togglePinned(pinned.includes(frame.module) ? frame.module : unit) },
                  "line",
              ] as MenuEntry[])
            : []),
        { label: "Copy name", aside: "c", onChoose: () => void copy(name, "Name copied") },
        { label: "Copy stack", onChoose: () => void copy(pathOf(shown, node).join("\n"), "Stack copied, outermost first") },
    ];
}

export function FrameMenu(props: FrameMenuProps) {
    return <Menu label="Frame" at={props.at} onClose={props.onClose} entries={entriesOf(props)} class="frame-menu" />;
}
