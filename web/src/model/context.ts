// SPDX-License-Identifier: Apache-2.0
// The time that a timeline shows around the range that is looked at, so that one sees what was before.
import { isRelative, parseTime, type Range } from "./time";

export type Span = [number, number]; // Unix ms

const HOUR = 3600000;
const LADDER = [0.25, 0.5, 1, 3, 6, 12, 24, 72, 168, 336, 720].map((hours) => hours * HOUR);
const DAY = 24 * HOUR;

export const spanOf = (range: Range, now: number): Span => [parseTime(range.from, now), parseTime(range.until, now)];

export function contextOf(range: Range, now: number, before: Span | null = null): Span {
    const [from, until] = spanOf(range, now);
    const length = until - from;
    const inside = before && from >= before[0] - 1000 && until <= before[1] + 1000 && length > (before[1] - before[0]) / 50;
    if (inside && !isRelative(range.from) && before[1] <= now) return before; // brushed: the picture stays
    const whole = Math.max(length, LADDER.find((size) => size >= 2.7 * length) ?? length);
    const end = Math.min(now, until + (until >= now - length / 20 ? 0 : (whole - length) / 2));
    return [Math.max(0, end - whole), end];
}

// What a range is compared with in a word, and how far back that is; null: nothing people speak of.
export function before([from, until]: Span): { ms: number; word: string } | null {
    if (until - from <= DAY) return { ms: DAY, word: "yesterday" };
    return until - from <= 7 * DAY ? { ms: 7 * DAY, word: "last week" } : null;
}
