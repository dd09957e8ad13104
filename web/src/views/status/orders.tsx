// SPDX-License-Identifier: Apache-2.0
// Boosts and pauses that are in force, and the way to give and to withdraw one.
import { useState } from "preact/hooks";
import type { Agent, Order, Service } from "../../api/answers";
import { ask, type ApiError } from "../../api/client";
import { useAsk } from "../../api/use";
import { plural } from "../../model/format";
import { followers, leftText, mayGive, ratesFor, targetText, timesFor, type Kind } from "../../model/orders";
import { refreshNow } from "../../state/refresh";
import { useSession } from "../../state/session";
import { Dialog } from "../../ui/dialog";
import { Failure, Note, Panel, Segment } from "../../ui/kit";
import { toast } from "../../ui/toast";

const EVERYTHING = "\0all";
const segment = (values: string[]) => values.map((value) => ({ value, label: value }));

function Give({ services, agents, onClose }: { services: Service[]; agents: Agent[]; onClose: () => void }) {
    const [kind, setKind] = useState<Kind>("boost");
    const [target, setTarget] = useState("");
    const [hz, setHz] = useState("199");
    const [times, setTimes] = useState({ boost: "10m", pause: "1h" });
    const [why, setWhy] = useState("");
    const [error, setError] = useState<ApiError | null>(null);
    const [busy, setBusy] = useState(false);
    const { session } = useSession();
    const may = session?.orders ?? "off";
    const run = async (event: Event) => {
        event.preventDefault();
        if (!target || busy) return;
        setBusy(true);
        const [what, name] = target === EVERYTHING ? ["all", null] : target.startsWith("\0") ? ["host", target.slice(1)] : ["service", target];
        try {
            await ask("/api/v1/orders", {
                method: "POST",
                json: { kind, target: what, name, duration: times[kind], why: why || null, ...(kind === "boost" ? { hz: Number(hz) } : {}) },
            });
            toast(kind === "boost" ? "Boosted within ten seconds" : "Paused within ten seconds");
            onClose();
            refreshNow();
        } catch (failed) {
            setError(failed as ApiError);
            setBusy(false);
        }
    };
    return (
        <Dialog label="Boost or pause" class="delete" onClose={onClose}>
            <form onSubmit={run}>
                <h1>Boost or pause</h1>
                <p class="soft">
                    {kind === "boost" ? "Agents sample it more often, for a while: rare things show." : "Agents leave it alone for a while."} It ends by itself.
                </p>
                {session?.orders_reason && <Note>{session.orders_reason}</Note>}
                <Segment<Kind> label="What" value={kind} choices={[{ value: "boost", label: "Boost" }, { value: "pause", label: "Pause", disabled: !mayGive(may, "pause") }]} onChoose={(to) => { setKind(to); setTarget(""); }} />
                <label>
                    <span>Which</span>
                    <select class="field" aria-label="Which" value={target} onChange={(event) => setTarget(event.currentTarget.value)}>
                        <option value="">–</option>
                        {services.map(({ name }) => <option key={name} value={name}>{name}</option>)}
                        {kind === "pause" && agents.map(({ id, host }) => <option key={id} value={`\0${id}`}>All on {host || id}</option>)}
                        {kind === "pause" && <option value={EVERYTHING}>Everything, everywhere</option>}
                    </select>
                </label>
                {kind === "boost" && <div class="said"><span>Samples a second</span><Segment label="Samples a second" value={hz} choices={segment(ratesFor(may))} onChoose={setHz} /></div>}
                <div class="said"><span>For</span><Segment label="For how long" value={times[kind]} choices={segment(timesFor(may, kind))} onChoose={(to) => setTimes({ ...times, [kind]: to })} /></div>
                <label>
                    <span>Why</span>
                    <span class="field"><input type="text" maxLength={255} value={why} aria-label="Why" onInput={(event) => setWhy(event.currentTarget.value)} /></span>
                </label>
                {error && <Failure error={error} />}
                <div class="row">
                    <span class="grow" />
                    <button type="button" class="button" onClick={onClose}>Cancel</button>
                    <button type="submit" class="button main" disabled={!target || busy}>{kind === "boost" ? "Boost" : "Pause"}</button>
                </div>
            </form>
        </Dialog>
    );
}

function Row({ order, agents, now, onFail }: { order: Order; agents: Agent[]; now: number; onFail: (error: ApiError) => void }) {
    const { session } = useSession();
    const withdraw = () => ask(`/api/v1/orders/${encodeURIComponent(order.id)}`, { method: "DELETE" }).then(refreshNow, onFail);
    return (
        <li>
            <span class={`tag ${order.kind === "pause" ? "warn" : "ok"}`}>{order.kind === "boost" ? `${order.hz} Hz` : "Paused"}</span>
            <span class="ellipsis"><b>{targetText(order)}</b> <span class="soft">{[order.why, order.by && `by ${order.by}`].filter(Boolean).join(", ")}</span></span>
            <span class="soft">{leftText(order, now)} left · {plural(followers(order, agents), "agent")}</span>
            {mayGive(session?.orders ?? "off", order.kind) && <button type="button" class="link muted" aria-label={`End it for ${targetText(order)}`} onClick={withdraw}>End</button>}
        </li>
    );
}

export function Orders({ orders, services, agents, now }: { orders: Order[]; services: Service[]; agents: Agent[]; now: number }) {
    const { session } = useSession();
    const may = mayGive(session?.orders ?? "off", "boost");
    const [giving, setGiving] = useState(false);
    const [error, setError] = useState<ApiError | null>(null);
    if (!orders.length && !(may && agents.length)) return null;
    return (
        <Panel
            title="Boosts and pauses"
            label="Boosts and pauses"
            class="orders"
            aside={may && <button type="button" class="button" onClick={() => setGiving(true)}>Boost or pause…</button>}
        >
            {error && <div class="quiet"><Failure error={error} /></div>}
            {!orders.length && <p class="quiet soft">Every agent samples at its own rate.</p>}
            <ul>{orders.map((order) => <Row key={order.id} order={order} agents={agents} now={now} onFail={setError} />)}</ul>
            {giving && <Give services={services} agents={agents} onClose={() => setGiving(false)} />}
        </Panel>
    );
}

export const useOrders = () => useAsk<{ orders: Order[] }>("/api/v1/orders");
