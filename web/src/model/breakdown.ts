// SPDX-License-Identifier: Apache-2.0
// A profile broken down by a label: what each value takes, and how sure that is.
import type { QueryAnswer, Series } from "../api/answers";
import { count, isolated, percent, pluralWords } from "./format";
import { valueIn } from "./labels";
import { linesOf, rest, restOf, trimmed, type Line, type Lines } from "./trend";

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
    lines: Lines; // of the chart: the largest parts, and one line of everything else
    others: { values: number; amount: number; share: number } | null; // what is not listed
}

export const PICTURED = 5; // values that have a colour of their own in the chart

// The interval of Agresti and Coull, as the API has it.
export function halfWidth(share: number, observations: number): number | null {
    if (!(observations > 0)) return null;
    const n = observations + 3.84;
    const p = (share * observations + 1.92) / n;
    return 1.96 * Math.sqrt(Math.max(0, p * (1 - p)) / n);
}

// Buckets of a level that have anything: its sums are divided by them.
const bucketsWith = ({ series, rest }: Series) => new Set([...series, ...(rest ? [rest] : [])].flatMap(({ bucket }) => bucket)).size || 1;

// Observations of the series that are not listed: those without points, less those of them that are listed.
function hiddenCounts({ series, rest }: Series): number[] {
    return rest ? [...rest.count, ...series.filter(({ bucket }) => !bucket.length).map(({ observations }) => -observations)] : [];
}

function chartOf(lines: Lines, answer: QueryAnswer, until: number): Lines {
    const { all } = answer.series!;
    const pictured = lines.lines.filter((line) => line.pictured);
    if (pictured.length === all && all <= PICTURED + 1) return trimmed(lines);
    const label = `${count(all - Math.min(PICTURED, pictured.length))} more`;
    const unpictured = restOf(answer.series!, answer.type, until, label);
    const more = rest([...pictured.slice(PICTURED), ...(unpictured ? [unpictured] : [])], label);
    return trimmed({ ...lines, lines: [...pictured.slice(0, PICTURED), more] });
}

// `found`: the answer for the values that a search found, which have their shares of the whole as well;
// `details`: answers with the points that the others lack.
export function breakdownOf(answer: QueryAnswer, label: string, until: number, found: QueryAnswer | null = null, details: QueryAnswer[] = []): Breakdown {
    const series = answer.series!;
    const nameIn = (labels: Record<string, string>) => valueIn(labels, label);
    const lines = linesOf(series, answer.type, until, nameIn);
    const level = answer.type.kind === "level";
    const scale = level ? bucketsWith(series) : 1;
    const total = answer.total / scale;
    const observed = [...series.series.map(({ observations }) => observations), ...hiddenCounts(series)].reduce((a, b) => a + b, 0);
    const counts = !level && answer.type.unit !== "bytes"; // bytes do not weigh the same: nobody knows how sure they are
    const known = new Map(details.flatMap((one) => linesOf(one.series!, one.type, until, nameIn).lines.map((line) => [line.label, line])));
    const listed = found?.series ? linesOf(found.series, found.type, until, nameIn) : lines;
    const chart = chartOf(lines, answer, until);
    const parts = listed.lines.map((line): Part => {
        const pictured = line.pictured ? line : (known.get(line.label) ?? line);
        const share = total ? line.sum / scale / total : 0;
        return { value: line.label, amount: line.sum / scale, share, error: counts ? halfWidth(share, observed) : null, line: { ...line, rate: pictured.rate.slice(listed.n - chart.n) } };
    });
    const left = total - lines.lines.reduce((sum, line) => sum + line.sum / scale, 0);
    const hidden = series.all - series.series.length;
    return { parts, total, lines: chart, others: hidden ? { values: hidden, amount: left, share: total ? left / total : 0 } : null };
}

// Labels that most often explain a difference, before the rest; those that never do are left out.
const TELLING = [
    "service_name", "http.route", "endpoint", "span.name", "rpc.method", "service.version", "version", "deployment.environment.name",
    "deployment.environment", "env", "k8s.pod.name", "pod", "host.name", "service.instance.id", "k8s.namespace.name", "k8s.deployment.name",
    "container.name", "container.id", "thread.name", "thread", "cloud.availability_zone", "cloud.region", "process.owner",
];
const LAST = /^(process\.(pid|parent_pid|creation\.time|command.*|executable\..*)|thread\.id|cpu\.logical_number)$/; // nearly as many values as profiles
const NEVER = /^(__.*__|service\.name|pprof\..*)$/;

// Whose values are worth counting.
export const isTelling = (name: string) => !LAST.test(name);

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
