// SPDX-License-Identifier: Apache-2.0
// By time: a flame chart of the samples that have timestamps, a lane for each thread.  The wheel zooms with
// Ctrl, dragging pans, + and − and the arrows do the same.
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { QueryAnswer, Timeline } from "../api/answers";
import { readInks } from "../flame/inks";
import { clock, count, duration, plural } from "../model/format";
import { lanesOf, type Lanes } from "../model/lanes";
import { Looks } from "../model/palette";
import { matching } from "../model/search";
import { formatTime } from "../model/time";
import type { Tree } from "../model/tree";
import { change } from "../state/place";
import { Failure, Loading } from "../ui/kit";
import { useTheme } from "../ui/theme";
import { useAgain } from "./again";
import { blockAt, ChartPainter, wholeHeight, type ChartScene, type ChartView } from "./chart";
import type { FormProps } from "./panel";

const LIMIT = 20000;

function Untimed({ answer }: { answer: QueryAnswer }) {
    return (
        <div class="profile-wait">
            <p class="none">
                None of these {count(answer.basis.count)} samples has a timestamp, so nobody knows their order. Profilers that send OTLP with timestamps, and{" "}
                <code>kiln record</code>, keep them; most of what is scraped as pprof does not.
            </p>
        </div>
    );
}

function Said({ timeline, lanes }: { timeline: Timeline; lanes: Lanes }) {
    const drawn = timeline.at_ns.length;
    const from = Date.parse(timeline.start) + lanes.from / 1e6;
    const until = Date.parse(timeline.start) + lanes.to / 1e6;
    const cut = drawn < timeline.timed;
    return (
        <div class="profile-notes">
            <span>
                {plural(lanes.lanes.length, "thread")}, {clock(from, true)} – {clock(until, true)}
            </span>
            {timeline.timed < timeline.all && <span>{count(timeline.timed)} of {count(timeline.all)} samples have a time.</span>}
            {cut && (
                <span>
                    The first {count(drawn)} of them are drawn.{" "}
                    <button type="button" class="as-link" onClick={() => change({ from: formatTime(Math.floor(from)), until: formatTime(Math.ceil(until)) })}>
                        Look at this time alone
                    </button>
                </span>
            )}
            <span class="muted wide">Drag pans, Ctrl and the wheel zoom, 0 shows all.</span>
        </div>
    );
}

// The window on the chart: which times are seen, and how to change that.
function useTimes(lanes: Lanes) {
    const [seen, setSeen] = useState<{ of: Lanes; from: number; to: number } | null>(null);
    const { from, to } = seen?.of === lanes ? seen : lanes;
    const show = (a: number, b: number) => {
        const whole = lanes.to - lanes.from;
        const length = Math.min(whole, Math.max(1e4, b - a));
        const start = Math.max(lanes.from, Math.min(lanes.to - length, a));
        setSeen({ of: lanes, from: start, to: start + length });
    };
    const zoom = (by: number, at = (from + to) / 2) => show(at - (at - from) / by, at + (to - at) / by);
    const pan = (share: number) => show(from + (to - from) * share, to + (to - from) * share);
    return { from, to, show, zoom, pan };
}

function Chart({ props, timeline, lanes }: { props: FormProps; timeline: Timeline; lanes: Lanes }) {
    const theme = useTheme();
    const canvas = useRef<HTMLCanvasElement>(null);
    const box = useRef<HTMLDivElement>(null);
    const [size, setSize] = useState({ width: 0, height: 0, top: 0 });
    const [tip, setTip] = useState<{ text: string; x: number; y: number } | null>(null);
    const drag = useRef<{ x: number; from: number; to: number; moved: boolean } | null>(null);
    const times = useTimes(lanes);
    const inks = useMemo(readInks, [theme]);
    const names = useMemo(() => ({ ...timeline, other: -1 }) as unknown as Tree, [timeline]);
    const looks = useMemo(() => new Looks(names, new Set(props.pinned), inks, props.look.color), [names, props.pinned, inks, props.look.color]);
    const hits = useMemo(() => (props.find ? matching(names, props.find) : null), [names, props.find]);
    const chosen = timeline.names.indexOf(props.look.fn);
    const view: ChartView = { from: times.from, to: times.to, ...size };
    const scene: ChartScene = { lanes, looks, names: timeline.name, inks, chosen: props.look.fn ? chosen : -1, hits };

    useEffect(() => {
        const measure = () => setSize((old) => ({ ...old, width: box.current!.clientWidth, height: box.current!.clientHeight }));
        const watch = new ResizeObserver(measure);
        watch.observe(box.current!);
        measure();
        return () => watch.disconnect();
    }, []);
    useLayoutEffect(() => {
        const at = canvas.current!;
        const ratio = devicePixelRatio || 1;
        if (!size.width) return;
        at.width = size.width * ratio;
        at.height = size.height * ratio;
        at.style.width = `${size.width}px`;
        at.style.height = `${size.height}px`;
        const ctx = at.getContext("2d")!;
        ctx.scale(ratio, ratio);
        new ChartPainter(ctx, scene, view).paint();
    });

    const latest = useRef(times);
    latest.current = times;
    useEffect(() => {
        const wheel = (event: WheelEvent) => {
            if (!event.ctrlKey && !event.metaKey && Math.abs(event.deltaX) <= Math.abs(event.deltaY)) return;
            event.preventDefault();
            const { from, to, zoom, pan } = latest.current;
            const at = from + ((event.clientX - box.current!.getBoundingClientRect().left) / box.current!.clientWidth) * (to - from);
            if (event.ctrlKey || event.metaKey) zoom(Math.exp(-event.deltaY / 300), at);
            else pan(event.deltaX / box.current!.clientWidth);
        };
        box.current!.addEventListener("wheel", wheel, { passive: false });
        return () => box.current?.removeEventListener("wheel", wheel);
    }, []);

    const pointed = (event: PointerEvent | MouseEvent) => {
        const place = canvas.current!.getBoundingClientRect();
        return blockAt(lanes, view, event.clientX - place.left, event.clientY - place.top);
    };
    const move = (event: PointerEvent) => {
        const held = drag.current;
        if (held) {
            const by = ((held.x - event.clientX) / size.width) * (held.to - held.from);
            held.moved ||= Math.abs(held.x - event.clientX) > 3;
            setTip(null);
            if (held.moved) times.show(held.from + by, held.to + by);
            return;
        }
        const block = pointed(event);
        const name = block && timeline.names[timeline.name[block.node]];
        setTip(block ? { text: `${name} · ${duration((block.to - block.from) / 1e9)} at ${duration((block.from - lanes.from) / 1e9)}`, x: event.clientX, y: event.clientY } : null);
    };
    const release = (event: PointerEvent) => {
        const held = drag.current;
        drag.current = null;
        if (!held || held.moved) return;
        const block = pointed(event);
        props.onSelectName(block ? timeline.names[timeline.name[block.node]] : "");
    };
    const onKey = (event: KeyboardEvent) => {
        const runs: Record<string, () => void> = {
            "+": () => times.zoom(1.5), "=": () => times.zoom(1.5), "-": () => times.zoom(1 / 1.5), "0": () => times.show(lanes.from, lanes.to),
            ArrowLeft: () => times.pan(-0.2), ArrowRight: () => times.pan(0.2), Escape: () => times.show(lanes.from, lanes.to),
        };
        if (!runs[event.key]) return;
        event.preventDefault();
        runs[event.key]();
    };
    return (
        <div class="chart" ref={box} onScroll={() => setSize({ ...size, top: box.current!.scrollTop })}>
            <div style={{ height: `${wholeHeight(lanes)}px` }}>
                <canvas
                    ref={canvas}
                    tabIndex={0}
                    role="application"
                    aria-roledescription="flame chart"
                    aria-label={`Flame chart of ${plural(lanes.lanes.length, "thread")}. Arrows pan it, plus and minus zoom; the table of functions has the same numbers.`}
                    onPointerDown={(event) => {
                        drag.current = { x: event.clientX, from: times.from, to: times.to, moved: false };
                        event.currentTarget.setPointerCapture(event.pointerId);
                    }}
                    onPointerMove={move}
                    onPointerUp={release}
                    onPointerLeave={() => setTip(null)}
                    onDblClick={(event) => {
                        const block = pointed(event);
                        if (block) times.show(block.from, block.to);
                    }}
                    onKeyDown={onKey}
                />
            </div>
            {tip && <div class="floating chart-tip" style={{ left: `${Math.min(tip.x + 12, innerWidth - 320)}px`, top: `${tip.y + 16}px` }}>{tip.text}</div>}
        </div>
    );
}

export function ByTime(props: FormProps) {
    const asked = useAgain<QueryAnswer>(props.source, { format: "timeline", limit: LIMIT });
    const timeline = asked.data?.timeline;
    const lanes = useMemo(() => (timeline ? lanesOf(timeline, props.answer.type.unit === "nanoseconds") : null), [timeline]);
    if (asked.error) return <div class="profile-wait"><Failure error={asked.error} retry={asked.reload} /></div>;
    if (!props.source) return <div class="profile-wait"><p class="none">The single samples of this profile cannot be asked for.</p></div>;
    if (!timeline || !lanes) return <div class="profile-wait"><Loading /></div>;
    if (!timeline.at_ns.length) return <Untimed answer={props.answer} />;
    return (
        <>
            <Chart props={props} timeline={timeline} lanes={lanes} />
            <Said timeline={timeline} lanes={lanes} />
        </>
    );
}
