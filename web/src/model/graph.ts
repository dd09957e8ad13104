// SPDX-License-Identifier: Apache-2.0
// A call graph: functions as boxes in layers, calls as lines between them.  Only the largest are shown; a
// call through others that are not goes from one that is to the next that is.
import { functionsOf } from "./join";
import type { Tree } from "./tree";

export interface GraphNode {
    name: number; // of the tree
    self: number;
    total: number;
    layer: number;
    x: number; // of its middle
}

export interface GraphEdge {
    from: number; // of the nodes
    to: number;
    total: number;
    back: boolean; // against the direction of the layers: a recursion
}

export interface Graph {
    nodes: GraphNode[];
    edges: GraphEdge[];
    layers: number;
    width: number;
}

const SPACE = 28; // px between boxes
const SWEEPS = 8;

function largest(tree: Tree, most: number, least: number): GraphNode[] {
    const { used, self, total } = functionsOf(tree);
    const kept = Array.from(used)
        .filter((name) => total[name] >= (tree.total[0] ?? 0) * least)
        .sort((a, b) => total[b] - total[a] || a - b)
        .slice(0, most);
    return kept.map((name) => ({ name, self: self[name], total: total[name], layer: 0, x: 0 }));
}

function edgesOf(tree: Tree, nodes: GraphNode[]): GraphEdge[] {
    const index = new Int32Array(tree.names.length).fill(-1);
    nodes.forEach(({ name }, i) => (index[name] = i));
    const nearest = new Int32Array(tree.n).fill(-1); // of each node: the shown function it is or is called by
    const edges = new Map<number, GraphEdge & { until: number }>();
    for (let i = 1; i < tree.n; i++) {
        const above = nearest[tree.parent[i]];
        const here = index[tree.name[i]];
        nearest[i] = here >= 0 ? here : above;
        if (here < 0 || above < 0 || here === above) continue;
        const key = above * nodes.length + here;
        const edge = edges.get(key) ?? { from: above, to: here, total: 0, back: false, until: 0 };
        edges.set(key, edge);
        if (i < edge.until) continue; // the same call is on the stack already
        edge.until = tree.end[i];
        edge.total += tree.total[i];
    }
    return [...edges.values()].map(({ from, to, total, back }) => ({ from, to, total, back })).sort((a, b) => b.total - a.total);
}

// Lines that would close a circle go back; every other goes at least one layer down.
function layer(nodes: GraphNode[], edges: GraphEdge[]): void {
    const out: GraphEdge[][] = nodes.map(() => []);
    edges.forEach((edge) => out[edge.from].push(edge));
    const state = new Uint8Array(nodes.length); // 1: on the way, 2: done
    const order: number[] = [];
    const visit = (node: number) => {
        state[node] = 1;
        for (const edge of out[node]) {
            if (state[edge.to] === 1) edge.back = true;
            else if (!state[edge.to]) visit(edge.to);
        }
        state[node] = 2;
        order.unshift(node);
    };
    nodes.forEach((_, node) => state[node] || visit(node));
    for (const node of order) for (const edge of out[node]) if (!edge.back) nodes[edge.to].layer = Math.max(nodes[edge.to].layer, nodes[node].layer + 1);
}

// Boxes of a layer from left to right, each as near as can be to where its neighbours are.
function place(nodes: GraphNode[], edges: GraphEdge[], widths: number[]): number {
    const rows: number[][] = [];
    nodes.forEach(({ layer }, i) => (rows[layer] ??= []).push(i));
    for (let i = 0; i < rows.length; i++) rows[i] ??= [];
    const wish = (node: number, down: boolean) => {
        let [sum, weight] = [0, 0];
        for (const { from, to, total, back } of edges) {
            if (back || (down ? to : from) !== node) continue;
            sum += nodes[down ? from : to].x * total;
            weight += total;
        }
        return weight ? sum / weight : nodes[node].x;
    };
    const spread = (row: number[], wished: Map<number, number>) => {
        let edge = -Infinity;
        for (const node of row) {
            nodes[node].x = Math.max(wished.get(node)!, edge + widths[node] / 2);
            edge = nodes[node].x + widths[node] / 2 + SPACE;
        }
        const drift = row.reduce((sum, node) => sum + nodes[node].x - wished.get(node)!, 0) / (row.length || 1);
        for (const node of row) nodes[node].x -= drift;
    };
    for (let sweep = 0; sweep < SWEEPS; sweep++) {
        const down = sweep % 2 === 0;
        for (const row of down ? rows : [...rows].reverse()) {
            const wished = new Map(row.map((node) => [node, wish(node, down)]));
            row.sort((a, b) => wished.get(a)! - wished.get(b)! || a - b);
            spread(row, wished);
        }
    }
    return closed(nodes, widths);
}

// Takes out the space that no layer uses: what is not connected drifts apart.  How wide it is then.
function closed(nodes: GraphNode[], widths: number[]): number {
    const order = nodes.map((_, i) => i).sort((a, b) => nodes[a].x - widths[a] / 2 - (nodes[b].x - widths[b] / 2));
    let end = -Infinity; // of what was gone through
    let shift = -Infinity;
    let width = 0;
    for (const i of order) {
        const [left, right] = [nodes[i].x - widths[i] / 2, nodes[i].x + widths[i] / 2];
        if (shift === -Infinity || left > end + SPACE) shift = shift === -Infinity ? left : shift + left - end - SPACE;
        end = Math.max(end, right);
        nodes[i].x -= shift;
        width = Math.max(width, nodes[i].x + widths[i] / 2);
    }
    return width;
}

// `widthOf`: of the box of a name, in px.
export function graphOf(tree: Tree, widthOf: (name: number) => number, most = 60, least = 0.005): Graph {
    const nodes = largest(tree, most, least);
    const edges = edgesOf(tree, nodes);
    layer(nodes, edges);
    const width = nodes.length ? place(nodes, edges, nodes.map(({ name }) => widthOf(name))) : 0;
    return { nodes, edges, layers: Math.max(0, ...nodes.map((node) => node.layer + 1)), width };
}
