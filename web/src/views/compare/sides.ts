// SPDX-License-Identifier: Apache-2.0
// The two sides of a comparison, read from the address.  Either a preset:
//
//   preset   version  the last deployment against the one before it (where two are known, the default)
//            before   the range against the one of the same length just before it
//            day, week  the range against the same time a day, a week ago
//
// or each side by itself: a_version, a_from, a_until, a_where and b_version, ...
import type { Deployment } from "../../api/answers";
import type { Params } from "../../api/client";
import { clock, moment } from "../../model/format";
import { formatMatchers, parseMatchers, selector, type Matcher } from "../../model/selector";
import { formatTime, parseTime, type Range } from "../../model/time";
import type { Changes } from "../../state/place";
import type { Scope } from "../../state/scope";

export const PRESETS = ["version", "before", "day", "week"] as const;
export type Preset = (typeof PRESETS)[number];

export interface SideChoice {
    version: string; // "": any
    range: Range; // absolute
    matchers: Matcher[];
}

export interface Sides {
    a: SideChoice;
    b: SideChoice;
    preset: Preset | ""; // "": each side by itself
}

// What is compared, and when that was asked.
export interface Comparing {
    scope: Scope;
    sides: Sides;
    deployments: Deployment[]; // of the service, the newest first
    now: number;
}

const HOUR = 3600000;
const DAY = 24 * HOUR;
const OWN = ["version", "from", "until", "where"];

const range = (from: number, until: number): Range => ({ from: formatTime(from), until: formatTime(until) });
const wholeSecond = (ms: number) => Math.ceil(ms / 1000) * 1000;

// From its first profile to its last; one that was only told of, until the next.
function ranIn(deployment: Deployment, now: number): [number, number] {
    const from = Date.parse(deployment.first ?? deployment.at);
    const until = Date.parse(deployment.last ?? deployment.until ?? formatTime(now));
    return [Math.floor(from / 1000) * 1000, Math.min(wholeSecond(until + 1), wholeSecond(now))];
}

// The first day of the new one, and as much of the old one (an hour at least) just before its end:
// neighbours, so that little else has changed.
export function versionRanges(old: Deployment, fresh: Deployment, now: number): [Range, Range] {
    const [begin, end] = ranIn(fresh, now);
    const until = Math.min(end, begin + DAY);
    const [oldBegin, oldEnd] = ranIn(old, now);
    const from = Math.max(oldBegin, oldEnd - Math.max(until - begin, HOUR));
    return [range(from, oldEnd), range(begin, until)];
}

// The last day of a version.
export function versionRange(version: string, deployments: Deployment[], now: number): Range | null {
    const deployment = deployments.find((one) => one.version === version || one.id === version);
    if (!deployment) return null;
    const [begin, end] = ranIn(deployment, now);
    return range(Math.max(begin, end - DAY), end);
}

function ownSide(
    params: URLSearchParams,
    side: "a" | "b",
    deployments: Deployment[],
    otherwise: Range,
    now: number,
): SideChoice {
    const said = (name: string) => params.get(`${side}_${name}`) ?? "";
    const version = said("version");
    const standard = versionRange(version, deployments, now) ?? otherwise;
    const time = (text: string, or: string) => {
        const ms = parseTime(text, now);
        return Number.isFinite(ms) ? formatTime(ms) : or;
    };
    return {
        version,
        range: { from: time(said("from"), standard.from), until: time(said("until"), standard.until) },
        matchers: parseMatchers(said("where")),
    };
}

function ofPreset(preset: Preset, deployments: Deployment[], scope: Range, now: number): Sides {
    const side = (range: Range, version = ""): SideChoice => ({ version, range, matchers: [] });
    if (preset === "version" && deployments.length > 1) {
        const [fresh, old] = deployments;
        const [a, b] = versionRanges(old, fresh, now);
        return { preset, a: side(a, old.version), b: side(b, fresh.version) };
    }
    const from = parseTime(scope.from, now);
    const until = parseTime(scope.until, now);
    const back = preset === "day" ? DAY : preset === "week" ? 7 * DAY : until - from;
    return { preset, a: side(range(from - back, until - back)), b: side(range(from, until)) };
}

// `deployments` of the service, the newest first.
export function sidesOf(params: URLSearchParams, deployments: Deployment[], scope: Range, now: number): Sides {
    if (["a", "b"].some((side) => OWN.some((name) => params.has(`${side}_${name}`)))) {
        const from = parseTime(scope.from, now);
        const until = parseTime(scope.until, now);
        const a = ownSide(params, "a", deployments, range(from, until), now);
        const b = ownSide(params, "b", deployments, range(from, until), now);
        return { preset: "", a, b };
    }
    const said = params.get("preset") as Preset;
    const standard = deployments.length > 1 ? "version" : "before";
    return ofPreset(PRESETS.includes(said) ? said : standard, deployments, scope, now);
}

const ofSide = (side: "a" | "b", choice: SideChoice): Changes => ({
    [`${side}_version`]: choice.version,
    [`${side}_from`]: choice.range.from,
    [`${side}_until`]: choice.range.until,
    [`${side}_where`]: formatMatchers(choice.matchers),
});

// What the address says of them; times do not move.
export const addressOf = (a: SideChoice, b: SideChoice): Changes => ({
    preset: null,
    ...ofSide("a", a),
    ...ofSide("b", b),
});
export const addressOfPreset = (preset: Preset | null): Changes => {
    const none = Object.fromEntries(["a", "b"].flatMap((side) => OWN.map((name) => [`${side}_${name}`, null])));
    return { ...none, preset };
};

export function diffParams(scope: Scope, { a, b }: Sides, byShare: boolean): Params {
    const of = (side: "left" | "right", choice: SideChoice): Params => ({
        [`${side}_deployment`]: choice.version,
        [`${side}_from`]: choice.range.from,
        [`${side}_until`]: choice.range.until,
        [`${side}_query`]: choice.matchers.length ? selector("", "", choice.matchers) : "",
    });
    const normalize = byShare ? "total" : null;
    return { query: scope.query, ...of("left", a), ...of("right", b), normalize, limit: 1000 };
}

export const matchersText = (matchers: Matcher[]) =>
    matchers.map(({ name, op, value }) => `${name} ${op} ${value}`).join(", ");

const DAYS = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];

// As short as it can be: "11:20", "Sat 11:20", "3 Nov 11:20"
function shortMoment(ms: number, now: number): string {
    const days = Math.round((new Date(now).setHours(0, 0, 0, 0) - new Date(ms).setHours(0, 0, 0, 0)) / DAY);
    return days > 0 && days < 7 ? `${DAYS[new Date(ms).getDay()]} ${clock(ms)}` : moment(ms, now);
}

// "11:20 – 14:05"
export function windowText({ from, until }: Range, now: number): string {
    const [begin, end] = [Date.parse(from), Date.parse(until)];
    const sameDay = new Date(begin).toDateString() === new Date(end).toDateString();
    return `${shortMoment(begin, now)} – ${sameDay ? clock(end) : shortMoment(end, now)}`;
}

export const sideName = (side: SideChoice, now: number) =>
    side.version || matchersText(side.matchers) || windowText(side.range, now);

export function presetTitle(preset: Preset, scope: Range, now: number): string {
    if (preset === "version") return "Previous version";
    if (preset === "day") return "Yesterday";
    if (preset === "week") return "Last week";
    const length = parseTime(scope.until, now) - parseTime(scope.from, now);
    return Math.abs(length - HOUR) < 1000 ? "Previous hour" : "Just before";
}

// After "more CPU": than what?
export function thanWhat(sides: Sides, scope: Range, now: number): string {
    if (sides.preset === "day") return " than yesterday";
    if (sides.preset === "week") return " than a week ago";
    if (sides.preset === "before")
        return presetTitle("before", scope, now) === "Previous hour" ? " than the hour before" : " than just before";
    return "";
}
