// SPDX-License-Identifier: Apache-2.0
// The call graph: who calls whom, each function once.  Thicker lines carry more.
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { readInks } from "../flame/inks";
import { share } from "../model/format";
import { graphOf, type Graph, type GraphEdge, type GraphNode } from "../model/graph";
import { shortName } from "../model/family";
import { Looks } from "../model/palette";
import type { Tree } from "../model/tree";
import { useTheme } from "../ui/theme";
import type { FormProps } from "./panel";

const HIGH = 36;
const LAYER = 76;
const MARGIN = 12;
const LETTERS = 26;
const MOST = [60, 45, 34, 26, 20, 15, 11, 8]; // functions: as many as can be read in the panel's width
const READABLE = 0.85; // of their size

function shortened(name: string): string {
    const text = shortName(name);
    return text.length > LETTERS ? `${text.slice(0, LETTERS - 9)}…${text.slice(-8)}` : text;
}
const widthFor = (name: string) => Math.max(108, shortened(name).length * 6.8 + 20);
const top = (node: GraphNode) => MARGIN + node.layer * LAYER;

function curve(from: GraphNode, to: GraphNode, back: boolean): string {
    const [x1, y1, x2, y2] = [from.x + MARGIN, top(from) + HIGH, to.x + MARGIN, top(to)];
    if (back) return `M${x1} ${y1 - HIGH / 2}C${x1 + 120} ${y1 + 30} ${x2 + 120} ${y2 - 30} ${x2} ${y2 + HIGH / 2}`;
    const bend = Math.max(20, (y2 - y1) / 2);
    return `M${x1} ${y1}C${x1} ${y1 + bend} ${x2} ${y2 - bend} ${x2} ${y2}`;
}

function graphFor(tree: Tree, room: number): Graph {
    const of = (most: number) => graphOf(tree, (name) => widthFor(tree.names[name]), most);
    for (const most of MOST) {
        const graph = of(most);
        if ((graph.width + 2 * MARGIN) * READABLE <= room) return graph;
    }
    return of(MOST[MOST.length - 1]);
}

// The inner width of an element, as it changes.
function useRoom(box: { current: HTMLElement | null }): number {
    const [room, setRoom] = useState(0);
    useLayoutEffect(() => {
        const measure = () => {
            const { paddingLeft, paddingRight } = getComputedStyle(box.current!);
            setRoom(box.current!.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight));
        };
        const watch = new ResizeObserver(measure);
        watch.observe(box.current!);
        measure();
        return () => watch.disconnect();
    }, []);
    return room;
}

export function CallGraph(props: FormProps) {
    const { trees, look, measure } = props;
    const tree = trees.shown;
    const theme = useTheme();
    const inks = useMemo(readInks, [theme]);
    const looks = useMemo(() => new Looks(tree, new Set(props.pinned), inks, look.color), [tree, props.pinned, inks, look.color]);
    const box = useRef<HTMLDivElement>(null);
    const room = useRoom(box);
    const [all, setAll] = useState(false);
    const full = useMemo(() => graphFor(tree, Infinity), [tree]);
    const fitted = useMemo(() => (room > 0 ? graphFor(tree, room) : full), [tree, room]);
    const graph = all ? full : fitted;
    const [asked, setZoom] = useState(0); // 0: as wide as the panel
    const whole = tree.total[0] || 1;
    const width = graph.width + 2 * MARGIN;
    const height = graph.layers * LAYER + 2 * MARGIN;
    const chosen = graph.nodes.findIndex(({ name }) => tree.names[name] === look.fn);
    const touches = (edge: GraphEdge) => edge.from === chosen || edge.to === chosen;
    const zoom = asked || Math.max(0.3, Math.min(1, room / width));
    useEffect(() => box.current?.querySelector(".box.chosen")?.scrollIntoView({ block: "center", inline: "center" }), [graph]);
    return (
        <>
            <div class="text-tools">
                <span class="muted small grow">
                    {graph.nodes.length} functions with the largest totals<span class="wide">; thicker lines carry more</span>.
                </span>
                {fitted.nodes.length < full.nodes.length && (
                    <button type="button" class="button ghost" aria-pressed={all} onClick={() => setAll(!all)}>{all ? "Fewer functions" : "More functions"}</button>
                )}
                <button type="button" class="button ghost square" aria-label="Smaller" onClick={() => setZoom(zoom / 1.25)}>−</button>
                <button type="button" class="button ghost square" aria-label="Larger" onClick={() => setZoom(zoom * 1.25)}>+</button>
                <button type="button" class="button ghost" title="As wide as the panel" onClick={() => setZoom(0)}>Fit</button>
            </div>
            <div class="rows call-graph" ref={box}>
                {!graph.nodes.length && <p class="none">There is nothing to draw.</p>}
                <svg width={width * zoom} height={height * zoom} viewBox={`0 0 ${width} ${height}`} role="group" aria-label="Call graph; the table of functions has the same numbers">
                    <g fill="none">
                        {[...graph.edges].reverse().map((edge) => (
                            <path
                                key={`${edge.from} ${edge.to}`}
                                d={curve(graph.nodes[edge.from], graph.nodes[edge.to], edge.back)}
                                class={chosen >= 0 && touches(edge) ? "call near" : "call"}
                                stroke-width={0.8 + 9 * (edge.total / whole)}
                                stroke-dasharray={edge.back ? "4 3" : undefined}
                            >
                                <title>{`${tree.names[graph.nodes[edge.from].name]} → ${tree.names[graph.nodes[edge.to].name]}: ${share(edge.total, whole)}`}</title>
                            </path>
                        ))}
                    </g>
                    {graph.nodes.map((node, i) => (
                        <Box key={node.name} node={node} name={tree.names[node.name]} fill={looks.fill(node.name)} ink={looks.family(node.name) === "kernel" ? inks.kernelInk : inks.frameInk}
                            figures={`${share(node.total, whole)} · self ${share(node.self, whole)}`} title={measure.format(node.total)}
                            strong={looks.family(node.name) === "own"} chosen={i === chosen} onChoose={() => props.onSelectName(tree.names[node.name])} />
                    ))}
                </svg>
            </div>
        </>
    );
}

interface BoxProps {
    node: GraphNode;
    name: string;
    figures: string;
    title: string;
    fill: string;
    ink: string;
    strong: boolean;
    chosen: boolean;
    onChoose: () => void;
}

function Box({ node, name, figures, title, fill, ink, strong, chosen, onChoose }: BoxProps) {
    const width = widthFor(name);
    const onKey = (event: KeyboardEvent) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        onChoose();
    };
    return (
        <g
            class={chosen ? "box chosen" : "box"}
            transform={`translate(${node.x + MARGIN - width / 2} ${top(node)})`}
            tabIndex={0}
            role="button"
            aria-pressed={chosen}
            aria-label={`${name}, ${figures}`}
            onClick={onChoose}
            onKeyDown={onKey}
        >
            <title>{`${name}\n${figures}\n${title}`}</title>
            <rect width={width} height={HIGH} rx="4" fill={fill} />
            <text x={width / 2} y="15" fill={ink} font-weight={strong ? 600 : 400}>{shortened(name)}</text>
            <text x={width / 2} y="29" fill={ink} class="figures">{figures}</text>
        </g>
    );
}
