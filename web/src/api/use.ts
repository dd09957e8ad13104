// SPDX-License-Identifier: Apache-2.0
// Answers in components: useAsk() asks when what it asks for changes, keeps the old answer while
// the new one is on its way, and forgets an answer that nobody waits for any more.
import { useEffect, useRef, useState } from "preact/hooks";
import { address, ask, type ApiError, type Params } from "./client";
import { useTick } from "../state/refresh";

export interface Asked<T> {
    data: T | null; // the last answer, perhaps to an earlier question
    error: ApiError | null;
    loading: boolean; // the answer to the present question is not there yet
    reload: () => void;
}

const KEPT = 64;
const kept = new Map<string, Promise<unknown>>(); // answers of this tick, by address; the oldest goes first

function askOnce<T>(url: string): Promise<T> {
    const before = kept.get(url) as Promise<T> | undefined;
    if (before) return before;
    const answer = ask<T>(url);
    kept.set(url, answer);
    answer.catch(() => kept.delete(url));
    if (kept.size > KEPT) kept.delete(kept.keys().next().value as string);
    return answer;
}

// What was asked before is out of date: after a refresh, or a change that the page made itself.
export function forgetAnswers(): void {
    kept.clear();
}

// `path` null: nothing to ask yet.
export function useAsk<T>(path: string | null, params?: Params): Asked<T> {
    const url = path === null ? null : address(path, params);
    const tick = useTick();
    const [again, setAgain] = useState(0);
    const [state, setState] = useState<{ url: string | null; data: T | null; error: ApiError | null }>({
        url: null,
        data: null,
        error: null,
    });
    const key = `${url}#${tick}#${again}`;
    const latest = useRef(key);
    latest.current = key;

    useEffect(() => {
        if (url === null) return;
        const is = () => latest.current === key;
        askOnce<T>(url).then(
            (data) => is() && setState({ url: key, data, error: null }),
            (error) => is() && setState((old) => ({ url: key, data: old.data, error })),
        );
    }, [key]);

    const reload = () => {
        if (url !== null) kept.delete(url);
        setAgain(again + 1);
    };
    const loading = url !== null && state.url !== key;
    return { data: state.data, error: loading ? null : state.error, loading, reload };
}
