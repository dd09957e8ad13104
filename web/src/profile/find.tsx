// SPDX-License-Identifier: Apache-2.0
// The field that finds frames: text, or an expression between slashes; it says how much of the profile matches.
import type { RefObject } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { count, percent } from "../model/format";
import { find, patternOf } from "../model/search";
import type { Tree } from "../model/tree";
import { Icon } from "../ui/icons";
import { setLook, type Look } from "./state";

const PAUSE = 150; // ms after the last letter

interface FindProps {
    look: Look;
    tree: Tree;
    input: RefObject<HTMLInputElement>;
    at: number; // which hit is chosen, from 1; 0: none
    onNext: (step: 1 | -1) => void;
}

// Text that is not an expression, as one, and back.
const toggled = (text: string) => (text.startsWith("/") ? text.replace(/^\/(.*?)\/?$/, "$1") : `/${text}/`);

export function FindField({ look, tree, input, at, onNext }: FindProps) {
    const [typed, setTyped] = useState(look.find);
    const written = useRef(look.find); // by this field; whatever else the address says comes from elsewhere
    const write = (text: string) => {
        written.current = text;
        setLook({ find: text }, true);
    };
    useEffect(() => {
        if (look.find !== written.current) setTyped((written.current = look.find));
    }, [look.find]);
    useEffect(() => {
        if (typed === written.current) return;
        const timer = setTimeout(() => write(typed), PAUSE);
        return () => clearTimeout(timer);
    }, [typed]);
    const pattern = patternOf(look.find);
    const found = pattern && tree.n ? find(tree, pattern) : null;
    const wrong = !!typed && typed === look.find && !pattern;
    const isExpression = typed.startsWith("/");
    const onKey = (event: KeyboardEvent) => {
        if (event.key === "Enter") {
            event.preventDefault();
            if (typed !== look.find) write(typed);
            onNext(event.shiftKey ? -1 : 1);
        } else if (event.key === "Escape") {
            setTyped("");
            write("");
            input.current?.blur();
        }
    };
    return (
        <label class={`field find ${wrong ? "wrong" : ""}`} title="Find  (/), next hit (n), previous (N)">
            <Icon name="search" />
            <input
                ref={input}
                type="text"
                placeholder="Find"
                aria-label="Find functions: text, or an expression between slashes"
                aria-invalid={wrong}
                spellcheck={false}
                autocomplete="off"
                value={typed}
                onInput={(event) => setTyped(event.currentTarget.value)}
                onKeyDown={onKey}
            />
            {found && (
                <span class="found nowrap" role="status">
                    <b>{percent(found.total / (tree.total[0] || 1))}</b>{" "}
                    <span class="muted wide">{found.nodes ? `${at || "–"} of ${count(found.nodes)}` : "no hit"}</span>
                </span>
            )}
            {typed ? (
                <button
                    type="button"
                    class="regex"
                    aria-pressed={isExpression}
                    title={isExpression ? "A regular expression: click for plain text" : "Plain text: click for a regular expression"}
                    onClick={() => setTyped(toggled(typed))}
                >
                    .*
                </button>
            ) : (
                <kbd class="wide">/</kbd>
            )}
        </label>
    );
}
