// SPDX-License-Identifier: Apache-2.0
// Ranges as they are offered and as they are called: "Last hour", "14:10 – 16:00 today", "Since 2.15.0".
import type { Deployment } from "../api/answers";
import { clock, moment } from "./format";
import { formatTime, parseTime, shifted, type Range } from "./time";

export interface NamedRange extends Range {
    title: string;
    aside?: string;
}

const LAST: [string, string][] = [
    ["5m", "5 minutes"], ["15m", "15 minutes"], ["30m", "30 minutes"], ["1h", "hour"], ["3h", "3 hours"], ["6h", "6 hours"],
    ["12h", "12 hours"], ["24h", "24 hours"], ["2d", "2 days"], ["7d", "7 days"], ["30d", "30 days"],
];

export const LAST_RANGES: NamedRange[] = LAST.map(([back, title]) => ({ title: `Last ${title}`, from: `now-${back}`, until: "now" }));

export const sameRange = (a: Range, b: Range) => a.from === b.from && a.until === b.until;

const UNIT: Record<string, [string, string]> = {
    s: ["second", "seconds"], m: ["minute", "minutes"], h: ["hour", "hours"], d: ["day", "days"], w: ["week", "weeks"],
};

const dayOf = (ms: number, now: number) => {
    const day = moment(ms, now).replace(/ ?\d\d:\d\d$/, "");
    return day === "" ? "today" : day;
};

// The words of a range, and the day they belong to ("" where the words say it).
export function rangeText(range: Range, now: number): { text: string; day: string } {
    const back = /^now-(\d+)([smhdw])$/.exec(range.from);
    if (back && range.until === "now") {
        const n = Number(back[1]);
        return { text: n === 1 ? `Last ${UNIT[back[2]][0]}` : `Last ${n} ${UNIT[back[2]][1]}`, day: "" };
    }
    const from = parseTime(range.from, now);
    const until = parseTime(range.until, now);
    if (Number.isNaN(from) || Number.isNaN(until)) return { text: `${range.from} – ${range.until}`, day: "" };
    const fine = until - from < 300000;
    const [first, last] = [dayOf(from, now), dayOf(until, now)];
    if (range.until === "now") return { text: `Since ${clock(from, fine)}`, day: first };
    if (first === last) return { text: `${clock(from, fine)} – ${clock(until, fine)}`, day: first };
    return { text: `${moment(from, now)} – ${last === "today" ? "today " : ""}${moment(until, now)}`, day: "" };
}

// Times between which each version ran, the newest first.
export function deploymentRanges(deployments: Deployment[], now: number): NamedRange[] {
    const sorted = [...deployments].sort((a, b) => Date.parse(b.at) - Date.parse(a.at));
    return sorted.map((one, i) => {
        const name = one.name || one.version || one.commit || one.id;
        const next = sorted[i - 1];
        if (!next) return { title: `Since ${name}`, aside: moment(Date.parse(one.at), now), from: one.at, until: "now" };
        const nextName = next.name || next.version || next.commit || next.id;
        const aside = `${moment(Date.parse(one.at), now)} – ${moment(Date.parse(next.at), now)}`;
        return { title: `${name}, until ${nextName}`, aside, from: one.at, until: next.at };
    });
}

// One window earlier or later; what would end in the future ends now, and moves on with it.
export function moved(range: Range, steps: number, now: number): Range {
    const to = shifted(range, steps, now);
    const length = parseTime(range.until, now) - parseTime(range.from, now);
    if (parseTime(to.until, now) < now) return to;
    const known = LAST_RANGES.find((one) => Math.abs(now - parseTime(one.from, now) - length) < 1000);
    return known ? { from: known.from, until: known.until } : { from: formatTime(now - length), until: "now" };
}

// How long, for a head of a column: "24 hours", "90 minutes", "7 days".
export function lengthText(seconds: number): string {
    const [size, unit] = seconds < 7200 ? [60, "minute"] : seconds < 172800 ? [3600, "hour"] : [86400, "day"];
    const n = Math.round(seconds / (size as number));
    return `${n} ${unit}${n === 1 ? "" : "s"}`;
}
