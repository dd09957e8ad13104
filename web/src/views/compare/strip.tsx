// SPDX-License-Identifier: Apache-2.0
// Where the two windows lie: the value over all the time from the one to the other, A's window
// hollow and B's solid.
import type { QueryAnswer } from "../../api/answers";
import { useAsk } from "../../api/use";
import { moment } from "../../model/format";
import { bucketsOf, fineStep } from "../../model/series";
import { formatTime } from "../../model/time";
import { windowText, type Comparing, type SideChoice } from "./sides";

const WIDTH = 1000; // of the drawing; it is stretched
const HEIGHT = 30;

function area(values: number[]): string {
    const top = Math.max(...values, 1);
    const step = WIDTH / Math.max(1, values.length);
    const y = (value: number) => (HEIGHT - (value / top) * (HEIGHT - 4)).toFixed(1);
    const x = (i: number) => (i * step).toFixed(1);
    const path = values.map((value, i) => `L${x(i)} ${y(value)}H${x(i + 1)}`).join("");
    return `M0 ${HEIGHT}${path}V${HEIGHT}Z`;
}

function Window({
    side,
    letter,
    span,
    now,
}: {
    side: SideChoice;
    letter: "A" | "B";
    span: [number, number];
    now: number;
}) {
    const at = (text: string) => ((Date.parse(text) - span[0]) / (span[1] - span[0])) * 100;
    const left = at(side.range.from);
    const width = Math.max(0.4, at(side.range.until) - left);
    return (
        <div
            class={`window ${letter === "B" ? "solid" : ""}`}
            style={{ left: `${left}%`, width: `${width}%` }}
            title={`${letter}: ${windowText(side.range, now)}`}
        >
            <i>{letter}</i>
        </div>
    );
}

export function Strip({ scope, sides, now }: Comparing) {
    const times = [sides.a, sides.b].flatMap(({ range }) => [Date.parse(range.from), Date.parse(range.until)]);
    const [first, last] = [Math.min(...times), Math.max(...times)];
    const margin = (last - first) * 0.03;
    const span: [number, number] = [first - margin, Math.min(last + margin, Math.max(now, last))];
    const asked = useAsk<QueryAnswer>("/api/v1/query", {
        query: scope.query,
        from: formatTime(Math.floor(span[0] / 1000) * 1000),
        until: formatTime(Math.ceil(span[1] / 1000) * 1000),
        format: "series",
        step: fineStep((span[1] - span[0]) / 1000),
    });
    const series = asked.data?.series;
    const values = series ? bucketsOf(series, 0, asked.data!.type).values.map((value) => value ?? 0) : [];
    const label = `A is ${windowText(sides.a.range, now)}, B is ${windowText(sides.b.range, now)}`;
    return (
        <div class="strip" role="img" aria-label={label}>
            <span class="muted">{moment(span[0], now)}</span>
            <div class="strip-box">
                <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
                    <path d={area(values)} />
                </svg>
                <Window side={sides.a} letter="A" span={span} now={now} />
                <Window side={sides.b} letter="B" span={span} now={now} />
            </div>
            <span class="muted">{moment(span[1], now)}</span>
        </div>
    );
}
