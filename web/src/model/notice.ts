// SPDX-License-Identifier: Apache-2.0
// What is worth a look: what the server found, and what the page can see in the numbers it shows
// anyway.  Each names the service, the size, the cause where it is known, and since when.
import type { Finding } from "../api/answers";
import type { FleetRow, ServiceChange } from "./fleet";
import { bytes, clock, digits, figures, percent } from "./format";

export type NoticeKind = "cpu" | "memory" | "gc" | "other";

export interface Notice {
    id: string;
    kind: NoticeKind;
    bad: boolean; // or only to be warned of
    service: string;
    title: string;
    text: string;
    tag: string; // in the table
    at: number | null; // Unix ms
    fn: string; // the guilty function, where it is known
    found: Finding | null; // null: the page worked it out
}

const GROWN = 0.1; // after a deployment
const GROWN_BY_ITSELF = 0.5; // against the window before, where load may explain it
const LEAST_CORES = 0.02;
const CLIMBS = 0.02; // an hour
export const GC_SHARE = 0.15;

export const grew = (change: ServiceChange | null, least = GROWN) =>
    change !== null && change.real && change.ratio >= least && (change.after - change.before) / 1e9 >= LEAST_CORES;

// The services whose change is worth the question which function it was.
export const suspects = (rows: FleetRow[], most = 4) =>
    rows.filter((row) => grew(row.change, row.deployment ? GROWN : GROWN_BY_ITSELF) && Number.isFinite(row.change!.ratio))
        .sort((a, b) => b.change!.after - b.change!.before - (a.change!.after - a.change!.before))
        .slice(0, most);

// Where most of a change starts.
export interface Cause {
    name: string; // of the function
    text: string; // "loadRules adds 0.85 cores"
}

// Functions of garbage collectors, as they are called in the stacks of Go, the JVM, V8, Python, Ruby and .NET.
export const GC_FUNCTIONS =
    "^(runtime\\.(gcBgMarkWorker|gcAssistAlloc|bgsweep|gcStart|bgscavenge)" +
    "|GCTaskThread::run|G1[A-Za-z]*(Task|Collector|Thread)::|ZDriver|ZWorkers|ShenandoahControlThread|VM_GC_Operation|VM_G1" +
    "|v8::internal::(Heap::CollectGarbage|Scavenger|MarkCompactCollector|Sweeper|ConcurrentMarking)|\\(garbage collector\\)|\\(GC\\)" +
    "|gc_collect_main|_PyGC_Collect|garbage_collect|gc_marks|gc_sweep|rb_gc" +
    "|(WKS|SVR)::gc_heap::|caml_major_collection|GC_collect)";

function cpuNotice(row: FleetRow, cause: Cause | null): Notice {
    const change = row.change!;
    const { deployment } = change;
    const version = deployment && (deployment.name || deployment.version || deployment.commit);
    const size = `${figures(change.before / 1e9)} → ${figures(change.after / 1e9)} cores`;
    return {
        id: `cpu:${row.service}`,
        kind: "cpu",
        bad: deployment !== null && change.ratio >= 0.2,
        service: row.service,
        title: `${row.service} uses ${percent(change.ratio, 0)} more CPU`,
        text: `${cause ? cause.text : size}, ${version ? `since ${version}` : "against the window before"}`,
        tag: deployment ? "CPU after deploy" : "CPU grew",
        at: change.right[0],
        fn: cause?.name ?? "",
        found: null,
    };
}

function memoryNotice(row: FleetRow): Notice {
    const climb = row.climb!;
    return {
        id: `memory:${row.service}`,
        kind: "memory",
        bad: false,
        service: row.service,
        title: `${row.service} memory climbs ${percent(climb.perHour, climb.perHour < 0.1 ? 1 : 0)} an hour`,
        text: `${bytes(climb.first)} → ${bytes(climb.now)} in ${digits(climb.hours, climb.hours < 10 ? 1 : 0)} h, and it does not fall back`,
        tag: "Heap climbs",
        at: null,
        fn: "",
        found: null,
    };
}

const gcNotice = (row: FleetRow, share: number): Notice => ({
    id: `gc:${row.service}`,
    kind: "gc",
    bad: false,
    service: row.service,
    title: `${row.service} spends ${percent(share, 0)} in GC`,
    text: `${figures(row.cores! * share)} of its ${figures(row.cores!)} cores collect garbage`,
    tag: `GC over ${percent(GC_SHARE, 0)}`,
    at: null,
    fn: "",
    found: null,
});

const KINDS = new Map<string, [NoticeKind, string]>([["regression", ["cpu", "Regression"]], ["leak", ["memory", "Heap climbs"]], ["gc", ["gc", "GC"]]]);

function foundNotice(finding: Finding): Notice {
    const [kind, tag] = KINDS.get(finding.kind) ?? ["other", finding.kind];
    return {
        id: finding.id,
        kind,
        bad: finding.severity === "critical",
        service: finding.service,
        title: finding.text,
        text: [finding.service, finding.function, finding.until ? `until ${clock(Date.parse(finding.until))}` : ""].filter(Boolean).join(", "),
        tag,
        at: Date.parse(finding.at),
        fn: finding.function,
        found: finding,
    };
}

export interface NoticeInput {
    findings: Finding[];
    rows: FleetRow[];
    causes: Map<string, Cause | null>; // by service, as far as they were asked for
    collected: Map<string, number>; // share of CPU time in garbage collection, by service
}

// The server's findings first; of what both noticed, only what the server says.
export function noticesOf({ findings, rows, causes, collected }: NoticeInput): Notice[] {
    const found = findings.map(foundNotice);
    const known = new Set(found.map(({ kind, service }) => `${kind}:${service}`));
    const seen = [
        ...suspects(rows, rows.length).map((row) => cpuNotice(row, causes.get(row.service) ?? null)),
        ...rows.filter((row) => row.climb && row.climb.perHour >= CLIMBS).map(memoryNotice),
        ...rows.filter((row) => row.cores && row.cores >= LEAST_CORES && (collected.get(row.service) ?? 0) >= GC_SHARE)
            .map((row) => gcNotice(row, collected.get(row.service)!)),
    ];
    return [...found, ...seen.filter(({ id }) => !known.has(id))].sort((a, b) => Number(b.bad) - Number(a.bad));
}

// Of each service, the one that stands in its row.
export const noticeOf = (notices: Notice[], service: string) => notices.find((notice) => notice.service === service) ?? null;
