// SPDX-License-Identifier: Apache-2.0
// From an answer to the tree that is drawn: refined where somebody looked closer, then filtered and grouped
// as the address says.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { QueryAnswer } from "../api/answers";
import { ROOT_KIND } from "../model/family";
import { graft } from "../model/join";
import type { Pattern } from "../model/regex";
import { unquote } from "../model/selector";
import { originOf, prepare, STEM_SIGN, type FlameOptions, type Grouping } from "../model/transform";
import { nameOf, pathOf, treeOf, type Tree } from "../model/tree";
import { toast } from "../ui/toast";
import { askAgain, canFilter } from "./again";
import { useLabelTree } from "./bylabel";
import type { ProfileSource } from "./panel";
import { patternFrom, type Look } from "./state";

const FINER = 65536; // nodes, where the whole is asked for again

export interface Trees {
    whole: Tree; // as the server gave it, refined
    shown: Tree;
    filtered: boolean; // it is not the whole that is shown
    grouped: boolean; // its frames are packages or modules, not functions
    loading: boolean;
    refine: ((node: number) => void) | undefined; // of the shown tree: bring what was folded there
    refining: boolean;
    finest: boolean; // the whole was asked for in all detail already
}

const isPattern = (pattern: Pattern | null): pattern is Pattern => pattern !== null;

function optionsOf(look: Look, tree: Tree, pinned: ReadonlySet<string>): FlameOptions {
    const patterns = (texts: string[]) => texts.map((text) => patternFrom(text, tree)).filter(isPattern);
    const group = look.group === "module" || look.group === "package" ? (look.group as Grouping) : null;
    return {
        only: patterns(look.only), ignore: patterns(look.ignore), hide: patterns(look.hide),
        recursion: look.recursion, stems: look.stems && !look.invert, group, invert: look.invert, pinned,
    };
}

// Functions are not what the server added up: some stacks or frames are left out, or put together.
const isFiltered = (look: Look) => look.only.length + look.ignore.length + look.hide.length > 0 || look.group !== "" || look.recursion;

// What a table of functions is added up from: neither stems nor the direction of calls matter to it.
export const tableTree = (whole: Tree, look: Look, pinned: ReadonlySet<string>) => prepare(whole, { ...optionsOf(look, whole, pinned), stems: false, invert: false });

// Is something folded below this node?
export function hasFolded(tree: Tree, node: number): boolean {
    if (tree.other < 0) return false;
    for (let i = node; i < tree.end[node]; i++) if (tree.name[i] === tree.other) return true;
    return false;
}

function useRefined(base: Tree, source: ProfileSource | null, title: string) {
    const [made, setMade] = useState<{ of: Tree; tree: Tree }>({ of: base, tree: base });
    const [busy, setBusy] = useState(false);
    const asked = useRef(new Set<string>());
    const latest = useRef(base);
    latest.current = base;
    useEffect(() => asked.current.clear(), [base]);
    const tree = made.of === base ? made.tree : base;

    // Asks for the stacks through a function and puts them below this node; at the root, for all in more detail.
    const refine = (node: number) => {
        const key = pathOf(tree, node).join("\n");
        if (!source || asked.current.has(key)) return;
        asked.current.add(key);
        setBusy(true);
        const params = node > 0 && canFilter(source) ? { function: nameOf(tree, node), nodes: FINER } : { nodes: FINER };
        askAgain<QueryAnswer>(source, { format: "flamegraph", ...params })
            .then((answer) => {
                const finer = titled(treeOf(answer.flamegraph!), title);
                if (latest.current === base) setMade({ of: base, tree: node > 0 ? graft(tree, node, finer) : finer });
            })
            .catch((error) => toast(`No more detail: ${error.message}`))
            .finally(() => setBusy(false));
    };
    return { tree, refine, busy, finest: asked.current.has("") };
}

// The root by the name of what it is: the service, the file.
function titleOf({ params }: ProfileSource | { params: Record<string, never> }): string {
    const service = /[{,]service_name="((?:[^"\\]|\\.)*)"/s.exec(String(params.query ?? ""));
    return service ? unquote(service[1]) : String(params.name ?? "All services");
}

function titled(tree: Tree, title: string): Tree {
    if (!tree.n) return tree;
    const root = tree.name[0];
    const put = (texts: string[], text: string) => texts.map((one, i) => (i === root ? text : one));
    return { ...tree, names: put(tree.names, title), kinds: put(tree.kinds, ROOT_KIND) };
}

// The same, outside of a component: what is refined or under labels is left out.
export function shownTree(answer: QueryAnswer, source: ProfileSource | null, look: Look, pinned: ReadonlySet<string>): Tree {
    const whole = titled(treeOf(answer.flamegraph!), titleOf(source ?? { params: {} }));
    return prepare(whole, optionsOf(look, whole, pinned));
}

export function useTrees(answer: QueryAnswer, source: ProfileSource | null, look: Look, pinned: ReadonlySet<string>): Trees {
    const title = titleOf(source ?? { params: {} });
    const base = useMemo(() => titled(treeOf(answer.flamegraph!), title), [answer, title]);
    const refined = useRefined(base, source, title);
    const label = look.group.startsWith("label:") ? look.group.slice(6) : null;
    const labelled = useLabelTree(source, label);
    const under = useMemo(() => labelled.tree && titled(labelled.tree, title), [labelled.tree, title]);
    const whole = label && under ? under : refined.tree;
    const key = JSON.stringify([look.only, look.ignore, look.hide, look.recursion, look.stems, look.group, look.invert, [...pinned]]);
    const shown = useMemo(() => prepare(whole, optionsOf(look, whole, pinned)), [whole, key]);

    const refine = (node: number) => {
        const folded = shown.name[node] === shown.other;
        const at = originOf(shown, folded ? shown.parent[node] : node);
        if (at >= 0) refined.refine(at);
    };
    const can = source !== null && !label && !look.group && !look.invert;
    return {
        whole, shown, filtered: isFiltered(look), grouped: look.group !== "" && !label, loading: labelled.loading,
        refine: can ? refine : undefined, refining: refined.busy, finest: refined.finest,
    };
}

// The function that a node of the shown tree is of; of several in one row, the last.
export function functionOf(trees: Trees, node: number): string {
    if (node < 0 || node >= trees.shown.n) return "";
    const from = originOf(trees.shown, node);
    return from >= 0 && !trees.grouped ? nameOf(trees.whole, from) : nameOf(trees.shown, node);
}

// Where a function takes most: the node with the largest total, or -1.
export function largestOf(tree: Tree, name: string): number {
    if (!name) return -1;
    const ids = new Set<number>();
    tree.names.forEach((text, id) => {
        if (text === name || (text.includes(STEM_SIGN) && text.split(STEM_SIGN).includes(name))) ids.add(id);
    });
    let best = -1;
    for (let i = 1; i < tree.n; i++) if (ids.has(tree.name[i]) && (best < 0 || tree.total[i] > tree.total[best])) best = i;
    return best;
}
