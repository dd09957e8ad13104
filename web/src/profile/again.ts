// SPDX-License-Identifier: Apache-2.0
// The same profile once more, in another form: asks the address that it came from, or sends the file again.
import { useEffect, useState } from "preact/hooks";
import { ask, type ApiError, type Params } from "../api/client";
import { useAsk, type Asked } from "../api/use";
import type { ProfileSource } from "./panel";

function usePosted<T>(source: ProfileSource | null, params: Params | null): Asked<T> {
    const key = source?.body && params ? JSON.stringify([source.path, source.params, params]) : null;
    const [again, setAgain] = useState(0);
    const [state, setState] = useState<{ key: string | null; data: T | null; error: ApiError | null }>({ key: null, data: null, error: null });
    useEffect(() => {
        if (!key || !source || !params) return;
        const stop = new AbortController();
        ask<T>(source.path, { method: "POST", params: { ...source.params, ...params }, body: source.body, signal: stop.signal })
            .then((data) => setState({ key, data, error: null }))
            .catch((error) => error.name !== "AbortError" && setState({ key, data: null, error }));
        return () => stop.abort();
    }, [key, source?.body, again]);
    const loading = key !== null && state.key !== key;
    return { data: state.data, error: loading ? null : state.error, loading, reload: () => setAgain(again + 1) };
}

// `params` null: not now.
export function useAgain<T>(source: ProfileSource | null, params: Params | null): Asked<T> {
    const asks = source && params && !source.body;
    const asked = useAsk<T>(asks ? source.path : null, asks ? { ...source.params, ...params } : undefined);
    const posted = usePosted<T>(source, params);
    return source?.body ? posted : asked;
}

export const askAgain = <T>(source: ProfileSource, params: Params): Promise<T> =>
    ask<T>(source.path, { method: source.body ? "POST" : "GET", params: { ...source.params, ...params }, body: source.body });

// A file cannot be asked for some of its stacks.
export const canFilter = (source: ProfileSource | null) => source !== null && !source.body;
