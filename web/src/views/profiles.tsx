// SPDX-License-Identifier: Apache-2.0
// Single profiles: what came in, one row each, and the profile of the chosen one.
import type { ProfileRow, QueryAnswer } from "../api/answers";
import { address } from "../api/client";
import { useAsk } from "../api/use";
import { clock, count, duration, moment, plural } from "../model/format";
import { telling, valueIn } from "../model/labels";
import { amountOf } from "../model/measure";
import { keyOf, questionOf } from "../model/single";
import { ProfilePanel } from "../profile/panel";
import { change, usePlace } from "../state/place";
import { useScope } from "../state/scope";
import { Failure, Loading, Note, Segment } from "../ui/kit";
import { ScopeBar } from "../ui/scope";
import "./list.css";

interface ProfilesAnswer {
    profiles: ProfileRow[];
    all: number;
}

// The labels that tell it apart; without `is`, their values alone.
function described(row: ProfileRow, names: string[], is: string, between: string): string {
    return names.filter((name) => valueIn(row.labels, name)).map((name) => (is && name + is) + valueIn(row.labels, name)).join(between);
}

function Rows({ rows }: { rows: ProfileRow[] }) {
    const chosen = usePlace().params.get("profile");
    const names = telling(rows.map((row) => row.labels), ["service_name"]).slice(0, 4);
    const now = Date.now();
    return (
        <table class="table profiles">
            <thead>
                <tr>
                    <th scope="col">Time</th>
                    <th scope="col" class="wide">Service</th>
                    <th scope="col" class="wide">What tells it apart</th>
                    <th scope="col" class="number wide">Covers</th>
                    <th scope="col" class="number">Value</th>
                    <th scope="col" class="number">Samples</th>
                </tr>
            </thead>
            <tbody>
                {rows.map((row) => (
                    <tr
                        key={keyOf(row)}
                        class="choosable"
                        aria-selected={keyOf(row) === chosen}
                        onClick={() => change({ profile: keyOf(row) })}
                    >
                        <td>
                            <button type="button" class="plain">{moment(Date.parse(row.time), now)}{clock(Date.parse(row.time), true).slice(5)}</button>
                        </td>
                        <td class="wide">{row.service}</td>
                        <td class="soft wide" title={described(row, names, " = ", "\n")}>{described(row, names, "", " · ")}</td>
                        <td class="number soft wide">{duration(row.duration_seconds)}</td>
                        <td class="number">{amountOf(row.value, row.type.split(":")[2])}</td>
                        <td class="number soft">{count(row.samples)}</td>
                    </tr>
                ))}
            </tbody>
        </table>
    );
}

function Chosen({ row, id }: { row: ProfileRow | undefined; id: string }) {
    const scope = useScope();
    const params = questionOf(id, scope.type, scope.range);
    const { data, error, loading, reload } = useAsk<QueryAnswer>("/api/v1/query", params);
    if (error) return <Failure error={error} retry={reload} />;
    if (!data) return <Loading />;
    if (!data.total) return <Note>There is no such profile in these times. It may be older than what is kept.</Note>;
    return (
        <ProfilePanel
            answer={data}
            source={{ path: "/api/v1/query", params }}
            rangeSeconds={row?.duration_seconds || data.basis.rate_seconds}
            stale={loading}
        />
    );
}

function sentence({ profiles, all }: ProfilesAnswer, order: string): string {
    if (!profiles.length) return "No profiles";
    const largest = profiles.reduce((most, row) => (row.value > most.value ? row : most));
    const listed = all > profiles.length ? `, the ${order} ${profiles.length} listed` : "";
    return `${plural(all, "profile")}${listed}; the largest has ${amountOf(largest.value, largest.type.split(":")[2])}`;
}

export function Profiles() {
    const { params } = usePlace();
    const scope = useScope();
    const order = params.get("order") === "largest" ? "largest" : "newest";
    const list = useAsk<ProfilesAnswer>("/api/v1/profiles", { query: scope.query, ...scope.range, order, limit: 200 });
    const rows = list.data?.profiles ?? [];
    const id = params.get("profile");
    const row = rows.find((one) => keyOf(one) === id);
    return (
        <main class="measuring fills">
            <ScopeBar
                actions={row?.id && (
                    <a class="button" href={address(`/api/v1/profiles/${row.id}`, { query: row.type, format: "pprof" })} download={`${row.service}-${row.id}.pb.gz`}>
                        Download pprof
                    </a>
                )}
            />
            <div class="list-view">
                <section class="panel list-panel" aria-label="Profiles">
                    <div class="panel-head">
                        <h1 class="headline">{list.data ? sentence(list.data, order) : "Profiles"}</h1>
                        <span class="grow" />
                        <Segment
                            label="Order"
                            value={order}
                            choices={[{ value: "newest", label: "Newest" }, { value: "largest", label: "Largest" }]}
                            onChoose={(chosen) => change({ order: chosen === "newest" ? null : chosen })}
                        />
                    </div>
                    {list.error && <Failure error={list.error} retry={list.reload} />}
                    {!list.data && list.loading && <Loading rows={5} />}
                    {rows.length > 0 && <div class={`list-rows ${list.loading ? "stale" : ""}`}><Rows rows={rows} /></div>}
                    {list.data && !rows.length && <Note>No profile of this kind in these times. Widen the range, or choose another type.</Note>}
                </section>
                {id && <Chosen row={row} id={id} />}
            </div>
        </main>
    );
}
