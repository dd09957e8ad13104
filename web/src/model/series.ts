// SPDX-License-Identifier: Apache-2.0
// A series of the API as values over time.  A profile counts at its start although it covers the time up to
// the next one.  Drawn as they come, sums would show the rhythm of sending and not the load: so they are
// asked for in fine steps (fineStep), spread over the buckets they stand for, and averaged to a coarser step,
// because where profiles are frequent chance decides how many of them a bucket has.
import type { ProfileType, Series } from "../api/answers";

export interface Buckets {
    start: number; // Unix ms
    stepMs: number;
    values: (number | null)[]; // flow: a second's worth of the value; level: the value
}

type Values = (number | null)[];
type Sums = { bucket: number[]; value: number[] };

const STEPS = [1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400];
const FINE = 1000; // buckets, at most
const MERGED = 4;

export const fineStep = (rangeSeconds: number) => STEPS.find((step) => rangeSeconds / step <= FINE) ?? Math.ceil(rangeSeconds / FINE);

function median(numbers: number[]): number {
    const sorted = [...numbers].sort((a, b) => a - b);
    return sorted.length ? sorted[sorted.length >> 1] : 1;
}

const usualGap = (bucket: number[]) => median(bucket.slice(1).map((at, i) => at - bucket[i]));

const HEAVY = 0.2; // of the largest
const MOST = 0.6; // of all

// Whole profiles among samples with times of their own: few buckets hold most of it, at an even pace, and that is the pace.
function pace({ bucket, value }: Sums): number {
    const usual = usualGap(bucket);
    const largest = value.reduce((most, one) => Math.max(most, one), 0);
    const heavy = bucket.map((_, i) => i).filter((i) => value[i] >= largest * HEAVY);
    const sum = (all: number[]) => all.reduce((total, one) => total + one, 0);
    if (heavy.length < 3 || heavy.length * 4 > bucket.length || sum(heavy.map((i) => value[i])) < MOST * sum(value)) return usual;
    const gaps = heavy.slice(1).map((i, k) => bucket[i] - bucket[heavy[k]]);
    const gap = median(gaps);
    return gaps.every((one) => Math.abs(one - gap) <= gap / 4) ? Math.max(usual, gap) : usual;
}

// A level is right only where each bucket has a profile of every process: the step for that, or null where it is so.
export function betterStep(series: Series): number | null {
    const gap = Math.max(1, ...series.series.map(({ bucket }) => usualGap(bucket)));
    return gap > 1 ? gap * series.step_seconds : null;
}

export function mean(values: Values): number | null {
    const known = values.filter((value): value is number => value !== null);
    return known.length ? known.reduce((sum, value) => sum + value, 0) / known.length : null;
}

function merged(values: Values, size: number): Values {
    return Array.from({ length: Math.ceil(values.length / size) }, (_, i) => mean(values.slice(i * size, (i + 1) * size)));
}

// Values of buckets that are closer than usual belong together: single samples with times among whole profiles.
function grouped({ bucket, value }: Sums, usual: number): Sums {
    const sums: Sums = { bucket: [], value: [] };
    bucket.forEach((at, i) => {
        const last = sums.bucket.length - 1;
        if (last >= 0 && at < sums.bucket[last] + usual) return void (sums.value[last] += value[i]);
        sums.bucket.push(at);
        sums.value.push(value[i]);
    });
    return sums;
}

// Each value over the buckets up to the next one; a gap twice as long as those around it is a silence.
function spread({ bucket, value }: Sums, buckets: number, usual: number, perBucket: (value: number, length: number) => number): Values {
    const values: Values = new Array(buckets).fill(null);
    const gaps = bucket.slice(1).map((at, i) => at - bucket[i]);
    const [last, before] = [gaps[gaps.length - 1] ?? usual, gaps[gaps.length - 2] ?? usual];
    gaps.push(Math.min(last, Math.max(usual, before))); // the last one is taken to go on as it was
    bucket.forEach((at, i) => {
        const length = Math.min(gaps[i], 2 * Math.max(usual, gaps[i - 1] ?? 0, gaps[i + 1] ?? 0));
        for (let b = at; b < Math.min(at + length, buckets); b++) values[b] = perBucket(value[i], length);
    });
    return values;
}

// `until`: Unix ms up to which there can be profiles; a bucket that ends later has only a part of its own.
// `covered`: seconds that profiles cover, which tells how long one lasts where there are too few to see their pace.
export function bucketsOf(series: Series, which: number, type: ProfileType, until = Infinity, covered = 0): Buckets {
    const { buckets, step_seconds: step } = series;
    const start = Date.parse(series.start);
    const one: Sums = series.series[which] ?? { bucket: [], value: [] };
    if (type.kind === "level") return { start, stepMs: step * 1000, values: spread(one, buckets, usualGap(one.bucket), (value) => value) };
    const usual = one.bucket.length > 2 ? pace(one) : Math.max(usualGap(one.bucket), Math.round(covered / step / (one.bucket.length || 1)));
    const values = spread(grouped(one, usual), buckets, usual, (value, length) => value / (length * step));
    if (usual === 1 && start + buckets * step * 1000 > until) values[buckets - 1] = null;
    return { start, stepMs: step * MERGED * 1000, values: merged(values, MERGED) };
}
