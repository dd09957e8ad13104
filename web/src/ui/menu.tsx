// SPDX-License-Identifier: Apache-2.0
// Menus: a button that opens one, and one at a point (a context menu).  Arrows walk, Escape closes,
// so does a click or a Tab elsewhere; the focus goes back to where it was.
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { Icon } from "./icons";
import { Link } from "./kit";

export interface MenuItem {
    label: ComponentChildren;
    aside?: ComponentChildren; // on the right: a key, a number
    onChoose?: () => void;
    href?: string;
    external?: boolean; // a file to load, not a view
    chosen?: boolean;
    disabled?: boolean;
}
export type MenuEntry = MenuItem | "line" | { caption: string };

export interface Point {
    x: number;
    y: number;
}

function walk(event: KeyboardEvent, box: HTMLElement, close: () => void): void {
    const items = [...box.querySelectorAll<HTMLElement>('[role="menuitem"]:not(:disabled)')];
    const at = items.indexOf(document.activeElement as HTMLElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: items.length - 1 }[event.key];
    event.stopPropagation();
    if (event.key === "Escape") close();
    if (to === undefined) return;
    event.preventDefault();
    items[(to + items.length) % items.length]?.focus();
}

// `at`: the corner; it moves so that all of it is seen.
export function Menu(props: { entries?: MenuEntry[]; at: Point; onClose: () => void; children?: ComponentChildren; label: string; class?: string; opener?: HTMLElement | null }) {
    const box = useRef<HTMLDivElement>(null);
    useLayoutEffect(() => {
        const menu = box.current!;
        const { width, height } = menu.getBoundingClientRect();
        menu.style.left = `${Math.max(8, Math.min(props.at.x, innerWidth - width - 8))}px`;
        menu.style.top = `${Math.max(8, Math.min(props.at.y, innerHeight - height - 8))}px`;
        const before = document.activeElement as HTMLElement | null;
        (menu.querySelector<HTMLElement>("[autofocus], input, [role=menuitem]") ?? menu).focus();
        return () => {
            const within = menu.contains(document.activeElement) || document.activeElement === document.body;
            if (within && before?.isConnected) before.focus({ preventScroll: true });
        };
    }, []);
    useEffect(() => {
        const outside = (event: Event) => !isOurs(event.target) && props.onClose();
        addEventListener("pointerdown", outside, true);
        addEventListener("resize", props.onClose);
        return () => {
            removeEventListener("pointerdown", outside, true);
            removeEventListener("resize", props.onClose);
        };
    }, []);
    const isOurs = (at: EventTarget | null) => at instanceof Node && (box.current?.contains(at) || props.opener?.contains(at));
    const choose = (item: MenuItem) => () => {
        props.onClose();
        item.onChoose?.();
    };
    return (
        <div
            ref={box}
            class={`floating menu ${props.class ?? ""}`}
            role={props.entries ? "menu" : "dialog"}
            aria-label={props.label}
            tabIndex={-1}
            onKeyDown={(event) => walk(event, box.current!, props.onClose)}
            onFocusOut={(event) => event.relatedTarget && !isOurs(event.relatedTarget) && props.onClose()}
        >
            {props.children}
            {props.entries?.map((entry, i) => {
                if (entry === "line") return <hr key={i} />;
                if ("caption" in entry) return <div key={i} class="caption">{entry.caption}</div>;
                const inside = [
                    <span class="grow ellipsis">{entry.label}</span>,
                    entry.chosen ? <span aria-label="chosen">✓</span> : null,
                    entry.aside ? <span class="muted small">{entry.aside}</span> : null,
                ];
                if (entry.href && entry.external)
                    return <a key={i} role="menuitem" href={entry.href} onClick={choose(entry)}>{inside}</a>;
                if (entry.href)
                    return <Link key={i} role="menuitem" href={entry.href} onClick={choose(entry)}>{inside}</Link>;
                return (
                    <button key={i} type="button" role="menuitem" disabled={entry.disabled} onClick={choose(entry)}>
                        {inside}
                    </button>
                );
            })}
        </div>
    );
}

// A button with a menu below it; `children` of the menu may be anything.
export function MenuButton(props: {
    label: string;
    text: ComponentChildren;
    entries?: MenuEntry[] | (() => MenuEntry[]);
    content?: (close: () => void) => ComponentChildren;
    class?: string;
    menuClass?: string;
    plain?: boolean; // without the arrow
    alignRight?: boolean;
}) {
    const [at, setAt] = useState<Point | null>(null);
    const button = useRef<HTMLButtonElement>(null);
    const close = () => setAt(null);
    const toggle = () => {
        if (at) return close();
        const box = button.current!.getBoundingClientRect();
        setAt({ x: props.alignRight ? box.right - 200 : box.left, y: box.bottom + 4 });
    };
    const name = typeof props.text === "string" && !props.label.includes(props.text) ? `${props.label}: ${props.text}` : props.label;
    const entries = typeof props.entries === "function" ? (at ? props.entries() : []) : props.entries;
    return (
        <>
            <button
                ref={button}
                type="button"
                class={`button ${props.class ?? ""}`}
                aria-haspopup={props.content ? "dialog" : "menu"}
                aria-expanded={at !== null}
                aria-label={name}
                title={props.label}
                onClick={toggle}
            >
                {props.text}
                {!props.plain && <Icon name="down" />}
            </button>
            {at && (
                <Menu label={props.label} opener={button.current} at={at} onClose={close} entries={entries} class={props.menuClass}>
                    {props.content?.(close)}
                </Menu>
            )}
        </>
    );
}
