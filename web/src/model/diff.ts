// SPDX-License-Identifier: Apache-2.0
// What changed between two sides, A (left) and B (right): the numbers of /api/v1/diff as people read
// them, and where a change starts.
//
// The formula.  The server multiplies A's values by `scale`, so that they can stand beside B's:
//
//   normalized "time"   scale = B.covered / A.covered (seconds that profiles cover), so that
//                       A * scale / B.covered = A / A.covered: both sides are rates over B.covered
//                       (cores, MB a minute)
//   normalized "total"  scale = B.total / A.total: both sides are shares of B.total
//   normalized "none"   scale = 1: levels are what they are; of flows that do not say how long they
//                       cover only the plain sums are known
//
//   change = B - A * scale, and chance alone may move it (95 %) by
//   noise  = 1.96 sqrt(var(A * scale) + var(B)),  var(v) = v * v / n,  n = count * v / total >= 1
//   (times 1 - v / total where shares are compared: a share of everything cannot vary).
import type { DiffAnswer, DiffRow, Side } from "../api/answers";
import { digits, figures } from "./format";
import { measureOf, type Measure } from "./measure";
import { nameOf, type Tree } from "./tree";

export interface Change {
    a: number; // made comparable with b
    b: number;
    by: number; // b - a
    noise: number; // half of the width of what chance may do
    isNoise: boolean;
}

export interface Whole {
    a: number; // totals, made comparable
    b: number;
    countA: number; // observations behind them
    countB: number;
    shares: boolean; // values are shares of a fixed total
}

const Z_95 = 1.959964;

function variance(value: number, total: number, count: number, shares: boolean): number {
    const weight = count > 0 ? total / count : 0;
    const n = total ? (count * value) / total : 0;
    const plain = n > 1 ? (value * value) / n : Math.max(weight * weight, value * value);
    if (!shares) return plain;
    return value < total ? plain * (1 - value / total) : 0;
}

export function changeOf(a: number, b: number, whole: Whole): Change {
    const { shares, countA, countB } = whole;
    const noise = Z_95 * Math.sqrt(variance(a, whole.a, countA, shares) + variance(b, whole.b, countB, shares));
    const by = b - a;
    return { a, b, by, noise, isNoise: by === 0 || Math.abs(by) <= noise };
}

export function wholeOf(answer: DiffAnswer): Whole {
    return {
        a: answer.left.total * answer.scale,
        b: answer.right.total,
        countA: answer.left.basis.count,
        countB: answer.right.basis.count,
        shares: answer.normalized === "total",
    };
}

// The change of the whole, by the server's own numbers.
export const allOf = (answer: DiffAnswer): Change => ({
    a: answer.left.total * answer.scale,
    b: answer.right.total,
    by: answer.change,
    noise: answer.noise,
    isNoise: answer.is_noise,
});

export const nodeChange = (tree: Tree, node: number, whole: Whole): Change =>
    changeOf(tree.leftTotal ? tree.leftTotal[node] : 0, tree.total[node], whole);

export type Of = "self" | "total";

// A row of the table, by the server's own numbers.
export function rowChange(row: DiffRow, of: Of, scale: number): Change {
    return of === "self"
        ? {
              a: row.left_self * scale,
              b: row.right_self,
              by: row.self_change,
              noise: row.self_noise,
              isNoise: row.self_is_noise,
          }
        : {
              a: row.left_total * scale,
              b: row.right_total,
              by: row.total_change,
              noise: row.total_noise,
              isNoise: row.total_is_noise,
          };
}

// Shares of a whole, in percent.
function shareMeasure(whole: number): Measure {
    const rate = (value: number) => (whole ? (value / whole) * 100 : 0);
    const short = (value: number) => figures(rate(value));
    const format = (value: number) => `${short(value)}\u2009%`;
    return { unit: "%", rate, short, format, amount: format };
}

// Bytes in the unit that suits the whole, so that numbers of one picture can be compared by eye.
function sized(measure: Measure, whole: number): Measure {
    const step = [
        { unit: "GB", by: 1e-3 },
        { unit: "MB", by: 1 },
        { unit: "kB", by: 1e3 },
    ].find(({ by }) => measure.rate(whole) * by >= 2);
    if (!measure.unit.startsWith("MB") || !step) return measure;
    const rate = (value: number) => measure.rate(value) * step.by;
    return { ...measure, unit: measure.unit.replace("MB", step.unit), rate, short: (value) => figures(rate(value)) };
}

// What values of either side mean, after A's are multiplied by `scale`.
export function diffMeasure(answer: DiffAnswer): Measure {
    if (answer.normalized === "total") return shareMeasure(answer.right.total);
    const whole = Math.max(answer.right.total, answer.left.total * answer.scale);
    if (answer.normalized === "time") return sized(measureOf(answer.type, answer.right.basis.rate_seconds), whole);
    return sized(measureOf({ ...answer.type, kind: "level" }, 1), whole);
}

export interface Grouped {
    grew: DiffRow[];
    shrank: DiffRow[];
    noise: DiffRow[];
    noiseAll: number; // those that were not listed too
    cut: boolean; // there may be more that grew or shrank
}

// The table: what grew and what shrank beyond noise, the largest first, then the rest.
export function grouped(answer: DiffAnswer, of: Of): Grouped {
    const rows = answer.top?.rows ?? [];
    const change = (row: DiffRow) => rowChange(row, of, answer.scale);
    const size = (x: DiffRow, y: DiffRow) => Math.abs(change(y).by) - Math.abs(change(x).by);
    const beyond = rows.filter((row) => !change(row).isNoise);
    const grew = beyond.filter((row) => change(row).by > 0).sort(size);
    const shrank = beyond.filter((row) => change(row).by < 0).sort(size);
    const noise = rows.filter((row) => change(row).isNoise && (change(row).a > 0 || change(row).b > 0)).sort(size);
    const all = answer.top?.functions ?? rows.length;
    const last = rows[rows.length - 1];
    return {
        grew,
        shrank,
        noise,
        noiseAll: all - beyond.length,
        cut: all > rows.length && !!last && !change(last).isNoise,
    };
}

export interface Start {
    node: number; // the one with the largest part, where the function stands in several places
    name: string;
    by: number;
}

const HEIR = 0.5; // who hands on that much of its change is not where it starts
const SURE = 1.5; // a sentence wants more than 95 %: of a hundred nodes five would be named by chance
const isSure = ({ by, noise }: Change) => Math.abs(by) > SURE * noise;

function* childrenOf(tree: Tree, node: number): Generator<number> {
    for (let child = node + 1; child < tree.end[node]; child = tree.end[child]) yield child;
}

// Own code that a change below it is told by: the nearest caller that has not much more of it.
function tellable(
    tree: Tree,
    node: number,
    by: number,
    judge: (node: number) => Change,
    isOwn: (name: number) => boolean,
): number {
    for (let at = node; at > 0; at = tree.parent[at]) {
        if (Math.abs(by) < HEIR * Math.abs(judge(at).by)) break;
        if (isOwn(tree.name[at])) return at;
    }
    return node;
}

// Nodes where changes start: the walk goes down as long as one callee has most of what changed.
function* startNodes(tree: Tree, judge: (node: number) => Change, isOwn: (name: number) => boolean): Generator<number> {
    const open = tree.n ? [0] : [];
    while (open.length) {
        const node = open.pop()!;
        const change = judge(node);
        const callees = [...childrenOf(tree, node)].filter((child) => tree.name[child] !== tree.other);
        const heir = callees.some((child) => judge(child).by / change.by >= HEIR);
        if (node === 0 || heir || !isSure(change))
            open.push(...callees); // what grew may hide what shrank
        else yield tellable(tree, node, change.by, judge, isOwn);
    }
}

// Functions that a change starts in, the largest first; none is below another one of its kind.
export function startsOf(tree: Tree, judge: (node: number) => Change, isOwn: (name: number) => boolean): Start[] {
    const nodes = [...new Set(startNodes(tree, judge, isOwn))].sort((x, y) => x - y);
    const byName = new Map<string, Start>();
    let end = { 1: -1, [-1]: -1 } as Record<number, number>; // of the last one that grew, that shrank
    for (const node of nodes) {
        const { by } = judge(node);
        const sign = Math.sign(by);
        if (node < end[sign]) continue;
        end = { ...end, [sign]: tree.end[node] };
        const name = nameOf(tree, node);
        const before = byName.get(name);
        const largest = before && Math.abs(judge(before.node).by) >= Math.abs(by) ? before.node : node;
        byName.set(name, { node: largest, name, by: by + (before?.by ?? 0) });
    }
    return [...byName.values()].sort((x, y) => Math.abs(y.by) - Math.abs(x.by));
}

// "40 % more", "3.4 times as much", "12 % less"
export function ratio({ a, b }: Change): string {
    if (a <= 0) return "more";
    const part = b / a - 1;
    if (part >= 2) return `${figures(b / a)} times as much`;
    const shown = Math.abs(part) * 100;
    return `${digits(shown, shown >= 9.95 ? 0 : 1)}\u2009% ${part > 0 ? "more" : "less"}`;
}

// What a service does with a type: "uses 40 % more CPU", "allocates 12 % less".
export function phrase(type: DiffAnswer["type"], change: Change): [verb: string, much: string] {
    const much = ratio(change);
    const of = (what: string) => `${much} ${what}`;
    if (type.type === "cpu") return ["uses", of("CPU")];
    if (type.type.startsWith("alloc")) return ["allocates", much];
    if (type.type.startsWith("inuse")) return ["holds", of("memory")];
    if (type.type === "off_cpu") return ["waits", much];
    if (type.type === "delay") return ["waits", of("for locks")];
    return ["has", of(type.type.replace(/_/g, " "))];
}

const NAMED = 3; // functions of one direction that a sentence names

// "loadRules adds 0.85 cores, Collect 0.14; renderReceipt saves 0.08": in the measure's unit.
export function told(starts: Start[], measure: Measure): string {
    const largest = starts.length ? Math.abs(starts[0].by) : 0;
    const worth = starts.filter(({ by }) => Math.abs(by) >= largest * 0.05);
    const list = (of: Start[], verb: string, unit: string) =>
        of
            .slice(0, NAMED)
            .map(({ name, by }, i) => `${name} ${i ? "" : verb + " "}${measure.short(Math.abs(by))}${i ? "" : unit}`)
            .join(", ");
    const unit = measure.unit ? ` ${measure.unit}` : "";
    const more = list(
        worth.filter(({ by }) => by > 0),
        "adds",
        unit,
    );
    const less = list(
        worth.filter(({ by }) => by < 0),
        "saves",
        more ? "" : unit,
    );
    return [more, less].filter(Boolean).join("; ");
}

export const secondsOf = (side: Side) => (Date.parse(side.until) - Date.parse(side.from)) / 1000;
