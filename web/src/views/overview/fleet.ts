// SPDX-License-Identifier: Apache-2.0
// The questions of the Overview.  The first one, CPU time by service, is enough for a first picture;
// the others fill it in as they are answered.
import { useMemo } from "preact/hooks";
import type { Agent, Deployment, DiffAnswer, Finding, QueryAnswer, Service, Status } from "../../api/answers";
import type { Params } from "../../api/client";
import { useEach } from "../../api/each";
import { useAsk, type Asked } from "../../api/use";
import { told } from "../../model/diff";
import { exactRows, fleetOf, hostsIn, IDENTITY_LABELS, identitiesOf, realDeployments, type Fleet, type FleetRow } from "../../model/fleet";
import { CPU_TYPE, MEMORY_TYPE } from "../../model/know";
import { GC_FUNCTIONS, noticesOf, suspects, type Cause, type Notice } from "../../model/notice";
import { selector } from "../../model/selector";
import { formatTime, seconds } from "../../model/time";
import { betterStep } from "../../model/series";
import { flowStep, levelStep } from "../../model/trend";
import type { Scope } from "../../state/scope";
import { comparedOf } from "../compare/compared";

export interface Overlook {
    cpu: Asked<QueryAnswer>;
    fleet: Fleet | null;
    services: Service[] | null; // all that the server has, of any time
    deployments: Deployment[]; // of the range
    notices: Notice[];
    noticing: boolean; // there may be more notices to come
    hosts: number;
    processors: number | null; // of all hosts, where they are known
}

interface Sets {
    series: { labels: Record<string, string>; last: string | null }[];
}

const LIMIT = 5000; // services; the rest has smaller sums

// The processors of the fleet are known where this machine is all of it.
function processorsOf(status: Status | null, agents: Agent[], hosts: number): number | null {
    return status && agents.length === 1 && agents[0].local && agents[0].state === "running" && hosts <= 1 ? status.processors : null;
}

export function useFleet(scope: Scope): Overlook {
    const now = Date.now();
    const { matchers, range } = scope;
    const length = seconds(range, now);
    const query = selector(CPU_TYPE, "", matchers);
    const series = { query, ...range, format: "series", by: "service_name", limit: LIMIT, step: flowStep(length) };

    const cpu = useAsk<QueryAnswer>("/api/v1/query", series);
    const then = (path: string) => (cpu.data || cpu.error ? path : null); // the first picture has the server to itself
    const services = useAsk<{ services: Service[] }>("/api/v1/services");
    const deployments = useAsk<{ deployments: Deployment[] }>("/api/v1/deployments", { ...range });
    const findings = useAsk<{ findings: Finding[] }>("/api/v1/findings", { ...range });
    const sets = useAsk<Sets>(then("/api/v1/series"), { query, ...range, by: IDENTITY_LABELS, limit: 5000 });

    const known = services.data?.services ?? [];
    const hasMemory = known.some(({ types }) => types.some(({ id }) => id === MEMORY_TYPE));
    const memory = useMemory(hasMemory && cpu.data !== null, { ...series, query: selector(MEMORY_TYPE, "", matchers), step: levelStep(length) });
    const from = cpu.data && Date.parse(cpu.data.from);
    const before = useAsk<QueryAnswer>(from ? "/api/v1/query" : null,
        from ? { ...series, from: formatTime(from - length * 1000), until: formatTime(from) } : undefined);
    const collected = useAsk<QueryAnswer>(from ? "/api/v1/query" : null, { ...series, step: 86400, with: GC_FUNCTIONS });
    const status = useAsk<Status>(then("/api/v1/status"));
    const agents = useAsk<{ agents: Agent[] }>(then("/api/v1/agents"));

    const deployed = deployments.data?.deployments ?? [];
    const rough = useMemo(() => cpu.data && fleetOf({
        cpu: cpu.data, before: before.data, memory: memory.data, services: known, deployments: deployed,
        identities: identitiesOf(sets.data?.series ?? []), now: Date.now(),
    }), [cpu.data, before.data, memory.data, services.data, deployments.data, sets.data]);
    const hosts = hostsIn(sets.data?.series ?? []);
    const diffs = useDiffs(rough && before.data ? suspects(rough.rows) : [], scope);
    const fleet = rough && { ...rough, rows: exactRows(rough.rows, diffs) };
    const causes = new Map([...diffs].map(([service, answer]) => [service, causeOf(answer)]));
    const shares = new Map(collected.data?.series?.series.map(({ labels, sum }) => {
        const all = fleet?.chart.lines.find(({ label }) => label === labels.service_name)?.sum;
        return [labels.service_name, all ? sum / all : 0];
    }));
    const notices = noticesOf({ findings: findings.data?.findings ?? [], rows: fleet?.rows ?? [], causes, collected: shares });
    return {
        cpu, fleet, notices, hosts,
        services: services.data?.services ?? null,
        deployments: realDeployments(deployed, known).filter(({ service }) => !fleet || fleet.rows.some((row) => row.service === service)),
        noticing: findings.loading || before.loading || memory.loading || collected.loading,
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
