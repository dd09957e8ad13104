// SPDX-License-Identifier: Apache-2.0
// The picture of a comparison: the flame graph in the colours of change, its legend, and the chosen
// frame's numbers on both sides.
import { useCallback } from "preact/hooks";
import { Flame } from "../../flame/flame";
import type { Change } from "../../model/diff";
import { count, signed } from "../../model/format";
import type { Measure } from "../../model/measure";
import { Looks, describe } from "../../model/palette";
import type { Tree } from "../../model/tree";
import { Link } from "../../ui/kit";
import type { Choice } from "./choice";
import type { Compared } from "./compared";

export interface Action {
    label: string;
    title: string;
    key?: string;
    href: string;
}

export function ChangeNumbers({ change, measure, a = "A", b = "B" }: { change: Change; measure: Measure; a?: string; b?: string }) {
    const tone = change.isNoise ? "muted" : change.by > 0 ? "grew" : "shrank";
    const inBytes = /^.B/.test(measure.unit);
    const short = inBytes ? measure.format : measure.short; // bytes go from kB to GB: each says its unit
    return (
        <dl>
            <div>
                <dt>{a}</dt>
                <dd>{short(change.a)}</dd>
            </div>
            <div>
                <dt>{b}</dt>
                <dd>{measure.format(change.b)}</dd>
            </div>
            <div>
                <dt>Change</dt>
                <dd>
                    <span class={tone}>{signed(short(change.by), change.by)}</span>{" "}
                    <small>{change.isNoise ? "within noise" : `± ${short(change.noise)}`}</small>
                </dd>
            </div>
        </dl>
    );
}

const NOBODY: ReadonlySet<string> = new Set();

// "rules.js · your code"; where there is no file, what it belongs to.
function whose(tree: Tree, name: number): string {
    const words = describe(new Looks(tree, NOBODY), name).split(" · ");
    return (tree.files[name] && words.length > 2 ? words.slice(1) : words).join(" · ");
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
    const about = [node > 0 && whose(tree, name), several > 1 && `one of ${count(several)} places`].filter(Boolean);
    return (
        <div class="diff-detail" role="group" aria-label="The chosen frame">
            <div class="who">
                <b class="ellipsis" title={tree.names[name]}>{node > 0 ? tree.names[name] : "Everything"}</b>
                <small class="ellipsis" title={tree.files[name] || tree.modules[name]}>{about.join(" · ") || "\u00a0"}</small>
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

export function Picture({ of, choice, label, keys }: { of: Compared; choice: Choice; label: string; keys?: boolean }) {
    const { tree, changes, measure, answer } = of;
    const noise = useCallback((node: number) => changes[node].isNoise, [of]);
    return (
        <div class="diff-stage">
            <Flame
                label={label}
                tree={tree}
                measure={measure}
                samples={answer.right.basis.count}
                selected={choice.node}
                onSelect={choice.select}
                focus={choice.focus}
                onFocus={choice.setFocus}
                find={choice.find}
                colorBy="diff"
                noise={noise}
                keys={keys}
            />
        </div>
    );
}
