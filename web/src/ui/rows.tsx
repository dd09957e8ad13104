// SPDX-License-Identifier: Apache-2.0
// Long lists of which only the rows in sight are elements.  All rows of a list have the same height.
import { cloneElement, type ComponentChildren, type JSX, type VNode } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

const MORE = 8; // rows drawn above and below those in sight, so that Tab finds the next one
const SCROLLED_MS = 120; // without a scroll: the rows in sight stay for a while

const scrolls = new Map<string, number>(); // where each list was, by address: going back finds it there

// The part of a list that is in sight.  `order`: another one begins at the top again.
export function useVisible<E extends HTMLElement = HTMLDivElement>(n: number, guess: number, order = "") {
    const box = useRef<E>(null);
    const [seen, setSeen] = useState({ top: 0, high: 600 });
    const [measured, setHeight] = useState(0);
    const height = measured || guess;
    const measure = () => {
        const at = box.current;
        if (!at) return;
        setSeen((old) => (old.top === at.scrollTop && old.high === at.clientHeight ? old : { top: at.scrollTop, high: at.clientHeight }));
        const row = at.querySelector<HTMLElement>("[data-row]");
        if (row && row.offsetHeight > 1) setHeight(row.getBoundingClientRect().height);
    };
    useEffect(() => {
        const watch = new ResizeObserver(measure);
        watch.observe(box.current!);
        return () => watch.disconnect();
    }, []);
    useLayoutEffect(measure);
    const last = useRef(order);
    useLayoutEffect(() => {
        if (last.current !== order) box.current!.scrollTop = 0;
        last.current = order;
    }, [order]);
    const from = Math.max(0, Math.min(n - 1, Math.floor(seen.top / height)));
    const until = Math.min(n, Math.ceil((seen.top + seen.high) / height));
    const reveal = (i: number, head: number) => {
        const at = box.current!;
        if (i * height < at.scrollTop) at.scrollTop = i * height;
        else if ((i + 1) * height + head > at.scrollTop + at.clientHeight) at.scrollTop = (i + 1) * height + head - at.clientHeight;
    };
    return { box, height, from, until, first: Math.max(0, from - MORE), last: Math.min(n, until + MORE), onScroll: measure, reveal };
}

const PAGE = 25;

// The rows in sight and those around them, in pages that stay the same while the list is scrolled: what a view asks
// for row by row it asks for by these.
export function usePages(rows: string[], [from, until]: [number, number], onSeen: (pages: string[][]) => void): void {
    const first = Math.floor(from / PAGE);
    const pages = Array.from({ length: Math.ceil(until / PAGE) - first }, (_, i) => rows.slice((first + i) * PAGE, (first + i + 1) * PAGE));
    useEffect(() => onSeen(pages), [JSON.stringify(pages)]);
}

export interface RowTableProps {
    label: string;
    class?: string;
    n: number;
    height: number; // of a row, until one is measured
    cols: VNode; // the <colgroup>
    head: VNode; // the <tr>
    row: (i: number) => VNode<JSX.HTMLAttributes<HTMLTableRowElement>>; // a <tr>
    order?: string; // the list begins at the top when this changes
    at?: number; // the chosen row; it is scrolled into sight when it changes
    onKey?: (event: KeyboardEvent) => void; // in place of moving the focus from row to row
    onSeen?: (from: number, until: number) => void; // called when scrolling has ended
    children?: ComponentChildren; // below the table, in the same scroller
}

const HEAD = 32;
const rowOf = (element: Element | null) => Number(element?.closest("[data-row]")?.getAttribute("data-row") ?? NaN);

// Arrows, Page Up and Down, Home and End move the focus from row to row: to the first link or button of each.
function useWalk(n: number, visible: ReturnType<typeof useVisible>) {
    const { box, reveal } = visible;
    const at = useRef(-1); // the row that had the focus last; it may be out of sight
    const wanted = useRef(-1);
    const go = () => {
        const row = box.current!.querySelector(`[data-row="${wanted.current}"]`); // else it is drawn after the scroll
        if (!row) return;
        wanted.current = -1;
        row.querySelector<HTMLElement>("a, button")?.focus({ preventScroll: true });
    };
    useEffect(go);
    const onFocus = () => {
        const here = rowOf(document.activeElement);
        if (!Number.isNaN(here)) at.current = here;
    };
    const onKey = (event: KeyboardEvent) => {
        const to = { ArrowDown: at.current + 1, ArrowUp: at.current - 1, PageDown: at.current + 10, PageUp: at.current - 10, Home: 0, End: n - 1 }[event.key];
        if (to === undefined || !n || event.ctrlKey || event.metaKey || event.altKey) return;
        event.preventDefault();
        at.current = wanted.current = Math.max(0, Math.min(n - 1, to));
        box.current!.focus({ preventScroll: true }); // the row with the focus may leave the document
        reveal(wanted.current, HEAD);
        go();
    };
    return { onFocus, onKey };
}

// A table in a scroller of its own.
export function RowTable(props: RowTableProps) {
    const { n, at = -1, onSeen } = props;
    const visible = useVisible(n, props.height, props.order);
    const { box, first, last, from, until, height } = visible;
    const walk = useWalk(n, visible);
    const place = `${location.pathname}${location.search} ${props.label}`;
    useLayoutEffect(() => {
        box.current!.scrollTop = scrolls.get(place) ?? 0;
    }, []);
    useEffect(() => {
        if (!onSeen) return;
        const timer = setTimeout(() => onSeen(from, until), SCROLLED_MS);
        return () => clearTimeout(timer);
    }, [from, until, n, props.order]);
    const before = useRef(at); // what the address chose need not hide the top of the table
    useEffect(() => {
        if (at >= 0 && before.current !== at) visible.reveal(at, HEAD);
        before.current = at;
    }, [at]);
    const space = (rows: number) => rows > 0 && <tr aria-hidden="true" class="space"><td style={{ height: `${rows * height}px` }} /></tr>;
    return (
        <div
            class={`rows ${props.class ?? ""}`}
            ref={box}
            tabIndex={0}
            role="group"
            aria-label={props.label}
            onScroll={() => {
                scrolls.set(place, box.current!.scrollTop);
                visible.onScroll();
            }}
            onFocusIn={walk.onFocus}
            onKeyDown={props.onKey ?? walk.onKey}
        >
            <table class="table" aria-rowcount={n + 1}>
                {props.cols}
                <thead>{cloneElement(props.head, { "aria-rowindex": 1 })}</thead>
                <tbody onClick={props.onKey && (() => box.current!.focus({ preventScroll: true }))}>
                    {space(first)}
                    {Array.from({ length: Math.max(0, last - first) }, (_, k) => {
                        const i = first + k;
                        return cloneElement(props.row(i), { key: i, "data-row": i, "aria-rowindex": i + 2 } as object);
                    })}
                    {space(n - last)}
                </tbody>
            </table>
            {props.children}
        </div>
    );
}
