// SPDX-License-Identifier: Apache-2.0
// The profile as text: who calls whom, row by row, opened and closed with the arrows.
import { useMemo, useState } from "preact/hooks";
import { share } from "../model/format";
import { nameOf, type Tree } from "../model/tree";
import { copy } from "../ui/kit";
import { useVisible } from "../ui/rows";
import type { FormProps } from "./panel";
import { usePhone } from "./phone";

const HOT = 0.4; // of its caller: opened from the start
const OPENED = 24; // rows deep
const COPIED = 0.005; // of the whole: what is smaller is not copied

function childrenOf(tree: Tree, node: number): number[] {
    const children: number[] = [];
    for (let child = node + 1; child < tree.end[node]; child = tree.end[child]) children.push(child);
    return children.sort((a, b) => tree.total[b] - tree.total[a]);
}

// The way that most of the time goes is open from the start.
function hotPath(tree: Tree, root: number): Set<number> {
    const open = new Set<number>([root]);
    let at = root;
    for (let depth = 0; depth < OPENED; depth++) {
        const hottest = childrenOf(tree, at)[0];
        if (hottest === undefined || tree.total[hottest] < tree.total[at] * HOT) break;
        open.add((at = hottest));
    }
    return open;
}

function rowsOf(tree: Tree, root: number, open: Set<number>): number[] {
    const rows: number[] = [];
    const walk = (node: number) => {
        rows.push(node);
        if (open.has(node)) childrenOf(tree, node).forEach(walk);
    };
    if (tree.n) walk(root);
    return rows;
}

// Below the given node, what is not too small: "52.8 %  1.1 %    createOrder".
export function asText(tree: Tree, root: number): string {
    const lines = ["   Total     Self  Function"];
    const whole = tree.total[0] || 1;
    const walk = (node: number) => {
        const figures = [tree.total[node], tree.self[node]].map((value) => `${((value / whole) * 100).toFixed(1)} %`.padStart(8)).join(" ");
        lines.push(`${figures}  ${"  ".repeat(tree.depth[node] - tree.depth[root])}${nameOf(tree, node)}`);
        childrenOf(tree, node).filter((child) => tree.total[child] >= whole * COPIED).forEach(walk);
    };
    if (tree.n) walk(root);
    return lines.join("\n") + "\n";
}

function useOpen(tree: Tree, root: number) {
    const start = useMemo(() => hotPath(tree, root), [tree, root]);
    const [changed, setChanged] = useState<{ of: Set<number>; open: Set<number> } | null>(null);
    const open = changed?.of === start ? changed.open : start;
    const set = (nodes: number[], to: boolean) => {
        const next = new Set(open);
        nodes.forEach((node) => (to ? next.add(node) : next.delete(node)));
        setChanged({ of: start, open: next });
    };
    return { open, set };
}

export function TextTree(props: FormProps) {
    const { trees, focus, selected, measure } = props;
    const tree = trees.shown;
    const high = usePhone() ? 36 : 24; // of a row
    const { open, set } = useOpen(tree, focus);
    const rows = useMemo(() => rowsOf(tree, focus, open), [tree, focus, open]);
    const { box, first, last, onScroll, reveal } = useVisible(rows.length, high);
    const at = rows.indexOf(selected);
    const whole = tree.total[0] || 1;
    const hasChildren = (node: number) => tree.end[node] > node + 1;
    const everything = () => rows.length && set(Array.from({ length: tree.end[focus] - focus }, (_, i) => focus + i), true);
    const go = (i: number) => {
        const to = Math.max(0, Math.min(rows.length - 1, i));
        props.onSelect(rows[to]);
        reveal(to, high);
    };
    const onKey = (event: KeyboardEvent) => {
        const node = rows[at];
        const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: rows.length - 1, PageDown: at + 15, PageUp: at - 15 }[event.key];
        if (event.shiftKey) return;
        if (to !== undefined) go(to);
        else if (event.key === "ArrowRight" && at >= 0) open.has(node) || !hasChildren(node) ? go(at + 1) : set([node], true);
        else if (event.key === "ArrowLeft" && at >= 0) open.has(node) && hasChildren(node) ? set([node], false) : go(Math.max(0, rows.indexOf(tree.parent[node])));
        else if (event.key === "Enter" && at >= 0) props.onFocus(node);
        else return;
        event.preventDefault();
        event.stopPropagation();
    };
    return (
        <>
            <div class="text-tools">
                <button type="button" class="button ghost" onClick={everything} disabled={tree.n > 20000}>Open all</button>
                <button type="button" class="button ghost" onClick={() => set(rows.filter((node) => node !== focus), false)}>Close all</button>
                {focus > 0 && <button type="button" class="button ghost" onClick={() => props.onFocus(0)}>Show all</button>}
                <span class="grow" />
                <button type="button" class="button ghost" onClick={() => copy(asText(tree, focus), "Tree copied as text")}>Copy as text</button>
            </div>
            <div class="rows text-tree" ref={box} onScroll={onScroll} tabIndex={0} onKeyDown={onKey} role="treegrid" aria-rowcount={rows.length + 1} aria-label="Call tree: arrows walk, open and close">
                <div class="text-head" role="row" aria-rowindex={1}>
                    <span role="columnheader">Function</span>
                    <span role="columnheader" class="number">{measure.unit || "Count"}</span>
                    <span role="columnheader" class="number">Total</span>
                    <span role="columnheader" class="number">Self</span>
                </div>
                <div style={{ height: `${rows.length * high}px`, position: "relative" }}>
                    {rows.slice(first, last).map((node, i) => (
                        <div
                            key={node}
                            role="row"
                            class="text-row"
                            aria-rowindex={first + i + 2}
                            aria-level={tree.depth[node] - tree.depth[focus] + 1}
                            aria-expanded={hasChildren(node) ? open.has(node) : undefined}
                            aria-selected={node === selected}
                            style={{ top: `${(first + i) * high}px` }}
                            onClick={() => props.onSelect(node)}
                            onDblClick={() => props.onFocus(node)}
                            onContextMenu={(event) => {
                                event.preventDefault();
                                props.onMenu(node, { x: event.clientX, y: event.clientY });
                            }}
                        >
                            <span class="ellipsis" role="gridcell" title={nameOf(tree, node)} style={{ paddingLeft: `${Math.min(tree.depth[node] - tree.depth[focus], 40) * 12}px` }}>
                                <button
                                    type="button"
                                    class="twist"
                                    tabIndex={-1}
                                    aria-label={open.has(node) ? "Close" : "Open"}
                                    hidden={!hasChildren(node)}
                                    onClick={(event) => {
                                        event.stopPropagation();
                                        set([node], !open.has(node));
                                    }}
                                >
                                    {open.has(node) ? "▾" : "▸"}
                                </button>
                                <span class={props.find?.test(nameOf(tree, node)) ? "hit" : ""}>{nameOf(tree, node)}</span>
                            </span>
                            <span class="number" role="gridcell">{measure.short(tree.total[node])}</span>
                            <span class="number bar" role="gridcell">
                                <i style={{ width: `${(tree.total[node] / whole) * 64}px` }} />
                                <span>{share(tree.total[node], whole)}</span>
                            </span>
                            <span class="number" role="gridcell">{tree.self[node] ? share(tree.self[node], whole) : "–"}</span>
                        </div>
                    ))}
                </div>
            </div>
        </>
    );
}
