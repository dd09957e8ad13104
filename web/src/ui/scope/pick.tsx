// SPDX-License-Identifier: Apache-2.0
// One of many, found by typing: a field and the list that it narrows.  Arrows move, Enter chooses.
import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import type { ApiError } from "../../api/client";
import { count } from "../../model/format";
import { Icon } from "../icons";
import { useVisible } from "../rows";

export interface PickOption {
    value: string;
    label: string;
    aside?: ComponentChildren;
}

export interface PickListProps {
    label: string; // of the field: "Find a service"
    options: PickOption[];
    chosen?: string;
    onPick: (value: string) => void;
    onPoint?: (value: string) => void; // the walk has come to this one
    free?: (typed: string) => string | null; // what is typed may be taken as it is, under this title
    loading?: boolean;
    error?: ApiError | null;
    none?: string; // what to say where there is nothing at all
    all?: number; // how many there are on the server, where `options` are some of them
    onType?: (typed: string) => void; // the caller asks the server for what matches
}

const HEIGHT = 28;

function narrowed(options: PickOption[], typed: string): PickOption[] {
    const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
    if (!words.length) return options;
    return options.filter(({ label, value }) => words.every((word) => `${label} ${value}`.toLowerCase().includes(word)));
}

function foot(props: PickListProps, found: number): string | null {
    const { options, all = 0 } = props;
    if (props.error) return props.error.message;
    if (props.loading && !options.length) return "Loading…";
    if (all > options.length) return `${count(found)} of ${count(all)}: type to search all of them.`;
    if (found) return null;
    return options.length ? "Nothing matches." : (props.none ?? "There is nothing to choose from.");
}

export function PickList(props: PickListProps) {
    const id = useId();
    const [typed, setTyped] = useState("");
    const [at, setAt] = useState(Math.max(0, props.options.findIndex(({ value }) => value === props.chosen)));
    const found = narrowed(props.options, typed);
    const free = props.free?.(typed.trim());
    const shown = [...found];
    const exact = found.some(({ value }) => value === typed.trim());
    if (free && !exact) shown.push({ value: typed.trim(), label: free });
    const now = Math.min(at, shown.length - 1);

    const { box, height, first, last, onScroll, reveal } = useVisible(shown.length, HEIGHT);
    const field = useRef<HTMLInputElement>(null);
    useEffect(() => field.current!.focus(), []); // also where one list follows another in the same menu
    const walked = useRef(true); // by keys: what the pointer is on is in sight already

    useEffect(() => {
        if (walked.current && now >= 0) reveal(now, 0);
        if (shown[now]) props.onPoint?.(shown[now].value);
    }, [now, typed]);

    const onKey = (event: KeyboardEvent) => {
        const to = { ArrowDown: now + 1, ArrowUp: now - 1, PageDown: now + 8, PageUp: now - 8 }[event.key];
        if (to !== undefined) {
            event.preventDefault();
            event.stopPropagation();
            walked.current = true;
            setAt(Math.max(0, Math.min(shown.length - 1, to)));
        } else if (event.key === "Enter" && shown[now]) {
            event.preventDefault();
            event.stopPropagation();
            props.onPick(shown[now].value);
        }
    };
    const note = foot(props, found.length);
    return (
        <div class="pick">
            <label class="field">
                <Icon name="search" />
                <input
                    ref={field}
                    type="text"
                    role="combobox"
                    aria-expanded="true"
                    aria-autocomplete="list"
                    aria-controls={id}
                    aria-activedescendant={now >= 0 ? `${id}-${now}` : undefined}
                    placeholder={props.label}
                    aria-label={props.label}
                    autocomplete="off"
                    spellcheck={false}
                    value={typed}
                    onInput={(event) => {
                        setTyped(event.currentTarget.value);
                        props.onType?.(event.currentTarget.value.trim());
                        walked.current = true;
                        setAt(0);
                    }}
                    onKeyDown={onKey}
                />
            </label>
            <div class="pick-list" id={id} role="listbox" aria-label={props.label} ref={box} onScroll={onScroll}>
                <div aria-hidden="true" style={{ height: `${first * height}px` }} />
                {shown.slice(first, last).map(({ value, label, aside }, k) => {
                    const i = first + k;
                    return (
                        <div
                            key={value}
                            id={`${id}-${i}`}
                            data-row={i}
                            role="option"
                            aria-selected={i === now}
                            aria-posinset={i + 1}
                            aria-setsize={Math.max(shown.length, typed ? 0 : (props.all ?? 0))}
                            onPointerMove={() => {
                                walked.current = false;
                                if (i !== now) setAt(i);
                            }}
                            onClick={() => props.onPick(value)}
                        >
                            <span class="grow ellipsis">{label}</span>
                            {value === props.chosen && <span class="ok" aria-label="chosen">✓</span>}
                            {aside && <span class="muted small nowrap">{aside}</span>}
                        </div>
                    );
                })}
                <div aria-hidden="true" style={{ height: `${(shown.length - last) * height}px` }} />
            </div>
            {note && <div role="status" class={`caption ${props.error ? "bad" : ""}`}>{note}</div>}
        </div>
    );
}
