// SPDX-License-Identifier: Apache-2.0
// Labels: a profile broken down by any label; each value leads into Explore, or is compared with the rest.
import type { QueryAnswer } from "../api/answers";
import { useEach } from "../api/each";
import type { ApiError } from "../api/client";
import { useAsk } from "../api/use";
import { breakdownOf, labelsInOrder, labelToStart, possessive, sentenceOf, type Breakdown } from "../model/breakdown";
import { count, percent, plural } from "../model/format";
import { knowledgeOf } from "../model/know";
import { coveredSeconds, measureOf, type Measure } from "../model/measure";
import { betterStep } from "../model/series";
import { seconds } from "../model/time";
import { flowStep, levelStep } from "../model/trend";
import { change, usePlace } from "../state/place";
import { useScope, type Scope } from "../state/scope";
import { Empty, Failure, Loading } from "../ui/kit";
import { MenuButton } from "../ui/menu";
import { ScopeBar } from "../ui/scope";
import { PickList } from "../ui/scope/pick";
import { Picture, Values } from "./labels/parts";
import { PageHead } from "./overview/head";
import "./overview.css";
import "./labels.css";

const LISTED = 100; // values that are asked for
const COUNTED = 1000; // values of a label that are counted
const CHIPS = 8;
const LABELS = 40; // whose values are counted

interface Names {
    all: string[];
    counts: Map<string, number>;
    loading: boolean;
    error: ApiError | null;
}

function useNames(scope: Scope): Names {
    const asked = useAsk<{ labels: string[] }>("/api/v1/labels", { query: scope.query, ...scope.range });
    const all = labelsInOrder(asked.data?.labels ?? [], scope.service);
    const values = useEach<{ values: unknown[] }>(all.slice(0, LABELS).map((name) => ({
        key: name,
        path: `/api/v1/labels/${encodeURIComponent(name)}/values`,
        params: { query: scope.query, ...scope.range, limit: COUNTED + 1 },
    })));
    const counts = new Map([...values].flatMap(([name, answer]) => (answer ? [[name, answer.values.length]] : [])));
    return { all, counts, loading: asked.loading, error: asked.error };
}

const countText = (n: number | undefined) => (n === undefined ? "" : n > COUNTED ? `${count(COUNTED)}+` : count(n));

function LabelChoice({ names, label }: { names: Names; label: string }) {
    const choose = (by: string) => change({ by, find: null, rows: null });
    const first = names.all.filter((name) => names.counts.get(name) !== 1).slice(0, CHIPS); // one value tells nothing apart
    const chips = !label || first.includes(label) ? first : [...first.slice(0, -1), label];
    return (
        <div class="label-choice" role="group" aria-label="Break down by">
            <span class="soft">By</span>
            {chips.map((name) => (
                <button key={name} type="button" class="button pill" aria-pressed={name === label} onClick={() => choose(name)}>
                    {name} <span class="muted small">{countText(names.counts.get(name))}</span>
                </button>
            ))}
            {names.all.length > chips.length && (
                <MenuButton
                    label="Another label"
                    class="pill"
                    menuClass="picker"
                    text={plural(names.all.length - chips.length, "more label")}
                    content={(close) => (
                        <PickList
                            label="Find a label"
                            options={names.all.map((name) => ({ value: name, label: name, aside: countText(names.counts.get(name)) }))}
                            chosen={label}
                            onPick={(name) => {
                                close();
                                choose(name);
                            }}
                        />
                    )}
                />
            )}
        </div>
    );
}

function useBreakdown(scope: Scope, label: string) {
    const length = seconds(scope.range, Date.now());
    const base = { query: scope.query, ...scope.range };
    const params = { ...base, format: "series", by: label, limit: LISTED };
    const level = /^(memory:(inuse|live)|gorouti|threads)/.test(scope.type);
    const first = useAsk<QueryAnswer>(label ? "/api/v1/query" : null, { ...params, step: level ? levelStep(length) : flowStep(length) });
    const isLevel = first.data?.type.kind === "level";
    const better = isLevel && first.data?.series ? betterStep(first.data.series) : null;
    const second = useAsk<QueryAnswer>(better ? "/api/v1/query" : null, { ...params, step: better });
    const asked = better ? second : first;
    const series = asked.data?.series;
    const cut = series !== undefined && series.all > series.series.length;
    const whole = useAsk<QueryAnswer>(cut ? "/api/v1/query" : null, { ...base, format: "top", limit: 1 });
    const is = asked.data && series?.by[0] === label ? asked.data : null; // not an answer to an earlier label
    const until = is ? Math.min(Date.parse(is.until), Date.now()) : 0;
    const breakdown = is && breakdownOf(is, label, until, whole.data?.total ?? null);
    const over = is ? coveredSeconds(is, (until - Date.parse(is.from)) / 1000) : 1;
    return { asked, answer: is, breakdown, until, measure: is && measureOf(is.type, over) };
}

function subtitle({ parts, others, total }: Breakdown, label: string, measure: Measure): string {
    const without = parts.find(({ value }) => value === "");
    const values = parts.length - (without ? 1 : 0) + (others?.values ?? 0);
    return `${plural(values, "value")} of ${label}, ${measure.format(total)} in all.${without ? ` ${percent(without.share)} of it does not have this label.` : ""}`;
}

export function Labels() {
    const scope = useScope();
    const { params } = usePlace();
    const names = useNames(scope);
    const label = params.get("by") ?? labelToStart(names.all, names.counts);
    const { asked, answer, breakdown, measure, until } = useBreakdown(scope, label);
    const whose = `${scope.service ? possessive(scope.service) : "all"} ${knowledgeOf(scope.type).title.replace(/^[A-Z](?=[a-z])/, (c) => c.toLowerCase())}`;
    const nothing = !names.loading && !names.error && !names.all.length;
    const error = asked.error ?? names.error;
    const empty = breakdown !== null && !breakdown.parts.length;
    return (
        <main class="measuring">
            <ScopeBar />
            <div class="reading labels">
                {nothing || empty ? (
                    <Empty title="Nothing to break down">
                        <p>No profile of {whose} lies in this time. Choose another time, service or type above.</p>
                    </Empty>
                ) : (
                    <>
                        <PageHead title={breakdown ? sentenceOf(breakdown, label, whose) : "\u00a0"} text={breakdown ? subtitle(breakdown, label, measure!) : undefined} />
                        <LabelChoice names={names} label={label} />
                    </>
                )}
                {error && <Failure error={error} retry={asked.reload} />}
                {!breakdown && !error && !nothing && <Loading rows={10} />}
                {answer && breakdown && measure && !empty && (
                    <div class={asked.loading ? "stale" : ""}>
                        <Picture breakdown={breakdown} label={label} until={until} measure={measureOf(answer.type, 1)} />
                        <Values breakdown={breakdown} label={label} scope={scope} measure={measure} />
                    </div>
                )}
            </div>
        </main>
    );
}
