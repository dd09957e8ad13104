// SPDX-License-Identifier: Apache-2.0
// Does something only ever grow?  Answers from a level (bytes in use) over buckets of time.
//
// The slope is that of Theil and Sen, the median of the slopes between all pairs of buckets, which a
// few odd snapshots do not move.  What is steady is told by the pairs too: of two buckets the later
// one is larger (Kendall's tau; 1: always, 0: as often as not).  A level that stood still before it
// began to climb is judged from there on.

export interface Level {
    startMs: number; // of bucket 0
    stepMs: number;
    values: (number | null)[]; // null: no snapshot
}

export interface Growth {
    since: number; // Unix ms of the bucket that the climb begins with
    until: number; // and of the end of the last one
    by: number; // the last value beyond that of the beginning
    perHour: number; // slope
    steady: number; // tau, -1 ... 1
    drop: number; // the deepest fall below what it had reached before, on the way
    jump: number; // the largest rise from one snapshot to the next
    snapshots: number; // of the climb
    last: number;
}

interface Point {
    at: number; // bucket
    value: number;
}

const median = (values: number[]) => {
    const sorted = [...values].sort((a, b) => a - b);
    const middle = sorted.length >> 1;
    return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
};

function pairs(points: Point[]): { slope: number; steady: number } {
    const slopes: number[] = [];
    let up = 0;
    for (let i = 0; i < points.length; i++) {
        for (let j = i + 1; j < points.length; j++) {
            const by = points[j].value - points[i].value;
            slopes.push(by / (points[j].at - points[i].at));
            up += Math.sign(by);
        }
    }
    return { slope: slopes.length ? median(slopes) : 0, steady: slopes.length ? up / slopes.length : 0 };
}

const STOOD = 0.05; // of the whole climb: within that it has not begun

// The last point from which it did not come back to where it began.
function beginning(points: Point[]): number {
    const low = Math.min(...points.map(({ value }) => value));
    const edge = low + STOOD * (points[points.length - 1].value - low);
    let from = 0;
    points.forEach(({ value }, i) => {
        if (value <= edge) from = i;
    });
    return from;
}

function deepestDrop(points: Point[]): number {
    let top = -Infinity;
    let drop = 0;
    for (const { value } of points) {
        top = Math.max(top, value);
        drop = Math.max(drop, top - value);
    }
    return drop;
}

const largestJump = (points: Point[]) => Math.max(0, ...points.slice(1).map(({ value }, i) => value - points[i].value));

// null: too few snapshots to say anything.
export function growthOf({ startMs, stepMs, values }: Level): Growth | null {
    const points = values.flatMap((value, at) => (value === null ? [] : [{ at, value }]));
    if (points.length < 4) return null;
    const climb = points.slice(Math.min(beginning(points), points.length - 4));
    const { slope, steady } = pairs(climb);
    const last = climb[climb.length - 1];
    return {
        since: startMs + climb[0].at * stepMs,
        until: startMs + (last.at + 1) * stepMs,
        by: last.value - climb[0].value,
        perHour: (slope / stepMs) * 3600000,
        steady,
        drop: deepestDrop(climb),
        jump: largestJump(climb),
        snapshots: climb.length,
        last: last.value,
    };
}

const STEADY = 0.7;
const WORTH = 0.02; // of all memory: less is not worth a name
const SNAPSHOTS = 6; // over fewer anything may seem to climb

// It climbs, most of the time, not in one step, by an amount that counts, and hardly ever gives any of
// it back.
export function isLeak(growth: Growth, all: number): boolean {
    const climbs = growth.snapshots >= SNAPSHOTS && growth.steady >= STEADY && growth.jump <= 0.5 * growth.by;
    return climbs && growth.by >= WORTH * all && growth.drop <= 0.25 * growth.by;
}

// Did it fall at all, beyond the jitter of samples?
export const neverDropped = (growth: Growth) => growth.drop <= 0.05 * growth.by;

// Buckets for a range: few enough that each has a snapshot, enough to see a climb.
export function stepFor(rangeMs: number): number {
    const steps = [60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400];
    return (steps.find((step) => rangeMs / 1000 / step <= 24) ?? 86400) * 1000;
}

// A level of a window is the sum over all processes seen in it: where the old ones end and new ones
// begin, both count.  So a window to be compared must not reach over a deployment, and a bucket with
// one in it says nothing.

// The first and the last part of a range, a quarter each, cut where something was deployed.
export function ends(fromMs: number, untilMs: number, deployed: number[] = []): [[number, number], [number, number]] {
    const part = (untilMs - fromMs) / 4;
    const [first, last] = [fromMs + part, untilMs - part];
    const early = deployed.filter((at) => at > fromMs && at < first);
    const late = deployed.filter((at) => at > last && at < untilMs);
    return [
        [fromMs, Math.min(first, ...early)],
        [Math.max(last, ...late), untilMs],
    ];
}

export function withoutDeployments(level: Level, deployed: number[]): Level {
    const hit = new Set(deployed.map((at) => Math.floor((at - level.startMs) / level.stepMs)));
    return { ...level, values: level.values.map((value, i) => (hit.has(i) ? null : value)) };
}
