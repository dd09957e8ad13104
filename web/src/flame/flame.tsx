// SPDX-License-Identifier: Apache-2.0
// The flame graph: a canvas, its legend, and what can be done with a frame.
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { percent } from "../model/format";
import { layoutOf } from "../model/layout";
import type { Measure } from "../model/measure";
import { describe, diffScale, Looks, type ColorBy } from "../model/palette";
import { find } from "../model/search";
import type { Pattern } from "../model/regex";
import type { Tree } from "../model/tree";
import { useTheme } from "../ui/theme";
import { Crumbs } from "./crumbs";
import "./flame.css";
import { readInks } from "./inks";
import { useFlameKeys } from "./keys";
import { Legend } from "./legend";
import { countHits, type Scene } from "./painter";
import { Stage, type StageEvents } from "./stage";
import { Tip } from "./tip";

export type { ColorBy } from "../model/palette";

// What a key does with the chosen frame.
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
    find?: Pattern | null; // dims all else
    flip?: boolean; // true: root at the bottom (flame), false: root on top (icicle)
    colorBy?: ColorBy;
    ownModules?: string[]; // pinned as own code
    noise?: (node: number) => boolean; // of a comparison: this change could be chance
    onRefine?: (node: number) => void; // a folded frame was clicked: bring more detail
    onMenu?: (node: number, at: { x: number; y: number }) => void; // a context menu is wanted
    actions?: FlameAction[]; // keys beside those that the graph has itself
    keys?: boolean; // false: its keys work only while it has the focus (there is another one beside it)
    legend?: boolean; // false: without
}

const NOBODY: ReadonlySet<string> = new Set();

// "loadRules, 29.2 % of all, depth 11, your code"
function announcement(looks: Looks, node: number): string {
    const { tree } = looks;
    if (node < 0 || node >= tree.n) return "";
    const name = tree.name[node];
    return `${tree.names[name]}, ${percent(tree.total[node] / (tree.total[0] || 1))} of all, depth ${tree.depth[node]}. ${describe(looks, name)}`;
}

function useScene(props: FlameProps, hot: number) {
    const { tree, measure, noise } = props;
    const theme = useTheme();
    const by: ColorBy = props.colorBy ?? (tree.leftTotal ? "diff" : "module");
    const inks = useMemo(readInks, [theme]);
    const layout = useMemo(() => layoutOf(tree), [tree]);
    const pinned = props.ownModules?.join("\n") ?? "";
    const looks = useMemo(() => new Looks(tree, pinned ? new Set(pinned.split("\n")) : NOBODY, inks, by), [tree, pinned, inks, by]);
    const inCores = measure.unit === "cores";
    const diff = useMemo(
        () => (by === "diff" ? { scale: diffScale(tree, inCores ? measure.rate : null), noise } : null),
        [tree, by, inCores, noise],
    );
    const pattern = props.find instanceof RegExp ? String(props.find) : props.find; // what only tests is itself its key
    const found = useMemo(() => (props.find ? find(tree, props.find) : null), [tree, pattern]);
    const hits = useMemo(() => found && countHits(layout, found.names), [layout, found]);
    const scene: Scene = { layout, looks, measure, diff, hits, selected: props.selected, hot, focus: props.focus, flip: !!props.flip };
    return { scene, inks, by, found };
}

export function Flame(props: FlameProps) {
    const canvas = useRef<HTMLCanvasElement>(null);
    const space = useRef<HTMLDivElement>(null);
    const scroller = useRef<HTMLDivElement>(null);
    const stage = useRef<Stage | null>(null);
    const where = useRef<HTMLElement>(null);
    const [hover, setHover] = useState({ node: -1, x: 0, y: 0 });
    const hot = hover.node < props.tree.n ? hover.node : -1;
    const { scene, inks, by, found } = useScene(props, hot);
    const { tree, selected, focus } = props;

    const enter = (node: number) => {
        if (node < 0) return;
        if (tree.name[node] === tree.other && props.onRefine) return props.onRefine(node);
        if (node === focus) stage.current?.show(node);
        else props.onFocus(node);
    };
    const press = (node: number) => {
        if (node >= 0 && tree.name[node] === tree.other && props.onRefine) return props.onRefine(node);
        if (node >= 0 && node === selected) enter(node);
        else props.onSelect(node);
    };
    const events: StageEvents = {
        hover: (node, at) => setHover((old) => (old.node === node && node < 0 ? old : { node, ...at })),
        press,
        menu: (node, at) => {
            setHover({ node: -1, x: 0, y: 0 });
            props.onMenu?.(node, at);
        },
        seen: (from, to) => {
            const bar = where.current!;
            bar.hidden = to - from > 0.999;
            bar.style.left = `${from * 100}%`;
            bar.style.width = `max(4px, ${(to - from) * 100}%)`;
        },
    };
    const latest = useRef(events);
    latest.current = events;

    useLayoutEffect(() => {
        const made = new Stage(canvas.current!, space.current!, scroller.current!, () => latest.current);
        stage.current = made;
        return () => made.close();
    }, []);
    useLayoutEffect(() => stage.current!.setInks(inks), [inks]);
    useLayoutEffect(() => stage.current!.setScene(scene));
    const shown = useRef({ tree, focus });
    useLayoutEffect(() => {
        const before = shown.current;
        const fresh = before.tree !== tree || before.focus === focus;
        shown.current = { tree, focus };
        stage.current!.show(focus < tree.n ? focus : 0, fresh);
    }, [tree, focus]);
    useEffect(() => {
        if (props.flip) stage.current!.toBottom();
        else scroller.current!.scrollTop = 0;
    }, [props.flip]);
    const revealed = useRef<Tree | null>(null);
    useEffect(() => {
        // A refresh must not move what is being read.
        if (revealed.current === tree || !revealed.current) stage.current!.reveal(selected);
        revealed.current = tree;
    }, [selected, focus, tree]);

    useFlameKeys({ props, canvas, stage, layout: scene.layout, found, enter });
    const said = selected >= 0 ? announcement(scene.looks, selected) : "";
    return (
        <div class="flame">
            {focus > 0 && focus < tree.n && <Crumbs tree={tree} focus={focus} onFocus={props.onFocus} />}
            <div class="flame-scroll" ref={scroller}>
                <div ref={space}>
                    <canvas
                        ref={canvas}
                        tabIndex={0}
                        role="application"
                        aria-roledescription="flame graph"
                        aria-label={`${props.label}. Arrows walk it, Enter focuses; the table of functions has the same numbers.`}
                    />
                </div>
            </div>
            <div class="flame-where" aria-hidden="true"><i ref={where} hidden /></div>
            <div class="hidden" aria-live="polite">{said}</div>
            {props.legend !== false && <Legend looks={scene.looks} inks={inks} by={by} />}
            {hot >= 0 && (
                <Tip looks={scene.looks} node={hot} at={hover} measure={props.measure} samples={props.samples} noise={props.noise} refine={!!props.onRefine} />
            )}
        </div>
    );
}
