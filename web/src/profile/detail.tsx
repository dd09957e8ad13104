// SPDX-License-Identifier: Apache-2.0
// What there is to say of the chosen frame, and the three things people do next.
import { useMemo } from "preact/hooks";
import { shareWithError } from "../flame/tip";
import { baseName } from "../model/family";
import { share } from "../model/format";
import type { Measure } from "../model/measure";
import { describe, Looks } from "../model/palette";
import { STEM_SIGN } from "../model/transform";
import type { Trees } from "./trees";
import { functionOf } from "./trees";

export interface DetailProps {
    trees: Trees;
    node: number; // of the shown tree; -1: none is chosen
    name: string; // the function that is chosen, also where no frame of it is shown
    everywhere: number | null; // its total in all stacks, where that is known
    measure: Measure;
    samples: number;
    pinned: ReadonlySet<string>;
    canSource: boolean;
    line: number; // that costs most in the chosen function; 0: not known
    onFocus: () => void;
    onCallers: () => void;
    onSource: () => void;
    onClose: () => void;
}

function Figure({ title, children, aside }: { title: string; children: string; aside?: string }) {
    return (
        <div>
            <dt>{title}</dt>
            <dd>
                {children} {aside && <small>{aside}</small>}
            </dd>
        </div>
    );
}

function Nothing({ trees, measure }: DetailProps) {
    const whole = trees.shown.total[0] ?? 0;
    return (
        <div class="profile-detail quiet">
            <div class="who ellipsis">
                <span class="muted">Choose a frame to see its numbers; choose it again to focus on it.</span>
            </div>
            <dl>
                <Figure title="All">{measure.format(whole)}</Figure>
                <Figure title="In all">{measure.amount(whole)}</Figure>
            </dl>
        </div>
    );
}

export function Detail(props: DetailProps) {
    const { trees, node, measure, everywhere } = props;
    const { shown } = trees;
    const looks = useMemo(() => new Looks(shown, props.pinned), [shown, props.pinned]);
    if (node < 0 || node >= shown.n) return <Nothing {...props} />;
    const whole = shown.total[0] || 1;
    const name = functionOf(trees, node);
    const row = shown.names[shown.name[node]];
    const total = shareWithError(shown.total[node], whole, props.samples);
    const elsewhere = everywhere !== null && everywhere > shown.total[node] * 1.02 && share(everywhere, whole) !== total.text;
    const what = row.includes(STEM_SIGN) ? row : describe(looks, shown.name[node], props.line);
    return (
        <div class="profile-detail">
            <div class="who ellipsis" title={`${name}\n${shown.files[shown.name[node]] || baseName(shown.modules[shown.name[node]] ?? "")}`}>
                <b>{name}</b>
                <small class="ellipsis">{what}</small>
            </div>
            <dl>
                <Figure title="Total" aside={total.error}>{total.text}</Figure>
                {elsewhere && <Figure title="In all stacks">{share(everywhere!, whole)}</Figure>}
                <Figure title="Self">{share(shown.self[node], whole)}</Figure>
                <Figure title="Rate">{measure.format(shown.total[node])}</Figure>
            </dl>
            <div class="acts">
                <button type="button" class="button" title="Focus  (Enter)" onClick={props.onFocus}>Focus<kbd class="wide">↵</kbd></button>
                <button type="button" class="button" title="Callers and callees  (s)" disabled={trees.grouped} onClick={props.onCallers}>Callers<kbd class="wide">s</kbd></button>
                <button type="button" class="button" title="Source lines  (o)" disabled={!props.canSource || trees.grouped} onClick={props.onSource}>Source<kbd class="wide">o</kbd></button>
            </div>
            <button type="button" class="button ghost square narrow sheet-close" aria-label="Close" onClick={props.onClose}>×</button>
        </div>
    );
}
