// SPDX-License-Identifier: Apache-2.0
// One function over time: how much of each moment passed through it.
import { useEffect, useRef } from "preact/hooks";
import type { FunctionAnswer } from "../api/answers";
import { useAsk } from "../api/use";
import { percent } from "../model/format";
import { Failure, Loading } from "../ui/kit";
import { Timeline } from "../ui/timeline";
import type { ProfileSource } from "./panel";

const fraction = (value: number) => percent(value);

function Plot({ answer }: { answer: FunctionAnswer }) {
    const values: (number | null)[] = new Array(answer.buckets).fill(null);
    answer.bucket.forEach((at, i) => (values[at] = answer.share[i]));
    const filled = values.map((value, i) => value ?? values[i - 1] ?? null); // a profile stands for the time up to the next
    return (
        <Timeline
            label={`Share of ${answer.function} over time`}
            start={Date.parse(answer.start)}
            stepMs={answer.step_seconds * 1000}
            series={[{ label: answer.function, values: filled, tone: "accent" }]}
            format={fraction}
            axis={fraction}
            height={200}
        />
    );
}

export function OverTime({ name, source, onClose }: { name: string; source: ProfileSource; onClose: () => void }) {
    const dialog = useRef<HTMLDialogElement>(null);
    const { query, from, until } = source.params;
    const asked = useAsk<FunctionAnswer>("/api/v1/functions", { function: name, query, from, until });
    useEffect(() => dialog.current?.showModal(), []);
    const { data } = asked;
    return (
        <dialog ref={dialog} class="dialog over-time" aria-label={`${name} over time`} onClose={onClose} onClick={(event) => event.target === dialog.current && onClose()}>
            <div class="panel-head">
                <h2 class="ellipsis">{name}</h2>
                <span class="muted nowrap">{data ? `${percent(data.sum / (data.total_sum || 1))} on average, by time` : ""}</span>
                <span class="grow" />
                <button type="button" class="button ghost square" aria-label="Close" onClick={onClose}>×</button>
            </div>
            <div class="over-plot">
                {asked.error && <Failure error={asked.error} retry={asked.reload} />}
                {data ? <Plot answer={data} /> : !asked.error && <Loading />}
            </div>
        </dialog>
    );
}
