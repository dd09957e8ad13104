// SPDX-License-Identifier: Apache-2.0
// The picture of a comparison: the flame graph in the colours of change, its legend, and the chosen
// frame's numbers on both sides.
import { useCallback, useState } from "preact/hooks";
import { Flame } from "../../flame/flame";
import type { Change } from "../../model/diff";
import { count, signed } from "../../model/format";
import type { Measure } from "../../model/measure";
import { Looks, describe } from "../../model/palette";
import { pathOf, type Tree } from "../../model/tree";
import { Link, copy } from "../../ui/kit";
import { Menu, type MenuEntry, type Point } from "../../ui/menu";
import type { Choice } from "./choice";
import type { Compared } from "./compared";

export interface Action {
    label: string;
    title: string;
    key?: string;
    href: string;
}

export function ChangeNumbers({
    change,
    measure,
    a = "A",
    b = "B",
}: {
    change: Change;
    measure: Measure;
    a?: string;
    b?: string;
}) {
    const tone = change.isNoise ? "muted" : change.by > 0 ? "grew" : "shrank";
    const short = /^.B$/.test(measure.unit) ? measure.format : measure.short; // bytes go from kB to GB: each says its unit
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
export function whose(tree: Tree, name: number): string {
    const words = describe(new Looks(tree, NOBODY), name).split(" · ");
    return (tree.files[name] && words.length > 2 ? words.slice(1) : words).join(" · ");
}

function places({ tree }: Compared, node: number): number {
    let n = 0;
    for (let at = 1; at < tree.n; at++) if (tree.name[at] === tree.name[node]) n++;
    return n;
}

export function Detail({
    of,
    node,
    actions,
    a,
    b,
}: {
    of: Compared;
    node: number;
    actions: Action[];
    a?: string;
    b?: string;
}) {
    const { tree, changes, measure } = of;
    const name = tree.name[node];
    const several = node > 0 ? places(of, node) : 1;
    const about = [node > 0 && whose(tree, name), several > 1 && `one of ${count(several)} places`].filter(Boolean);
    return (
        <div class="diff-detail" role="group" aria-label="The chosen frame">
            <div class="who">
                <b class="ellipsis" title={tree.names[name]}>
                    {node > 0 ? tree.names[name] : "Everything"}
                </b>
                <small class="ellipsis" title={tree.files[name] || tree.modules[name]}>
                    {about.join(" · ") || "\u00a0"}
                </small>
            </div>
            <ChangeNumbers change={changes[node]} measure={measure} a={a} b={b} />
            <div class="actions">
                {node > 0 &&
                    actions.map((action) => (
                        <Link key={action.label} class="button" href={action.href} title={action.title}>
                            {action.label}
                            {action.key && <kbd class="wide">{action.key}</kbd>}
                        </Link>
                    ))}
            </div>
        </div>
    );
}

// What can be done with a frame.
function FrameMenu({
    of,
    choice,
    actions,
    at,
    onClose,
}: {
    of: Compared;
    choice: Choice;
    actions: Action[];
    at: Point;
    onClose: () => void;
}) {
    const entries: MenuEntry[] = [
        { label: "Focus", aside: "↵", onChoose: () => choice.setFocus(choice.node) },
        ...actions.map(({ label, key, href }) => ({ label, aside: key, href })),
        "line",
        { label: "Copy name", aside: "c", onChoose: () => void copy(choice.name, "Name copied") },
        {
            label: "Copy stack",
            onChoose: () => void copy(pathOf(of.tree, choice.node).join("\n"), "Stack copied, outermost first"),
        },
    ];
    return <Menu label="What to do with the frame" entries={entries} at={at} onClose={onClose} />;
}

export function Picture({
    of,
    choice,
    label,
    actions,
}: {
    of: Compared;
    choice: Choice;
    label: string;
    actions: Action[];
}) {
    const { tree, changes, measure, answer } = of;
    const [menu, setMenu] = useState<Point | null>(null);
    const noise = useCallback((node: number) => changes[node].isNoise, [of]);
    const openMenu = (node: number, at: Point) => {
        if (node <= 0) return;
        choice.select(node);
        setMenu(at);
    };
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
                onMenu={openMenu}
            />
            {menu && <FrameMenu of={of} choice={choice} actions={actions} at={menu} onClose={() => setMenu(null)} />}
        </div>
    );
}
