// SPDX-License-Identifier: Apache-2.0
// The same question for many rows of a table: a few at a time, in the order of the rows, and each
// answer is shown when it comes.
import { useEffect, useRef, useState } from "preact/hooks";
import { useTick } from "../state/refresh";
import { address, ask, type Params } from "./client";

const AT_ONCE = 4;

export interface Question {
    key: string; // the row it is for
    path: string;
    params: Params;
}

// Answers by key; null: that question failed.  While new answers are on their way the old ones stay.
export function useEach<T>(questions: Question[]): Map<string, T | null> {
    const tick = useTick();
    const asked = useRef(new Map<string, string>()); // key -> what was asked for it last
    const [answers, setAnswers] = useState(new Map<string, T | null>());
    const all = questions.map(({ key, path, params }) => ({ key, url: address(path, params), id: `${tick}#${address(path, params)}` }));

    useEffect(() => {
        const wanted = all.filter(({ key, id }) => asked.current.get(key) !== id);
        const stop = new AbortController();
        let next = 0;
        const work = async () => {
            for (let one = wanted[next++]; one && !stop.signal.aborted; one = wanted[next++]) {
                const { key, url, id } = one;
                const answer = await ask<T>(url, { signal: stop.signal }).catch(() => null);
                if (stop.signal.aborted) return;
                asked.current.set(key, id);
                setAnswers((before) => new Map(before).set(key, answer));
            }
        };
        for (let i = 0; i < AT_ONCE; i++) void work();
        return () => stop.abort();
    }, [all.map(({ id }) => id).join("\n")]);

    return answers;
}
