// SPDX-License-Identifier: Apache-2.0
// The picture itself, on uPlot.  What is chosen is not drawn a second time: lines and areas are filled
// with a gradient that changes colour, hard, where the chosen range begins and ends.
import uPlot from "uplot";
import { clock } from "../../model/format";
import { token } from "../theme";
import type { TimelineProps } from "../timeline";
import { stackColor } from "./colors";

export const FLAGS = 20; // above the plot, for the flags of deployments
export const FOOT = 18; // below it, for the hours
export const RIGHT = 4; // so that a handle at the end is whole
const FONT = "11px";

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

function top(props: TimelineProps): number {
    let most = 0;
    const n = Math.max(0, ...props.series.map(({ values }) => values.length));
    for (let i = 0; i < n; i++) {
        const here = props.series.map(({ values }) => values[i] ?? 0);
        most = Math.max(most, props.stacked ? here.reduce((sum, value) => sum + value, 0) : Math.max(...here));
    }
    return most || 1;
}

// Two steps of 1, 2, 2.5 or 5 from nought to just above the highest value.
export function scaleOf(most: number): { max: number; splits: number[] } {
    const raw = most / 2;
    const ten = 10 ** Math.floor(Math.log10(raw));
    const step = ([1, 2, 2.5, 5, 10].find((size) => size * ten >= raw * 0.93) ?? 10) * ten;
    return { max: Math.max(most * 1.06, step * 2), splits: [0, step, step * 2] };
}

const plain = (value: number) => String(Number(value.toPrecision(3)));
const bare = (text: string) => text.replace(/(\.\d*?)0+(?!\d)/, "$1").replace(/\.(?!\d)/, ""); // 5.00 GB is 5 GB at an axis
const axisText = (props: TimelineProps, most: number) => (value: number) =>
    props.axis ? bare(props.axis(value)) : most >= 10000 || most < 0.001 ? bare(props.format(value)) : plain(value);

export function axisWidth(props: TimelineProps): number {
    const most = top(props);
    const texts = scaleOf(most).splits.map(axisText(props, most));
    return Math.max(26, Math.max(...texts.map((text) => text.length)) * 6.2 + 10);
}

export function plotData(props: TimelineProps): uPlot.AlignedData {
    const n = Math.max(0, ...props.series.map(({ values }) => values.length));
    const times = Array.from({ length: n }, (_, i) => (props.start + (i + 0.5) * props.stepMs) / 1000);
    if (!props.stacked) return [times, ...props.series.map(({ values }) => values)];
    const sums: number[] = new Array(n).fill(0);
    const rows = [...props.series].reverse().map(({ values }) => {
        for (let i = 0; i < n; i++) sums[i] += values[i] ?? 0;
        return [...sums];
    });
    return [times, ...rows.reverse()];
}

// `inside` between the two times, `outside` elsewhere.
function split(u: uPlot, chosen: [number, number] | null, inside: string, outside: string): CanvasGradient | string {
    if (!chosen) return outside;
    const { left, width } = u.bbox;
    const share = (ms: number) => Math.min(1, Math.max(0, (u.valToPos(ms / 1000, "x", true) - left) / width));
    if (!Number.isFinite(u.valToPos(chosen[0] / 1000, "x", true))) return outside;
    const paint = u.ctx.createLinearGradient(left, 0, left + width, 0);
    const [a, b] = chosen.map(share);
    for (const [stop, color] of [[0, outside], [a, outside], [a, inside], [b, inside], [b, outside], [1, outside]] as [number, string][])
        paint.addColorStop(stop, color);
    return paint;
}

// Points between two gaps, which no line would show.
function lonely(u: uPlot, series: number): number[] {
    const values = u.data[series];
    const found: number[] = [];
    for (let i = 0; i < values.length; i++)
        if (values[i] != null && values[i - 1] == null && values[i + 1] == null) found.push(i);
    return found;
}

function seriesOptions(props: TimelineProps, chosen: () => [number, number] | null): uPlot.Series[] {
    return props.series.map(({ tone, label }, i) => {
        const points = { size: 4, filter: lonely };
        if (props.stacked) return { label, points, stroke: token("panel"), width: 1, fill: stackColor(i) };
        if (tone === "ghost") return { label, points, stroke: token("line-2"), width: 1.2, dash: [3, 3] };
        if (tone) return { label, points, stroke: token(tone), width: 1.5 };
        return {
            label,
            points,
            width: 1.5,
            stroke: (u: uPlot) => split(u, chosen(), token("accent"), token("ink-3")) as string,
            fill: (u: uPlot) => split(u, chosen(), token("accent-soft"), token("sunk")) as string,
        };
    });
}

function hours(u: uPlot, splits: number[], __: number, ___: number, step: number): string[] {
    return splits.map((at) => {
        if (u.valToPos(at, "x") > u.bbox.width / devicePixelRatio - 14) return ""; // it would be cut off
        const date = new Date(at * 1000);
        const midnight = date.getHours() + date.getMinutes() === 0;
        if (step >= 86400 || (midnight && step >= 3600)) return `${date.getDate()} ${MONTHS[date.getMonth()]}`;
        return clock(at * 1000, step < 60);
    });
}

export function makePlot(
    mount: HTMLElement,
    props: TimelineProps & { width: number; height: number; until: number },
    chosen: () => [number, number] | null,
    onPoint: (at: { index: number; left: number } | null) => void,
): uPlot {
    const most = top(props);
    const { max, splits } = scaleOf(most);
    const axis = { stroke: token("ink-3"), font: `${FONT} ${token("sans")}`, ticks: { show: false }, border: { show: false } };
    const options: uPlot.Options = {
        width: props.width,
        height: props.height,
        padding: [FLAGS, RIGHT, 0, 0],
        legend: { show: false },
        cursor: { y: false, points: { size: 6, fill: token("panel") }, drag: { x: false, y: false, setScale: false } },
        scales: { x: { time: true, range: () => [props.start / 1000, props.until / 1000] }, y: { range: () => [0, max] } },
        axes: [
            { ...axis, size: FOOT, gap: 4, space: props.width < 500 ? 76 : 110, grid: { show: false }, values: hours },
            { ...axis, size: axisWidth(props), gap: 6, splits: () => splits, values: (_, at) => at.map(axisText(props, most)), grid: { stroke: token("line"), width: 1 } },
        ],
        series: [{}, ...seriesOptions(props, chosen)],
        hooks: {
            setCursor: [(u) => onPoint(u.cursor.idx == null || (u.cursor.left ?? -1) < 0 ? null : { index: u.cursor.idx, left: u.cursor.left! })],
        },
    };
    return new uPlot(options, plotData(props), mount);
}
