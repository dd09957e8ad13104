// SPDX-License-Identifier: Apache-2.0
// What was cut, folded or estimated: said where it matters, with the way to see more.
import type { QueryAnswer } from "../api/answers";
import { count } from "../model/format";
import type { Trees } from "./trees";

// Notes of the server that the picture itself does not already show.
const SHOWN_ELSEWHERE = new Set(["rows_cut", "tree_folded"]);

export function Truncated({ answer, trees }: { answer: QueryAnswer; trees: Trees }) {
    const drawn = trees.whole.n;
    const all = answer.flamegraph?.nodes_all ?? null;
    const others = answer.notes.filter(({ code }) => !SHOWN_ELSEWHERE.has(code));
    const cut = trees.whole.other >= 0;
    if (!cut && !others.length) return null;
    return (
        <div class="profile-notes">
            {cut && (
                <span>
                    {all !== null && all > drawn ? `${count(drawn)} of ${count(all)} frames drawn` : `${count(drawn)} frames drawn, smaller ones folded`}. The table is exact.{" "}
                    {trees.refine && (trees.refining || !trees.finest) && (
                        <button type="button" class="as-link" disabled={trees.refining} onClick={() => trees.refine!(0)}>
                            {trees.refining ? "Loading…" : "Load more"}
                        </button>
                    )}
                </span>
            )}
            {others.map((note) => (
                <span key={note.code} title={note.code}>
                    {note.text.charAt(0).toUpperCase() + note.text.slice(1)}
                    {/[.!?]$/.test(note.text) ? "" : "."}
                </span>
            ))}
        </div>
    );
}
