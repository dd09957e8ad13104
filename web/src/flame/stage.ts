// SPDX-License-Identifier: Apache-2.0
// The stage of a flame graph: which part of it is seen, and how pointers, wheels and fingers move it.
// It paints at most once for each frame of the screen.  Down and up is the scroller's own scrolling;
// the canvas sticks to its window and paints the rows that show through.
import { nodeUnder } from "../model/layout";
import type { FlameInks } from "./inks";
import { Painter, type Scene, type Window } from "./painter";

const EASE_MS = 160;
const CLICK_PIXELS = 4;
const NARROWEST = 1e-10;
const ROW_MIN = 17;
const ROW_MAX = 22;
const ROW_TOUCH = 26;

export interface StageEvents {
    hover(node: number, at: { x: number; y: number }): void;
    press(node: number): void;
    menu(node: number, at: { x: number; y: number }): void;
    seen(from: number, to: number): void; // that part of the width, 0 ... 1
}

const still = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
const forFingers = () => innerWidth <= 640 || matchMedia("(pointer: coarse)").matches;

export class Stage {
    from = 0;
    to = 1;
    private painter: Painter | null = null;
    private scene: Scene | null = null;
    private asked = 0;
    private ease: { from: number; to: number; toFrom: number; toTo: number; began: number } | null = null;
    private pointers = new Map<number, { x: number; y: number }>();
    private dragged = false;
    private undo: (() => void)[] = [];

    constructor(
        private canvas: HTMLCanvasElement,
        private space: HTMLElement, // as high as all rows
        private scroller: HTMLElement,
        private events: () => StageEvents,
    ) {
        const sizes = new ResizeObserver(() => this.redraw());
        sizes.observe(scroller);
        this.undo.push(() => sizes.disconnect());
        this.on(window, "scroll", () => this.redraw(), { capture: true, passive: true });
        this.on(window, "resize", () => this.redraw());
        this.on(canvas, "wheel", (event) => this.wheel(event as WheelEvent), { passive: false });
        this.on(canvas, "pointerdown", (event) => this.down(event as PointerEvent));
        this.on(canvas, "pointermove", (event) => this.move(event as PointerEvent));
        this.on(canvas, "pointerup", (event) => this.up(event as PointerEvent));
        this.on(canvas, "pointercancel", (event) => this.pointers.delete((event as PointerEvent).pointerId));
        this.on(canvas, "pointerleave", () => this.events().hover(-1, { x: 0, y: 0 }));
        this.on(canvas, "contextmenu", (event) => this.contextMenu(event as MouseEvent));
    }

    private on(target: EventTarget, type: string, run: (event: Event) => void, options?: AddEventListenerOptions): void {
        target.addEventListener(type, run, options);
        this.undo.push(() => target.removeEventListener(type, run, options));
    }

    close(): void {
        cancelAnimationFrame(this.asked);
        this.undo.forEach((undo) => undo());
    }

    setInks(inks: FlameInks): void {
        this.painter = new Painter(this.canvas.getContext("2d")!, inks);
        this.redraw();
    }

    setScene(scene: Scene): void {
        this.scene = scene;
        this.redraw();
    }

    // ---- what is seen ----

    private extent(node: number): [number, number] {
        const { layout } = this.scene!;
        const place = layout.rank[node] ?? 0;
        return [layout.left[place] ?? 0, layout.right[place] ?? 1];
    }

    // Shows a node over the whole width, gliding there unless `at once` or nobody wants motion.
    show(node: number, atOnce = false): void {
        const [from, to] = this.extent(node);
        if (to - from < NARROWEST) return;
        if (atOnce || still()) return this.look(from, to);
        this.ease = { from: this.from, to: this.to, toFrom: from, toTo: to, began: performance.now() };
        this.redraw();
    }

    // Is exactly this node shown, or is the reader elsewhere?
    shows(node: number): boolean {
        const [from, to] = this.extent(node);
        const near = (to - from) * 1e-6;
        return Math.abs(this.from - from) <= near && Math.abs(this.to - to) <= near;
    }

    look(from: number, to: number): void {
        const span = Math.min(1, Math.max(NARROWEST, to - from));
        this.ease = null;
        this.from = Math.max(0, Math.min(1 - span, from));
        this.to = this.from + span;
        this.redraw();
    }

    pan(share: number): void {
        const by = share * (this.to - this.from);
        this.look(this.from + by, this.to + by);
    }

    // `at`: 0 ... 1 of the window, what stays where it is.
    zoom(factor: number, at = 0.5): void {
        const span = Math.min(1, Math.max(NARROWEST, (this.to - this.from) / factor));
        const still = this.from + (this.to - this.from) * at;
        this.look(still - span * at, still - span * at + span);
    }

    // Moves so that a node can be seen, as little as possible.
    reveal(node: number): void {
        if (!this.scene || node < 0) return;
        const [from, to] = this.extent(node);
        if (to <= this.from || from >= this.to) {
            const span = this.to - this.from;
            const middle = (from + to) / 2;
            this.look(middle - span / 2, middle + span / 2);
        }
        const view = this.window();
        const depth = this.scene.layout.tree.depth[node];
        const top = this.scene.flip ? view.whole - (depth + 1) * view.row : depth * view.row;
        const room = this.scroller.clientHeight;
        if (this.scroller.scrollHeight <= room) return;
        if (top < this.scroller.scrollTop) this.scroller.scrollTop = Math.max(0, top - view.row * 2);
        else if (top + view.row > this.scroller.scrollTop + room) this.scroller.scrollTop = top + view.row * 3 - room;
    }

    scroll(rows: number): void {
        this.scroller.scrollTop += rows * this.window().row;
    }

    toBottom(): void {
        this.window();
        this.scroller.scrollTop = this.scroller.scrollHeight;
    }

    // The middle of a node on the screen, for a menu that is opened by a key.
    pointOf(node: number): { x: number; y: number } {
        const box = this.canvas.getBoundingClientRect();
        const [from, to] = this.extent(node);
        const view = this.window();
        const share = ((Math.max(from, this.from) + Math.min(to, this.to)) / 2 - this.from) / (this.to - this.from);
        const depth = this.scene!.layout.tree.depth[node];
        const top = this.scene!.flip ? view.whole - (depth + 1) * view.row : depth * view.row;
        return { x: box.left + share * box.width, y: box.top + top - view.top + view.row };
    }

    private window(): Window {
        const { layout, focus } = this.scene!;
        const rows = (layout.deepest[focus] ?? 0) + 1;
        const fingers = forFingers();
        const box = this.scroller.getBoundingClientRect();
        const fits = Math.floor(box.height / layout.tree.height);
        const row = fingers ? ROW_TOUCH : Math.max(ROW_MIN, Math.min(ROW_MAX, fits));
        const open = getComputedStyle(this.scroller).overflowY === "visible";
        const height = open ? Math.min(rows * row, innerHeight) : this.scroller.clientHeight;
        const whole = open ? rows * row : Math.max(rows * row, height);
        const needed = `${rows * row}px`;
        if (this.space.style.height !== needed) this.space.style.height = needed;
        const top = Math.max(0, this.canvas.getBoundingClientRect().top - this.space.getBoundingClientRect().top);
        return { from: this.from, to: this.to, width: this.scroller.clientWidth, height, row, top, whole, letters: fingers ? 13 : 12, ratio: window.devicePixelRatio || 1 };
    }

    // ---- painting ----

    redraw(): void {
        if (!this.asked) this.asked = requestAnimationFrame((now) => this.frame(now));
    }

    private frame(now: number): void {
        this.asked = 0;
        if (!this.scene || !this.painter) return;
        if (this.ease) this.glide(now);
        this.paintNow();
        if (this.ease) this.redraw();
        this.events().seen(this.from, this.to);
    }

    private glide(now: number): void {
        const { from, to, toFrom, toTo, began } = this.ease!;
        const passed = Math.min(1, Math.max(0, (now - began) / EASE_MS));
        const eased = 1 - (1 - passed) ** 3;
        this.from = from + (toFrom - from) * eased;
        this.to = to + (toTo - to) * eased;
        if (passed >= 1) this.ease = null;
    }

    paintNow(): void {
        const { canvas } = this;
        const view = this.window();
        const { ratio } = view;
        const width = Math.round(view.width * ratio);
        const height = Math.round(view.height * ratio);
        if (!width || !height) return;
        if (canvas.width !== width || canvas.height !== height) {
            canvas.width = width;
            canvas.height = height;
            canvas.style.width = `${view.width}px`;
            canvas.style.height = `${view.height}px`;
        }
        canvas.getContext("2d")!.setTransform(ratio, 0, 0, ratio, 0, 0);
        this.painter!.paint(this.scene!, view);
        canvas.dataset.drawn = String(this.scene!.layout.n);
        canvas.dataset.seen = `${this.from.toFixed(4)} ${this.to.toFixed(4)}`;
    }

    // ---- pointers ----

    nodeAt(x: number, y: number): number {
        if (!this.scene) return -1;
        const box = this.canvas.getBoundingClientRect();
        const view = this.window();
        const down = y - box.top + view.top;
        const depth = Math.floor((this.scene.flip ? view.whole - down : down) / view.row);
        return nodeUnder(this.scene.layout, depth, this.from + ((x - box.left) / view.width) * (this.to - this.from));
    }

    private wheel(event: WheelEvent): void {
        const box = this.canvas.getBoundingClientRect();
        const unit = event.deltaMode === 1 ? 16 : event.deltaMode === 2 ? 400 : 1;
        if (event.ctrlKey || event.metaKey) {
            event.preventDefault();
            const speed = Math.abs(event.deltaY) < 40 ? 0.01 : 0.002; // a pinch on a pad comes in small steps
            this.zoom(Math.exp(-event.deltaY * unit * speed), (event.clientX - box.left) / box.width);
        } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
            event.preventDefault();
            this.pan(((event.deltaX || event.deltaY) * unit) / box.width);
        }
    }

    private down(event: PointerEvent): void {
        if (event.button !== 0) return;
        this.pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
        if (this.pointers.size === 1) this.dragged = false;
        this.canvas.setPointerCapture(event.pointerId);
    }

    private move(event: PointerEvent): void {
        const before = this.pointers.get(event.pointerId);
        if (!before) {
            if (event.pointerType === "mouse") this.hover(event);
            return;
        }
        const by = { x: event.clientX - before.x, y: event.clientY - before.y };
        if (!this.dragged && Math.hypot(by.x, by.y) < CLICK_PIXELS) return;
        if (!this.dragged) this.events().hover(-1, { x: 0, y: 0 });
        this.dragged = true;
        if (this.pointers.size === 2) this.pinch(event, before);
        else this.drag(event, by);
        this.pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
    }

    private drag(event: PointerEvent, by: { x: number; y: number }): void {
        this.pan(-by.x / this.canvas.clientWidth);
        if (event.pointerType === "mouse") this.scroller.scrollTop -= by.y; // fingers scroll by themselves
    }

    private pinch(event: PointerEvent, before: { x: number; y: number }): void {
        const [, other] = [...this.pointers].find(([id]) => id !== event.pointerId)!;
        const gap = (x: number) => Math.max(20, Math.abs(x - other.x));
        const box = this.canvas.getBoundingClientRect();
        this.zoom(gap(event.clientX) / gap(before.x), ((event.clientX + other.x) / 2 - box.left) / box.width);
    }

    private up(event: PointerEvent): void {
        if (!this.pointers.delete(event.pointerId) || this.dragged || this.pointers.size) return;
        this.canvas.focus({ preventScroll: true });
        this.events().press(this.nodeAt(event.clientX, event.clientY));
    }

    private hover(event: PointerEvent): void {
        const at = { x: event.clientX, y: event.clientY };
        this.events().hover(this.nodeAt(at.x, at.y), at);
    }

    private contextMenu(event: MouseEvent): void {
        const node = this.nodeAt(event.clientX, event.clientY);
        if (node < 0) return;
        event.preventDefault();
        this.events().menu(node, { x: event.clientX, y: event.clientY });
    }
}
