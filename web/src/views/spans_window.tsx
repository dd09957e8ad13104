// SPDX-License-Identifier: Apache-2.0
// What ran while a slow span was open: profiles that overlap the window, and their functions.
import { useEffect, useState } from "preact/hooks";
import type { QueryAnswer, WindowsAnswer } from "../api/answers";
import { ask, type ApiError } from "../api/client";
import { useAsk } from "../api/use";
import { clock, duration, percent, plural } from "../model/format";
import { ProfilePanel } from "../profile/panel";
import { linkTo } from "../state/place";
import { useScope } from "../state/scope";
import { Failure, Link, Loading, Note } from "../ui/kit";

export function SlowWindow({ from, until }: { from: string; until: string }) {
    const scope = useScope();
    const [answer, setAnswer] = useState<WindowsAnswer | null>(null);
    const [error, setError] = useState<ApiError | null>(null);
    const exact = useAsk<QueryAnswer>("/api/v1/query", { query: scope.query, from, until });
    useEffect(() => {
        const stop = new AbortController();
        setError(null);
        ask<WindowsAnswer>("/api/v1/spans", { method: "POST", json: { query: scope.query, windows: [{ from, until }] }, signal: stop.signal })
            .then(setAnswer)
            .catch((problem) => problem.name !== "AbortError" && setError(problem));
        return () => stop.abort();
    }, [scope.query, from, until]);

    if (error) return <Failure error={error} />;
    if (!answer) return <Loading />;
    const [window] = answer.windows;
    const long = (Date.parse(until) - Date.parse(from)) / 1000;
    const when = `${clock(Date.parse(from), true)} – ${clock(Date.parse(until), true)}`;
    if (!window.all)
        return (
            <Note>
                No profile overlaps {when}. <Link href={linkTo("explore", { from: null, until: null })}>See where there is data</Link>
            </Note>
        );
    return (
        <>
            <Note>
                {plural(window.all, "profile")} overlap these {duration(long)} ({when}).
                {exact.data?.total ? " Samples with times of their own are cut to the window." : " They have no times of their own, so each counts as a whole."}
            </Note>
            {exact.data?.total ? (
                <ProfilePanel
                    answer={exact.data}
                    source={{ path: "/api/v1/query", params: { query: scope.query, from, until } }}
                    rangeSeconds={long}
                />
            ) : (
                <section class="panel list-panel" aria-label="Functions">
                    <table class="table">
                        <thead>
                            <tr>
                                <th scope="col">Function</th>
                                <th scope="col" class="wide">Module</th>
                                <th scope="col" class="number" aria-sort="descending">Self ↓</th>
                                <th scope="col" class="number">Total</th>
                            </tr>
                        </thead>
                        <tbody>
                            {answer.top.rows.map((row) => (
                                <tr key={row.name + row.module}>
                                    <td>{row.name}</td>
                                    <td class="soft wide">{row.module}</td>
                                    <td class="number">{percent(row.self_share)}</td>
                                    <td class="number soft">{percent(row.total_share)}</td>
                                </tr>
                            ))}
                        </tbody>
                    </table>
                </section>
            )}
        </>
    );
}
