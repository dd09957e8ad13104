// SPDX-License-Identifier: Apache-2.0
// Answers in components: useAsk() asks when what it asks for changes, keeps the old answer while
// the new one is on its way, and forgets an answer that nobody waits for any more.
import { useEffect, useRef, useState } from "preact/hooks";
import { address, ask, type ApiError, type Params } from "./client";
import { refreshNow, useTick } from "../state/refresh";

export interface Asked<T> {
    data: T | null; // the last answer, perhaps to an earlier question
    error: ApiError | null;
    loading: boolean; // the answer to the present question is not there yet
    reload: () => void; // all that is shown: what failed seldom failed alone
}

const KEPT = 64;

interface Kept {
    answer: Promise<unknown>;
    here: boolean; // it has come
    waiting: number; // who waits for it
    stop: AbortController;
}

const kept = new Map<string, Kept>(); // answers of this tick, by address; the oldest goes first

function forget(url: string, one: Kept): void {
    if (kept.get(url) === one) kept.delete(url);
}

function askOnce(url: string): Kept {
    const before = kept.get(url);
    if (before) return before;
    const stop = new AbortController();
    const one: Kept = { answer: ask(url, { signal: stop.signal }), here: false, waiting: 0, stop };
    one.answer.then(() => (one.here = true), () => forget(url, one));
    kept.set(url, one);
    if (kept.size > KEPT) kept.delete(kept.keys().next().value as string);
    return one;
}

// Nobody waits any more for an answer that is still on its way: the server need not work for it.
function leave(url: string, one: Kept): void {
    if (--one.waiting || one.here) return;
    forget(url, one);
    one.stop.abort();
}

// What was asked before is out of date: after a refresh, or a change that the page made itself.
export function forgetAnswers(): void {
    kept.clear();
}

// `path` null: nothing to ask yet.
export function useAsk<T>(path: string | null, params?: Params): Asked<T> {
    const url = path === null ? null : address(path, params);
    const tick = useTick();
    const [state, setState] = useState<{ url: string | null; data: T | null; error: ApiError | null }>({
        url: null,
        data: null,
        error: null,
    });
    const key = `${url}#${tick}`;
    const latest = useRef(key);
    latest.current = key;

    useEffect(() => {
        if (url === null) return;
        const is = () => latest.current === key;
        const one = askOnce(url);
        one.waiting++;
        one.answer.then(
            (data) => is() && setState({ url: key, data: data as T, error: null }),
            (error) => is() && error.name !== "AbortError" && setState((old) => ({ url: key, data: old.data, error })),
        );
        return () => leave(url, one);
    }, [key]);

    const loading = url !== null && state.url !== key;
    return { data: state.data, error: loading ? null : state.error, loading, reload: refreshNow };
}
