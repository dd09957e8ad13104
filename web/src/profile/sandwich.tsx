// SPDX-License-Identifier: Apache-2.0
// One function: all that call it above, all that it calls below.  The numbers are exact where the server can
// be asked for the stacks through it.
import { useMemo, useState } from "preact/hooks";
import type { QueryAnswer } from "../api/answers";
import { Flame } from "../flame/flame";
import { share } from "../model/format";
import { sandwich } from "../model/invert";
import { nameOf, treeOf, type Tree } from "../model/tree";
import { Loading } from "../ui/kit";
import { canFilter, useAgain } from "./again";
import type { FormProps } from "./panel";

function Half(props: FormProps & { title: string; tree: Tree; flip: boolean; none: string }) {
    const [focus, setFocus] = useState<{ tree: Tree; node: number } | null>(null);
    const [chosen, setChosen] = useState(-1);
    const at = focus?.tree === props.tree ? focus.node : 0;
    const choose = (node: number) => {
        if (node > 0 && node === chosen) props.onSelectName(nameOf(props.tree, node));
        setChosen(node);
    };
    return (
        <div class={`half ${props.flip ? "above" : "below"}`}>
            {props.tree.n > 1 ? (
                <Flame
                    label={props.title}
                    tree={props.tree}
                    measure={props.measure}
                    samples={props.samples}
                    selected={chosen < props.tree.n ? chosen : -1}
                    onSelect={choose}
                    focus={at}
                    onFocus={(node) => setFocus({ tree: props.tree, node })}
                    find={props.find}
                    flip={props.flip}
                    colorBy={props.look.color}
                    ownModules={props.pinned}
                    keys={false}
                    legend={false}
                />
            ) : (
                <p class="none">{props.none}</p>
            )}
        </div>
    );
}

export function SandwichView(props: FormProps) {
    const { look, trees, source, measure, answer } = props;
    const name = look.fn;
    const asked = useAgain<QueryAnswer>(source, name && canFilter(source) && !trees.filtered ? { format: "flamegraph", function: name, nodes: 16384 } : null);
    const exact = asked.data?.flamegraph && !asked.loading && !asked.error ? asked.data : null;
    const parts = useMemo(() => (name ? sandwich(exact ? treeOf(exact.flamegraph!) : trees.whole, name) : null), [exact, trees.whole, name]);
    if (!name) return <div class="profile-wait"><p class="none">Choose a function in the table to see who calls it, and what it calls.</p></div>;
    if (!parts) return <div class="profile-wait">{asked.loading ? <Loading /> : <p class="none">{name} does not occur in this profile.</p>}</div>;
    return (
        <div class={`sandwich ${asked.loading ? "stale" : ""}`}>
            <Half {...props} title="Who calls it" tree={parts.callers} flip none="Nothing calls it: stacks begin here." />
            <div class="filling">
                <span class="grow ellipsis muted">↑ who calls it · what it calls ↓</span>
                <span class="nowrap">
                    <b>{share(parts.total, answer.total)}</b> <span class="muted">total</span> · <b>{share(parts.self, answer.total)}</b> <span class="muted">self</span> ·{" "}
                    {measure.format(parts.total)}
                </span>
            </div>
            <Half {...props} title="What it calls" tree={parts.callees} flip={false} none="It calls nothing: all of its time is its own." />
        </div>
    );
}
