// SPDX-License-Identifier: Apache-2.0
// The colours of frames.  Warm is own code, cool are libraries, grey is the runtime, slate the
// kernel.  A module's swatch comes from a hash of its name alone, so that it is the same in every
// view, release and machine; functions of one module are parted by up to 10 % towards the panel.
import { FAMILY_WORD, baseName, familyOf, formOf, languageOf, shortName, unitOf, type Family, type Form, type Frame } from "./family";
import type { Tree } from "./tree";

export type ColorBy = "module" | "kind" | "diff";

// Colours of a theme (style/tokens.css), as #rrggbb.
export interface Inks {
    own: string[];
    library: string[];
    runtime: string;
    kernel: string;
    root: string;
    panel: string;
    diff: string[]; // nine: shrank most ... unchanged ... grew most
}

export function hash(text: string): number {
    let h = 98;
    for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 16777619);
    return (h ^ (h >>> 13)) >>> 0;
}

const full = (color: string) => (color.length === 4 ? color.replace(/[^#]/g, "$&$&") : color);
const channel = (color: string, at: number) => parseInt(color.slice(at, at + 2), 16);

export function mix(from: string, to: string, part: number): string {
    const [a, b] = [full(from), full(to)];
    const one = (at: number) => Math.round(channel(a, at) * (1 - part) + channel(b, at) * part).toString(16).padStart(2, "0");
    return `#${one(1)}${one(3)}${one(5)}`;
}

export const frameOf = (names: Pick<Tree, "names" | "files" | "modules" | "kinds">, id: number): Frame => ({
    name: names.names[id], file: names.files[id] ?? "", module: names.modules[id] ?? "", kind: names.kinds[id] ?? "",
});

const KIND_WORD = new Map(Object.entries({
    native: "Native", kernel: "Kernel", jvm: "JVM", cpython: "Python", v8js: "JavaScript", go: "Go", rust: "Rust", ruby: "Ruby",
    php: "PHP", phpjit: "PHP, JIT", perl: "Perl", dotnet: ".NET", beam: "BEAM", "": "Not said",
}));
const KIND_SWATCH = new Map(Object.entries<[keyof Pick<Inks, "own" | "library">, number]>({
    native: ["library", 3], rust: ["own", 0], jvm: ["own", 2], cpython: ["own", 4], v8js: ["own", 5], go: ["library", 0],
    ruby: ["own", 1], php: ["library", 5], phpjit: ["library", 5], perl: ["library", 4], dotnet: ["library", 2], beam: ["library", 1],
}));
export const kindWord = (kind: string) => KIND_WORD.get(kind) ?? kind;

function kindFill(kind: string, inks: Inks): string {
    if (kind === "kernel") return inks.kernel;
    const swatch = KIND_SWATCH.get(kind);
    return swatch ? inks[swatch[0]][swatch[1]] : inks.runtime;
}

export function familyFill(family: Family, unit: string, inks: Inks): string {
    if (family === "own") return inks.own[hash(unit) % inks.own.length];
    if (family === "library") return inks.library[hash(unit) % inks.library.length];
    return family === "kernel" ? inks.kernel : family === "root" ? inks.root : inks.runtime;
}

// What is known of each name of a tree, found out when it is first asked for.
export class Looks {
    private families: (Family | undefined)[] = [];
    private forms: (Form | undefined)[] = [];
    private fills: (string | undefined)[] = [];
    private shorts: (string | undefined)[] = [];

    constructor(
        readonly tree: Tree,
        readonly pinned: ReadonlySet<string>,
        readonly inks: Inks | null = null,
        readonly by: ColorBy = "module",
    ) {}

    frame(id: number): Frame {
        return frameOf(this.tree, id);
    }
    family(id: number): Family {
        return (this.families[id] ??= id === this.tree.other ? "root" : (this.tree.marks?.[id]?.family ?? familyOf(this.frame(id), this.pinned)));
    }
    form(id: number): Form {
        return (this.forms[id] ??= formOf(this.frame(id), !!this.tree.inlined?.[id]));
    }
    unit(id: number): string {
        return this.tree.marks?.[id]?.unit ?? unitOf(this.frame(id));
    }
    short(id: number): string {
        return (this.shorts[id] ??= shortName(this.tree.names[id]));
    }
    // By module or kind.
    fill(id: number): string {
        return (this.fills[id] ??= this.mixed(id, this.inks!));
    }

    private mixed(id: number, inks: Inks): string {
        const family = this.family(id);
        const frame = this.frame(id);
        if (this.by === "kind" && family !== "root") return kindFill(languageOf(frame), inks);
        const swatch = familyFill(family, this.unit(id), inks);
        if (this.form(id).inlined) return mix(swatch, inks.panel, 0.45);
        return family === "own" || family === "library" ? mix(swatch, inks.panel, (hash(frame.name) % 3) * 0.05) : swatch;
    }
}

// "checkout/rules · rules.js · your code · JIT"
export function describe(looks: Looks, id: number, line = 0): string {
    const frame = looks.frame(id);
    const form = looks.form(id);
    const unit = looks.unit(id);
    const file = frame.file ? baseName(frame.file) + (line ? `:${line}` : "") : "";
    const words = [unit || baseName(frame.module), file, FAMILY_WORD[looks.family(id)], form.jit && "JIT", form.inlined && "inlined", form.nameless && "no symbol"];
    return words.filter((word, i) => word && words.indexOf(word) === i).join(" · ");
}

// ---- comparisons ----

// Steps of a change: cores, or a share of the whole where it is not CPU time.
const CORE_STEPS = [0.02, 0.1, 0.4];
const SHARE_STEPS = [0.005, 0.025, 0.1];

export interface DiffScale {
    size(node: number): number; // of a change, in what the steps count
    steps: number[];
}

export function diffScale(tree: Tree, rate: ((value: number) => number) | null): DiffScale {
    const change = (node: number) => tree.total[node] - (tree.leftTotal?.[node] ?? 0);
    const whole = Math.max(tree.total[0] ?? 0, tree.leftTotal?.[0] ?? 0) || 1;
    if (rate) return { size: (node) => rate(change(node)), steps: CORE_STEPS };
    return { size: (node) => change(node) / whole, steps: SHARE_STEPS };
}

const CARRIES = 0.9; // of its change to one callee: it only passes it on

// −4 ... 4: how much a node grew, palest where one callee has the change, so that colour is strongest
// where it starts.
export function diffStep(tree: Tree, node: number, scale: DiffScale): number {
    const size = scale.size(node);
    const sign = Math.sign(size);
    if (!sign) return 0;
    for (let child = node + 1; child < tree.end[node]; child = tree.end[child])
        if (scale.size(child) / size >= CARRIES) return sign;
    const step = scale.steps.findIndex((edge) => Math.abs(size) < edge);
    return sign * (step < 0 ? 4 : step + 1);
}
