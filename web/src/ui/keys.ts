// SPDX-License-Identifier: Apache-2.0
// Keys of the page.  A key works wherever nothing is typed into; the list of all is shown by "?".
import { useLayoutEffect } from "preact/hooks";

export interface Key {
    keys: string; // "/", "g o", "Shift+ArrowLeft", "Ctrl+K"
    does: string; // for the list
    run: (event: KeyboardEvent) => void;
}

const groups = new Map<object, { title: string; keys: Key[] }>();
let prefix = "";
let prefixUntil = 0;

const typesInto = (target: EventTarget | null) =>
    target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));

function pressed(event: KeyboardEvent): string {
    const shift = event.shiftKey && event.key.length > 1 ? "Shift+" : "";
    const control = event.ctrlKey || event.metaKey ? "Ctrl+" : "";
    return control + shift + (control ? event.key.toUpperCase() : event.key);
}

function onKey(event: KeyboardEvent): void {
    const name = pressed(event);
    if (event.defaultPrevented || event.altKey || (typesInto(event.target) && !name.startsWith("Ctrl+"))) return;
    if (document.querySelector("dialog[open], .menu") && !name.startsWith("Ctrl+")) return;
    const whole = isSecond(event) ? `${prefix} ${name}` : name;
    const all = [...groups.values()].reverse().flatMap((group) => group.keys);
    const key = all.find(({ keys }) => keys === whole) ?? all.find(({ keys }) => keys === name);
    prefixUntil = 0;
    if (key) {
        event.preventDefault();
        key.run(event);
    } else if (all.some(({ keys }) => keys.startsWith(name + " "))) {
        prefix = name;
        prefixUntil = event.timeStamp + 1500;
    }
}

// Is this key the second of two, such as the "c" of "g c"?  By the times they were pressed at: a page that is busy
// may come to them much later.
export const isSecond = (event: KeyboardEvent) => event.timeStamp < prefixUntil;

export function startKeys(): void {
    addEventListener("keydown", onKey);
}

// Keys while a component is there; the newest group wins.  They are there with the picture, not some time after
// it: a key pressed right after a click acts on what the click chose.
export function useKeys(title: string, keys: Key[]): void {
    const latest = { title, keys };
    useLayoutEffect(() => {
        const token = {};
        groups.set(token, latest);
        return () => void groups.delete(token);
    });
}

export const keyGroups = () => [...groups.values()];
