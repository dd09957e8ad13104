// SPDX-License-Identifier: Apache-2.0
// The page that is measured: the flame graph alone, with the means to move it and to take times.
// It is a bundle of its own; nothing of this is part of what people load.
import { render } from "preact";
import { useState } from "preact/hooks";
import { Flame } from "../../web/src/flame/flame";
import { layoutOf } from "../../web/src/model/layout";
import { measureOf } from "../../web/src/model/measure";
import { find } from "../../web/src/model/search";
import { callersTree } from "../../web/src/model/invert";
import { prepare } from "../../web/src/model/transform";
import { treeOf, type Tree } from "../../web/src/model/tree";
import { startTheme } from "../../web/src/ui/theme";
import "../../web/src/style/tokens.css";
import "../../web/src/style/base.css";
import "../../web/src/style/kit.css";
import { invented } from "./invent";

const CPU = { id: "", name: "process_cpu", type: "cpu", unit: "nanoseconds", period_type: "cpu", period_unit: "nanoseconds", kind: "flow" } as const;
const measure = measureOf(CPU, 60);
const host = document.getElementById("app")!;
let text = "";
let tree: Tree;

const frame = () => new Promise<number>((resolve) => requestAnimationFrame(resolve));
const took = (work: () => unknown) => {
    const began = performance.now();
    work();
    return performance.now() - began;
};

function Alone() {
    const [selected, setSelected] = useState(-1);
    const [focus, setFocus] = useState(0);
    return (
        <div class="panel column" style={{ height: "700px", paddingTop: "12px" }}>
            <Flame label="Invented" tree={tree} measure={measure} samples={10000} selected={selected} onSelect={setSelected} focus={focus} onFocus={setFocus} />
        </div>
    );
}

async function untilDrawn(n: number): Promise<void> {
    while (document.querySelector("canvas")?.dataset.drawn !== String(n)) await frame();
}

// Moves once for each frame; times between frames, and in the work of each.
async function move(times: number, turn: (canvas: HTMLCanvasElement, i: number) => void): Promise<number[]> {
    const canvas = document.querySelector("canvas")!;
    const between: number[] = [];
    let before = await frame();
    for (let i = 0; i < times; i++) {
        turn(canvas, i);
        const now = await frame();
        between.push(now - before);
        before = now;
    }
    return between;
}

const wheel = (canvas: HTMLCanvasElement, how: WheelEventInit) => {
    const { left, top, width } = canvas.getBoundingClientRect();
    canvas.dispatchEvent(new WheelEvent("wheel", { clientX: left + width * 0.31, clientY: top + 20, bubbles: true, cancelable: true, ...how }));
};

const bench = {
    make(n: number) {
        text = JSON.stringify(invented(n));
        return text.length;
    },
    read() {
        let answer: ReturnType<typeof invented>;
        const parse = took(() => (answer = JSON.parse(text)));
        return { parse, tree: took(() => (tree = treeOf(answer))) };
    },
    model() {
        return {
            layout: took(() => layoutOf({ ...tree })), search: took(() => find(tree, /Cart.*1/)),
            prepare: took(() => prepare(tree, {})), hide: took(() => prepare(tree, { hide: [/Engine/], recursion: true })), invert: took(() => callersTree(tree)),
        };
    },
    // From handing over the tree to the picture.
    async draw() {
        render(null, host);
        tree = { ...tree }; // one that nothing is known of yet
        await frame();
        await frame();
        const began = performance.now();
        render(<Alone />, host);
        await untilDrawn(tree.n);
        return performance.now() - began;
    },
    zoom: (times: number) => move(times, (canvas, i) => wheel(canvas, { ctrlKey: true, deltaY: (i % times < times / 2 ? -1 : 1) * 100 })),
    pan: (times: number) => move(times, (canvas, i) => wheel(canvas, { deltaX: i % 20 < 10 ? 60 : -60 })),
    scroll: (times: number) => move(times, (_, i) => (document.querySelector(".flame-scroll")!.scrollTop = Math.abs((i % 40) - 20) * 20)),
};

export type Bench = typeof bench;
startTheme();
(window as unknown as { bench: Bench }).bench = bench;
