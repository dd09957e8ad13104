// SPDX-License-Identifier: Apache-2.0
// The answer in a sentence: how much more or less, and where it starts.
import { allOf, phrase, told } from "../../model/diff";
import type { Compared } from "./compared";
import { inSentence } from "./named";
import { sideName, thanWhat, type Comparing } from "./sides";

export function Verdict({ of, sides, scope, now }: Comparing & { of: Compared }) {
    const { answer, measure, starts } = of;
    const all = allOf(answer);
    const versions = sides.a.version !== sides.b.version && sides.b.version;
    const who = versions || (sides.preset === "" && sideName(sides.b, now)) || scope.service || "Everything";
    const numbers = `${measure.short(all.a)} → ${measure.format(all.b)}`;
    const why = told(
        starts.map((start) => ({ ...start, name: inSentence(start.name) })),
        measure,
    );
    const [verb, much] = phrase(answer.type, all);
    const tone = all.by > 0 ? "grew" : "shrank";
    const first = starts[0];
    const part = first && of.changes[first.node];
    if (answer.normalized === "total")
        return (
            <div class="verdict">
                <h1>
                    {part ? (
                        <>
                            {inSentence(first.name)} takes{" "}
                            <span class={part.by > 0 ? "grew" : "shrank"}>{measure.format(part.b)}</span> of the whole,
                            before it was {measure.format(part.a)}
                        </>
                    ) : (
                        "No share changed beyond noise"
                    )}
                </h1>
                <span class="soft">By share, what did not change seems to shrink when something else grows.</span>
            </div>
        );
    return (
        <div class="verdict">
            <h1>
                {all.isNoise ? (
                    <>
                        {who} {verb} <span class="soft">as much as before</span>: {numbers}
                    </>
                ) : (
                    <>
                        {who} {verb} <span class={tone}>{much}</span>
                        {thanWhat(sides, scope.range, now)}: {numbers}
                    </>
                )}
            </h1>
            <span class="soft">
                {all.isNoise &&
                    `The difference, ${measure.short(all.by)} ± ${measure.format(all.noise)}, could be chance. `}
                {why ? `${why}.` : "No function stands out."}
            </span>
        </div>
    );
}
