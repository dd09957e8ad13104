// SPDX-License-Identifier: Apache-2.0
// The numbers of a timeline: those under the pointer, and all of them for who does not see the picture.
import { clock, moment } from "../../model/format";
import type { TimelineProps } from "../timeline";

const ROWS = 24; // of the table; buckets are averaged to no more
const LISTED = 7; // series under the pointer

export function Readout(props: TimelineProps & { index: number; x: number; width: number }) {
    const { index, x, width, series, stepMs, start, format } = props;
    const from = start + index * stepMs;
    const there = series.filter(({ values }) => values[index] != null);
    if (!there.length) return null;
    const right = x > width / 2;
    return (
        <div class="readout" aria-hidden="true" style={right ? { right: `${width - x + 10}px` } : { left: `${x + 10}px` }}>
            <span class="muted">{moment(from, Date.now())}{stepMs < 60000 ? `:${clock(from, true).slice(-2)}` : ""}</span>
            {there.slice(0, LISTED).map(({ label, values }) => (
                <span key={label} class="nowrap">
                    {series.length > 1 && <span class="muted">{label} </span>}
                    <b>{format(values[index]!)}</b>
                </span>
            ))}
            {there.length > LISTED && <span class="muted">{there.length - LISTED} more</span>}
        </div>
    );
}

function mean(values: (number | null)[], from: number, until: number): number | null {
    const known = values.slice(from, until).filter((value): value is number => value != null);
    return known.length ? known.reduce((sum, value) => sum + value, 0) / known.length : null;
}

export function ValuesTable({ label, series, start, stepMs, format }: TimelineProps) {
    const n = Math.max(0, ...series.map(({ values }) => values.length));
    const size = Math.max(1, Math.ceil(n / ROWS));
    const rows = Array.from({ length: Math.ceil(n / size) }, (_, i) => i * size);
    return (
        <table class="hidden">
            <caption>{label}</caption>
            <thead>
                <tr>
                    <th scope="col">From</th>
                    {series.map(({ label }) => <th scope="col" key={label}>{label}</th>)}
                </tr>
            </thead>
            <tbody>
                {rows.map((from) => (
                    <tr key={from}>
                        <td>{moment(start + from * stepMs, Date.now())}</td>
                        {series.map(({ label, values }) => {
                            const value = mean(values, from, from + size);
                            return <td key={label}>{value === null ? "–" : format(value)}</td>;
                        })}
                    </tr>
                ))}
            </tbody>
        </table>
    );
}
