// SPDX-License-Identifier: Apache-2.0
// The answer in words, and the timeline it is read from.
import type { Deployment, LabelValue, QueryAnswer } from "../../api/answers";
import { useAsk } from "../../api/use";
import { bytes, count, duration, percent, plural } from "../../model/format";
import { measureOf } from "../../model/measure";
import { formatTime } from "../../model/time";
import { linkTo, open } from "../../state/place";
import { setRange, type Scope } from "../../state/scope";
import { Failure, Loading } from "../../ui/kit";
import { Timeline } from "../../ui/timeline";
import type { Load } from "./load";

const HOUR = 3600000;

function changeText(change: number): string {
    if (Math.abs(change) < 0.02) return "as much as";
    if (change > 1) return `${(change + 1).toFixed(1)} times as much as`;
    return `${percent(Math.abs(change), 0)} ${change > 0 ? "more" : "less"} than`;
}

export function Sentence({ answer, load, over, whole }: { answer: QueryAnswer; load: Load; over: number; whole: number }) {
    const measure = measureOf(answer.type, over);
    const partly = over < whole * 0.9;
    return (
        <h1 class="said">
            <b>{measure.format(answer.total)}</b> on average
            {load.change !== null && load.ghost && (
                <>
                    , <span>{changeText(load.change)}</span> {load.ghost.word}
                </>
            )}
            {partly && `, over the ${duration(over)} that has profiles`}
        </h1>
    );
}

function Aside({ answer, load, scope }: { answer: QueryAnswer; load: Load; scope: Scope }) {
    const hosts = useAsk<{ values: LabelValue[] }>("/api/v1/labels/host.name/values", { query: scope.query, ...scope.range });
    const n = hosts.data?.values.length ?? 0;
    const parts = [`${count(answer.basis.count)} samples`, plural(answer.basis.profiles, "profile"), n ? plural(n, "host") : ""];
    return (
        <span class="muted small nowrap aside">
            {load.ghost && <span>- - {load.ghost.word}</span>}
            <span>{parts.filter(Boolean).join(", ")}</span>
        </span>
    );
}

// Before and after a deployment, side by side.
function compareDeployment(load: Load) {
    return (deployment: Deployment) => {
        const at = Date.parse(deployment.at);
        const length = Math.min(HOUR, Math.max(60000, load.now - at));
        const [before, begin, after] = [at - length, at, at + length].map(formatTime);
        open(linkTo("compare", { a_from: before, a_until: begin, b_from: begin, b_until: after, from: null, until: null }));
    };
}

export function TimePanel(props: { scope: Scope; load: Load; answer: QueryAnswer | null; over: number; whole: number }) {
    const { scope, load, answer, over } = props;
    const { buckets } = load;
    const type = load.asked.data?.type;
    const measure = type && measureOf(type, 1); // buckets hold a second's worth
    const unit = type?.unit === "bytes" ? (type.kind === "flow" ? 60 : 1) : (measure?.rate(1) ?? 1); // a round number of it is one at the axis
    const scaled = (all: (number | null)[]) => all.map((value) => value && value * unit);
    const text = (value: number) => (measure ? measure.format(value / unit) : "");
    return (
        <section class="panel time" aria-label="Over time">
            <div class="panel-head">
                {answer && answer.total > 0 && type ? <Sentence {...{ answer, load, over, whole: props.whole }} /> : <span class="said">&nbsp;</span>}
                <span class="grow" />
                {answer && answer.total > 0 && <Aside {...{ answer, load, scope }} />}
            </div>
            <div class="time-plot">
                {measure && buckets ? (
                    <Timeline
                        label={`${measure.unit} over time`}
                        start={buckets.start}
                        stepMs={buckets.stepMs}
                        until={load.span[1]}
                        series={[
                            ...(load.ghost ? [{ label: load.ghost.word, values: scaled(load.ghost.values), tone: "ghost" as const }] : []),
                            { label: "now", values: scaled(buckets.values) },
                        ]}
                        format={text}
                        axis={type?.unit === "bytes" ? bytes : undefined}
                        chosen={load.chosen}
                        onBrush={setRange}
                        deployments={load.deployments}
                        annotations={load.annotations}
                        onDeployment={scope.service ? compareDeployment(load) : undefined}
                    />
                ) : load.asked.error ? (
                    answer && <Failure error={load.asked.error} retry={load.asked.reload} />
                ) : (
                    <Loading rows={4} />
                )}
            </div>
        </section>
    );
}
