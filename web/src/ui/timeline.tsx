// SPDX-License-Identifier: Apache-2.0
// A value over time, with deployments and notes marked, and a brush that chooses a range: drag over it,
// drag its handles, or focus it and use the arrows (Shift resizes).
import type uPlot from "uplot";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Annotation, Deployment } from "../api/answers";
import { clock, moment } from "../model/format";
import { formatTime, type Range } from "../model/time";
import { Brush } from "./timeline/brush";
import { Marks, type Area } from "./timeline/marks";
import { axisWidth, makePlot, plotData, FLAGS, FOOT, RIGHT } from "./timeline/plot";
import { Readout, ValuesTable } from "./timeline/values";
import { useTheme } from "./theme";
import "./timeline.css";

export interface TimelineSeries {
    label: string;
    values: (number | null)[]; // one for each bucket
    tone?: "accent" | "grew" | "shrank" | "ghost"; // ghost: dashed, what it was before
}

export interface TimelineProps {
    label: string; // what the picture shows, for who does not see it
    start: number; // Unix ms of the first bucket
    stepMs: number;
    series: TimelineSeries[];
    stacked?: boolean; // areas over each other, the first on top; their colours: stackColor()
    format: (value: number) => string;
    axis?: (value: number) => string; // at the axis; a plain number unless said otherwise
    height?: number;
    until?: number; // Unix ms where the picture ends; the end of the last bucket unless said otherwise
    chosen?: [number, number] | null; // Unix ms: shown as chosen
    onBrush?: (range: Range) => void;
    deployments?: Deployment[];
    annotations?: Annotation[];
    onDeployment?: (deployment: Deployment) => void;
}

export { stackColor } from "./timeline/colors";

function useWidth(): [preact.RefObject<HTMLDivElement>, number] {
    const box = useRef<HTMLDivElement>(null);
    const [width, setWidth] = useState(0);
    useLayoutEffect(() => {
        const measure = () => setWidth(box.current!.clientWidth);
        const watch = new ResizeObserver(measure);
        measure();
        watch.observe(box.current!);
        return () => watch.disconnect();
    }, []);
    return [box, width];
}

// The words of a brushed range, for who hears it.
const spoken = ([from, until]: [number, number]) => `${moment(from, Date.now())} to ${clock(until)} chosen`;

export function Timeline(props: TimelineProps) {
    const { height = 92, start, stepMs, series } = props;
    const theme = useTheme();
    const [box, width] = useWidth();
    const mount = useRef<HTMLDivElement>(null);
    const plot = useRef<uPlot | null>(null);
    const [at, setAt] = useState<{ index: number; left: number } | null>(null);
    const [pending, setPending] = useState<[number, number] | null>(null);
    const chosen = pending ?? props.chosen ?? null;
    const latest = useRef({ props, chosen });
    latest.current = { props, chosen };

    const buckets = Math.max(0, ...series.map(({ values }) => values.length));
    const until = props.until ?? start + buckets * stepMs;
    const left = axisWidth(props);
    const area: Area = { left, width: Math.max(1, width - left - RIGHT), top: FLAGS, height: height - FLAGS - FOOT, from: start, until };

    useLayoutEffect(() => {
        if (!width) return;
        const made = makePlot(mount.current!, { ...latest.current.props, width, height, until }, () => latest.current.chosen, setAt);
        plot.current = made;
        return () => {
            made.destroy();
            plot.current = null;
        };
    }, [width, height, theme, start, stepMs, until, left, props.stacked, series.map(({ label, tone }) => `${label}/${tone}`).join()]);
    useLayoutEffect(() => plot.current?.setData(plotData(latest.current.props), true), [series]);
    useEffect(() => plot.current?.redraw(false), [chosen?.[0], chosen?.[1]]);

    const brush = (range: [number, number]) => {
        setPending(null);
        props.onBrush?.({ from: formatTime(Math.round(range[0] / 1000) * 1000), until: formatTime(Math.round(range[1] / 1000) * 1000) });
    };
    return (
        <div class="timeline" ref={box} style={{ height: `${height}px` }}>
            <div ref={mount} role="img" aria-label={props.label} />
            {width > 0 && props.onBrush && (
                <Brush area={area} chosen={chosen} stepMs={stepMs} label={props.label} onMove={setPending} onDone={brush} onPoint={(x) => plot.current?.setCursor({ left: x, top: 1 })} />
            )}
            {width > 0 && (
                <Marks area={area} deployments={props.deployments ?? []} annotations={props.annotations ?? []} onDeployment={props.onDeployment} />
            )}
            {at && <Readout {...props} index={at.index} x={area.left + at.left} width={width} />}
            <ValuesTable {...props} />
            <span class="hidden" aria-live="polite">{pending ? spoken(pending) : ""}</span>
        </div>
    );
}
