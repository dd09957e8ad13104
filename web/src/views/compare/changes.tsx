// SPDX-License-Identifier: Apache-2.0
// The table of what changed: grew, shrank, within noise.  Each row has its change as a bar, with what
// chance may do to it as a whisker; every number is the server's.
import { useState } from "preact/hooks";
import type { DiffAnswer, DiffRow } from "../../api/answers";
import { diffMeasure, grouped, rowChange, type Change, type Of } from "../../model/diff";
import { count, digits, plural, signed } from "../../model/format";
import type { Measure } from "../../model/measure";
import { named } from "./named";

const WIDTH = 96;
const FIRST = 7; // rows of a group before "show all"
const FIRST_NOISE = 8;

interface Scale {
    zero: number; // px
    px: number; // of one unit of value
}

// One scale for all bars, wide enough for the largest change of each direction; whiskers may be cut.
function scaleOf(changes: Change[]): Scale {
    const up = Math.max(0, ...changes.map(({ by, noise }) => by + Math.min(noise, Math.abs(by))));
    const down = Math.max(0, ...changes.map(({ by, noise }) => -by + Math.min(noise, Math.abs(by))));
    const room = WIDTH - 16; // so that the shorter direction has some pixels too
    const px = up + down > 0 ? room / (up + down) : 0;
    return { zero: 8 + down * px, px };
}

function Bar({ change, scale }: { change: Change; scale: Scale }) {
    const x = (value: number) => Math.max(1, Math.min(WIDTH - 1, scale.zero + value * scale.px));
    const end = x(change.by);
    const [low, high] = [x(change.by - change.noise), x(change.by + change.noise)];
    const tone = change.isNoise ? "noise" : change.by > 0 ? "grew" : "shrank";
    return (
        <svg class="change-bar" width={WIDTH} height="20" aria-hidden="true">
            <path class="zero" d={`M${scale.zero} 0V20`} />
            <rect
                class={tone}
                x={Math.min(scale.zero, end)}
                y="5"
                width={Math.max(1.5, Math.abs(end - scale.zero))}
                height="10"
                rx="1.5"
            />
            <path class="whisker" d={`M${low} 10H${high}M${low} 7v6M${high} 7v6`} />
        </svg>
    );
}

// Numbers of one column have the same number of places: enough for three figures of the largest.
export function fixedTo(measure: Measure, values: number[]): (value: number) => string {
    const largest = Math.max(0, ...values.map((value) => Math.abs(measure.rate(value))));
    const places = largest >= 100 ? 0 : largest >= 10 ? 1 : largest >= 1 ? 2 : 3;
    return (value) => digits(measure.rate(value), places);
}

interface RowProps {
    row: DiffRow;
    change: Change;
    measure: Measure;
    format: (value: number) => string;
    scale: Scale;
    chosen: boolean;
    onChoose: (name: string) => void;
}

function Row({ row, change, measure, format, scale, chosen, onChoose }: RowProps) {
    const tone = change.isNoise ? "" : change.by > 0 ? "grew" : "shrank";
    const where = [row.name, row.file || row.module].filter(Boolean).join(" · ");
    const noise = change.isNoise ? "could be chance" : `± ${format(change.noise)}`;
    return (
        <tr
            class={`choosable ${change.isNoise ? "noise" : ""}`}
            aria-selected={chosen}
            onClick={() => onChoose(row.name)}
        >
            <th scope="row" title={where}>
                <button type="button" class="plain ellipsis">
                    {named(row.name)}
                </button>
            </th>
            <td class="bar-cell">
                <Bar change={change} scale={scale} />
            </td>
            <td class={`number ${tone}`} title={`${noise} ${measure.unit}`}>
                {/[1-9]/.test(format(change.by)) ? signed(format(change.by), change.by) : format(0)}
            </td>
            <td class="number soft small wide">
                {format(change.a)} → {format(change.b)}
            </td>
        </tr>
    );
}

interface GroupProps extends Omit<RowProps, "row" | "change" | "chosen"> {
    title: string;
    said: string;
    rows: DiffRow[];
    first: number;
    changeOf: (row: DiffRow) => Change;
    fn: string;
    columns: number;
}

function Group(props: GroupProps) {
    const [all, setAll] = useState(false);
    const shown = all ? props.rows : props.rows.slice(0, props.first);
    const more = props.rows.length - shown.length;
    return (
        <tbody aria-label={props.title}>
            <tr class="group">
                <td colSpan={props.columns}>
                    <b>{props.title}</b> <span>{props.said}</span>
                </td>
            </tr>
            {shown.map((row, i) => (
                <Row key={i} {...props} row={row} change={props.changeOf(row)} chosen={row.name === props.fn} />
            ))}
            {more > 0 && (
                <tr class="more">
                    <td colSpan={props.columns}>
                        <button type="button" class="link" onClick={() => setAll(true)}>
                            Show {count(more)} more
                        </button>
                    </td>
                </tr>
            )}
        </tbody>
    );
}

export function Changes(props: { answer: DiffAnswer; of: Of; fn: string; onChoose: (name: string) => void }) {
    const { answer, of, fn, onChoose } = props;
    const { grew, shrank, noise, noiseAll, cut } = grouped(answer, of);
    const changeOf = (row: DiffRow) => rowChange(row, of, answer.scale);
    const beyond = [...grew, ...shrank];
    const scale = scaleOf((beyond.length ? beyond : noise).map(changeOf));
    const measure = diffMeasure(answer);
    const both = [...grew, ...shrank, ...noise.slice(0, FIRST_NOISE)].map(changeOf).flatMap(({ a, b }) => [a, b]);
    const columns = matchMedia("(max-width: 640px)").matches ? 3 : 4; // a phone has no room for both numbers
    const shared = { columns, measure, format: fixedTo(measure, both), scale, changeOf, fn, onChoose };
    const said = (rows: DiffRow[]) =>
        cut ? `${plural(rows.length, "function")} or more` : plural(rows.length, "function");
    return (
        <div class="rows">
            <table class="table changes">
                <caption class="hidden">What changed, by function, in {shared.measure.unit}</caption>
                <colgroup>
                    <col />
                    <col class="c-bar" />
                    <col class="c-change" />
                    {columns > 3 && <col class="c-both" />}
                </colgroup>
                <thead class="hidden">
                    <tr>
                        <th scope="col">Function</th>
                        <th scope="col">As a bar</th>
                        <th scope="col">Change</th>
                        {columns > 3 && <th scope="col">Before and after</th>}
                    </tr>
                </thead>
                <Group title="Grew" said={said(grew)} rows={grew} first={FIRST} {...shared} />
                <Group title="Shrank" said={said(shrank)} rows={shrank} first={FIRST} {...shared} />
                <Group
                    title="Within noise"
                    said={`could be chance; ${plural(noiseAll, "function")}`}
                    rows={noise}
                    first={FIRST_NOISE}
                    {...shared}
                />
            </table>
        </div>
    );
}
