// SPDX-License-Identifier: Apache-2.0
// The picture of a comparison: the flame graph in the colours of change, its legend, and the chosen
// frame's numbers on both sides.
import { useCallback, useMemo } from "preact/hooks";
import type { DiffAnswer } from "../../api/answers";
import { Flame } from "../../flame/flame";
import { diffMeasure, nodeChange, startsOf, wholeOf, type Change, type Start } from "../../model/diff";
import { count, signed } from "../../model/format";
import type { Measure } from "../../model/measure";
import { diffTreeOf, nameOf, type Tree } from "../../model/tree";
import { Link } from "../../ui/kit";
import { isOwn } from "./own";

export interface Compared {
    answer: DiffAnswer;
    tree: Tree;
    measure: Measure;
    changes: Change[]; // of each node
    starts: Start[];
}

// All that views need of an answer, worked out once.
export function useCompared(answer: DiffAnswer | null): Compared | null {
    return useMemo(() => {
        if (!answer?.flamegraph) return null;
        const tree = diffTreeOf(answer.flamegraph, answer.scale);
        const whole = wholeOf(answer);
        const changes = Array.from({ length: tree.n }, (_, node) => nodeChange(tree, node, whole));
        const starts = startsOf(tree, (node) => changes[node], (name) => isOwn(tree, name));
        return { answer, tree, measure: diffMeasure(answer), changes, starts };
    }, [answer]);
}

// The node that stands for a function: the one that changed most.
export function nodeOf({ tree, changes }: Compared, name: string): number {
    let best = -1;
    for (let node = 1; node < tree.n; node++) {
        if (nameOf(tree, node) !== name) continue;
        if (best < 0 || Math.abs(changes[node].by) > Math.abs(changes[best].by)) best = node;
    }
    return best;
}

export interface Action {
    label: string;
    title: string;
    key?: string;
    href: string;
}

export function ChangeNumbers({ change, measure, a = "A", b = "B" }: { change: Change; measure: Measure; a?: string; b?: string }) {
    const tone = change.isNoise ? "muted" : change.by > 0 ? "grew" : "shrank";
    return (
        <dl>
            <div>
                <dt>{a}</dt>
                <dd>{measure.short(change.a)}</dd>
            </div>
            <div>
                <dt>{b}</dt>
                <dd>{measure.format(change.b)}</dd>
            </div>
            <div>
                <dt>Change</dt>
                <dd>
                    <span class={tone}>{signed(measure.short(change.by), change.by)}</span>{" "}
                    <small>{change.isNoise ? "within noise" : `± ${measure.short(change.noise)}`}</small>
                </dd>
            </div>
        </dl>
    );
}

function places({ tree }: Compared, node: number): number {
    let n = 0;
    for (let at = 1; at < tree.n; at++) if (tree.name[at] === tree.name[node]) n++;
    return n;
}

export function Detail({ of, node, actions, a, b }: { of: Compared; node: number; actions: Action[]; a?: string; b?: string }) {
    const { tree, changes, measure } = of;
    const name = tree.name[node];
    const several = node > 0 ? places(of, node) : 1;
    const about = [tree.files[name] || tree.modules[name], several > 1 && `one of ${count(several)} places`].filter(Boolean);
    return (
        <div class="diff-detail" role="group" aria-label="The chosen frame">
            <div class="who">
                <b class="ellipsis" title={tree.names[name]}>{node > 0 ? tree.names[name] : "Everything"}</b>
                <small class="ellipsis" title={about.join(" · ")}>{about.join(" · ") || "\u00a0"}</small>
            </div>
            <ChangeNumbers change={changes[node]} measure={measure} a={a} b={b} />
            <div class="actions">
                {node > 0 && actions.map((action) => (
                    <Link key={action.label} class="button" href={action.href} title={action.title}>
                        {action.label}
                        {action.key && <kbd class="wide">{action.key}</kbd>}
                    </Link>
                ))}
            </div>
        </div>
    );
}

interface PictureProps {
    of: Compared;
    label: string;
    selected: number;
    onSelect: (node: number) => void;
    focus: number;
    onFocus: (node: number) => void;
    find: RegExp | null;
}

export function Picture({ of, label, selected, onSelect, focus, onFocus, find }: PictureProps) {
    const { tree, changes, measure, answer } = of;
    const noise = useCallback((node: number) => changes[node].isNoise, [of]);
    return (
        <div class="diff-stage">
            <Flame
                label={label}
                tree={tree}
                measure={measure}
                samples={answer.right.basis.count}
                selected={selected}
                onSelect={onSelect}
                focus={focus}
                onFocus={onFocus}
                find={find}
                colorBy="diff"
                noise={noise}
            />
        </div>
    );
}
