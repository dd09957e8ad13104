// SPDX-License-Identifier: Apache-2.0
// Spans: what ran under a trace, a span, or while a slow span was open.
import { useState } from "preact/hooks";
import type { QueryAnswer, SpanRow, SpansAnswer } from "../api/answers";
import { useAsk } from "../api/use";
import { count, duration, moment, plural } from "../model/format";
import { knowledgeOf } from "../model/know";
import { amountOf } from "../model/measure";
import { parsePasted } from "../model/spanid";
import { ProfilePanel } from "../profile/panel";
import { change, usePlace } from "../state/place";
import { useScope } from "../state/scope";
import { Empty, Failure, Loading, Note, Segment } from "../ui/kit";
import { ScopeBar } from "../ui/scope";
import "./list.css";
import { SlowWindow } from "./spans_window";

const NOTHING_CHOSEN = { trace: null, span: null, slow_from: null, slow_until: null };

function Paste() {
    const [text, setText] = useState("");
    const [wrong, setWrong] = useState(false);
    const submit = (event: Event) => {
        event.preventDefault();
        const pasted = parsePasted(text);
        setWrong(!pasted);
        if (!pasted) return;
        if (pasted.kind === "window") change({ ...NOTHING_CHOSEN, slow_from: pasted.from, slow_until: pasted.until });
        else change({ ...NOTHING_CHOSEN, trace: pasted.trace, span: pasted.kind === "span" ? pasted.span : null });
    };
    return (
        <form class="paste" onSubmit={submit}>
            <label class="field grow">
                <span class="hidden">Trace or span id, or the times of a slow span</span>
                <input
                    name="span"
                    placeholder="Paste a trace or span id, a traceparent, or two times of a slow span"
                    value={text}
                    onInput={(event) => setText(event.currentTarget.value)}
                />
            </label>
            <button class="button" disabled={!text.trim()}>
                Show
            </button>
            {wrong && (
                <span class="bad small" role="alert">
                    Not an id of 16 or 32 hexadecimal digits, nor two times such as 2026-03-01T11:00:03Z 2026-03-01T11:00:05Z
                </span>
            )}
        </form>
    );
}

function Rows({ answer, byTrace }: { answer: SpansAnswer; byTrace: boolean }) {
    const { params } = usePlace();
    const now = Date.parse(answer.until);
    const is = (row: SpanRow) => (row.span_id ? row.span_id === params.get("span") : row.trace_id === params.get("trace") && !params.get("span"));
    return (
        <table class="table spans">
            <thead>
                <tr>
                    <th scope="col">{byTrace ? "Trace" : "Span"}</th>
                    <th scope="col" class="wide">Service</th>
                    <th scope="col" class="wide">Seen at</th>
                    <th scope="col" class="number">{byTrace ? "Spans" : "Lasted"}</th>
                    <th scope="col" class="number" aria-sort="descending">{knowledgeOf(answer.type.id).title} ↓</th>
                    <th scope="col" class="number wide">Samples</th>
                </tr>
            </thead>
            <tbody>
                {answer.spans.map((row) => (
                    <tr
                        key={`${row.trace_id}${row.span_id}`}
                        class="choosable"
                        aria-selected={is(row)}
                        onClick={() => change({ ...NOTHING_CHOSEN, trace: row.trace_id, span: row.span_id })}
                    >
                        <td>
                            <button type="button" class="plain mono">{row.span_id ?? row.trace_id}</button>
                        </td>
                        <td class="wide">{row.service}</td>
                        <td class="soft wide">{moment(Date.parse(row.first), now)}</td>
                        <td class="number soft">{byTrace ? count(row.spans ?? 1) : duration(row.duration_seconds)}</td>
                        <td class="number">{amountOf(row.value, answer.type.unit)}</td>
                        <td class="number soft wide">{count(row.count)}</td>
                    </tr>
                ))}
            </tbody>
        </table>
    );
}

// The profile of the chosen span or trace.
function Chosen({ trace, span }: { trace: string | null; span: string | null }) {
    const scope = useScope();
    const params = { query: scope.query, ...scope.range, trace_id: span ? null : trace, span_id: span };
    const { data, error, loading, reload } = useAsk<QueryAnswer>("/api/v1/query", params);
    if (error) return <Failure error={error} retry={reload} />;
    if (!data) return <Loading />;
    if (!data.total)
        return (
            <Note>
                No sample of this {span ? "span" : "trace"} in these times. Samples carry span ids where the profiler knows them; the range
                above must hold the time it ran.
            </Note>
        );
    const lasted = data.basis.first && data.basis.last ? (Date.parse(data.basis.last) - Date.parse(data.basis.first)) / 1000 : 0;
    return <ProfilePanel answer={data} source={{ path: "/api/v1/query", params }} rangeSeconds={lasted} stale={loading} />;
}

export function Spans() {
    const { params } = usePlace();
    const scope = useScope();
    const byTrace = params.get("by") === "trace";
    const list = useAsk<SpansAnswer>("/api/v1/spans", { query: scope.query, ...scope.range, order: "largest", limit: 100, by: byTrace ? "trace" : "" });
    const trace = params.get("trace");
    const span = params.get("span");
    const slow = params.get("slow_from") && params.get("slow_until");
    const some = list.data && list.data.spans.length > 0;
    return (
        <main class="measuring fills">
            <ScopeBar />
            <div class="list-view">
                <section class="panel list-panel" aria-label="Spans">
                    <div class="panel-head">
                        <h1 class="headline">{sentence(list.data, byTrace)}</h1>
                        <span class="grow" />
                        <Segment
                            label="What is listed"
                            value={byTrace ? "trace" : "span"}
                            choices={[{ value: "span", label: "Spans" }, { value: "trace", label: "Traces" }]}
                            onChoose={(by) => change({ by: by === "trace" ? by : null })}
                        />
                    </div>
                    <Paste />
                    {list.error && list.error.status !== 404 && <Failure error={list.error} retry={list.reload} />}
                    {some && !slow && <div class={`list-rows ${list.loading ? "stale" : ""}`}><Rows answer={list.data!} byTrace={byTrace} /></div>}
                    {list.loading && !list.data && <Loading rows={4} />}
                </section>
                {slow ? (
                    <SlowWindow from={params.get("slow_from")!} until={params.get("slow_until")!} />
                ) : trace || span ? (
                    <Chosen trace={trace} span={span} />
                ) : (
                    !list.loading && !some && <NoSpans />
                )}
            </div>
        </main>
    );
}

function sentence(answer: SpansAnswer | null, byTrace: boolean): string {
    if (!answer || !answer.spans.length) return "Spans";
    const [first] = answer.spans;
    const cost = amountOf(first.value, answer.type.unit);
    const what = byTrace ? "traces" : "spans";
    return `${plural(answer.all, "span")} have samples; the most costly of these ${what} took ${cost}${first.service ? ` in ${first.service}` : ""}`;
}

function NoSpans() {
    return (
        <Empty under title="No sample is linked to a span here">
            <p>
                A profiler that knows the active span adds its id to each sample: OTLP links, or the labels trace_id and span_id in pprof.
                Without them, paste the two times of a slow span to see what ran meanwhile.
            </p>
        </Empty>
    );
}
