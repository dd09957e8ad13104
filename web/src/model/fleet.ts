// SPDX-License-Identifier: Apache-2.0
// The fleet: what every service uses, put together from a few answers, each of which may still be
// on its way.
import type { Deployment, DiffAnswer, QueryAnswer, Service } from "../api/answers";
import { count } from "./format";
import { CPU_TYPE } from "./know";
import { rateSeconds } from "./measure";
import { added, changeOf, climbOf, endOf, linesOf, NOTHING, rest, restOf, sumOf, thinned, trimmed, type Change, type Climb, type Line, type Lines } from "./trend";

export interface Identity {
    runtime: string; // "Node 22", or ""
    version: string;
    hosts: number;
}

export interface ServiceChange extends Change {
    deployment: Deployment | null; // since when; null: since the window before
    previous: string; // the version before that deployment, or ""
    left: [number, number]; // Unix ms of both sides, to compare them
    right: [number, number];
}

export interface FleetRow {
    service: string;
    cores: number | null; // null: no CPU time is known of it
    count: number; // observations behind it
    spark: (number | null)[];
    change: ServiceChange | null;
    memory: number | null; // bytes in use, as last seen
    climb: Climb | null;
    deployment: Deployment | null; // the last one in the range
    identity: Identity | null;
}

export interface Fleet {
    rows: FleetRow[]; // most cores first
    cores: number; // of all services, listed or not
    unlisted: number; // services with smaller sums than any of the rows
    chart: Lines; // of the range, or of the part that has profiles: the largest services, and one line of all others
    seconds: number; // that rates are over
    first: number | null; // Unix ms of the first profile in the range
    last: number | null; // and of the last
}

export interface FleetAnswers {
    cpu: QueryAnswer;
    before: QueryAnswer | null; // the window as long, just before
    memory: QueryAnswer | null;
    details?: Detail[]; // of services whose points are not in the answers above
    services: Service[];
    deployments: Deployment[];
    identities: Map<string, Identity>;
    now: number;
}

// The same questions, asked of some services alone.
export interface Detail {
    cpu: QueryAnswer | null;
    before: QueryAnswer | null;
    memory: QueryAnswer | null;
}

export const PICTURED = 4; // services that have a colour of their own in the chart

const SERVICE = "service_name";
const nameIn = (labels: Record<string, string>) => labels[SERVICE] ?? "";
const linesIn = (answer: QueryAnswer | null, until: number) =>
    answer?.series ? linesOf(answer.series, answer.type, until, nameIn) : null;

const BUCKETS_TO_COMPARE = 3; // on each side of a deployment, or nothing is said of it
const LEAST_SIDE_MS = 30 * 60000;

interface Windows {
    now: Lines;
    before: Lines | null;
    from: number;
    until: number;
    first: number; // since when there is anything at all
}

const indexes = new WeakMap<Lines, Map<string, Line>>(); // thousands of services are looked up for each of them

function lineOf(lines: Lines | null, service: string): Line | undefined {
    if (!lines) return undefined;
    const index = indexes.get(lines) ?? new Map(lines.lines.map((line) => [line.label, line]));
    indexes.set(lines, index);
    return index.get(service);
}

// Right after a deployment against right before it: near each other, or the hour of the day would be
// taken for the deployment.
function since(deployment: Deployment, previous: string, service: string, windows: Windows): ServiceChange | null {
    const at = Date.parse(deployment.at);
    const { now, before, from, until, first } = windows;
    const line = lineOf(now, service);
    const side = Math.min(until - at, Math.max((until - from) / 24, LEAST_SIDE_MS, 2 * BUCKETS_TO_COMPARE * now.stepMs));
    const begins = Math.max(first, at - side, from - (before ? until - from : 0));
    const ends = Math.min(until, at + side);
    const right = sumOf(now, line, at, ends);
    const left = added(
        before ? sumOf(before, lineOf(before, service), begins, from) : NOTHING,
        sumOf(now, line, Math.max(from, begins), at - now.stepMs + 1), // the bucket it lies in is of both
    );
    const enough = (BUCKETS_TO_COMPARE * now.stepMs) / 1000;
    if (left.seconds < enough || right.seconds < enough || !left.count) return null;
    const change = changeOf(left, right);
    return change && { ...change, deployment, previous, left: [begins, at], right: [at, ends] };
}

function againstBefore(service: string, windows: Windows): ServiceChange | null {
    const { now, before, from, until, first } = windows;
    const length = until - from;
    if (!before || first > from - length / 2) return null; // Kiln was not there, or not for long enough to tell
    const begins = Math.max(first, from - length);
    const left = sumOf(before, lineOf(before, service), begins, from);
    const change = changeOf(left, sumOf(now, lineOf(now, service), from, until));
    return change && { ...change, deployment: null, previous: "", left: [begins, from], right: [from, until] };
}

const lastLevel = (line: Line | undefined) => line?.rate.reduce<number | null>((last, value) => value ?? last, null) ?? null;

const hasType = (service: Service, type: string) => service.types.some(({ id }) => id === type);
const inRange = (service: Service, from: number, until: number) =>
    Date.parse(service.newest ?? "") >= from && Date.parse(service.oldest ?? "") < until;

// A version that was there when the first profile came was not deployed then.
export function realDeployments(deployments: Deployment[], services: Service[]): Deployment[] {
    const oldest = new Map(services.map(({ name, oldest }) => [name, Date.parse(oldest ?? "")]));
    return deployments.filter((one) => one.source === "told" || Date.parse(one.at) > (oldest.get(one.service) ?? 0) + 60000);
}

// The last real deployment of each service in a stretch of time, and the version before it.
function lastDeployments(answers: FleetAnswers, from: number, until: number): Map<string, [Deployment, string]> {
    const last = new Map<string, [Deployment, string]>();
    const before = new Map<string, string>();
    const real = new Set(realDeployments(answers.deployments, answers.services));
    for (const one of [...answers.deployments].sort((a, b) => Date.parse(a.at) - Date.parse(b.at))) {
        const at = Date.parse(one.at);
        if (real.has(one) && at > from && at <= until) last.set(one.service, [one, before.get(one.service) ?? ""]);
        before.set(one.service, one.version);
    }
    return last;
}

// The answer with the points of details; sums stay those of the answer, which are of the same moment for all.
function withDetails(answer: QueryAnswer | null, details: (QueryAnswer | null)[]): QueryAnswer | null {
    if (!answer?.series || !details.length) return answer;
    const known = new Map(details.flatMap((one) => one?.series?.series.map((series) => [nameIn(series.labels), series] as const) ?? []));
    const there = new Set(answer.series.series.map(({ labels }) => nameIn(labels)));
    const series = answer.series.series.map((one) => (one.bucket.length ? one : { ...one, ...known.get(nameIn(one.labels)), sum: one.sum }));
    const more = answer.type.kind === "level" ? [...known].flatMap(([name, one]) => (there.has(name) ? [] : [one])) : [];
    return { ...answer, series: { ...answer.series, series: [...series, ...more] } };
}

// The largest services, and all others as one line: those without points too, so that it adds up to everything.
function chartOf(lines: Lines, answer: QueryAnswer, until: number): Lines {
    const pictured = lines.lines.filter((line) => line.pictured);
    const all = answer.series!.all;
    const few = all <= PICTURED + 1 && pictured.length === all;
    const others = few ? [] : pictured.slice(PICTURED);
    const label = `${count(all - Math.min(PICTURED, pictured.length))} more`;
    const unpictured = restOf(answer.series!, answer.type, until, label);
    const more = few ? [] : [rest([...others, ...(unpictured ? [unpictured] : [])], label)];
    return trimmed({ ...lines, lines: [...(few ? pictured : pictured.slice(0, PICTURED)), ...more] });
}

export function fleetOf(answers: FleetAnswers): Fleet {
    const { now, details = [] } = answers;
    const cpu = withDetails(answers.cpu, details.map((one) => one.cpu))!;
    const chart = linesIn(cpu, now)!;
    const from = Date.parse(cpu.from);
    const ends = Math.min(Date.parse(cpu.until), now);
    const until = Math.min(ends, Math.max(endOf(chart), from + chart.stepMs)); // a fleet that nobody hears of is not idle
    const seconds = rateSeconds(cpu, (ends - from) / 1000);
    const memory = linesIn(withDetails(answers.memory, details.map((one) => one.memory)), until);
    const oldest = answers.services.flatMap(({ oldest }) => (oldest ? [Date.parse(oldest)] : []));
    const first = Math.min(...oldest, Date.parse(cpu.basis.first ?? cpu.until));
    const windows: Windows = { now: chart, before: linesIn(withDetails(answers.before, details.map((one) => one.before)), from), from, until, first };
    const deployed = lastDeployments(answers, from, until);
    const picture = chartOf(linesIn(answers.cpu, now)!, answers.cpu, now);
    const shown = chart.n - picture.n; // buckets that are trimmed away
    const others = answers.services.filter((one) => inRange(one, from, until) && !lineOf(chart, one.name)
        && (lineOf(memory, one.name) || !hasType(one, CPU_TYPE))).map(({ name }) => name);
    const rows = [...chart.lines.map(({ label }) => label), ...others].map((service): FleetRow => {
        const line = lineOf(chart, service);
        const [deployment, previous] = deployed.get(service) ?? [null, ""];
        const level = lineOf(memory, service);
        return {
            service,
            cores: line ? line.sum / 1e9 / seconds : null,
            count: line ? line.observations : 0,
            spark: line ? thinned(line.rate.slice(shown)) : [],
            change: line ? ((deployment && line.pictured ? since(deployment, previous, service, windows) : null) ?? againstBefore(service, windows)) : null,
            memory: lastLevel(level),
            climb: level && memory ? climbOf(level.rate, memory.stepMs) : null,
            deployment,
            identity: answers.identities.get(service) ?? null,
        };
    });
    return {
        rows,
        cores: cpu.total / 1e9 / seconds,
        unlisted: cpu.series!.all - cpu.series!.series.length,
        chart: picture,
        seconds,
        first: cpu.basis.first ? Date.parse(cpu.basis.first) : null,
        last: cpu.basis.last ? Date.parse(cpu.basis.last) : null,
    };
}

// Changes by whole buckets are rough; where both sides were compared to the sample, that counts.
export function exactRows(rows: FleetRow[], diffs: Map<string, DiffAnswer | null>): FleetRow[] {
    return rows.map((row) => {
        const diff = diffs.get(row.service);
        const was = diff ? diff.left.total * diff.scale : 0;
        if (!diff || !row.change || !was || diff.normalized !== "time") return row;
        return { ...row, change: { ...row.change, ratio: diff.change / was, noise: diff.noise / was, real: !diff.is_noise } };
    });
}

export const RUNTIME_LABELS = ["process.runtime.name", "process.runtime.version", "telemetry.sdk.language"];
export const VERSION_LABELS = ["service.version", "version"];
export const IDENTITY_LABELS = [SERVICE, "host.name", ...VERSION_LABELS, ...RUNTIME_LABELS];

const RUNTIMES: [RegExp, string][] = [
    [/node/i, "Node"], [/openjdk|java|jvm|hotspot/i, "Java"], [/cpython|python/i, "Python"], [/^go$|golang/i, "Go"],
    [/ruby/i, "Ruby"], [/dotnet|\.net/i, ".NET"], [/php/i, "PHP"], [/rust/i, "Rust"], [/cpp|c\+\+/i, "C++"], [/erlang|beam/i, "Erlang"],
];

export function runtimeText(name: string, version: string, language: string): string {
    const said = name || language;
    const known = RUNTIMES.find(([pattern]) => pattern.test(said))?.[1] ?? said;
    const numbers = /^(?:go|v)?(\d+)(?:\.(\d+))?/.exec(version);
    const major = numbers && (/^(Go|Python|Ruby|PHP|\.NET|Rust)$/.test(known) && numbers[2] ? `${numbers[1]}.${numbers[2]}` : numbers[1]);
    return major ? `${known} ${major}` : known;
}

interface LabelSet {
    labels: Record<string, string>;
    last: string | null;
}

// Who a service is, from sets of labels: what it said last counts.
export function identitiesOf(sets: LabelSet[]): Map<string, Identity> {
    const found = new Map<string, Identity>();
    const hosts = new Map<string, Set<string>>();
    for (const { labels } of [...sets].sort((a, b) => Date.parse(a.last ?? "") - Date.parse(b.last ?? ""))) {
        const name = labels[SERVICE];
        const before = found.get(name) ?? { runtime: "", version: "", hosts: 0 };
        const [runtimeName, runtimeVersion, language] = RUNTIME_LABELS.map((label) => labels[label] ?? "");
        const of = hosts.get(name) ?? new Set();
        hosts.set(name, labels["host.name"] ? of.add(labels["host.name"]) : of);
        found.set(name, {
            runtime: runtimeText(runtimeName, runtimeVersion, language) || before.runtime,
            version: VERSION_LABELS.map((label) => labels[label]).find(Boolean) ?? before.version,
            hosts: of.size,
        });
    }
    return found;
}

