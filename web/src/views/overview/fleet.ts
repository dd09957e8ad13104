// SPDX-License-Identifier: Apache-2.0
// The questions of the Overview.  The first one, CPU time by service, is enough for a first picture;
// the others fill it in as they are answered.
import { useMemo } from "preact/hooks";
import type { Agent, Deployment, DiffAnswer, Finding, LabelValues, QueryAnswer, Service, Services, Status } from "../../api/answers";
import type { Params } from "../../api/client";
import { useEach } from "../../api/each";
import { useDetails } from "../../api/search";
import { useAsk, type Asked } from "../../api/use";
import { told } from "../../model/diff";
import { exactRows, fleetOf, IDENTITY_LABELS, identitiesOf, realDeployments, type Fleet, type FleetRow } from "../../model/fleet";
import { CPU_TYPE, MEMORY_TYPE } from "../../model/know";
import { GC_FUNCTIONS, noticesOf, suspects, type Cause, type Notice } from "../../model/notice";
import { oneOf, selector } from "../../model/selector";
import { formatTime, seconds } from "../../model/time";
import { betterStep } from "../../model/series";
import { flowStep, levelStep } from "../../model/trend";
import type { Scope } from "../../state/scope";
import { comparedOf } from "../compare/compared";

export interface Overlook {
    cpu: Asked<QueryAnswer>;
    fleet: Fleet | null;
    services: Service[] | null; // all that the server has, of any time
    wide: boolean; // so many services that not every label of theirs may be read
    deployments: Deployment[]; // of the range
    notices: Notice[];
    noticing: boolean; // there may be more notices to come
    hosts: number;
    processors: number | null; // of all hosts, where they are known
}

interface Sets {
    series: { labels: Record<string, string>; last: string | null }[];
}

const LIMIT = 5000; // services with a row; the rest has smaller sums
const DETAILED = 25; // of these, the largest: what they had over time comes with the first answer
const LEVELS = 100; // services whose memory is in the first answer
const FEW = 50; // services, or hosts: every label may be read

// The processors of the fleet are known where this machine is all of it.
function processorsOf(status: Status | null, agents: Agent[], hosts: number): number | null {
    return status && agents.length === 1 && agents[0].local && agents[0].state === "running" && hosts <= 1 ? status.processors : null;
}

// More series than fit into an answer: again in longer steps.
function useSeries(params: Params | undefined): Asked<QueryAnswer> {
    const first = useAsk<QueryAnswer>(params ? "/api/v1/query" : null, params);
    const wide = first.error?.status === 413;
    const second = useAsk<QueryAnswer>(wide ? "/api/v1/query" : null, params && { ...params, step: 8 * Number(params.step) });
    return wide ? second : first;
}

// `pages`: the services that are seen, in groups that stay the same while the list is scrolled.
export function useFleet(scope: Scope, pages: string[][]): Overlook {
    const now = Date.now();
    const { matchers, range } = scope;
    const length = seconds(range, now);
    const query = selector(CPU_TYPE, "", matchers);
    const series = { query, ...range, format: "series", by: "service_name", limit: LIMIT, points: DETAILED, step: flowStep(length) };

    const cpu = useSeries(series);
    const then = (path: string) => (cpu.data || cpu.error ? path : null); // the first picture has the server to itself
    const services = useAsk<Services>("/api/v1/services");
    const deployments = useAsk<{ deployments: Deployment[] }>(then("/api/v1/deployments"), { ...range });
    const findings = useAsk<{ findings: Finding[] }>(then("/api/v1/findings"), { ...range });
    const counted = useAsk<LabelValues>(then("/api/v1/labels/host.name/values"), { query, ...range, limit: 1 });

    const known = services.data?.services ?? [];
    const hasMemory = known.some(({ types }) => types.some(({ id }) => id === MEMORY_TYPE));
    const levels = { ...series, query: selector(MEMORY_TYPE, "", matchers), limit: LEVELS, points: null, step: levelStep(length) };
    const memory = useMemory(hasMemory && cpu.data !== null, levels);
    const from = cpu.data && Date.parse(cpu.data.from);
    const earlier = from ? { ...series, from: formatTime(from - length * 1000), until: formatTime(from) } : null;
    const before = useSeries(earlier ?? undefined);
    const status = useAsk<Status>(then("/api/v1/status"));
    const agents = useAsk<{ agents: Agent[] }>(then("/api/v1/agents"));

    const pictured = useMemo(() => new Set(cpu.data?.series?.series.flatMap(({ labels, bucket }) => (bucket.length ? [labels.service_name] : []))), [cpu.data]);
    const largest = selector(CPU_TYPE, "", [oneOf("service_name", [...pictured]), ...matchers]); // of all, stacks take long to read
    const collected = useAsk<QueryAnswer>(pictured.size ? "/api/v1/query" : null, { ...series, query: largest, points: 0, step: 86400, with: GC_FUNCTIONS });
    // Details have the buckets of the answer they belong to: its times, which do not move, and its step.
    const alike = (params: Params, { data }: Asked<QueryAnswer>): Params | null => data?.series ? { ...params, from: data.from, until: data.until, step: data.series.step_seconds } : null;
    const of = (type: string, page: string[], params: Params | null): [string, Params] | null =>
        params && ["/api/v1/query", { ...params, query: selector(type, "", [oneOf("service_name", page), ...matchers]), points: null, limit: page.length }];
    const details = useDetails<QueryAnswer>(pages, (service) => !pictured.has(service), (page) => ({
        cpu: of(CPU_TYPE, page, alike(series, cpu)), before: of(CPU_TYPE, page, alike(series, before)), memory: of(MEMORY_TYPE, page, alike(levels, memory)),
    }));
    const hosts = counted.data?.all ?? 0;
    // Labels that are no part of a series are read from samples: of a few services at a time.
    const by = hosts <= FEW ? IDENTITY_LABELS : IDENTITY_LABELS.filter((label) => label !== "host.name");
    const sets = useDetails<Sets>(counted.data || counted.error ? pages : [], () => true, (page) => ({
        who: ["/api/v1/series", { query: selector(CPU_TYPE, "", [oneOf("service_name", page), ...matchers]), ...range, by, limit: 2000 }],
    }));
    const identities = useMemo(() => identitiesOf(sets.flatMap((get) => get("who")?.series ?? [])), [sets]);

    const deployed = deployments.data?.deployments ?? [];
    const rough = useMemo(() => cpu.data && fleetOf({
        cpu: cpu.data, before: before.data, memory: memory.data, details: details.map((get) => ({ cpu: get("cpu"), before: get("before"), memory: get("memory") })), services: known, deployments: deployed, identities, now: Date.now(),
    }), [cpu.data, before.data, memory.data, details, services.data, deployments.data, identities]);
    const diffs = useDiffs(rough && before.data ? suspects(rough.rows) : [], scope);
    const fleet = rough && { ...rough, rows: exactRows(rough.rows, diffs) };
    const causes = new Map([...diffs].map(([service, answer]) => [service, causeOf(answer)]));
    const shares = new Map(collected.data?.series?.series.map(({ labels, sum }) => {
        const cores = rough?.rows.find(({ service }) => service === labels.service_name)?.cores;
        return [labels.service_name, cores ? sum / 1e9 / rough!.seconds / cores : 0];
    }));
    const notices = noticesOf({ findings: findings.data?.findings ?? [], rows: fleet?.rows ?? [], causes, collected: shares });
    return {
        cpu, fleet, notices, hosts,
        services: services.data?.services ?? null,
        wide: (services.data?.all ?? 0) > FEW,
        deployments: realDeployments(deployed, known).filter(({ service }) => !fleet || fleet.rows.some((row) => row.service === service)),
        noticing: cpu.loading || findings.loading || before.loading || memory.loading || collected.loading,
        processors: processorsOf(status.data, agents.data?.agents ?? [], hosts),
    };
}

// Levels need a step in which every process has sent one: where the first is too short, it is asked again.
function useMemory(there: boolean, params: Params): Asked<QueryAnswer> {
    const first = useAsk<QueryAnswer>(there ? "/api/v1/query" : null, params);
    const better = first.data?.series ? betterStep(first.data.series) : null;
    const second = useAsk<QueryAnswer>(better ? "/api/v1/query" : null, { ...params, step: better });
    return better ? second : first;
}

function causeOf(answer: DiffAnswer | null): Cause | null {
    const compared = answer && comparedOf(answer);
    const first = compared?.starts.find(({ by }) => by > 0);
    return first ? { name: first.name, text: told([first], compared!.measure) } : null;
}

// What made a service grow, and by how much exactly; asked of the few that grew most.
function useDiffs(rows: FleetRow[], scope: Scope): Map<string, DiffAnswer | null> {
    return useEach<DiffAnswer>(rows.map(({ service, change }) => ({
        key: service,
        path: "/api/v1/diff",
        params: {
            query: selector(CPU_TYPE, service, scope.matchers),
            left_from: formatTime(change!.left[0]),
            left_until: formatTime(change!.left[1]),
            right_from: formatTime(change!.right[0]),
            right_until: formatTime(change!.right[1]),
            format: "flamegraph",
            nodes: 4096,
        },
    })));
}
