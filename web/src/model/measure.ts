// SPDX-License-Identifier: Apache-2.0
// What a profile's values mean to a person: CPU time over a range is cores, bytes allocated are MB a
// minute, what is in use is bytes.
import type { Basis, ProfileType } from "../api/answers";
import { bytes, count, duration, figures, percent } from "./format";
import { lengthText } from "./ranges";

export interface Measure {
    unit: string; // of rates, for a table's header: "cores", "MB a minute", "GB", "a second"
    rate(value: number): number; // a value as the number that stands before `unit`
    format(value: number): string; // a value with its unit, as a rate: "3.42 cores"
    short(value: number): string; // the same number without the unit
    amount(value: number): string; // the plain sum: "12.4 s", "3.1 GB", "18 412"
}

// A plain sum with its unit: "12.4 s", "3.1 GB", "18 412".
export function amountOf(value: number, unit: string): string {
    return unit === "nanoseconds" ? duration(value / 1e9) : unit === "bytes" ? bytes(value) : count(value);
}

const per = (type: ProfileType, rangeSeconds: number) => (type.kind === "flow" && rangeSeconds > 0 ? rangeSeconds : 1);

// `rangeSeconds`: how long the range is that values are sums over; it does not matter for levels.
export function measureOf(type: ProfileType, rangeSeconds: number): Measure {
    const over = per(type, rangeSeconds);
    const amount = (value: number) => amountOf(value, type.unit);
    const flow = type.kind === "flow";
    if (type.unit === "nanoseconds") {
        const rate = (value: number) => value / 1e9 / over;
        const unit = type.type === "cpu" ? "cores" : "s a second";
        if (!flow) return { unit: "s", rate, amount, short: (v) => figures(rate(v)), format: amount };
        return { unit, rate, amount, short: (v) => figures(rate(v)), format: (v) => `${figures(rate(v))} ${unit}` };
    }
    if (type.unit === "bytes") {
        const rate = (value: number) => (flow ? (value * 60) / over / 1e6 : value / 1e6);
        const format = (value: number) => (flow ? `${bytes((value * 60) / over)} a minute` : bytes(value));
        return { unit: flow ? "MB a minute" : "MB", rate, short: (v) => figures(rate(v)), format, amount };
    }
    const rate = (value: number) => value / over;
    const unit = flow ? "a second" : "";
    return { unit, rate, short: (v) => figures(rate(v)), format: (v) => `${figures(rate(v))} ${unit}`.trim(), amount };
}

// How long values are sums over: the time from the first profile to the last, or a service that began a minute ago
// would look idle for the hour before.  It is the same for all parts of an answer, so that they add up.
export function rateSeconds(answer: { type: ProfileType; basis: Basis }, wholeSeconds: number): number {
    const { rate_seconds: seconds } = answer.basis;
    return answer.type.kind === "flow" && seconds > 0 && seconds < wholeSeconds ? seconds : wholeSeconds;
}

const SPARSE = 0.9;

// Said where profiles cover so little of that time that the rates are much less than what was used while they were taken.
export function sparseText({ type, basis }: { type: ProfileType; basis: Basis }): string {
    const share = basis.covered_seconds / basis.rate_seconds;
    return type.kind === "flow" && share > 0 && share < SPARSE ? ` Profiles cover ${percent(share, 0)} of this time.` : "";
}

// What the number is, for who points at it.
export const rateMeaning = (seconds: number) =>
    `Sum of all profiles, divided by the ${lengthText(seconds)} from the first profile to the last`;
