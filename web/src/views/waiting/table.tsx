// SPDX-License-Identifier: Apache-2.0
// Functions that wait, beside the CPU they use: a gap between the two is time that passes for nothing.
import { useState } from "preact/hooks";
import { digits, plural } from "../../model/format";
import { WHY_TITLE, type WaitRow } from "../../model/waiting";
import { Meter } from "../../ui/kit";
import { named } from "../compare/named";
import type { Waited } from "./data";

const FIRST = 60;
const WORD = { lock: "lock", database: "database", io: "I/O", timer: "timer", other: "", idle: "idle" } as const;

export function WaitTable(props: {
    waited: Waited;
    of: "self" | "total";
    fn: string;
    onChoose: (name: string) => void;
}) {
    const { waited, of, fn, onChoose } = props;
    const [all, setAll] = useState(false);
    const rows = waited.rows.filter((row) => row[of] > 0).sort((a, b) => b[of] - a[of]);
    const shown = all ? rows : rows.slice(0, FIRST);
    const most = rows[0]?.[of] ?? 1;
    const number = (value: number) => digits(value, 2);
    const row = (one: WaitRow) => {
        const waits = waited.measure.rate(one[of]);
        const cpu = waited.cpu?.of(one.name, of) ?? 0;
        return (
            <tr
                key={one.name + one.file}
                class="choosable"
                aria-selected={one.name === fn}
                onClick={() => onChoose(one.name)}
            >
                <td title={[one.name, one.file || one.module].filter(Boolean).join(" · ")}>
                    <span class="row">
                        <button type="button" class="plain ellipsis">
                            {named(one.name, 30)}
                        </button>
                        {WORD[one.why] && (
                            <span class="tag" title={WHY_TITLE[one.why]}>
                                {WORD[one.why]}
                            </span>
                        )}
                    </span>
                </td>
                <td class="wide">
                    <Meter share={one[of] / most} />
                </td>
                <td class="number">{number(waits)}</td>
                <td class="number soft">{waited.cpu ? number(cpu) : "–"}</td>
            </tr>
        );
    };
    return (
        <div class="rows">
            <table class="table waits">
                <caption class="hidden">
                    Functions that wait, in seconds a second of all threads, and the cores they use
                </caption>
                <thead>
                    <tr>
                        <th scope="col">{of === "self" ? "Waits in" : "Waits below"}</th>
                        <th scope="col" class="wide c-meter"><span class="hidden">As a bar</span></th>
                        <th scope="col" class="number c-figure" aria-sort="descending" title="Seconds a second, of all threads">Waiting ↓</th>
                        <th scope="col" class="number c-figure" title="Cores that the same function uses">CPU</th>
                    </tr>
                </thead>
                <tbody>
                    {shown.map(row)}
                    {rows.length > shown.length && (
                        <tr class="more">
                            <td colSpan={4}>
                                <button type="button" class="link" onClick={() => setAll(true)}>
                                    Show {plural(rows.length - shown.length, "more", "more")}
                                </button>
                            </td>
                        </tr>
                    )}
                </tbody>
            </table>
        </div>
    );
}
