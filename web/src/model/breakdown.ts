// SPDX-License-Identifier: Apache-2.0
// A profile broken down by a label: what each value takes, and how sure that is.
import type { QueryAnswer } from "../api/answers";
import { isolated, percent, pluralWords } from "./format";
import { valueIn } from "./labels";
import { linesOf, trimmed, type Line, type Lines } from "./trend";

export interface Part {
    value: string; // of the label; "": profiles or samples that do not have it
    amount: number; // a flow's sum, a level's mean
    share: number;
    error: number | null; // half-width of the share's 95 % interval
    line: Line;
}

export interface Breakdown {
    parts: Part[]; // the largest first
    total: number;
    lines: Lines;
    others: { values: number; amount: number; share: number } | null; // what is not listed
}

// The interval of Agresti and Coull, as the API has it.
export function halfWidth(share: number, observations: number): number | null {
    if (!(observations > 0)) return null;
    const n = observations + 3.84;
    const p = (share * observations + 1.92) / n;
    return 1.96 * Math.sqrt(Math.max(0, p * (1 - p)) / n);
}

// `whole`: the total of everything, where not all values are in the answer.
export function breakdownOf(answer: QueryAnswer, label: string, until: number, whole: number | null): Breakdown {
    const series = answer.series!;
    const lines = trimmed(linesOf(series, answer.type, until, (labels) => valueIn(labels, label)));
    const level = answer.type.kind === "level";
    const present = new Set(series.series.flatMap(({ bucket }) => bucket)).size || 1;
    const amountOf = (line: Line) => (level ? line.sum / present : line.sum);
    const listed = lines.lines.reduce((sum, line) => sum + amountOf(line), 0);
    const hidden = series.all - series.series.length;
    const total = hidden && whole !== null ? Math.max(whole, listed) : listed;
    const counts = !level && answer.type.unit !== "bytes"; // bytes do not weigh the same: nobody knows how sure they are
    const observed = !counts ? 0 : lines.lines.reduce((sum, { count }) => sum + count.reduce((a, b) => a + b, 0), 0);
    const parts = lines.lines.map((line): Part => {
        const share = total ? amountOf(line) / total : 0;
        return { value: line.label, amount: amountOf(line), share, error: halfWidth(share, observed), line };
    });
    const left = total - listed;
    return { parts, total, lines, others: hidden ? { values: hidden, amount: left, share: total ? left / total : 0 } : null };
}

// Labels that most often explain a difference, before the rest; those that never do are left out.
const TELLING = [
    "service_name", "http.route", "endpoint", "span.name", "rpc.method", "service.version", "version", "deployment.environment.name",
    "deployment.environment", "env", "k8s.pod.name", "pod", "host.name", "service.instance.id", "k8s.namespace.name", "k8s.deployment.name",
    "container.name", "container.id", "thread.name", "thread", "cloud.availability_zone", "cloud.region", "process.owner",
];
const LAST = /^process\.(pid|parent_pid|creation\.time|command.*|executable\.path)$/; // nearly as many values as profiles
const NEVER = /^(__.*__|service\.name|pprof\..*)$/;

export function labelsInOrder(names: string[], service: string): string[] {
    const rank = (name: string) => (LAST.test(name) ? Infinity : TELLING.indexOf(name) + 1 || TELLING.length + 1);
    return names.filter((name) => !NEVER.test(name) && !(service && name === "service_name"))
        .sort((a, b) => (rank(a) === rank(b) ? (a < b ? -1 : 1) : rank(a) - rank(b)));
}

// The first that tells anything apart; before their values are counted, the first.
export const labelToStart = (names: string[], counts: Map<string, number>) =>
    names.find((name) => (counts.get(name) ?? 0) > 1) ?? names[0] ?? "";

const MANY = 12;
const SMALL = 0.05;
const EVEN = 1.25; // the largest part, as a multiple of what each would have

export const possessive = (name: string) => isolated(name) + (/s$/.test(name) ? "’" : "’s");

// What the breakdown comes down to, in words; `whose`: "checkout's CPU time".
export function sentenceOf({ parts, others }: Breakdown, label: string, whose: string): string {
    const named = parts.filter(({ value }) => value !== "");
    const [top] = named;
    if (!top) return `Nothing of ${whose} has ${label}`;
    if (named.length === 1 && parts.length === 1 && !others) return `All of ${whose} is ${label} ${isolated(top.value)}`;
    const even = !others && parts.length === named.length && named.length > 1 && top.share < EVEN / named.length;
    if (even) return `${pluralWords(named.length, "value")} of ${label} share ${whose} evenly`;
    const values = named.length + (others?.values ?? 0);
    if (values >= MANY && top.share < SMALL && parts.length === named.length)
        return `${pluralWords(values, "value")} of ${label} share ${whose}; none takes more than ${percent(top.share)}`;
    return `${isolated(top.value)} takes ${percent(top.share, top.share < 0.1 ? 1 : 0)} of ${whose}`;
}
