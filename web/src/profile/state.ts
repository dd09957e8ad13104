// SPDX-License-Identifier: Apache-2.0
// How a profile is looked at, as the address says it:
//
//   show     flame, sandwich, time, graph, tree or table
//   find     text or /expression/             fn      the chosen function
//   focus    the frame that fills the width, as a path (formatPath)
//   only, ignore, hide   patterns (patternFrom), one a line
//   group    module, package or label:NAME    color   module or kind
//   flip, recursion, stems, invert, own, src  switches
//   sort     of the table: self, total or name
import { hash } from "../model/palette";
import type { Pattern } from "../model/regex";
import { escaped, exactly, patternOf } from "../model/search";
import { frameOf } from "../model/palette";
import { unitOf } from "../model/family";
import { nameOf, type Tree } from "../model/tree";
import { change, usePlace, type Changes } from "../state/place";

export const SHOWS = ["flame", "sandwich", "time", "graph", "tree", "table"] as const;
export type Show = (typeof SHOWS)[number];
export type Sort = "self" | "total" | "name";
export type Filter = "only" | "ignore" | "hide";

export interface Look {
    show: Show;
    find: string;
    fn: string;
    focus: string;
    only: string[];
    ignore: string[];
    hide: string[];
    group: string; // "", module, package, label:NAME
    color: "module" | "kind";
    flip: boolean;
    recursion: boolean; // collapsed
    stems: boolean; // folded
    invert: boolean;
    own: boolean; // only own code in the table
    source: boolean;
    sort: Sort;
}

const lines = (text: string | null) => (text ?? "").split("\n").filter(Boolean);
const oneOf = <T extends string>(value: string | null, all: readonly T[], standard: T) => (all.includes(value as T) ? (value as T) : standard);

export function lookOf(params: URLSearchParams): Look {
    return {
        show: oneOf(params.get("show"), SHOWS, "flame"),
        find: params.get("find") ?? "",
        fn: params.get("fn") ?? "",
        focus: params.get("focus") ?? "",
        only: lines(params.get("only")),
        ignore: lines(params.get("ignore")),
        hide: lines(params.get("hide")),
        group: params.get("group") ?? "",
        color: oneOf(params.get("color"), ["module", "kind"] as const, "module"),
        flip: params.get("flip") === "1",
        recursion: params.get("recursion") === "1",
        stems: params.get("stems") !== "0",
        invert: params.get("invert") === "1",
        own: params.get("own") === "1",
        source: params.get("src") === "1",
        sort: oneOf(params.get("sort"), ["self", "total", "name"] as const, "self"),
    };
}

export function useLook(): Look {
    return lookOf(usePlace().params);
}

// Changes in the address; what is the default is not written.
export function setLook(changes: Partial<Look>, replace = false): void {
    const written: Changes = {};
    for (const [name, value] of Object.entries(changes)) {
        if (name === "stems") written.stems = value ? null : 0;
        else if (name === "source") written.src = value as boolean;
        else if (Array.isArray(value)) written[name] = value.join("\n");
        else written[name] = value === "flame" && name === "show" ? null : value === "self" && name === "sort" ? null : value === "module" && name === "color" ? null : (value as string | boolean);
    }
    change(written, replace);
}

// A whole name that has lines of its own becomes an expression: filters stand one a line.
const oneLine = (pattern: string) => (/^=.*\n/s.test(pattern) ? `/^${escaped(pattern.slice(1)).replace(/\n/g, "\\n")}$/` : pattern.replace(/\n/g, " "));

export function addFilter(look: Look, filter: Filter, text: string): void {
    const pattern = oneLine(text);
    if (!look[filter].includes(pattern)) setLook({ [filter]: [...look[filter], pattern] });
}

// ---- patterns: text, /expression/, =whole name, @package ----

// Functions of a package or module, as something that names can be tested with.
function belonging(tree: Tree, unit: string): Pattern {
    const names = new Set(tree.names.filter((_, id) => tree.modules[id] === unit || unitOf(frameOf(tree, id)) === unit));
    return { test: (name) => names.has(name), toString: () => `@${unit}` };
}

export function patternFrom(text: string, tree: Tree): Pattern | null {
    if (text.startsWith("=")) return exactly(text.slice(1));
    if (text.startsWith("@")) return belonging(tree, text.slice(1));
    return patternOf(text);
}

export const patternText = (text: string) => text.replace(/^[=@]/, "");

// ---- paths: four letters for each name, so that an address stays short ----

const short = (name: string) => (hash(name) % 1679616).toString(36).padStart(4, "0");

export function formatPath(tree: Tree, node: number): string {
    let path = "";
    for (let at = node; at > 0; at = tree.parent[at]) path = short(nameOf(tree, at)) + path;
    return path;
}

// The node that a path leads to, or as far as there is a way.
export function nodeOnPath(tree: Tree, path: string): number {
    let at = 0;
    for (let i = 0; i + 4 <= path.length && tree.n; i += 4) {
        const next = path.slice(i, i + 4);
        let child = at + 1;
        while (child < tree.end[at] && short(nameOf(tree, child)) !== next) child = tree.end[child];
        if (child >= tree.end[at]) return at;
        at = child;
    }
    return at;
}
