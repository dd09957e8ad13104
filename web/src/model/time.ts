// SPDX-License-Identifier: Apache-2.0
// Times as people say them: "now-1h" stays relative until somebody wants it absolute.

export interface Range {
    from: string;
    until: string;
}

export const DEFAULT_RANGE: Range = { from: "now-1h", until: "now" };

const UNITS: Record<string, number> = { s: 1, m: 60, h: 3600, d: 86400, w: 604800 };

export const isRelative = (text: string) => /^now/.test(text);

// Unix milliseconds of a time, or NaN.
export function parseTime(text: string, now: number): number {
    if (text === "now") return now;
    const back = /^now-(\d+)([smhdw])$/.exec(text);
    if (back) return now - Number(back[1]) * UNITS[back[2]] * 1000;
    return Date.parse(text);
}

const FIRST = 0;
const LAST = Date.UTC(9999, 11, 31); // what both sides can write

// A time that is none, or far from all profiles, becomes the nearest that can be written.
export const formatTime = (ms: number) => new Date(Math.min(LAST, Math.max(FIRST, ms || FIRST))).toISOString().replace(/\.000Z$/, "Z");

// The same range with times that do not move.
export function absolute(range: Range, now: number): Range {
    return { from: formatTime(parseTime(range.from, now)), until: formatTime(parseTime(range.until, now)) };
}

export function seconds(range: Range, now: number): number {
    return (parseTime(range.until, now) - parseTime(range.from, now)) / 1000;
}

// The range as long as this one, just before (-1) or after (1).
export function shifted(range: Range, steps: number, now: number): Range {
    const from = parseTime(range.from, now);
    const until = parseTime(range.until, now);
    const by = (until - from) * steps;
    return { from: formatTime(from + by), until: formatTime(until + by) };
}
