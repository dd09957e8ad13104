// SPDX-License-Identifier: Apache-2.0
// Status: how Kiln itself is. Its agents, what comes in, what is kept and for how long, what was dropped and why.
import type { Agent, Service, Status as StatusAnswer } from "../api/answers";
import { useAsk, type Asked } from "../api/use";
import { bytes, count, figures, moment } from "../model/format";
import { ownCores, statusSentence, statusSubtitle } from "../model/health";
import { useAutoRefresh } from "../state/refresh";
import { Failure, Meter, Note, Panel } from "../ui/kit";
import { PageHead } from "./overview/head";
import { Agents } from "./status/agents";
import { Orders, useOrders } from "./status/orders";
import { Storage } from "./status/storage";
import "./overview.css";
import "./status.css";

const REFRESH_S = 5;

function Figures({ status }: { status: StatusAnswer }) {
    const now = Date.parse(status.now);
    const { ingest, memory } = status;
    const cores = ownCores(status, now);
    const rows: [string, string, string][] = [
        ...(ingest ? [
            ["Profiles", count(ingest.profiles_per_second * 60), "a minute"],
            ["Samples", count(ingest.samples_per_second * 60), "a minute"],
            ["Bytes", bytes(ingest.bytes_per_second * 60), "a minute"],
        ] as [string, string, string][] : []),
        ["Own CPU", figures(cores), `of ${status.processors} cores`],
    ];
    return (
        <Panel class="figures" label="The server">
            <dl>
                {rows.map(([term, value, unit]) => (
                    <div key={term}>
                        <dt>{term}</dt>
                        <dd>{value} <small>{unit}</small></dd>
                    </div>
                ))}
                <div>
                    <dt>Own memory</dt>
                    <dd>{bytes(memory.used_bytes)} <small>of {bytes(memory.limit_bytes)}</small></dd>
                    <Meter share={memory.used_bytes / memory.limit_bytes} />
                </div>
            </dl>
        </Panel>
    );
}

function Drops({ asked }: { asked: Asked<StatusAnswer> }) {
    const status = asked.data;
    if (!status) return null;
    const since = moment(Date.parse(status.started), Date.parse(status.now));
    return (
        <Panel title={<>Dropped, and why <span class="muted unit">since {since}</span></>} class="drops" label="Dropped, and why">
            {!status.drops.length && (
                <div class="quiet">
                    <b>Nothing</b>
                    <p class="soft">{status.scope === "tenant" ? "What was dropped is told to those who may see all of the server." : "Everything that came was taken, kept and answered."}</p>
                </div>
            )}
            <ul>
                {status.drops.map((drop) => (
                    <li key={`${drop.where} ${drop.reason}`}>
                        <b class={/^(store|access|memory)$/.test(drop.where) ? "bad" : "warn"}>{count(drop.count)}</b>
                        <span>{drop.text}</span>
                        <span class="muted small">{drop.where}</span>
                        <small class="soft">{drop.remedy}</small>
                    </li>
                ))}
            </ul>
        </Panel>
    );
}

export function Status() {
    useAutoRefresh(REFRESH_S);
    const status = useAsk<StatusAnswer>("/api/v1/status");
    const agents = useAsk<{ agents: Agent[] }>("/api/v1/agents");
    const services = useAsk<{ services: Service[] }>("/api/v1/services");
    const orders = useOrders().data?.orders ?? [];
    const now = status.data ? Date.parse(status.data.now) : Date.now();
    const ready = status.data || status.error;
    return (
        <main class="reading status">
            <PageHead
                title={ready && (agents.data || agents.error) ? statusSentence(status.data, agents.data?.agents ?? null, now) || "Kiln runs" : "\u00a0"}
                text={status.data ? statusSubtitle(status.data, agents.data?.agents ?? [], now) : undefined}
            />
            {status.error && (status.error.status === 404 ? <Note>This server does not tell how it is; a newer one does.</Note> : <Failure error={status.error} retry={status.reload} />)}
            {status.data && !status.data.store.writable && <Note kind="bad"><b>The store takes nothing in.</b> {status.data.store.problem}</Note>}
            {status.data?.store.retention_paused && <Note kind="warn"><b>Retention is paused.</b> {status.data.store.retention_paused}</Note>}
            {status.data && <Figures status={status.data} />}
            <Agents asked={agents} orders={orders} now={now} />
            <Orders orders={orders} services={services.data?.services ?? []} agents={agents.data?.agents ?? []} now={now} />
            <div class="pair store">
                <Storage services={services} status={status.data} now={now} />
                <Drops asked={status} />
            </div>
        </main>
    );
}
