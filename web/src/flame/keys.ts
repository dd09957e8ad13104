// SPDX-License-Identifier: Apache-2.0
// The keys of a flame graph.  Those that mean something elsewhere too (arrows, Enter, Escape) work
// while the graph has the focus, or nothing has.
import type { RefObject } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { neighbour, type Layout } from "../model/layout";
import { nextHit, type Found } from "../model/search";
import { nameOf } from "../model/tree";
import { isSecond, useKeys, type Key } from "../ui/keys";
import { copy } from "../ui/kit";
import type { FlameProps } from "./flame";
import type { Stage } from "./stage";

interface Parts {
    props: FlameProps;
    canvas: RefObject<HTMLCanvasElement>;
    stage: RefObject<Stage>;
    layout: Layout;
    found: Found | null;
    enter: (node: number) => void;
}

const WAYS: Record<string, "up" | "down" | "left" | "right"> = {
    ArrowUp: "up", ArrowDown: "down", ArrowLeft: "left", ArrowRight: "right",
};
const FLIPPED = { up: "down", down: "up", left: "left", right: "right" } as const;
const ZOOM = 1.5;
const nothing = () => {};

function walk({ props, layout, stage }: Parts, way: "up" | "down" | "left" | "right"): void {
    const to = props.selected < 0 ? props.focus : neighbour(layout, props.selected, props.flip ? FLIPPED[way] : way);
    if (to >= 0 && to < layout.n) props.onSelect(to);
    stage.current?.reveal(to);
}

function move(stage: Stage | null, way: "up" | "down" | "left" | "right"): void {
    if (way === "left" || way === "right") stage?.pan(way === "left" ? -0.2 : 0.2);
    else stage?.scroll(way === "up" ? -3 : 3);
}

function jump({ props, layout, found }: Parts, step: 1 | -1): void {
    const to = found ? nextHit(layout, found.names, props.selected, step) : -1;
    if (to >= 0) props.onSelect(to);
}

// Back to what is focused, then to all of it, then nothing is chosen; false: there is no way back.
function backOut({ props, stage }: Parts, choice: boolean): boolean {
    if (stage.current && !stage.current.shows(props.focus)) stage.current.show(props.focus);
    else if (props.focus > 0) props.onFocus(0);
    else if (choice && props.selected >= 0) props.onSelect(-1);
    else return false;
    return true;
}

function plainKeys(parts: Parts): Key[] {
    const { props, stage, layout } = parts;
    const chosen = (run: (node: number) => void) => () => props.selected >= 0 && run(props.selected);
    return [
        { keys: "+", does: "Zoom in", run: () => stage.current?.zoom(ZOOM) },
        { keys: "-", does: "Zoom out", run: () => stage.current?.zoom(1 / ZOOM) },
        { keys: "0", does: "Show all", run: () => void backOut(parts, false) },
        { keys: "n", does: "Next hit of the search", run: () => jump(parts, 1) },
        { keys: "N", does: "Previous hit", run: () => jump(parts, -1) },
        { keys: "c", does: "Copy the name", run: chosen((node) => copy(nameOf(layout.tree, node), "Name copied")) },
        ...(props.actions ?? []).map(({ key, label, run }) => ({ keys: key, does: label, run: chosen(run) })),
    ];
}

const LISTED: Key[] = [
    { keys: "← ↑ → ↓", does: "Walk the frames", run: nothing },
    { keys: "Shift ← ↑ → ↓", does: "Pan and scroll", run: nothing },
    { keys: "↵", does: "Focus on the chosen frame", run: nothing },
    { keys: "Esc", does: "Back out", run: nothing },
];

function onKeyDown(parts: Parts, event: KeyboardEvent): void {
    const { props, canvas, stage } = parts;
    const here = event.target === canvas.current;
    if (event.defaultPrevented || event.altKey || event.ctrlKey || event.metaKey || isSecond(event)) return;
    if (!here && (props.keys === false || event.target !== document.body)) return;
    if (document.querySelector("dialog[open], .menu")) return;
    const way = WAYS[event.key];
    let done = true;
    if (way && event.shiftKey) move(stage.current, way);
    else if (way) walk(parts, way);
    else if (event.key === "Enter" && props.selected >= 0) parts.enter(props.selected);
    else if (event.key === "Escape") done = backOut(parts, true);
    else if ((event.key === "ContextMenu" || (event.key === "F10" && event.shiftKey)) && props.selected >= 0)
        props.onMenu?.(props.selected, stage.current!.pointOf(props.selected));
    else {
        const pressed = event.key === "=" ? "+" : event.key; // one key on most keyboards, with Shift or without
        const key = here ? plainKeys(parts).find(({ keys }) => keys === pressed) : undefined;
        key?.run(event);
        done = !!key;
    }
    if (done) event.preventDefault();
}

export function useFlameKeys(parts: Parts): void {
    const latest = useRef(parts);
    latest.current = parts;
    useEffect(() => {
        const listen = (event: KeyboardEvent) => onKeyDown(latest.current, event);
        document.addEventListener("keydown", listen, true); // before those of the page
        return () => document.removeEventListener("keydown", listen, true);
    }, []);
    useKeys("Flame graph", parts.props.keys === false ? [] : [...LISTED, ...plainKeys(parts)]);
}
