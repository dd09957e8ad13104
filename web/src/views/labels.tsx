// SPDX-License-Identifier: Apache-2.0
// Labels: a profile broken down by any label; each value leads into Explore, or is compared with the rest.
import { useMemo, useState } from "preact/hooks";
import type { LabelValues, QueryAnswer } from "../api/answers";
import { useEach } from "../api/each";
import { useDetails } from "../api/search";
import type { ApiError, Params } from "../api/client";
import { useAsk } from "../api/use";
import { breakdownOf, isTelling, labelsInOrder, labelToStart, possessive, sentenceOf, type Breakdown } from "../model/breakdown";
import { count, percent, plural } from "../model/format";
import { knowledgeOf } from "../model/know";
import { valueIn } from "../model/labels";
import { measureOf, rateMeaning, rateSeconds, sparseText, type Measure } from "../model/measure";
import { containing, oneOf, selector, type Matcher } from "../model/selector";
import { betterStep } from "../model/series";
import { seconds } from "../model/time";
import { flowStep, levelStep } from "../model/trend";
import { change, usePlace } from "../state/place";
import { useScope, type Scope } from "../state/scope";
import { Empty, Failure, Loading } from "../ui/kit";
import { useLater } from "../ui/later";
import { MenuButton } from "../ui/menu";
import { ScopeBar } from "../ui/scope";
import { PickList } from "../ui/scope/pick";
import { Picture, Values } from "./labels/parts";
import { PageHead } from "./overview/head";
import "./overview.css";
import "./labels.css";

const LISTED = 1000; // values that have a row
const DETAILED = 25; // of these, the largest: what they had over time comes with the answer
const CHIPS = 8;

interface Names {
    all: string[];
    counts: Map<string, number>;
    loading: boolean;
    error: ApiError | null;
}

function useNames(scope: Scope): Names {
    const asked = useAsk<{ labels: string[] }>("/api/v1/labels", { query: scope.query, ...scope.range });
    const all = labelsInOrder(asked.data?.labels ?? [], scope.service);
    const first = all.length || scope.service ? all : ["service_name"]; // every profile has it: no need to wait for the others
    const values = useEach<LabelValues>(first.filter(isTelling).slice(0, CHIPS).map((name) => ({
        key: name,
        path: `/api/v1/labels/${encodeURIComponent(name)}/values`,
        params: { query: scope.query, ...scope.range, limit: 1 },
    })));
    const counts = new Map([...values].flatMap(([name, answer]) => (answer ? [[name, answer.all]] : [])));
    return { all, counts, loading: asked.loading, error: asked.error };
}

const countText = (n: number | undefined) => (n === undefined ? "" : count(n));

function LabelChoice({ names, label }: { names: Names; label: string }) {
    const choose = (by: string) => change({ by, find: null });
    const first = names.all.filter((name) => isTelling(name) && names.counts.get(name) !== 1).slice(0, CHIPS); // one value tells nothing apart
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

function useBreakdown(scope: Scope, label: string, pages: string[][], find: string) {
    const length = seconds(scope.range, Date.now());
    const level = /^(memory:(inuse|live)|gorouti|threads)/.test(scope.type);
    const params: Params = { query: scope.query, ...scope.range, format: "series", by: label, limit: LISTED, points: DETAILED, step: level ? levelStep(length) : flowStep(length) };
    const first = useAsk<QueryAnswer>(label ? "/api/v1/query" : null, params);
    const isLevel = first.data?.type.kind === "level";
    const better = isLevel && first.data?.series ? betterStep(first.data.series) : null;
    const second = useAsk<QueryAnswer>(better ? "/api/v1/query" : null, { ...params, step: better });
    const asked = better ? second : first;
    const series = asked.data?.series;
    const is = asked.data && series?.by[0] === label ? asked.data : null; // not an answer to an earlier label
    const same = is ? { ...params, from: is.from, until: is.until, step: series!.step_seconds } : params; // the same buckets
    const search = is && find && series!.all > series!.series.length; // not all values are here
    const pictured = useMemo(() => new Set(series?.series.flatMap(({ labels, bucket }) => (bucket.length ? [valueIn(labels, label)] : []))), [series]);
    const narrowed = (matcher: Matcher) => ({ ...same, query: selector(scope.type, scope.service, [...scope.matchers, matcher]) });
    const found = useAsk<QueryAnswer>(search ? "/api/v1/query" : null, narrowed(containing(label, find)));
    const details = useDetails<QueryAnswer>(is ? pages : [], (value) => !pictured.has(value), (page) => ({
        [label]: ["/api/v1/query", { ...narrowed(oneOf(label, page)), points: null, limit: page.length }],
    }));
    const until = is ? Math.min(Date.parse(is.until), Date.now()) : 0;
    const whole = useMemo(() => is && breakdownOf(is, label, until), [is, label]); // whatever is searched for
    const breakdown = useMemo(() => is && breakdownOf(is, label, until, search ? found.data : null, details.flatMap((get) => get(label) ?? [])), [is, label, search, found.data, details]);
    const over = is ? rateSeconds(is, (until - Date.parse(is.from)) / 1000) : 1;
    return { asked, answer: is, whole, breakdown, until, measure: is && measureOf(is.type, over), over, searching: Boolean(search) && found.loading, searched: search ? (found.data?.series?.all ?? null) : null };
}

function subtitle(answer: QueryAnswer, { parts, total }: Breakdown, label: string, measure: Measure): string {
    const without = answer.series!.series.find(({ labels }) => valueIn(labels, label) === "");
    const share = parts.find(({ value }) => value === "")?.share;
    const values = answer.series!.all - (without ? 1 : 0);
    return `${plural(values, "value")} of ${label}, ${measure.format(total)} in all.${share ? ` ${percent(share)} of it does not have this label.` : ""}`;
}

export function Labels() {
    const scope = useScope();
    const { params } = usePlace();
    const names = useNames(scope);
    const label = params.get("by") ?? ((names.counts.get("service_name") ?? 0) > 1 ? "service_name" : labelToStart(names.all, names.counts));
    const [pages, setPages] = useState<string[][]>([]);
    const find = useLater(params.get("find") ?? "");
    const { asked, answer, whole, breakdown, measure, until, over, searching, searched } = useBreakdown(scope, label, pages, find);
    const whose = `${scope.service ? possessive(scope.service) : "all"} ${knowledgeOf(scope.type).title.replace(/^[A-Z](?=[a-z])/, (c) => c.toLowerCase())}`;
    const nothing = !names.loading && !names.error && !names.all.length;
    const error = asked.error ?? names.error;
    const empty = breakdown !== null && searched === null && !breakdown.parts.length;
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
                        <PageHead title={whole ? sentenceOf(whole, label, whose) : "\u00a0"} text={whole ? <span title={rateMeaning(over)}>{subtitle(answer!, whole, label, measure!)}{sparseText(answer!)}</span> : undefined} />
                        <LabelChoice names={names} label={label} />
                    </>
                )}
                {error && <Failure error={error} retry={asked.reload} />}
                {!breakdown && !error && !nothing && <Loading rows={10} />}
                {answer && breakdown && measure && !empty && (
                    <div class={asked.loading ? "stale" : ""}>
                        <Picture breakdown={breakdown} label={label} until={until} measure={measureOf(answer.type, 1)} />
                        <Values key={label} breakdown={breakdown} label={label} scope={scope} measure={measure} all={answer.series!.all} searched={searched} searching={searching} onSeen={setPages} />
                    </div>
                )}
            </div>
        </main>
    );
}
