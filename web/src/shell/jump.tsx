// SPDX-License-Identifier: Apache-2.0
// "Jump to": views, services, the functions that cost most in what is looked at, and pasted ids.
import { useEffect, useState } from "preact/hooks";
import type { QueryAnswer, Services } from "../api/answers";
import { useSearch } from "../api/search";
import { useAsk } from "../api/use";
import { idTargets, matching, type Target } from "../model/jump";
import { linkTo, open } from "../state/place";
import { useScope } from "../state/scope";
import { Dialog } from "../ui/dialog";
import { OTHERS, TABS } from "./tabs";

const MOST = 12;

function useTargets(): { all: Target[]; onType: (typed: string) => void } {
    const scope = useScope();
    const { asked, first, all, onType } = useSearch<Services>("/api/v1/services");
    const names = new Set([...(asked.data?.services ?? []), ...(first?.services ?? [])].map(({ name }) => name));
    const functions = scope.service !== "" || (first && all === undefined); // of very many services, the table of functions takes the server long
    const top = useAsk<QueryAnswer>(functions ? "/api/v1/query" : null, { query: scope.query, ...scope.range, format: "top", limit: 200 });
    return {
        onType,
        all: [
            ...[...TABS, ...OTHERS].map(({ view, title }) => ({ title, kind: "View", href: linkTo(view) })),
            ...[...names].map((name) => ({ title: name, kind: "Service", href: linkTo("explore", { service: name, where: null }) })),
            ...(top.data?.top?.rows ?? []).map(({ name }) => ({ title: name, kind: "Function", href: linkTo("explore", { fn: name }) })),
        ],
    };
}

export function Jump({ onClose }: { onClose: () => void }) {
    const [typed, setTyped] = useState("");
    const [at, setAt] = useState(0);
    const { all, onType } = useTargets();
    const [waiting, setWaiting] = useState(false); // Enter was pressed before anything was found: the lists may still load
    const find = (text: string) => [...idTargets(text, (view, params) => linkTo(view, params)), ...matching(text, all, MOST)];
    const found = find(typed);
    const chosen = Math.min(at, found.length - 1);
    const go = (target?: Target) => {
        onClose();
        if (target) open(target.href);
    };
    useEffect(() => {
        if (waiting && found.length) go(found[chosen]);
    });
    const onKey = (event: KeyboardEvent) => {
        const text = (event.currentTarget as HTMLInputElement).value;
        const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
        if (step && found.length) setAt((chosen + step + found.length) % found.length);
        else if (event.key === "Enter") {
            const target = text === typed ? found[chosen] : find(text)[0]; // the last letters may not be drawn yet
            if (target) go(target);
            else setWaiting(true);
        } else return;
        event.preventDefault();
    };
    return (
        <Dialog label="Jump to" class="jump" onClose={onClose}>
            <div class="panel-head">
                <input
                    class="jump-field"
                    role="combobox"
                    aria-expanded="true"
                    aria-controls="jump-list"
                    aria-activedescendant={found.length ? `jump-${chosen}` : undefined}
                    aria-label="Jump to a view, service, function, trace or profile"
                    placeholder="A view, service, function, trace or profile id"
                    autofocus
                    value={typed}
                    onInput={(event) => {
                        setTyped(event.currentTarget.value);
                        onType(event.currentTarget.value);
                        setAt(0);
                        setWaiting(false);
                    }}
                    onKeyDown={onKey}
                />
            </div>
            <div class="menu jump-list" role="listbox" id="jump-list" aria-label="Found">
                {found.map((target, i) => (
                    <div key={target.href + target.kind} id={`jump-${i}`} role="option" aria-selected={i === chosen} onClick={() => go(target)} onPointerMove={() => setAt(i)}>
                        <span class="grow ellipsis">{target.title}</span>
                        <span class="muted small">{target.kind}</span>
                    </div>
                ))}
                {!found.length && <div class="caption">Nothing of that name here.</div>}
            </div>
        </Dialog>
    );
}
