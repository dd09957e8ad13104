// SPDX-License-Identifier: Apache-2.0
// What the server answers: docs/openapi.yaml in TypeScript, as far as the page uses it.

export type Time = string | null; // RFC 3339

export interface ProfileType {
    id: string; // name:type:unit:period_type:period_unit
    name: string;
    type: string;
    unit: string;
    period_type: string;
    period_unit: string;
    kind: "flow" | "level";
}

export interface TypeRow extends ProfileType {
    profiles: number;
    first: Time;
    last: Time;
}

export interface Basis {
    profiles: number;
    count: number;
    first: Time;
    last: Time;
    covered_seconds: number;
    rate_seconds: number; // what a sum is divided by for a rate
    blocks: number;
    rolled_up: number;
    damaged: number;
    arrival_times: number;
}

export interface Note {
    code: string;
    text: string;
}

// Texts of functions, by the number that nodes name them with.
export interface Names {
    names: string[];
    files: string[];
    modules: string[];
    kinds: string[];
    inlined?: number[]; // numbers of names that were inlined into their callers
}

export interface Flamegraph extends Names {
    name: number[];
    depth: number[];
    self: number[];
    total: number[];
    other: number | null;
    nodes_all: number | null;
    error_bound: number;
}

export interface DiffFlamegraph extends Names {
    name: number[];
    depth: number[];
    left_self: number[];
    left_total: number[];
    right_self: number[];
    right_total: number[];
    other: number | null;
}

export interface TopRow {
    name: string;
    file: string;
    module: string;
    kind: string;
    self: number;
    total: number;
    self_share: number;
    self_error: number | null;
    total_share: number;
    total_error: number | null;
}

export interface Top {
    functions: number;
    rows: TopRow[];
}

export interface Series {
    start: string;
    step_seconds: number;
    buckets: number;
    by: string[];
    series: { labels: Record<string, string>; sum: number; observations: number; bucket: number[]; value: number[]; count: number[] }[];
    rest?: { series: number; sum: number; bucket: number[]; value: number[]; count: number[] }; // those without points
    all: number;
}

export interface Timeline extends Names {
    start: string;
    threads: { id: string; name: string }[];
    name: number[];
    parent: number[];
    thread: number[];
    at_ns: number[];
    node: number[];
    value: number[];
    all: number;
    timed: number;
}

export interface QueryAnswer {
    type: ProfileType;
    from: string;
    until: string;
    total: number;
    basis: Basis;
    flamegraph?: Flamegraph;
    top?: Top;
    series?: Series;
    timeline?: Timeline;
    notes: Note[];
}

export interface FileAnswer extends QueryAnswer {
    file: { name: string; format: string; bytes: number };
    types: (ProfileType & { total: number })[];
}

export interface Side {
    query: string;
    from: string;
    until: string;
    deployment?: string;
    total: number;
    basis: Basis;
}

export interface DiffRow {
    name: string;
    file: string;
    module: string;
    kind: string;
    left_self: number;
    right_self: number;
    left_total: number;
    right_total: number;
    self_change: number;
    self_noise: number;
    self_is_noise: boolean;
    total_change: number;
    total_noise: number;
    total_is_noise: boolean;
}

export interface DiffAnswer {
    type: ProfileType;
    left: Side;
    right: Side;
    normalized: "time" | "total" | "none";
    scale: number;
    change: number;
    noise: number;
    is_noise: boolean;
    flamegraph?: DiffFlamegraph;
    top?: { functions: number; rows: DiffRow[] };
    notes: Note[];
}

export interface ProfileRow {
    id: string | null;
    time: string;
    duration_seconds: number;
    type: string;
    service: string;
    labels: Record<string, string>;
    value: number;
    count: number;
    samples: number;
}

export interface SpanRow {
    trace_id: string | null;
    span_id: string | null;
    spans?: number;
    first: string;
    duration_seconds: number;
    type: string;
    service: string;
    value: number;
    count: number;
    samples: number;
}

export interface SpansAnswer {
    type: ProfileType;
    from: string;
    until: string;
    spans: SpanRow[];
    all: number;
    basis: Basis;
    top: Top;
    notes: Note[];
}

export interface WindowsAnswer {
    type: ProfileType;
    windows: {
        from: string;
        until: string;
        name: string;
        profiles: ProfileRow[];
        all: number;
        total: number;
        basis: Basis;
        top: Top;
    }[];
    total: number;
    basis: Basis;
    top: Top;
    notes: Note[];
}

export interface FunctionAnswer {
    function: string;
    type: ProfileType;
    from: string;
    until: string;
    start: string;
    step_seconds: number;
    buckets: number;
    bucket: number[];
    value: number[];
    total: number[];
    share: number[];
    error: (number | null)[];
    sum: number;
    total_sum: number;
    basis: Basis;
    notes: Note[];
}

// Nanoseconds; `gap` is `wall` less `cpu`.
export interface GapAmounts {
    wall: number;
    cpu: number;
    blocked: number;
    runnable: number;
    gap: number;
}

export interface GapAnswer {
    overall: GapAmounts;
    reasons: { reason: string; value: number }[];
    rows: { name: string; self: GapAmounts; total: GapAmounts; reasons: number[] }[];
    basis: Basis;
    notes: Note[];
}

export interface SourceAnswer {
    function: string;
    file: string;
    module: string;
    type: ProfileType;
    from: string;
    until: string;
    start_line: number | null;
    total: number;
    lines: { line: number; self: number; total: number }[];
    other_files: string[];
    text: { first: number; lines: string[] } | null;
    text_problem: string | null;
    basis: Basis;
    notes: Note[];
}

export interface Service {
    name: string;
    tenant?: string;
    bytes: number;
    profiles: number;
    profiles_per_second: number;
    bytes_per_second: number;
    oldest: Time;
    newest: Time;
    types: { id: string; bytes: number; profiles: number; oldest: Time; newest: Time }[];
}

export interface Services {
    services: Service[];
    all: number; // those past the limit included
}

export interface Deployment {
    id: string;
    service: string;
    version: string;
    commit: string;
    deployment_id: string;
    at: string;
    until: Time;
    source: "found" | "told";
    label: string;
    name: string;
    text: string;
    first: Time;
    last: Time;
    profiles: number;
}

export interface Annotation {
    id: string;
    at: string;
    until: Time;
    service: string;
    text: string;
    tags: string[];
}

export interface Finding {
    id: string;
    at: string;
    until: Time;
    kind: string;
    severity: "info" | "warning" | "critical";
    service: string;
    type: string;
    function: string;
    text: string;
    value: number;
    baseline: number;
}

export interface LabelValue {
    value: string;
    profiles: number;
    first: Time;
    last: Time;
}

export interface LabelValues {
    values: LabelValue[];
    all: number; // those past the limit included
}

export interface Session {
    version: string;
    tokens: boolean;
    signed_in: boolean;
    access: ("read" | "write" | "control" | "admin")[];
    tenant: string | null;
    multitenant: boolean;
    host_profiler: "on" | "off" | "failed";
    host_profiler_reason: string | null;
    orders: "off" | "boost" | "all";
    orders_reason: string | null;
    source: boolean;
    now: string;
}

export interface Drop {
    where: string;
    reason: string;
    count: number;
    text: string;
    remedy: string;
}

export interface Status {
    /** "tenant": the token is for one tenant, and is told nothing of others */
    scope: "server" | "tenant";
    version: string;
    started: string;
    now: string;
    memory: { used_bytes: number; limit_bytes: number };
    cpu_seconds: number;
    processors: number;
    ingest: {
        profiles: number;
        samples: number;
        bytes: number;
        profiles_per_second: number;
        samples_per_second: number;
        bytes_per_second: number;
    } | null;
    drops: Drop[];
    store: {
        bytes: number;
        blocks: number;
        log_bytes: number | null;
        profiles: number;
        oldest: Time;
        newest: Time;
        retention_seconds: number | null;
        retention_bytes: number | null;
        retention_paused?: string | null;
        disk_free_bytes: number;
        writable: boolean;
        problem: string | null;
    };
}

export interface Agent {
    id: string;
    host: string;
    version: string;
    kernel: string;
    started: string;
    last_seen: string;
    local: boolean;
    state: "running" | "paused" | "failed" | "waiting" | "stopped";
    problem: string | null;
    hz: number;
    samples_per_second: number;
    samples: number;
    processes: number;
    drops: { reason: string; count: number }[];
    unwind: { complete: number; all: number; share: number | null; ends: { reason: string; count: number }[] };
    cpu_cores: number;
    memory_bytes: number;
    orders?: string[]; // ids of those it follows
}

export interface Order {
    id: string;
    kind: "boost" | "pause";
    target: "all" | "host" | "service" | "container" | "process";
    name: string | null;
    pid: number | null;
    host: string | null;
    hz: number | null;
    created: string;
    expires: string;
    by: string | null;
    why: string | null;
}
