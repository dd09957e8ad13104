// SPDX-License-Identifier: Apache-2.0
// A flame graph as a picture to keep: all rows, twice as fine as a screen, with a line that says what it is.
import { layoutOf } from "../model/layout";
import { diffScale, Looks } from "../model/palette";
import { find } from "../model/search";
import type { FlameProps } from "./flame";
import { readInks } from "./inks";
import { countHits, Painter, type Scene } from "./painter";

const SCALE = 2;
const WIDTH = 1400;
const ROW = 20;
const MARGIN = 16;
const CAPTION = 32;
const HIGHEST = 16000; // pixels: browsers refuse larger canvases

export type PngProps = Pick<FlameProps, "tree" | "measure" | "focus" | "find" | "flip" | "colorBy" | "ownModules" | "noise">;

function sceneOf(props: PngProps): Scene {
    const { tree, measure, noise } = props;
    const by = props.colorBy ?? (tree.leftTotal ? "diff" : "module");
    const layout = layoutOf(tree);
    const found = props.find ? find(tree, props.find) : null;
    return {
        layout, measure, focus: props.focus, selected: -1, hot: -1, flip: !!props.flip,
        looks: new Looks(tree, new Set(props.ownModules), readInks(), by),
        diff: by === "diff" ? { scale: diffScale(tree, measure.unit === "cores" ? measure.rate : null), noise } : null,
        hits: found && countHits(layout, found.names),
    };
}

export function flamePng(props: PngProps, caption: string): Promise<Blob> {
    const scene = sceneOf(props);
    const inks = readInks();
    const rows = Math.min((scene.layout.deepest[props.focus] ?? 0) + 1, Math.floor(HIGHEST / SCALE / ROW) - 4);
    const inside = { width: WIDTH - 2 * MARGIN, height: rows * ROW };
    const canvas = document.createElement("canvas");
    canvas.width = WIDTH * SCALE;
    canvas.height = (inside.height + CAPTION + MARGIN) * SCALE;
    const ctx = canvas.getContext("2d")!;
    const place = scene.layout.rank[props.focus] ?? 0;
    ctx.scale(SCALE, SCALE);
    ctx.translate(MARGIN, CAPTION);
    new Painter(ctx, inks).paint(scene, {
        ...inside, from: scene.layout.left[place], to: scene.layout.right[place], row: ROW, top: 0, whole: inside.height, letters: 12, ratio: SCALE,
    });
    ctx.translate(-MARGIN, -CAPTION);
    ctx.fillStyle = inks.ink;
    ctx.font = `600 13px ${inks.sans}`;
    ctx.textBaseline = "middle";
    ctx.fillText(caption, MARGIN, CAPTION / 2, inside.width);
    ctx.globalCompositeOperation = "destination-over"; // the ground last: painting clears what is there
    ctx.fillStyle = inks.panel;
    ctx.fillRect(0, 0, WIDTH, inside.height + CAPTION + MARGIN);
    return new Promise((resolve, reject) =>
        canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("The browser made no picture of it."))), "image/png"),
    );
}
