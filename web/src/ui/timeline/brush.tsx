// SPDX-License-Identifier: Apache-2.0
// Choosing a range on a timeline, with a pointer or with keys.
import { useRef } from "preact/hooks";
import type { Area } from "./marks";

export interface BrushProps {
    area: Area;
    chosen: [number, number] | null;
    stepMs: number;
    label: string;
    onMove: (range: [number, number] | null) => void;
    onDone: (range: [number, number]) => void;
    onPoint: (x: number) => void; // the pointer is here, in px of the plot; -10: it has left
}

const NEAR = 7; // px within which a handle is taken
const PAUSE = 600; // ms after the last key before the range is asked for

type Pair = [number, number];
const sorted = ([a, b]: Pair): Pair => (a < b ? [a, b] : [b, a]);

function byKey(event: KeyboardEvent, [from, until]: Pair, area: Area, step: number): Pair | null {
    const by = { ArrowLeft: -step, ArrowRight: step, PageUp: from - until, PageDown: until - from }[event.key];
    if (by === undefined) return null;
    if (event.shiftKey) return [from, Math.max(from + step, Math.min(area.until, until + by))];
    const moved = Math.max(area.from - from, Math.min(area.until - until, by));
    return [from + moved, until + moved];
}

export function Brush({ area, chosen, stepMs, label, onMove, onDone, onPoint }: BrushProps) {
    const drag = useRef<{ fixed: number; at: number; x: number; moved: boolean } | null>(null);
    const timer = useRef(0);
    const pixel = (ms: number) => ((ms - area.from) / (area.until - area.from)) * area.width;
    const whole = () => chosen ?? ([area.from, area.until] as Pair);

    const offset = (event: PointerEvent) => event.clientX - (event.currentTarget as HTMLElement).getBoundingClientRect().left;
    const timeAt = (x: number) => area.from + (Math.min(area.width, Math.max(0, x)) / area.width) * (area.until - area.from);
    const begin = (event: PointerEvent) => {
        if (event.button !== 0) return;
        const x = offset(event);
        const [a, b] = whole();
        const fixed = chosen && Math.abs(x - pixel(a)) < NEAR ? b : chosen && Math.abs(x - pixel(b)) < NEAR ? a : timeAt(x);
        drag.current = { fixed, at: timeAt(x), x, moved: false };
        (event.currentTarget as HTMLElement).setPointerCapture(event.pointerId);
    };
    const move = (event: PointerEvent) => {
        const x = offset(event);
        onPoint(x);
        if (!drag.current) return;
        drag.current.moved ||= Math.abs(x - drag.current.x) > 3;
        drag.current.at = timeAt(x);
        if (drag.current.moved) onMove(sorted([drag.current.fixed, drag.current.at]));
    };
    const finish = () => {
        const done = drag.current;
        drag.current = null;
        if (done?.moved && done.fixed !== done.at) onDone(sorted([done.fixed, done.at]));
    };
    const cancel = () => {
        drag.current = null;
        onMove(null);
    };
    const onKey = (event: KeyboardEvent) => {
        if (event.key === "Escape" && drag.current) return cancel();
        const to = byKey(event, whole(), area, Math.max(stepMs, (area.until - area.from) / 100));
        if (!to) return;
        event.preventDefault();
        onMove(to);
        clearTimeout(timer.current);
        timer.current = window.setTimeout(() => onDone(to), PAUSE);
    };
    const inside = (x: number) => x >= -1 && x <= area.width + 1;
    return (
        <div
            class="brush"
            tabIndex={0}
            role="group"
            aria-roledescription="time range"
            aria-label={`${label}. Arrows move the chosen range, Shift and arrows resize it.`}
            title="Drag to choose a range"
            style={{ left: `${area.left}px`, top: `${area.top}px`, width: `${area.width}px`, height: `${area.height}px` }}
            onPointerDown={begin}
            onPointerMove={move}
            onPointerUp={finish}
            onPointerCancel={cancel}
            onPointerLeave={() => onPoint(-10)}
            onKeyDown={onKey}
        >
            {chosen && chosen.map((ms, i) => inside(pixel(ms)) && <i key={i} style={{ left: `${pixel(ms)}px` }} />)}
        </div>
    );
}
