// SPDX-License-Identifier: Apache-2.0
// Lists that may be very long: the first of them at once, the others by searching on the server.
import { useMemo, useState } from "preact/hooks";
import { useLater } from "../ui/later";
import type { Params } from "./client";
import { useEach } from "./each";
import { useAsk, type Asked } from "./use";

const LISTED = 500;

export interface Search<T> {
    asked: Asked<T>; // what is found
    first: T | null; // what there is before anything is typed
    all?: number; // how many there are, where not all are in the answer
    onType: (typed: string) => void;
}

// The server matches one text; of several words the longest leaves the least to narrow here.
const longestWord = (typed: string) => typed.split(/\s+/).reduce((longest, word) => (word.length > longest.length ? word : longest), "");

export function useSearch<T extends { all: number }>(path: string, params: Params = {}): Search<T> {
    const [typed, onType] = useState("");
    const match = useLater(longestWord(typed));
    const first = useAsk<T>(path, { ...params, limit: LISTED });
    const cut = first.data !== null && first.data.all > LISTED;
    const found = useAsk<T>(cut && match ? path : null, { ...params, limit: LISTED, match });
    const asked = cut && match && found.data ? found : first;
    return { asked, first: first.data, all: cut ? asked.data!.all : undefined, onType };
}

// What an answer lacks of the rows in sight: `pages` of them, each asked for once, with the questions of `asks`.
export function useDetails<T>(pages: string[][], lacks: (row: string) => boolean, asks: (page: string[]) => Record<string, [string, Params] | null>) {
    const wanted = pages.map((page) => page.filter(lacks)).filter((page) => page.length);
    const key = (kind: string, page: string[]) => JSON.stringify([kind, page]);
    const found = useEach<T>(wanted.flatMap((page) => Object.entries(asks(page)).flatMap(([kind, ask]) => (ask ? [{ key: key(kind, page), path: ask[0], params: ask[1] }] : []))));
    return useMemo(() => wanted.map((page) => (kind: string): T | null => found.get(key(kind, page)) ?? null), [found]);
}
