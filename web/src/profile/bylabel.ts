// SPDX-License-Identifier: Apache-2.0
// A profile under the values of a label: one question for each of the largest values.
import { useEffect, useState } from "preact/hooks";
import type { QueryAnswer } from "../api/answers";
import { underLabels } from "../model/join";
import { valueIn } from "../model/labels";
import { formatMatcher } from "../model/selector";
import { treeOf, type Tree } from "../model/tree";
import { toast } from "../ui/toast";
import { askAgain, canFilter } from "./again";
import type { ProfileSource } from "./panel";

const VALUES = 8;

// The selector with one matcher more.
export function narrowed(query: string, name: string, value: string): string {
    const matcher = formatMatcher({ name, op: "=", value });
    if (!query.includes("{")) return `${query}{${matcher}}`;
    return query.replace(/\s*\}\s*$/, (end) => (/\{\s*\}$/.test(query) ? matcher + end : `,${matcher}${end}`));
}

async function load(source: ProfileSource, label: string): Promise<Tree | null> {
    const { series } = await askAgain<QueryAnswer>(source, { format: "series", by: label, limit: VALUES });
    const values = [...(series?.series ?? [])].sort((a, b) => b.sum - a.sum).map((one) => valueIn(one.labels, label));
    const parts = await Promise.all(
        values.slice(0, VALUES).map(async (value) => {
            const query = narrowed(String(source.params.query ?? ""), label, value);
            const answer = await askAgain<QueryAnswer>({ ...source, params: { ...source.params, query } }, { format: "flamegraph", nodes: 2048 });
            return { label: value || `without ${label}`, tree: treeOf(answer.flamegraph!) };
        }),
    );
    return underLabels(parts);
}

export function useLabelTree(source: ProfileSource | null, label: string | null): { tree: Tree | null; loading: boolean } {
    const [state, setState] = useState<{ key: string; tree: Tree | null }>({ key: "", tree: null });
    const key = label && source && canFilter(source) ? JSON.stringify([label, source.path, source.params]) : "";
    useEffect(() => {
        if (!key) return;
        let wanted = true;
        load(source!, label!)
            .then((tree) => wanted && setState({ key, tree }))
            .catch((error) => {
                if (wanted) toast(error.message);
                setState({ key, tree: null });
            });
        return () => void (wanted = false);
    }, [key]);
    return { tree: state.key === key ? state.tree : null, loading: key !== "" && state.key !== key };
}
