// SPDX-License-Identifier: Apache-2.0
// Trees drawn as text, for tests: one line a frame, indented by one, with what it took itself
// (of a comparison: before>after).
//
//   total
//    main 1
//     parse 5
import { diffTreeOf, treeOf, type Tree } from "../src/model/tree";

interface Said {
    file?: string;
    module?: string;
    kind?: string;
}

export function drawn(text: string, said: Record<string, Said> = {}): Tree {
    const lines = text.split("\n").filter((line) => line.trim());
    const margin = Math.min(...lines.map((line) => line.search(/\S/)));
    const names: string[] = [];
    const name: number[] = [];
    const depth: number[] = [];
    const self: number[] = [];
    const left: number[] = [];
    let compares = false;
    for (const line of lines) {
        const [, label, before, value] = /^\s*(.*?)(?: (?:(\d+)>)?(\d+))?$/.exec(line)!;
        if (!names.includes(label)) names.push(label);
        name.push(names.indexOf(label));
        depth.push(line.search(/\S/) - margin);
        self.push(Number(value ?? 0));
        left.push(Number(before ?? 0));
        compares ||= before !== undefined;
    }
    const sums = (values: number[]) => {
        const total = values.slice();
        for (let i = depth.length - 1; i > 0; i--) {
            let above = i - 1;
            while (depth[above] >= depth[i]) above--;
            total[above] += total[i];
        }
        return total;
    };
    const other = names.includes("(other)") ? names.indexOf("(other)") : null;
    const texts = {
        names,
        files: names.map((one) => said[one]?.file ?? ""),
        modules: names.map((one) => said[one]?.module ?? ""),
        kinds: names.map((one) => said[one]?.kind ?? ""),
    };
    if (!compares) return treeOf({ ...texts, name, depth, self, total: sums(self), other, nodes_all: null, error_bound: 0 });
    return diffTreeOf({ ...texts, name, depth, left_self: left, left_total: sums(left), right_self: self, right_total: sums(self), other }, 1);
}

// A tree as text, as drawn() takes it; siblings by name.
export function draw(tree: Tree): string {
    const lines: string[] = [];
    const put = (node: number) => {
        const before = tree.leftSelf ? `${tree.leftSelf[node]}>` : "";
        const self = tree.self[node] || (tree.leftSelf && tree.leftSelf[node]) ? ` ${before}${tree.self[node]}` : "";
        lines.push(" ".repeat(tree.depth[node]) + tree.names[tree.name[node]] + self);
        const children: number[] = [];
        for (let child = node + 1; child < tree.end[node]; child = tree.end[child]) children.push(child);
        children.sort((a, b) => (tree.names[tree.name[a]] < tree.names[tree.name[b]] ? -1 : 1)).forEach(put);
    };
    if (tree.n) put(0);
    return lines.join("\n");
}

export function plain(text: string): string {
    const lines = text.split("\n").filter((line) => line.trim());
    const margin = Math.min(...lines.map((line) => line.search(/\S/)));
    return lines.map((line) => line.slice(margin)).join("\n");
}
