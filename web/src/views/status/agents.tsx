// SPDX-License-Identifier: Apache-2.0
// The agents: who profiles which host, and how well.
import { useState } from "preact/hooks";
import type { Agent, Order } from "../../api/answers";
import type { Asked } from "../../api/use";
import { ago, bytes, count, percent, plural } from "../../model/format";
import { DROPS_MUCH, healthOf, shortEnds, words } from "../../model/health";
import { leftText, ordersOf, orderText } from "../../model/orders";
import { linkTo } from "../../state/place";
import { useSession } from "../../state/session";
import { Command, Failure, Link, Loading, Note, Panel, SearchField } from "../../ui/kit";
import { RowTable } from "../../ui/rows";

const FEW = 20; // without a scroller and a field to search
const PROBLEMS = 5; // shown in full

const list = (counts: { reason: string; count: number }[]) =>
    counts.filter((one) => one.count > 0).map((one) => `${words(one.reason)}: ${count(one.count)}`).join("\n") || undefined;

function rowOf({ agent, orders, now }: { agent: Agent; orders: Order[]; now: number }) {
    const health = healthOf(agent, now);
    const follows = ordersOf(agent, orders);
    const [boosts, pauses] = [follows.filter(({ kind }) => kind === "boost"), follows.filter(({ kind }) => kind === "pause")];
    const told = [boosts.length && plural(boosts.length, "boost"), pauses.length && plural(pauses.length, "pause")].filter(Boolean).join(", ");
    const titles = follows.map((one) => `${one.kind === "boost" ? "Boosts" : "Pauses"} ${orderText(one)}: ${leftText(one, now)} left`).join("\n");
    const dash = <span class="muted">–</span>;
    return (
        <tr>
            <td>
                <b class="strong">{agent.host || agent.id}</b>
                <small>{[agent.local ? "this server" : "", agent.kernel && `Linux ${agent.kernel}`].filter(Boolean).join(" · ")}</small>
            </td>
            <td title={titles || undefined}>
                <span class={`tag ${health.tone}`}>{health.word}</span>
                {told && <small>{told}</small>}
            </td>
            <td class="soft wide">{agent.version}</td>
            <td class={health.word === "Silent" ? "bad" : "soft"}>{ago(Date.parse(agent.last_seen), now)}</td>
            <td class="number wide">
                {health.reports ? `${agent.hz} Hz` : dash}
                {health.reports && <small>{count(agent.samples_per_second)} samples/s</small>}
            </td>
            <td class={`number wide ${health.dropShare > DROPS_MUCH ? "warn" : ""}`} title={list(agent.drops)}>
                {health.dropped ? percent(health.dropShare) : "0"}
                {health.dropped > 0 && <small>{health.drop}</small>}
            </td>
            <td class={`number wide ${health.word === "Short stacks" ? "warn" : ""}`} title={list(shortEnds(agent.unwind.ends))}>
                {agent.unwind.share === null ? dash : percent(agent.unwind.share)}
                {health.end && <small>{health.end}</small>}
            </td>
            <td class="number wide">{health.reports ? percent(agent.cpu_cores) : dash}</td>
            <td class="number wide">{health.reports ? bytes(agent.memory_bytes) : dash}</td>
        </tr>
    );
}

function None() {
    const { session } = useSession();
    return (
        <div class="quiet">
            <p class="soft">
                {session?.host_profiler === "failed"
                    ? `This machine cannot be profiled: ${session.host_profiler_reason ?? "the log says why"}.`
                    : "No agent profiles a host for this server. Programs that send their own profiles are under Storage."}
            </p>
            <div class="row agent-start">
                <Command>{`sudo kiln agent --endpoint ${location.origin}`}</Command>
                <Link class="link-alone" href={linkTo("start", {}, [])}>All ways to send</Link>
            </div>
        </div>
    );
}

export function Agents({ asked, orders, now }: { asked: Asked<{ agents: Agent[] }>; orders: Order[]; now: number }) {
    const agents = asked.data?.agents;
    const failed = agents?.filter(({ problem }) => problem) ?? [];
    const [find, setFind] = useState("");
    const found = agents?.filter(({ host, id, state }) => `${host} ${id} ${state}`.toLowerCase().includes(find.toLowerCase())) ?? [];
    return (
        <Panel title={<>Agents <span class="muted unit">{agents ? count(agents.length) : ""}</span></>} class="agents" label="Agents" aside={agents && agents.length > FEW && <SearchField label="Find a host" value={find} onType={setFind} />}>
            {asked.error && <div class="quiet">{asked.error.status === 404 ? <Note>This server does not know of agents; a newer one does.</Note> : <Failure error={asked.error} retry={asked.reload} />}</div>}
            {!agents && !asked.error && <div class="quiet"><Loading rows={2} /></div>}
            {agents?.length === 0 && <None />}
            {agents && agents.length > 0 && (
                <RowTable
                    label="Agents"
                    class={`tall ${agents.length > FEW ? "long" : ""}`}
                    n={found.length}
                    height={46}
                    order={find}
                    cols={
                        <colgroup>
                            <col class="c-host" />
                            <col />
                            <col class="wide" />
                            <col />
                            <col span={5} class="wide" />
                        </colgroup>
                    }
                    head={
                        <tr>
                            <th scope="col">Host</th>
                            <th scope="col">State</th>
                            <th scope="col" class="wide">Version</th>
                            <th scope="col">Last seen</th>
                            <th scope="col" class="number wide">Rate</th>
                            <th scope="col" class="number wide">Dropped</th>
                            <th scope="col" class="number wide">Stacks complete</th>
                            <th scope="col" class="number wide" title="Of one processor">Own CPU</th>
                            <th scope="col" class="number wide">Own memory</th>
                        </tr>
                    }
                    row={(i) => rowOf({ agent: found[i], orders, now })}
                />
            )}
            {failed.slice(0, PROBLEMS).map((agent) => (
                <div key={agent.id} class="quiet"><Note kind={agent.state === "failed" ? "bad" : "warn"}><b>{agent.host}</b> {agent.problem}</Note></div>
            ))}
            {failed.length > PROBLEMS && <p class="quiet soft">{plural(failed.length - PROBLEMS, "more agent")} with a problem</p>}
        </Panel>
    );
}
