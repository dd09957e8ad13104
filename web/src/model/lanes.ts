// SPDX-License-Identifier: Apache-2.0
// Samples in the order of time as a flame chart: a lane for each thread, and in it a block for every call
// that went on from one sample to the next.
import type { Timeline } from "../api/answers";

export interface Row {
    from: number[]; // ns from the start
    to: number[];
    node: number[]; // of the timeline's tree
}

export interface Lane {
    name: string;
    samples: number;
    rows: Row[]; // by depth, each in the order of time
}

export interface Lanes {
    lanes: Lane[]; // the busiest first
    from: number; // ns from the start: where the first sample is
    to: number;
}

const TOGETHER = 2.5; // intervals between two samples of one call, at most

function median(numbers: number[]): number {
    const sorted = [...numbers].sort((a, b) => a - b);
    return sorted[sorted.length >> 1] ?? 0;
}

// Calls from the outermost to where the sample was taken; the root is not one.
function pathTo(timeline: Timeline, leaf: number): number[] {
    const path: number[] = [];
    for (let at = leaf; at > 0; at = timeline.parent[at]) path.push(at);
    return path.reverse();
}

function laneOf(timeline: Timeline, name: string, samples: number[], lasts: number): Lane {
    const rows: Row[] = [];
    let open: number[] = [];
    let end = 0;
    const close = (from: number, at: number) => {
        for (let depth = from; depth < open.length; depth++) rows[depth].to.push(at);
        open = open.slice(0, from);
    };
    for (const i of samples) {
        const at = timeline.at_ns[i];
        const path = pathTo(timeline, timeline.node[i]);
        const goesOn = at - end <= lasts * (TOGETHER - 1);
        let same = 0;
        while (goesOn && same < open.length && same < path.length && open[same] === path[same]) same++;
        close(same, goesOn ? at : end);
        for (let depth = same; depth < path.length; depth++) {
            (rows[depth] ??= { from: [], to: [], node: [] }).from.push(at);
            rows[depth].node.push(path[depth]);
        }
        open = path;
        end = at + lasts;
    }
    close(0, end);
    return { name, samples: samples.length, rows };
}

// `nanoseconds`: values are times, so that a sample lasts as long as it says.
export function lanesOf(timeline: Timeline, nanoseconds: boolean): Lanes {
    const byThread = new Map<number, number[]>();
    timeline.thread.forEach((thread, i) => {
        const samples = byThread.get(thread);
        if (samples) samples.push(i);
        else byThread.set(thread, [i]);
    });
    const lanes = [...byThread].map(([thread, samples]) => {
        const { name, id } = timeline.threads[thread] ?? { name: "", id: "" };
        const gaps = samples.slice(1).map((i, k) => timeline.at_ns[i] - timeline.at_ns[samples[k]]).filter((gap) => gap > 0);
        const lasts = (nanoseconds ? median(samples.map((i) => timeline.value[i])) : median(gaps)) || 1e7;
        return laneOf(timeline, [name || "thread", id].filter(Boolean).join(" "), samples, Math.min(lasts, 1e9));
    });
    const ends = lanes.map(({ rows }) => [rows[0]?.from[0] ?? 0, rows[0]?.to[rows[0].to.length - 1] ?? 0]);
    return {
        lanes: lanes.filter(({ rows }) => rows.length).sort((a, b) => b.samples - a.samples),
        from: Math.min(...ends.map(([from]) => from)),
        to: Math.max(...ends.map(([, to]) => to)),
    };
}

// The first block of a row that ends after this time.
export function firstAfter(row: Row, time: number): number {
    let [low, high] = [0, row.to.length];
    while (low < high) {
        const middle = (low + high) >> 1;
        if (row.to[middle] <= time) low = middle + 1;
        else high = middle;
    }
    return low;
}
