// SPDX-License-Identifier: Apache-2.0
// Values over time: what a question for a series answers, and what can be said of it: its rate,
// whether it changed beyond chance, whether it climbs.
import type { ProfileType, Series } from "../api/answers";
import { bucketsOf } from "./series";

export interface Line {
    label: string;
    rate: (number | null)[]; // of each bucket, a second; of a level, the level; null: nobody measured
    count: number[]; // observations behind it
    sum: number;
    observations: number; // the sum of count, also where the answer has no points
    pictured: boolean; // the answer has its points
}

export interface Lines {
    start: number; // Unix ms of the first bucket
    stepMs: number;
    n: number;
    lines: Line[]; // the largest first
}

const STEPS = [5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600];
const step = (rangeSeconds: number, most: number) => STEPS.find((one) => rangeSeconds / one <= most) ?? Math.ceil(rangeSeconds / most);

// What to ask for: flows in steps of which linesOf() makes one of several, levels as they are drawn.
export const flowStep = (rangeSeconds: number) => step(rangeSeconds, 720);
export const levelStep = (rangeSeconds: number) => step(rangeSeconds, 72);

// Rates add up to no more than there was: of a process that runs now and then, the time between is idle.
function kept(rate: (number | null)[], sum: number, stepMs: number): (number | null)[] {
    const shown = rate.reduce<number>((all, one) => all + (one ?? 0), 0) * (stepMs / 1000);
    return shown > sum ? rate.map((one) => (one === null ? null : (one * sum) / shown)) : rate;
}

const NONE = { labels: {}, sum: 0, observations: 0, bucket: [], value: [], count: [] };

function lineOfOne(series: Series, one: Series["series"][number], type: ProfileType, until: number, label: string): { line: Line; stepMs: number; n: number } {
    const { values: rate, stepMs } = bucketsOf({ ...series, series: [one] }, 0, type, until);
    const counts: number[] = Array(rate.length).fill(0);
    one.bucket.forEach((at, i) => (counts[Math.floor((at * series.step_seconds * 1000) / stepMs)] += one.count[i]));
    const line = { label, rate: type.kind === "flow" ? kept(rate, one.sum, stepMs) : rate, count: counts, sum: one.sum, observations: one.observations, pictured: true };
    return { line, stepMs, n: rate.length };
}

// `labelOf`: which line a series belongs to; `until`: Unix ms, what comes later has not happened yet.
export function linesOf(series: Series, type: ProfileType, until: number, labelOf: (labels: Record<string, string>) => string): Lines {
    const { stepMs, n } = lineOfOne(series, NONE, type, until, "");
    const lines = series.series.map((one): Line => {
        const label = labelOf(one.labels);
        if (!one.bucket.length) return { label, rate: [], count: [], sum: one.sum, observations: one.observations, pictured: false };
        return lineOfOne(series, one, type, until, label).line;
    });
    lines.sort((a, b) => b.sum - a.sum || (a.label < b.label ? -1 : 1));
    return { start: Date.parse(series.start), stepMs, n, lines };
}

// One line of all series that the answer has no points of, or null.
export function restOf(series: Series, type: ProfileType, until: number, label: string): Line | null {
    const { rest } = series;
    return rest ? lineOfOne(series, { ...rest, labels: {}, observations: rest.count.reduce((sum, one) => sum + one, 0) }, type, until, label).line : null;
}

const sumUp = (lists: (number | null)[][], n: number) => Array.from({ length: n }, (_, i) => {
    const known = lists.flatMap((list) => list[i] ?? []);
    return known.length ? known.reduce((sum, one) => sum + one, 0) : null;
});

// One line of all the others, for what does not fit into a picture.
export function rest(lines: Line[], label: string): Line {
    const n = Math.max(0, ...lines.map(({ rate }) => rate.length));
    return {
        label,
        rate: sumUp(lines.map(({ rate }) => rate), n),
        count: sumUp(lines.map(({ count }) => count), n).map((one) => one ?? 0),
        sum: lines.reduce((sum, line) => sum + line.sum, 0),
        observations: lines.reduce((sum, line) => sum + line.observations, 0),
        pictured: true,
    };
}

// Unix ms where the last bucket of any line that has something ends.
export const endOf = ({ start, stepMs, lines }: Lines) =>
    start + stepMs * Math.max(0, ...lines.map(({ rate }) => rate.reduce<number>((last, one, i) => (one === null ? last : i + 1), 0)));

export interface Sum {
    value: number;
    count: number;
    seconds: number;
    squares: number; // of how far rates are from their mean
    buckets: number; // of these
}

export const NOTHING: Sum = { value: 0, count: 0, seconds: 0, squares: 0, buckets: 0 };

// What a flow has from one time to another, in whole buckets (those that begin in it); by its rates, or a
// profile more or less at the edges would look like a change.
export function sumOf({ start, stepMs, n }: Lines, line: Line | undefined, from: number, until: number): Sum {
    const first = Math.max(0, Math.ceil((from - start) / stepMs));
    const end = Math.max(first, Math.min(n, Math.ceil((until - start) / stepMs)));
    const seconds = ((end - first) * stepMs) / 1000;
    if (!line) return { ...NOTHING, seconds };
    if (!line.pictured) return { ...NOTHING, seconds, value: (line.sum * seconds * 1000) / (n * stepMs), count: line.observations };
    const add = (numbers: number[]) => numbers.reduce((sum, one) => sum + one, 0);
    const rates = line.rate.slice(first, end).map((one) => one ?? 0);
    const counts = line.count.slice(first, end);
    const mean = add(rates) / rates.length;
    return {
        value: (add(rates) * stepMs) / 1000,
        count: add(counts),
        seconds,
        squares: add(rates.map((one) => (one - mean) ** 2)),
        buckets: counts.filter((one) => one > 0).length,
    };
}

export const added = (a: Sum, b: Sum): Sum => ({
    value: a.value + b.value,
    count: a.count + b.count,
    seconds: a.seconds + b.seconds,
    squares: a.squares + b.squares,
    buckets: a.buckets + b.buckets,
});

export interface Change {
    before: number; // both a second
    after: number;
    ratio: number; // after / before - 1; Infinity where there was nothing before
    noise: number; // half-width of the 95 % interval of the ratio, as far as chance goes
    real: boolean; // beyond it
}

// How far chance may move a mean rate: chance of sampling (by observations), and of load that goes
// up and down by itself (by buckets), whichever is more.
function variance(sum: Sum): number {
    const rate = sum.value / sum.seconds;
    const sampled = sum.count ? (rate * rate) / sum.count : 0;
    const load = sum.buckets > 1 ? sum.squares / sum.buckets / sum.buckets : 0;
    return Math.max(sampled, load);
}

// Two stretches of time compared.
export function changeOf(before: Sum, after: Sum): Change | null {
    if (before.seconds <= 0 || after.seconds <= 0 || (before.count === 0 && after.count === 0)) return null;
    const was = before.value / before.seconds;
    const is = after.value / after.seconds;
    if (was === 0) return { before: 0, after: is, ratio: Infinity, noise: 0, real: after.count >= 10 };
    const half = 1.96 * Math.sqrt(variance(before) + variance(after));
    return { before: was, after: is, ratio: is / was - 1, noise: half / was, real: Math.abs(is - was) > half };
}

export interface Climb {
    perHour: number; // share
    now: number; // the last level
    first: number; // that at which it began to climb
    since: number; // the bucket it began in
    hours: number; // how long it has climbed
}

interface Point {
    x: number;
    y: number;
}

// A straight line through logarithms, for what grows by so much an hour.
function slopeOf(points: Point[]): { slope: number; explained: number } {
    const n = points.length;
    const meanX = points.reduce((sum, { x }) => sum + x, 0) / n;
    const meanY = points.reduce((sum, { y }) => sum + y, 0) / n;
    let xx = 0;
    let xy = 0;
    let yy = 0;
    for (const { x, y } of points) {
        xx += (x - meanX) ** 2;
        xy += (x - meanX) * (y - meanY);
        yy += (y - meanY) ** 2;
    }
    return { slope: xx ? xy / xx : 0, explained: xx && yy ? (xy * xy) / (xx * yy) : 0 };
}

const LEAST_POINTS = 8;
const EXPLAINED = 0.85;
const LEAST_GROWTH = 0.05;

// A level that climbs until now: a steady climb explains nearly all of its last stretch, or of all of it.
export function climbOf(values: (number | null)[], stepMs: number): Climb | null {
    const points = values.flatMap((y, x) => (y !== null && y > 0 ? [{ x, y: Math.log(y) }] : []));
    const level = ({ x }: Point) => values[x] as number;
    let best: Climb | null = null;
    let bestFit = EXPLAINED;
    for (const part of [1, 0.75, 0.5, 0.375, 0.25]) {
        const tail = points.slice(-Math.ceil(points.length * part));
        if (tail.length < LEAST_POINTS) break;
        const { slope, explained } = slopeOf(tail);
        const [first, last] = [tail[0], tail[tail.length - 1]];
        const hours = ((last.x - first.x) * stepMs) / 3600000;
        if (explained <= bestFit || slope * (last.x - first.x) < LEAST_GROWTH) continue;
        best = { perHour: Math.exp((slope * 3600000) / stepMs) - 1, now: level(last), first: level(first), since: first.x, hours };
        bestFit = explained;
    }
    return best;
}

// Without the time before the first profile, where that is most of it; but not narrower than a twelfth.
export function trimmed(lines: Lines): Lines {
    const first = Math.min(...lines.lines.map(({ rate }) => rate.findIndex((one) => one !== null)).filter((at) => at >= 0), lines.n);
    const from = Math.max(0, Math.min(first - 1, lines.n - Math.ceil(lines.n / 12)));
    if (from < lines.n / 2) return lines;
    const cut = (line: Line): Line => ({ ...line, rate: line.rate.slice(from), count: line.count.slice(from) });
    return { start: lines.start + from * lines.stepMs, stepMs: lines.stepMs, n: lines.n - from, lines: lines.lines.map(cut) };
}

// For a sparkline: at most `most` points, each the mean of those it stands for.
export function thinned(values: (number | null)[], most = 48): (number | null)[] {
    const by = Math.ceil(values.length / most);
    if (by < 2) return values;
    return Array.from({ length: Math.ceil(values.length / by) }, (_, i) => {
        const known = values.slice(i * by, (i + 1) * by).filter((one): one is number => one !== null);
        return known.length ? known.reduce((sum, one) => sum + one, 0) / known.length : null;
    });
}
