// SPDX-License-Identifier: Apache-2.0
// Lines of a function with what each of them cost, beside their text where the server can read it.
import { useEffect, useRef, useState } from "preact/hooks";
import type { SourceAnswer } from "../api/answers";
import { useAsk, type Asked } from "../api/use";
import { baseName } from "../model/family";
import { share } from "../model/format";
import type { Measure } from "../model/measure";
import { Failure, Loading, Note } from "../ui/kit";
import type { FormProps, ProfileSource } from "./panel";

interface Line {
    line: number;
    text: string | null;
    self: number;
    total: number;
}

// Lines of the text and lines that cost something, in one list.
export function linesOf(answer: SourceAnswer): Line[] {
    const costs = new Map(answer.lines.map((line) => [line.line, line]));
    const { text } = answer;
    if (!text) return [...answer.lines].sort((a, b) => a.line - b.line).map((line) => ({ ...line, text: null }));
    const unknown = costs.get(0);
    const rows: Line[] = text.lines.map((words, i) => {
        const line = text.first + i;
        return { line, text: words, self: costs.get(line)?.self ?? 0, total: costs.get(line)?.total ?? 0 };
    });
    return unknown ? [{ ...unknown, text: null }, ...rows] : rows;
}

export const hottest = (lines: Line[]) => lines.reduce((best, line, i) => (line.total > (lines[best]?.total ?? 0) ? i : best), 0);

function Heat({ value, most }: { value: number; most: number }) {
    return <i class="heat" style={{ opacity: value ? 0.15 + 0.85 * (value / most) : 0 }} />;
}

function Lines({ answer, whole, measure }: { answer: SourceAnswer; whole: number; measure: Measure }) {
    const lines = linesOf(answer);
    const hot = hottest(lines);
    const most = lines[hot]?.total || 1;
    const mark = useRef<HTMLTableRowElement>(null);
    useEffect(() => mark.current?.scrollIntoView({ block: "center" }), [answer]);
    const cost = (value: number) => (value ? share(value, whole) : "");
    return (
        <table class="source-lines">
            <thead>
                <tr>
                    <th scope="col">Line</th>
                    <th scope="col" class="number">Total</th>
                    <th scope="col" class="number">Self</th>
                    <th scope="col">{answer.text ? <span class="hidden">Code</span> : measure.unit || "Count"}</th>
                </tr>
            </thead>
            <tbody>
                {lines.map((row, i) => (
                    <tr key={row.line} ref={i === hot ? mark : undefined} class={`${i === hot ? "hottest" : ""} ${row.total ? "" : "cold"}`} title={row.total ? measure.format(row.total) : undefined}>
                        <td class="number">{row.line || "?"}</td>
                        <td class="number">{cost(row.total)}</td>
                        <td class="number">{cost(row.self)}</td>
                        <td class="code">
                            <Heat value={row.total} most={most} />
                            {row.text ?? (answer.text ? "line not known" : measure.format(row.total))}
                        </td>
                    </tr>
                ))}
            </tbody>
        </table>
    );
}

function Body({ answer, whole, measure }: { answer: SourceAnswer; whole: number; measure: Measure }) {
    if (!answer.lines.length)
        return <p class="none">{answer.text_problem ?? "The samples of this function say no lines."}</p>;
    return (
        <>
            {!answer.text && (
                <div class="source-note">
                    <Note>{answer.text_problem ?? "There is no text for these lines."}</Note>
                </div>
            )}
            <Lines answer={answer} whole={whole} measure={measure} />
        </>
    );
}

// `name` "": nothing to ask.
function useSource(source: ProfileSource | null, name: string): Asked<SourceAnswer> {
    const { query, from, until } = source?.params ?? {};
    const asked = useAsk<SourceAnswer>(source && name ? "/api/v1/source" : null, { query, from, until, function: name });
    return { ...asked, data: asked.data?.function === name ? asked.data : null };
}

// The line that costs most, else where the function begins; 0: not known.
function lineOf(answer: SourceAnswer | null): number {
    const lines = answer ? linesOf(answer) : [];
    return lines[hottest(lines)]?.line || answer?.start_line || 0;
}

// The line of the chosen function.  A later choice is looked up after 200 ms without another one, so that
// walking through frames sends no requests; the choice that the address brings, at once.
export function useLine(source: ProfileSource | null, name: string): number {
    const [rested, setRested] = useState(name);
    useEffect(() => {
        const timer = setTimeout(() => setRested(name), 200);
        return () => clearTimeout(timer);
    }, [name]);
    return lineOf(useSource(source, rested === name ? name : "").data);
}

export function SourcePanel({ form, onClose }: { form: FormProps; onClose: () => void }) {
    const { source, look, answer, measure } = form;
    const asked = useSource(source, look.fn);
    const { data } = asked;
    const at = lineOf(data);
    return (
        <section class="panel profile-side profile-source" aria-label="Source">
            <div class="panel-head">
                <h2 class="ellipsis" title={look.fn}>{look.fn}</h2>
                <span class="muted ellipsis" title={data?.file}>{data?.file ? `${baseName(data.file)}${at ? `:${at}` : ""}` : ""}</span>
                <span class="grow" />
                <button type="button" class="button ghost square" aria-label="Close the source" title="Close  (o)" onClick={onClose}>×</button>
            </div>
            <div class="rows" tabIndex={0} aria-label="Lines">
                {asked.error && <Failure error={asked.error} retry={asked.reload} />}
                {!data && !asked.error && <Loading />}
                {data && <Body answer={data} whole={answer.total} measure={measure} />}
            </div>
            {data && data.other_files.length > 0 && <p class="profile-notes">Also in {data.other_files.map(baseName).join(", ")}.</p>}
        </section>
    );
}
