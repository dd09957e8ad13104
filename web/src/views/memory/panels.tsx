// SPDX-License-Identifier: Apache-2.0
// Beside each other: what is in use, over time, and what is allocated, by whom.
import type { Annotation, Deployment, DiffAnswer, ProfileType, QueryAnswer } from "../../api/answers";
import { useAsk } from "../../api/use";
import { rowChange } from "../../model/diff";
import { bytes, signed } from "../../model/format";
import { withoutDeployments } from "../../model/growth";
import { measureOf } from "../../model/measure";
import type { Range } from "../../model/time";
import { linkTo } from "../../state/place";
import { Failure, Link, Loading, Meter, Panel } from "../../ui/kit";
import { Timeline } from "../../ui/timeline";
import { named } from "../compare/named";
import { levelOf, type Climb } from "./levels";

export interface MemoryProps {
    service: string;
    range: Range; // absolute
    inuse: ProfileType | null;
    alloc: ProfileType | null;
    queryOf: (type: ProfileType) => string;
    step: number; // seconds
    deployments: Deployment[]; // in the range
    deployed: number[]; // Unix ms of when processes of one version took the place of another's
}

export function InUse({
    inuse,
    queryOf,
    range,
    step,
    climb,
    service,
    deployments,
    deployed,
}: MemoryProps & { climb: Climb | null }) {
    const asked = useAsk<QueryAnswer>(
        inuse && "/api/v1/query",
        inuse ? { query: queryOf(inuse), ...range, format: "series", step } : {},
    );
    const notes = useAsk<{ annotations: Annotation[] }>("/api/v1/annotations", { service, ...range });
    if (!inuse) return null;
    const series = asked.data?.series;
    const level =
        series &&
        withoutDeployments(
            levelOf({ ...series, bucket: series.series[0]?.bucket ?? [], value: series.series[0]?.value ?? [] }),
            deployed,
        );
    const lines = level && [
        { label: "In use", values: level.values },
        ...(climb ? [{ label: named(climb.name), values: climb.level.values, tone: "grew" as const }] : []),
    ];
    return (
        <Panel
            label="In use"
            title={
                <>
                    In use <span class="muted plain-weight wide">held when snapshots were taken</span>
                </>
            }
            aside={
                <Link class="button" href={linkTo("explore", { type: inuse.id, ...range })}>
                    Flame graph
                </Link>
            }
        >
            {asked.error ? (
                <Failure error={asked.error} retry={asked.reload} />
            ) : level && lines ? (
                <Timeline
                    label="Memory in use over time"
                    start={level.startMs}
                    stepMs={level.stepMs}
                    series={lines}
                    format={bytes}
                    axis={bytes}
                    height={116}
                    deployments={deployments}
                    annotations={notes.data?.annotations}
                />
            ) : (
                <Loading rows={5} />
            )}
        </Panel>
    );
}

const CHURNERS = 4;

// Who asks for memory most, whether or not it is kept.
export function Allocated({ alloc, queryOf, range }: MemoryProps) {
    const asked = useAsk<QueryAnswer>(
        alloc && "/api/v1/query",
        alloc ? { query: queryOf(alloc), ...range, format: "top", limit: 200 } : {},
    );
    if (!alloc) return null;
    const answer = asked.data;
    const measure = answer && measureOf(answer.type, answer.basis.rate_seconds);
    return (
        <Panel
            label="Allocated"
            title={
                <>
                    Allocated{" "}
                    {answer && measure && (
                        <span class="muted plain-weight">
                            {measure.format(answer.total)}
                            <span class="wide">, kept or not</span>
                        </span>
                    )}
                </>
            }
            aside={
                <Link class="button" href={linkTo("explore", { type: alloc.id, ...range })}>
                    Flame graph
                </Link>
            }
        >
            {asked.error ? (
                <Failure error={asked.error} retry={asked.reload} />
            ) : answer && measure ? (
                <ul class="churn">
                    {answer.top!.rows.slice(0, CHURNERS).map((row) => (
                        <li key={row.name + row.file}>
                            <span class="ellipsis" title={row.name}>
                                {named(row.name, 30)}
                            </span>
                            <Meter share={answer.total ? row.self / answer.total : 0} />
                            <span class="number">{measure.format(row.self)}</span>
                        </li>
                    ))}
                </ul>
            ) : (
                <Loading rows={5} />
            )}
        </Panel>
    );
}

const ROWS = 40;

// Both numbers of each function: who holds much, and who asks for much.
export function Both({
    alloc,
    queryOf,
    range,
    answer,
    fn,
    onChoose,
}: MemoryProps & { answer: DiffAnswer; fn: string; onChoose: (name: string) => void }) {
    const asked = useAsk<QueryAnswer>(
        alloc && "/api/v1/query",
        alloc ? { query: queryOf(alloc), ...range, format: "top", limit: 200 } : {},
    );
    const measure = asked.data && measureOf(asked.data.type, asked.data.basis.rate_seconds);
    const churn = new Map(asked.data?.top?.rows.map((row) => [row.name, row.self]));
    const held = new Map((answer.top?.rows ?? []).map((row) => [row.name, rowChange(row, "self", answer.scale)]));
    const names = [...new Set([...held.keys(), ...churn.keys()])].filter(
        (name) => (held.get(name)?.b ?? 0) > 0 || (churn.get(name) ?? 0) > 0,
    );
    names.sort((a, b) => (held.get(b)?.b ?? 0) - (held.get(a)?.b ?? 0) || (churn.get(b) ?? 0) - (churn.get(a) ?? 0));
    return (
        <div class="rows">
            <table class="table both">
                <caption class="hidden">In use and allocated, by function</caption>
                <thead>
                    <tr>
                        <th scope="col">Function, self</th>
                        <th scope="col" class="number" aria-sort="descending">In use ↓</th>
                        <th scope="col" class="number wide">Change</th>
                        <th scope="col" class="number">A minute</th>
                    </tr>
                </thead>
                <tbody>
                    {names.slice(0, ROWS).map((name) => {
                        const change = held.get(name);
                        const tone = !change || change.isNoise ? "muted" : change.by > 0 ? "grew" : "shrank";
                        const minute = churn.get(name);
                        return (
                            <tr key={name} class="choosable" aria-selected={name === fn} onClick={() => onChoose(name)}>
                                <td title={name}>
                                    <button type="button" class="plain ellipsis">
                                        {named(name)}
                                    </button>
                                </td>
                                <td class="number">{change?.b ? bytes(change.b) : "–"}</td>
                                <td class={`number wide ${tone}`}>
                                    {change && change.by ? signed(bytes(change.by), change.by) : "–"}
                                </td>
                                <td class="number soft">
                                    {minute && measure ? measure.format(minute).replace(/ a minute$/, "") : "–"}
                                </td>
                            </tr>
                        );
                    })}
                </tbody>
            </table>
        </div>
    );
}
