// SPDX-License-Identifier: Apache-2.0
// The services, worst first.  A row leads into Explore with its top function chosen, its change into
// Compare.
import { useState } from "preact/hooks";
import type { QueryAnswer, TopRow } from "../../api/answers";
import { useEach } from "../../api/each";
import type { Fleet, FleetRow } from "../../model/fleet";
import { bytes, count, figures, percent, plural, signed } from "../../model/format";
import { CPU_TYPE } from "../../model/know";
import { rateMeaning } from "../../model/measure";
import { noticeOf, type Notice } from "../../model/notice";
import { selector } from "../../model/selector";
import { change as changePlace, usePlace } from "../../state/place";
import type { Scope } from "../../state/scope";
import { Link, Meter, Panel, SearchField, Sparkline } from "../../ui/kit";
import { RowTable, usePages } from "../../ui/rows";
import { compareLink, exploreLink, noticeLink } from "./links";

const FEW = 20; // without a scroller and a field to search

type Order = "cores" | "change" | "memory" | "name";
const ORDERS: Record<Order, (a: FleetRow, b: FleetRow) => number> = {
    cores: (a, b) => (b.cores ?? -1) - (a.cores ?? -1) || (b.memory ?? 0) - (a.memory ?? 0),
    change: (a, b) => grown(b) - grown(a),
    memory: (a, b) => (b.memory ?? -1) - (a.memory ?? -1),
    name: (a, b) => (a.service < b.service ? -1 : 1),
};
const grown = ({ change }: FleetRow) => (change ? change.after - change.before : -Infinity);

// Colour says that it is more than chance, and enough to care.
const matters = (row: FleetRow) => row.change !== null && row.change.real && Math.abs(row.change.ratio) >= 0.05;
const toneOf = (row: FleetRow) => (matters(row) ? (row.change!.ratio > 0 ? "grew" : "shrank") : undefined);

function ChangeCell({ row, fn }: { row: FleetRow; fn?: string }) {
    const { change } = row;
    if (!change || !row.count) return <span class="muted">–</span>;
    if (!Number.isFinite(change.ratio)) return <span class="soft" title="Nothing in the window before">new</span>;
    const version = change.deployment && (change.deployment.version || change.deployment.name);
    const title = `${figures(change.before / 1e9)} → ${figures(change.after / 1e9)} cores ${version ? `since ${version}` : "against the window before"}, ± ${percent(change.noise)}`
        + (change.real ? "" : ": within noise, could be chance");
    const text = signed(percent(change.ratio, 0), Math.round(change.ratio * 100));
    return (
        <Link href={compareLink(row, fn)} class={`over ${toneOf(row) ?? "muted"}`} title={`${title}. Compare`}>
            {text}
        </Link>
    );
}

function TopCell({ top, waiting }: { top: TopRow | null | undefined; waiting: boolean }) {
    if (!top) return <span class="muted">{waiting ? "\u00a0" : "–"}</span>;
    const module = top.module.split("/").pop();
    return (
        <>
            <span title={top.name}>{top.name}</span>
            <small>{[module, percent(top.self_share, top.self_share < 0.1 ? 1 : 0)].filter(Boolean).join(" · ")}</small>
        </>
    );
}

function rowOf(props: { row: FleetRow; most: number; top: TopRow | null | undefined; waiting: boolean; notice: Notice | null; columns: Columns }) {
    const { row, top, notice, columns } = props;
    const fn = notice?.fn || top?.name;
    const about = [row.identity?.runtime, row.identity?.version].filter(Boolean).join(" · ");
    return (
        <tr class="choosable linked">
            <td>
                <Link href={exploreLink(row.service, fn)} class="cover strong" title={row.service}>{row.service || "(no name)"}</Link>
                <small class="wide">{about || (row.identity && row.identity.hosts > 1 ? `on ${plural(row.identity.hosts, "host")}` : "")}</small>
                <small class="narrow">{top?.name ?? about}</small>
            </td>
            <td class="wide">
                <div class="cores">
                    <span>{row.cores === null ? "–" : figures(row.cores)}</span>
                    {row.cores !== null && <div class="grow"><Meter share={row.cores / props.most} /></div>}
                </div>
            </td>
            <td class="spark">
                {row.spark.length > 0 && <Sparkline values={row.spark} label={`${row.service} over time`} tone={row.change?.deployment ? toneOf(row) : undefined} />}
            </td>
            <td class="number narrow">
                {row.cores === null ? "–" : figures(row.cores)}
                <small><ChangeCell row={row} fn={fn} /></small>
            </td>
            <td class="number wide"><ChangeCell row={row} fn={fn} /></td>
            {columns.memory && (
                <td class="number wide">
                    {row.memory === null ? <span class="muted">–</span> : bytes(row.memory)}
                    {row.climb && <small class="warn">{signed(percent(row.climb.perHour, row.climb.perHour < 0.1 ? 1 : 0), 1)}/h</small>}
                </td>
            )}
            <td class="wide top-function"><TopCell top={top} waiting={props.waiting} /></td>
            {columns.finding && (
                <td class="wide">
                    {notice ? <Link href={noticeLink(notice, row)} class={`over tag ${notice.bad ? "bad" : "warn"}`} title={notice.title}>{notice.tag}</Link> : <span class="muted">–</span>}
                </td>
            )}
        </tr>
    );
}

interface Columns {
    memory: boolean;
    finding: boolean;
}

function Header(props: { order: Order; is: Order; class?: string; title?: string; children: string }) {
    const chosen = props.order === props.is;
    return (
        <th scope="col" class={props.class} aria-sort={chosen ? (props.is === "name" ? "ascending" : "descending") : undefined}>
            <button type="button" title={props.title} onClick={() => changePlace({ sort: props.is === "cores" ? null : props.is }, true)}>
                {props.children}
                {chosen && (props.is === "name" ? " ↑" : " ↓")}
            </button>
        </th>
    );
}

export interface ServicesProps {
    fleet: Fleet;
    notices: Notice[];
    scope: Scope;
    span: string;
    onSeen: (pages: string[][]) => void; // the services in sight, and those around them
}

export function Services({ fleet, notices, scope, span, onSeen }: ServicesProps) {
    const { params } = usePlace();
    const order = (params.get("sort") ?? "cores") as Order;
    const find = (params.get("find") ?? "").toLowerCase();
    const found = fleet.rows.filter(({ service }) => service.toLowerCase().includes(find));
    const rows = found.sort(ORDERS[order] ?? ORDERS.cores);
    const [seen, setSeen] = useState<[number, number]>([0, 0]);
    const columns = { memory: fleet.rows.some(({ memory }) => memory !== null), finding: notices.length > 0 };
    const tops = useEach<QueryAnswer>(rows.slice(...seen).filter(({ cores }) => cores !== null).map(({ service }) => ({
        key: service,
        path: "/api/v1/query",
        params: { query: selector(CPU_TYPE, service, scope.matchers), ...scope.range, format: "top", limit: 1 },
    })));
    usePages(rows.map(({ service }) => service), seen, onSeen);
    const most = Math.max(...fleet.rows.map(({ cores }) => cores ?? 0), 1e-9);
    const all = fleet.rows.length;
    const about = rateMeaning(fleet.seconds);
    return (
        <Panel
            label="Services"
            class="services"
            title={all > FEW && <>Services <span class="muted unit" role="status">{find ? `${count(rows.length)} of ` : ""}{count(all + fleet.unlisted)}</span></>}
            aside={all > FEW && <SearchField label="Find a service" value={params.get("find") ?? ""} onType={(text) => changePlace({ find: text || null }, true)} />}
        >
            <RowTable
                label="Services"
                class={`tall ${all > FEW ? "long" : ""}`}
                n={rows.length}
                height={46}
                order={`${order} ${find}`}
                onSeen={(from, until) => setSeen([from, until])}
                cols={
                    <colgroup>
                        <col class="c-service" />
                        <col class="wide c-cores" />
                        <col class="c-spark" />
                        <col class="narrow c-number" />
                        <col class="wide c-change" />
                        {columns.memory && <col class="wide c-memory" />}
                        <col class="wide top-function" />
                        {columns.finding && <col class="wide c-finding" />}
                    </colgroup>
                }
                head={
                    <tr>
                        <Header order={order} is="name">Service</Header>
                        <Header order={order} is="cores" class="wide" title={about}>CPU, cores</Header>
                        <th scope="col" class="spark">{span}</th>
                        <Header order={order} is="cores" class="number narrow" title={about}>Cores</Header>
                        <Header order={order} is="change" class="number wide">Change</Header>
                        {columns.memory && <Header order={order} is="memory" class="number wide">Memory</Header>}
                        <th scope="col" class="wide top-function">Top function, self</th>
                        {columns.finding && <th scope="col" class="wide">Finding</th>}
                    </tr>
                }
                row={(i) => rowOf({
                    row: rows[i],
                    most,
                    top: tops.get(rows[i].service)?.top?.rows[0],
                    waiting: !tops.has(rows[i].service),
                    notice: noticeOf(notices, rows[i].service),
                    columns,
                })}
            >
                {!rows.length && <p class="quiet soft">No service has “{params.get("find")}” in its name.</p>}
            </RowTable>
            {fleet.unlisted > 0 && <p class="foot muted small">The {count(all)} largest are listed. Totals are of all.</p>}
        </Panel>
    );
}
