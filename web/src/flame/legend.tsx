// SPDX-License-Identifier: Apache-2.0
// What the colours and forms of a flame graph mean.
import { useMemo } from "preact/hooks";
import { formOf, isJit, languageOf, ROOT_KIND } from "../model/family";
import { share } from "../model/format";
import { frameOf, kindWord, mix, type ColorBy, type Looks } from "../model/palette";
import type { Tree } from "../model/tree";
import type { FlameInks } from "./inks";

const Run = ({ colors, wide }: { colors: string[]; wide?: boolean }) => (
    <span class={`flame-run ${wide ? "steps" : ""}`}>
        {colors.map((color, i) => <i key={i} style={{ background: color }} />)}
    </span>
);

// What was folded, of the whole.
export function foldedTotal(tree: Tree): number {
    if (tree.other < 0) return 0;
    let sum = 0;
    for (let i = 0; i < tree.n; i++) if (tree.name[i] === tree.other) sum += tree.total[i];
    return sum;
}

interface Forms {
    jit: boolean;
    inlined: boolean;
    nameless: boolean;
}

const MANY = 20000; // names: a legend need not know what comes after them

function formsOf({ tree }: Looks): Forms {
    const jit = [...new Set(tree.kinds)].some(isJit);
    const nameless = tree.names.slice(0, MANY).some((_, id) => formOf(frameOf(tree, id)).nameless);
    return { jit, nameless, inlined: !!tree.inlined?.includes(true) };
}

// Languages that occur, each with a name that speaks it.
function kindsOf({ tree }: Looks): [string, number][] {
    const kinds = new Map<string, number>();
    for (let id = 1; id < Math.min(tree.names.length, MANY); id++) {
        const kind = languageOf(frameOf(tree, id));
        if (id !== tree.other && kind !== ROOT_KIND && !kinds.has(kind)) kinds.set(kind, id);
    }
    return [...kinds].sort(([a], [b]) => (a < b ? -1 : 1));
}

function DiffLegend({ inks }: { inks: FlameInks }) {
    return (
        <>
            <span class="shrank">Shrank</span>
            <Run colors={inks.diff} wide />
            <span class="grew">Grew</span>
            <span class="wide muted">palest: passes it on to one callee</span>
            <span class="grow" />
            <span class="wide"><Run colors={[inks.diff[4]]} />unchanged or noise</span>
        </>
    );
}

export function Legend({ looks, inks, by }: { looks: Looks; inks: FlameInks; by: ColorBy }) {
    const forms = useMemo(() => formsOf(looks), [looks.tree]);
    const kinds = useMemo(() => (by === "kind" ? kindsOf(looks) : []), [looks, by]);
    const folded = useMemo(() => foldedTotal(looks.tree), [looks.tree]);
    const { tree } = looks;
    const example = inks.own[2];
    if (by === "diff") return <div class="flame-legend"><DiffLegend inks={inks} /></div>;
    return (
        <div class="flame-legend">
            {by === "module" && (
                <>
                    <span><Run colors={inks.own.slice(0, 5)} />Your code</span>
                    <span><Run colors={inks.library.slice(0, 5)} />Libraries</span>
                    <span><Run colors={[inks.runtime]} />Runtime</span>
                    <span><Run colors={[inks.kernel]} />Kernel</span>
                </>
            )}
            {kinds.map(([kind, id]) => <span key={kind}><Run colors={[looks.fill(id)]} />{kindWord(kind)}</span>)}
            {forms.jit && <span class="wide"><i class="flame-jit" style={{ background: `linear-gradient(225deg, ${inks.ink3} 4px, ${example} 4.5px)` }} />JIT</span>}
            {forms.inlined && <span class="wide"><i style={{ background: mix(example, inks.panel, 0.45) }} /><em>inlined</em></span>}
            {forms.nameless && <span class="wide"><i class="flame-hollow" />no symbol</span>}
            <span class="grow" />
            {folded > 0 && <span title="Too small to be sent one by one; a click on such a frame brings the rest"><i class="flame-dashed" />{share(folded, tree.total[0])} folded</span>}
        </div>
    );
}
