// SPDX-License-Identifier: Apache-2.0
// Paints what is visible of a flame graph.  Each row is entered by binary search at the left edge;
// of frames narrower than a pixel one is drawn, and the rest of that pixel is jumped over by searching
// too.  So a picture costs what its pixels cost, however many frames there are.
import { percent } from "../model/format";
import { firstAfter, type Layout } from "../model/layout";
import type { Measure } from "../model/measure";
import { diffStep, type DiffScale, type Looks } from "../model/palette";
import { STEM_SIGN } from "../model/transform";
import type { FlameInks } from "./inks";
import { packed, Strip } from "./strip";
import { Ruler } from "./text";

export interface Scene {
    layout: Layout;
    looks: Looks;
    measure: Measure;
    diff: { scale: DiffScale; noise?: (node: number) => boolean } | null;
    hits: Int32Array | null; // by rank: matches before it (one more than there are ranks); null: no search
    selected: number;
    hot: number; // under the pointer
    focus: number;
    flip: boolean;
}

export interface Window {
    from: number; // what part of the width, 0 ... 1
    to: number;
    width: number;
    height: number;
    row: number; // height of one
    top: number; // scrolled by so many pixels
    whole: number; // height of all rows
    letters: number; // size of text
    ratio: number; // pixels of the screen for each of these
}

const PADDING = 6;
const NO_LABEL = 26; // no label where a frame is narrower
const NOTCH = 5;
const THIN = 4; // frames below this have no form of their own

interface Box {
    x: number;
    y: number;
    w: number;
    h: number;
}

export class Painter {
    private rulers = new Map<string, Ruler>();
    private steps: Int8Array | null = null; // of a comparison, as they were found out
    private stepsOf: unknown = null;
    private color = "";
    private chosen = -1; // the name of the chosen frame
    private font = "";
    private thin = new Strip();
    private marks = new Strip(); // under hits of a search
    private colors = new Uint32Array(0); // of names, as a strip wants them; 0: not known yet
    private colorsOf: Looks | null = null;
    private dim: number;
    private diffs: number[];

    constructor(
        private ctx: CanvasRenderingContext2D,
        private inks: FlameInks,
    ) {
        this.dim = packed(inks.dim);
        this.diffs = inks.diff.map(packed);
    }

    paint(scene: Scene, view: Window): void {
        const { ctx } = this;
        ctx.clearRect(0, 0, view.width, view.height);
        ctx.textBaseline = "middle";
        this.color = this.font = "";
        this.chosen = scene.selected > 0 ? scene.layout.tree.name[scene.selected] : -1;
        const last = scene.layout.tree.height - 1;
        const at = (pixel: number) => Math.floor((scene.flip ? view.whole - pixel - view.top : pixel + view.top) / view.row);
        const a = Math.max(0, Math.min(at(0), at(view.height)));
        const b = Math.min(last, Math.max(at(0), at(view.height)));
        const pixels = Math.ceil(view.width * view.ratio);
        this.thin.clear(pixels, Math.max(1, b - a + 1));
        if (scene.hits) this.marks.clear(pixels, Math.max(1, b - a + 1));
        for (let depth = a; depth <= b; depth++) this.paintRow(scene, view, depth, depth - a);
        const h = view.row - 1;
        this.thin.show(ctx, view.width, (row) => ({ y: rowTop(scene.flip, view, row + a), h }));
        if (scene.hits) this.marks.show(ctx, view.width, (row) => ({ y: rowTop(scene.flip, view, row + a) + h - 2, h: 2 }));
        for (const node of [scene.hot, scene.selected]) this.ringThin(scene, view, node);
    }

    private paintRow(scene: Scene, view: Window, depth: number, row: number): void {
        const { layout, hits } = scene;
        const { left, right, node } = layout;
        const end = layout.rows[depth + 1];
        const scale = view.width / (view.to - view.from);
        const h = view.row - 1;
        const y = rowTop(scene.flip, view, depth);
        const fine = scale * view.ratio;
        let place = firstAfter(layout, layout.rows[depth], end, view.from);
        while (place < end && left[place] < view.to) {
            const x = (left[place] - view.from) * scale;
            const w = (right[place] - left[place]) * scale;
            if (w >= THIN) {
                const from = Math.max(0, x);
                const box = { x: from, y, w: Math.max(0.6, Math.min(view.width, x + w) - from - 1), h };
                this.paintFrame(scene, view, node[place], box, !hits || hits[place + 1] > hits[place]);
                place++;
                continue;
            }
            const pixel = Math.floor(x * view.ratio);
            let next = place + 1;
            if (w * view.ratio < 1) next = leap(right, place, end, view.from + (pixel + 1) / fine);
            const covered = (right[next - 1] - left[place]) * fine;
            const found = !hits || hits[next] > hits[place];
            if (covered >= 0.15) this.paintThin(scene, node[place], row, pixel, covered, view.ratio, found);
            place = next;
        }
    }

    // The first frame of a pixel stands for all in it.
    private paintThin(scene: Scene, node: number, row: number, pixel: number, covered: number, ratio: number, found: boolean): void {
        const to = Math.max(pixel + 1, Math.round(pixel + covered - ratio));
        const color = found ? this.packedFill(scene, node) : this.dim;
        this.thin.set(row, pixel, to, color, covered >= 1 ? 1 : Math.max(0.4, covered * 0.85));
        if (found && scene.hits) this.marks.set(row, pixel, to, packed(this.inks.ink), 1);
    }

    // A chosen frame is seen, however thin.
    private ringThin(scene: Scene, view: Window, node: number): void {
        if (node < 0) return;
        const { layout } = scene;
        const place = layout.rank[node];
        const scale = view.width / (view.to - view.from);
        if ((layout.right[place] - layout.left[place]) * scale >= THIN) return;
        const x = (layout.left[place] - view.from) * scale;
        if (x < -1 || x > view.width) return;
        this.ink(this.inks.ink);
        this.ctx.fillRect(Math.min(x, view.width - 2), rowTop(scene.flip, view, layout.tree.depth[node]), 2, view.row - 1);
    }

    private paintFrame(scene: Scene, view: Window, node: number, box: Box, found: boolean): void {
        const { ctx, inks } = this;
        const { tree } = scene.layout;
        const { looks } = scene;
        const name = tree.name[node];
        const folded = name === tree.other;
        const form = looks.form(name);
        const above = node !== scene.focus && node < scene.focus && tree.end[node] > scene.focus;
        if (above) ctx.globalAlpha = 0.55;
        if (folded || (form.nameless && !scene.diff && box.w > 3)) this.outline(box, folded);
        else this.body(found ? this.fillOf(scene, node) : inks.dim, box);
        if (form.jit && !scene.diff && found && box.w > NO_LABEL) this.notch(box, above);
        if (scene.hits && found) {
            this.ink(inks.ink);
            ctx.fillRect(box.x, box.y + box.h - 2, box.w, 2);
        }
        if (node === scene.selected) this.ring(box, 2, inks.ink);
        else if (node === scene.hot) this.ring(box, 1, inks.ink);
        else if (name === this.chosen && !folded) this.ring(box, 1, inks.ink3); // the same function elsewhere
        if (box.w > NO_LABEL) this.label(scene, view, node, box, found);
        if (above) ctx.globalAlpha = 1;
    }

    private body(color: string, { x, y, w, h }: Box): void {
        this.ink(color);
        if (w < 5) return this.ctx.fillRect(x, y, w, h);
        this.ctx.beginPath();
        this.ctx.roundRect(x, y, w, h, 2);
        this.ctx.fill();
    }

    private outline({ x, y, w, h }: Box, dashed: boolean): void {
        const { ctx } = this;
        ctx.strokeStyle = this.inks.line2;
        ctx.lineWidth = 1;
        if (dashed) ctx.setLineDash([3, 2]);
        ctx.beginPath();
        ctx.roundRect(x + 0.5, y + 0.5, Math.max(0.5, w - 1), h - 1, Math.min(2, w / 3));
        ctx.stroke();
        if (dashed) ctx.setLineDash([]);
    }

    private notch({ x, y, w }: Box, above: boolean): void {
        const { ctx } = this;
        this.ink(this.inks.frameInk);
        ctx.globalAlpha = above ? 0.2 : 0.38;
        ctx.beginPath();
        ctx.moveTo(x + w - NOTCH, y);
        ctx.lineTo(x + w, y);
        ctx.lineTo(x + w, y + NOTCH);
        ctx.fill();
        ctx.globalAlpha = above ? 0.55 : 1;
    }

    private ring({ x, y, w, h }: Box, line: number, color: string): void {
        const { ctx } = this;
        ctx.strokeStyle = color;
        ctx.lineWidth = line;
        ctx.beginPath();
        ctx.roundRect(x + line / 2, y + line / 2, Math.max(1, w - line), h - line, 2);
        ctx.stroke();
        ctx.lineWidth = 1;
    }

    private label(scene: Scene, view: Window, node: number, box: Box, found: boolean): void {
        const { ctx, inks } = this;
        const { tree } = scene.layout;
        const name = tree.name[node];
        const family = scene.looks.family(name);
        const form = scene.looks.form(name);
        const folded = name === tree.other;
        const font = `${form.inlined ? "italic " : ""}${family === "own" ? "600 " : ""}${view.letters}px ${form.nameless ? inks.mono : inks.sans}`;
        const room = box.w - PADDING * 2;
        const middle = box.y + box.h / 2 + 0.5;
        const { text, width } = this.fitted(font, folded ? "folded" : tree.names[name], room, scene.looks, name);
        if (!text) return;
        this.ink(!found ? inks.dimInk : folded ? inks.ink3 : family === "kernel" && !scene.diff ? inks.kernelInk : inks.frameInk);
        this.type(font);
        ctx.fillText(text, box.x + PADDING, middle);
        const right = this.figure(scene, node);
        if (!right || width + 40 > room) return;
        const small = `${view.letters - 1}px ${inks.sans}`;
        const figureWidth = this.ruler(small).width(right);
        if (width + figureWidth + 14 > room) return;
        this.type(small);
        const before = ctx.globalAlpha;
        if (!scene.diff) ctx.globalAlpha = before * 0.85;
        ctx.fillText(right, box.x + box.w - PADDING - figureWidth - (form.jit && !scene.diff ? 3 : 0), middle);
        ctx.globalAlpha = before;
    }

    // What of a name says most, where not all of it fits: of several frames in one row the last ones, of a
    // path its end.
    private fitted(font: string, name: string, room: number, looks: Looks, id: number): { text: string; width: number } {
        const ruler = this.ruler(font);
        const whole = ruler.fit(name, room);
        if (whole.text === name) return whole;
        if (!name.includes(STEM_SIGN)) {
            const short = looks.short(id);
            return short === name ? whole : ruler.fit(short, room);
        }
        for (let at = name.indexOf(STEM_SIGN); at >= 0; at = name.indexOf(STEM_SIGN, at + 1)) {
            const rest = "…" + name.slice(at);
            const fits = ruler.fit(rest, room);
            if (fits.text === rest) return fits;
        }
        return ruler.fit(name.slice(name.lastIndexOf(STEM_SIGN) + STEM_SIGN.length), room);
    }

    // The number at the right of a frame: its share, or its change.
    private figure(scene: Scene, node: number): string {
        const { tree } = scene.layout;
        if (!scene.diff) return percent(tree.total[node] / (tree.total[0] || 1));
        if (this.standsStill(scene, node)) return "";
        const change = tree.total[node] - (tree.leftTotal?.[node] ?? 0);
        const text = scene.measure.short(change);
        return change > 0 ? "+" + text : change < 0 ? text : "";
    }

    fillOf(scene: Scene, node: number): string {
        if (!scene.diff) return scene.looks.fill(scene.layout.tree.name[node]);
        return this.inks.diff[this.step(scene, node) + 4];
    }

    private packedFill(scene: Scene, node: number): number {
        const { looks } = scene;
        if (scene.diff) return this.diffs[this.step(scene, node) + 4];
        if (this.colorsOf !== looks) {
            this.colors = new Uint32Array(looks.tree.names.length);
            this.colorsOf = looks;
        }
        const name = looks.tree.name[node];
        return this.colors[name] || (this.colors[name] = packed(name === looks.tree.other ? this.inks.line2 : looks.fill(name)));
    }

    private step(scene: Scene, node: number): number {
        const { tree } = scene.layout;
        if (this.stepsOf !== scene.diff || !this.steps) {
            this.steps = new Int8Array(tree.n).fill(100);
            this.stepsOf = scene.diff;
        }
        if (this.steps[node] === 100)
            this.steps[node] = this.standsStill(scene, node) ? 0 : diffStep(tree, node, scene.diff!.scale);
        return this.steps[node];
    }

    private standsStill(scene: Scene, node: number): boolean {
        return node === 0 || scene.looks.family(scene.layout.tree.name[node]) === "root" || !!scene.diff!.noise?.(node);
    }

    private ink(color: string): void {
        if (this.color !== color) this.ctx.fillStyle = this.color = color;
    }

    private type(font: string): void {
        if (this.font !== font) this.ctx.font = this.font = font;
    }

    private ruler(font: string): Ruler {
        let ruler = this.rulers.get(font);
        if (!ruler) this.rulers.set(font, (ruler = new Ruler(this.ctx, font)));
        return ruler;
    }
}

// The first rank after `place` that ends right of x, looked for in growing leaps: it is near.
function leap(right: Float64Array, place: number, end: number, x: number): number {
    let from = place + 1;
    let step = 1;
    while (from + step < end && right[from + step] <= x) {
        from += step;
        step *= 2;
    }
    let to = Math.min(end, from + step);
    while (from < to) {
        const middle = (from + to) >>> 1;
        if (right[middle] > x) to = middle;
        else from = middle + 1;
    }
    return from;
}

export const rowTop = (flip: boolean, view: Window, depth: number) =>
    (flip ? view.whole - (depth + 1) * view.row : depth * view.row) - view.top;

// Matches before each rank, so that a jump over many frames knows whether one of them matches.
export function countHits(layout: Layout, names: Uint8Array): Int32Array {
    const hits = new Int32Array(layout.n + 1);
    const { tree, node } = layout;
    for (let i = 0; i < layout.n; i++) hits[i + 1] = hits[i] + names[tree.name[node[i]]];
    return hits;
}
