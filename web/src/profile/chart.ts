// SPDX-License-Identifier: Apache-2.0
// Paints a flame chart: what is in sight of each lane, row by row.  Blocks thinner than a pixel are painted
// as one, so that twenty thousand samples cost no more than the width of the picture.
import type { FlameInks } from "../flame/inks";
import { firstAfter, type Lane, type Lanes } from "../model/lanes";
import type { Looks } from "../model/palette";

export const ROW = 17;
export const HEAD = 24; // of a lane: its name
export const RULER = 22;

export interface ChartView {
    from: number; // ns at the left edge
    to: number;
    top: number; // px scrolled
    width: number;
    height: number;
}

export interface ChartScene {
    lanes: Lanes;
    looks: Looks;
    names: number[]; // of each node: number of its name
    inks: FlameInks;
    chosen: number; // number of a name, or -1
    hits: Uint8Array | null; // by number of a name
}

export const heightOf = (lane: Lane) => HEAD + lane.rows.length * ROW + 8;
export const wholeHeight = ({ lanes }: Lanes) => RULER + lanes.reduce((sum, lane) => sum + heightOf(lane), 0);

const UNITS: [number, string][] = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"]];

// Round steps of a ruler with a mark every hundred pixels or so.
export function ticks(from: number, to: number, width: number): { at: number; text: string }[] {
    const raw = ((to - from) / width) * 110;
    const ten = 10 ** Math.floor(Math.log10(raw));
    const step = ([1, 2, 5, 10].find((size) => size * ten >= raw) ?? 10) * ten;
    const [size, unit] = UNITS.find(([size]) => to >= size) ?? UNITS[2];
    const places = Math.max(0, Math.ceil(Math.log10(size / step)));
    const marks: { at: number; text: string }[] = [];
    const last = to - ((to - from) / width) * 40; // a text that would be cut off is left out
    for (let at = Math.ceil(from / step) * step; at < last; at += step) marks.push({ at, text: `${(at / size).toFixed(places)}\u2009${unit}` });
    return marks;
}

export class ChartPainter {
    constructor(
        private ctx: CanvasRenderingContext2D,
        private scene: ChartScene,
        private view: ChartView,
    ) {}

    private x(ns: number): number {
        const { from, to, width } = this.view;
        return ((ns - from) / (to - from)) * width;
    }

    paint(): void {
        const { ctx, view, scene } = this;
        ctx.clearRect(0, 0, view.width, view.height);
        ctx.textBaseline = "middle";
        let top = RULER - view.top;
        for (const lane of scene.lanes.lanes) {
            const high = heightOf(lane);
            if (top + high > 0 && top < view.height) this.lane(lane, top);
            top += high;
        }
        this.ruler();
    }

    private ruler(): void {
        const { ctx, view } = this;
        const { inks, lanes } = this.scene;
        ctx.fillStyle = inks.panel;
        ctx.fillRect(0, 0, view.width, RULER - 2);
        ctx.fillStyle = inks.ink3;
        ctx.font = `11px ${inks.sans}`;
        ctx.textAlign = "left";
        for (const { at, text } of ticks(view.from - lanes.from, view.to - lanes.from, view.width)) ctx.fillText(text, this.x(at + lanes.from), 9);
    }

    private lane(lane: Lane, top: number): void {
        const { ctx, view } = this;
        const { inks } = this.scene;
        ctx.textAlign = "left";
        ctx.fillStyle = inks.ink;
        ctx.font = `600 12px ${inks.sans}`;
        ctx.fillText(lane.name, 0, top + HEAD / 2);
        const wide = ctx.measureText(lane.name).width;
        ctx.font = `12px ${inks.sans}`;
        ctx.fillStyle = inks.ink3;
        ctx.fillText(`${lane.samples} samples`, wide + 10, top + HEAD / 2);
        lane.rows.forEach((row, depth) => {
            const y = top + HEAD + depth * ROW;
            if (y > view.height || y + ROW < RULER) return;
            for (let i = firstAfter(row, view.from), until = -1; i < row.from.length && row.from[i] < view.to; i++) {
                const left = Math.max(0, this.x(row.from[i]));
                const right = Math.min(view.width, this.x(row.to[i]));
                if (right < until) continue; // its pixel is painted already
                until = this.block(this.scene.names[row.node[i]], left, Math.max(right, left + 1), y);
            }
        });
    }

    private block(name: number, left: number, right: number, y: number): number {
        const { ctx } = this;
        const { looks, inks, chosen, hits } = this.scene;
        const dimmed = hits && !hits[name];
        const wide = right - left;
        ctx.fillStyle = dimmed ? inks.dim : looks.fill(name);
        ctx.fillRect(left, y, wide > 3 ? wide - 1 : wide, ROW - 1);
        if (name === chosen && wide > 2) {
            ctx.strokeStyle = inks.ink;
            ctx.lineWidth = 1.5;
            ctx.strokeRect(left + 0.75, y + 0.75, wide - 2.5, ROW - 2.5);
        }
        if (wide > 28) this.label(name, left, wide, y, !!dimmed);
        return Math.floor(left + 1);
    }

    private label(name: number, left: number, wide: number, y: number, dimmed: boolean): void {
        const { ctx } = this;
        const { looks, inks } = this.scene;
        const family = looks.family(name);
        ctx.font = `${family === "own" ? "600 " : ""}11px ${inks.sans}`;
        ctx.fillStyle = dimmed ? inks.dimInk : family === "kernel" ? inks.kernelInk : inks.frameInk;
        const letters = Math.floor((wide - 8) / 6);
        const text = looks.tree.names[name];
        ctx.fillText(text.length > letters ? text.slice(0, letters - 1) + "…" : text, left + 4, y + ROW / 2);
    }
}

// The block at a point: its node and times.
export function blockAt(lanes: Lanes, view: ChartView, x: number, y: number): { node: number; from: number; to: number } | null {
    const time = view.from + (x / view.width) * (view.to - view.from);
    let top = RULER - view.top;
    for (const lane of lanes.lanes) {
        const depth = Math.floor((y - top - HEAD) / ROW);
        const row = depth >= 0 ? lane.rows[depth] : undefined;
        if (row && y < top + heightOf(lane)) {
            const i = firstAfter(row, time);
            return i < row.from.length && row.from[i] <= time ? { node: row.node[i], from: row.from[i], to: row.to[i] } : null;
        }
        top += heightOf(lane);
    }
    return null;
}
