// SPDX-License-Identifier: Apache-2.0
// The parts of a breakdown, as areas over time and as a table.
import { useState } from "preact/hooks";
import type { Deployment } from "../../api/answers";
import { useAsk } from "../../api/use";
import type { Breakdown, Part } from "../../model/breakdown";
import { count, figures, percent, plural } from "../../model/format";
import type { Measure } from "../../model/measure";
import { formatMatchers, type Matcher } from "../../model/selector";
import { thinned } from "../../model/trend";
import { change, linkTo, usePlace } from "../../state/place";
import { setRange, useScope, type Scope } from "../../state/scope";
import { Icon } from "../../ui/icons";
import { Link, Meter, Panel, SearchField, Sparkline } from "../../ui/kit";
import { RowTable, usePages } from "../../ui/rows";
import { useTheme } from "../../ui/theme";
import { stackColor, Timeline } from "../../ui/timeline";

const FEW = 20; // without a scroller

const nameOf = (value: string) => (value === "" ? "without it" : value);

interface PictureProps {
    breakdown: Breakdown;
    label: string;
    until: number;
    measure: Measure; // of a second's worth
}

export function Picture({ breakdown, label, until, measure }: PictureProps) {
    const { lines } = breakdown;
    useTheme(); // the legend is coloured by it
    const scope = useScope();
    const deployed = useAsk<{ deployments: Deployment[] }>(scope.service ? "/api/v1/deployments" : null, { service: scope.service, ...scope.range });
    const deployments = scope.service ? (deployed.data?.deployments ?? []) : [];
    const shown = lines.lines;
    const scale = (value: number | null) => (value === null ? null : measure.rate(value));
    return (
        <Panel
            title={<>By {label} <span class="muted unit">{measure.unit}</span></>}
            class="fleet"
            label={`By ${label}, over time`}
            aside={
                <span class="legend small soft">
                    {shown.map((line, i) => (
                        <span key={line.label} class="ellipsis" title={nameOf(line.label)}><i style={{ background: stackColor(i) }} />{nameOf(line.label)}</span>
                    ))}
                </span>
            }
        >
            <div class="inside">
                <Timeline
                    label={`${measure.unit} by ${label} over time; the table below has the numbers`}
                    start={lines.start}
                    stepMs={lines.stepMs}
                    series={shown.map((line) => ({ label: nameOf(line.label), values: line.rate.map(scale) }))}
                    stacked
                    height={166}
                    until={until}
                    format={(value) => `${figures(value)} ${measure.unit}`.trim()}
                    onBrush={setRange}
                    deployments={deployments}
                />
            </div>
        </Panel>
    );
}

const with_ = (scope: Scope, matcher: Matcher) => [...scope.matchers.filter(({ name }) => name !== matcher.name), matcher];

function exploreLink(scope: Scope, label: string, value: string): string {
    if (label === "service_name") return linkTo("explore", { service: value });
    return linkTo("explore", { where: formatMatchers(with_(scope, { name: label, op: "=", value })) });
}

function compareLink(label: string, value: string): string {
    const side = (op: "=" | "!=") => formatMatchers([{ name: label, op, value }]);
    return linkTo("compare", { a_where: side("!="), b_where: side("="), by: "share" });
}

function rowOf({ part, most, scope, label, measure, alone }: { part: Part; most: number; scope: Scope; label: string; measure: Measure; alone: boolean }) {
    const error = part.error ?? 0;
    return (
        <tr class="choosable linked">
            <td>
                <Link href={exploreLink(scope, label, part.value)} class={`cover ${part.value ? "strong" : "soft"}`} title={part.value}>{nameOf(part.value)}</Link>
            </td>
            <td class="wide"><Meter share={part.amount / most} /></td>
            <td class="number">{percent(part.share)}{error >= 0.001 && <span class="muted small wide"> ± {percent(error)}</span>}</td>
            <td class="number">{measure.short(part.amount)}</td>
            <td class="spark wide"><Sparkline values={thinned(part.line.rate)} label={`${nameOf(part.value)} over time`} /></td>
            <td class="number wide">
                {!alone && (
                    <Link class="button ghost over" href={compareLink(label, part.value)} title={`Compare ${nameOf(part.value)} with all other values`}>
                        <Icon name="compare" />
                        With the rest
                    </Link>
                )}
            </td>
        </tr>
    );
}

function othersRow(others: { values: number; amount: number; share: number }, measure: Measure) {
    return (
        <tr>
            <td class="soft">{plural(others.values, "other value")}</td>
            <td class="wide" />
            <td class="number">{percent(others.share)}</td>
            <td class="number">{measure.short(others.amount)}</td>
            <td class="wide" />
            <td class="wide" />
        </tr>
    );
}

export interface ValuesProps {
    breakdown: Breakdown;
    label: string;
    scope: Scope;
    measure: Measure;
    all: number; // values there are
    searched: number | null; // how many a search on the server found
    searching: boolean;
    onSeen: (pages: string[][]) => void; // the values in sight, and those around them
}

export function Values({ breakdown, label, scope, measure, all, searched, searching, onSeen }: ValuesProps) {
    const { params } = usePlace();
    const { parts } = breakdown;
    const find = (params.get("find") ?? "").toLowerCase();
    const found = find ? parts.filter(({ value }) => nameOf(value).toLowerCase().includes(find)) : parts;
    const others = find ? null : breakdown.others;
    const [seen, setSeen] = useState<[number, number]>([0, 0]);
    usePages(found.map(({ value }) => value), seen, onSeen);
    const most = Math.max(...parts.map(({ amount }) => amount), 1e-9);
    const n = found.length + (others ? 1 : 0);
    return (
        <Panel
            class={`services values ${searching ? "stale" : ""}`}
            label={`Values of ${label}`}
            title={<>Values <span class="muted unit" role="status">{find ? `${count(Math.max(found.length, searched ?? 0))} of ${count(all)}` : count(all)}</span></>}
            aside={all > 8 && (
                <SearchField label="Find a value" value={params.get("find") ?? ""} onType={(text) => change({ find: text || null }, true)} />
            )}
        >
            <RowTable
                label={`Values of ${label}`}
                class={n > FEW + 1 ? "long" : ""}
                n={n}
                height={36}
                order={find}
                onSeen={(from, until) => setSeen([from, Math.min(until, found.length)])}
                cols={
                    <colgroup>
                        <col />
                        <col class="wide c-bar" />
                        <col class="c-share" />
                        <col class="c-amount" />
                        <col class="wide c-spark" />
                        <col class="wide c-action" />
                    </colgroup>
                }
                head={
                    <tr>
                        <th scope="col">{label}</th>
                        <th scope="col" class="wide"><span class="hidden">Share as a bar</span></th>
                        <th scope="col" class="number">Share</th>
                        <th scope="col" class="number" aria-sort="descending">{measure.unit.replace(/^./, (c) => c.toUpperCase()) || "Number"} ↓</th>
                        <th scope="col" class="wide spark">Over time</th>
                        <th scope="col" class="wide"><span class="hidden">Actions</span></th>
                    </tr>
                }
                row={(i) => (i < found.length ? rowOf({ part: found[i], most, scope, label, measure, alone: all === 1 }) : othersRow(others!, measure))}
            >
                {!n && <p class="quiet soft">{searching ? "Searching…" : `No value contains “${params.get("find")}”.`}</p>}
            </RowTable>
            {(others || (searched ?? 0) > found.length) && (
                <p class="foot muted small">
                    The {count(found.length)} largest are listed. Totals and the search are of all.
                </p>
            )}
        </Panel>
    );
}
