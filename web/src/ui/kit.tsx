// SPDX-License-Identifier: Apache-2.0
// The small parts that views are made of; their look is in style/kit.css.
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { ApiError } from "../api/client";
import { currentPlace, formatPlace, open } from "../state/place";
import { Icon } from "./icons";
import { toast } from "./toast";

// A link inside the page: an ordinary one for a new tab, without a load for a plain click.
export function Link({ href, children, onClick, ...rest }: JSX.IntrinsicElements["a"] & { href: string }) {
    const follow = (event: JSX.TargetedMouseEvent<HTMLAnchorElement>) => {
        onClick?.(event);
        if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey) return;
        event.preventDefault();
        open(href);
    };
    return (
        <a href={href} onClick={follow} {...rest}>
            {children}
        </a>
    );
}

export interface Choice<T extends string> {
    value: T;
    label: string;
    title?: string; // with its key, where it has one
    disabled?: boolean;
}

// One of a few.
export function Segment<T extends string>(props: { label: string; value: T; choices: Choice<T>[]; onChoose: (value: T) => void }) {
    return (
        <div class="segment" role="group" aria-label={props.label}>
            {props.choices.map(({ value, label, title, disabled }) => (
                <button
                    key={value}
                    type="button"
                    title={title}
                    disabled={disabled}
                    aria-pressed={value === props.value}
                    onClick={() => props.onChoose(value)}
                >
                    {label}
                </button>
            ))}
        </div>
    );
}

export function Panel(props: { title?: ComponentChildren; aside?: ComponentChildren; class?: string; label?: string; children: ComponentChildren }) {
    return (
        <section class={`panel ${props.class ?? ""}`} aria-label={props.label}>
            {(props.title || props.aside) && (
                <div class="panel-head">
                    <h2>{props.title}</h2>
                    <span class="grow" />
                    {props.aside}
                </div>
            )}
            {props.children}
        </section>
    );
}

// Narrows the list below it: a browser's own search does not find rows that are not drawn.
export function SearchField({ label, value, onType }: { label: string; value: string; onType: (text: string) => void }) {
    return (
        <label class="field">
            <Icon name="search" />
            <input type="search" placeholder={label} aria-label={label} value={value} onInput={(event) => onType(event.currentTarget.value)} />
        </label>
    );
}

export function Meter({ share }: { share: number }) {
    return (
        <div class="meter" aria-hidden="true">
            <i style={{ width: `${Math.min(100, Math.max(0, share * 100))}%` }} />
        </div>
    );
}

export function Note(props: { kind?: "warn" | "bad"; children: ComponentChildren; action?: ComponentChildren }) {
    return (
        <div class={`note ${props.kind ?? ""}`} role={props.kind === "bad" ? "alert" : "note"}>
            <div class="grow">{props.children}</div>
            {props.action}
        </div>
    );
}

// What failed, and one way out: what the server cannot read, it will not read the next time either.
export function Failure({ error, retry }: { error: ApiError; retry?: () => void }) {
    const { view, params } = currentPlace();
    const again = retry && (
        <button type="button" class="button" onClick={retry}>
            Try again
        </button>
    );
    const afresh = <Link class="button" href={formatPlace(view, params, {}, ["service"])}>Start afresh</Link>;
    return (
        <Note kind="bad" action={error.status === 400 ? afresh : again}>
            <b>{error.status === 0 ? "No answer" : "That did not work"}</b>
            <div class="soft">{error.message}</div>
        </Note>
    );
}

// Nothing for 200 ms, then bars in the shape of frames.
export function Loading({ rows = 8 }: { rows?: number }) {
    const [shown, setShown] = useState(false);
    useEffect(() => {
        const timer = setTimeout(() => setShown(true), 200);
        return () => clearTimeout(timer);
    }, []);
    if (!shown) return <div aria-busy="true" />;
    return (
        <div class="skeleton" aria-busy="true" aria-label="Loading">
            {Array.from({ length: rows }, (_, i) => (
                <i key={i} style={{ width: `${100 - ((i * 37) % 61) * (i / rows)}%` }} />
            ))}
        </div>
    );
}

// `under`: below the sentence of its view.
export function Empty(props: { title: string; under?: boolean; children?: ComponentChildren }) {
    return (
        <div class="empty">
            {props.under ? <h2>{props.title}</h2> : <h1>{props.title}</h1>}
            {props.children}
        </div>
    );
}

export async function copy(text: string, said = "Copied"): Promise<void> {
    try {
        await navigator.clipboard.writeText(text);
    } catch {
        const field = document.createElement("textarea"); // without TLS there is no clipboard API
        field.value = text;
        document.body.append(field);
        field.select();
        document.execCommand("copy");
        field.remove();
    }
    toast(said);
}

// A command to copy.
export function Command({ children }: { children: string }) {
    return (
        <div class="command">
            <code>{children}</code>
            <button type="button" class="button" onClick={() => copy(children)}>
                Copy
            </button>
        </div>
    );
}

export interface SparkProps {
    values: (number | null)[];
    label: string;
    tone?: "grew" | "shrank" | "warn";
    width?: number;
    height?: number;
}

export function Sparkline({ values, label, tone, width = 110, height = 24 }: SparkProps) {
    const known = values.filter((value): value is number => value !== null);
    const top = Math.max(...known, 0);
    const low = Math.min(...known, top);
    const span = low > top * 0.5 ? Math.max((top - low) * 1.5, top * 0.2) : top; // far from nought, moves show, but not chance
    const floor = span === top ? 0 : (top + low - span) / 2;
    const x = (i: number) => (values.length > 1 ? (i / (values.length - 1)) * width : 0);
    const y = (value: number) => height - 2 - ((value - floor) / (span || 1)) * (height - 4);
    let path = "";
    let pen = "M";
    values.forEach((value, i) => {
        if (value === null) return void (pen = "M");
        path += `${pen}${x(i).toFixed(1)} ${y(value).toFixed(1)}`;
        pen = "L";
    });
    return (
        <svg width={width} height={height} role="img" aria-label={label}>
            <path d={path} fill="none" stroke={`var(--${tone ?? "ink-3"})`} stroke-width="1.5" stroke-linejoin="round" />
        </svg>
    );
}
