// SPDX-License-Identifier: Apache-2.0
// What the timeline of Explore shows: the value over the time around the range, and what it was the day
// before.
import { useMemo, useRef } from "preact/hooks";
import type { Annotation, Deployment, QueryAnswer } from "../../api/answers";
import { useAsk, type Asked } from "../../api/use";
import { before, contextOf, spanOf, type Span } from "../../model/context";
import { betterStep, bucketsOf, fineStep, mean, type Buckets } from "../../model/series";
import { formatTime } from "../../model/time";
import { useTick } from "../../state/refresh";
import type { Scope } from "../../state/scope";

// Times on a full step: profiles are sent on full minutes more often than not, and a bucket should not cut between them.
function absolute([from, until]: Span, stepSeconds = 1) {
    const step = stepSeconds * 1000;
    return { from: formatTime(Math.floor(from / step) * step), until: formatTime(Math.ceil(until / 1000) * 1000) };
}

// The present moment, which stands still until something is asked again.
export function useNow(scope: Scope): number {
    const tick = useTick();
    return useMemo(() => Date.now(), [tick, scope.query, scope.range.from, scope.range.until]);
}

function useSeries(query: string | null, span: Span): Asked<QueryAnswer> {
    const step = fineStep((span[1] - span[0]) / 1000);
    const params = { query, format: "series", ...absolute(span, step) };
    const first = useAsk<QueryAnswer>(query === null ? null : "/api/v1/query", { ...params, step });
    const { data } = first;
    const coarse = data?.series && data.type.kind === "level" && !first.loading ? betterStep(data.series) : null;
    const second = useAsk<QueryAnswer>(coarse ? "/api/v1/query" : null, { ...params, step: coarse });
    return coarse ? { ...second, data: second.data ?? data } : first;
}

export interface Load {
    span: Span; // of the picture
    chosen: Span;
    now: number;
    asked: Asked<QueryAnswer>;
    buckets: Buckets | null;
    ghost: { values: (number | null)[]; word: string } | null;
    change: number | null; // against the day before: 0.38 is 38 % more
    deployments: Deployment[];
    annotations: Annotation[];
}

// Values of the chosen range, averaged.
function chosenMean(buckets: Buckets, values: (number | null)[], [from, until]: Span): { mean: number | null; known: number } {
    const inside = values.filter((_, i) => {
        const middle = buckets.start + (i + 0.5) * buckets.stepMs;
        return middle >= from && middle < until;
    });
    return { mean: mean(inside), known: inside.length ? inside.filter((value) => value !== null).length / inside.length : 0 };
}

export function useLoad(scope: Scope): Load {
    const now = useNow(scope);
    const kept = useRef<Span | null>(null);
    const span = (kept.current = useMemo(() => contextOf(scope.range, now, kept.current), [now]));
    const chosen = spanOf(scope.range, now);
    const ago = before(chosen);
    const asked = useSeries(scope.query, span);
    const old = useSeries(ago ? scope.query : null, ago ? [span[0] - ago.ms, span[1] - ago.ms] : span);
    const told = { service: scope.service, ...absolute(span) };
    const deployments = useAsk<{ deployments: Deployment[] }>("/api/v1/deployments", told);
    const annotations = useAsk<{ annotations: Annotation[] }>("/api/v1/annotations", told);

    const buckets = useMemo(() => (asked.data?.series ? bucketsOf(asked.data.series, 0, asked.data.type, span[1], asked.data.basis.covered_seconds) : null), [asked.data]);
    const ghost = useMemo(() => {
        const { series, type, basis } = old.data ?? {};
        if (!ago || !buckets || !series?.series.length || !type) return null;
        const was = bucketsOf(series, 0, type, Infinity, basis?.covered_seconds);
        if (was.stepMs !== buckets.stepMs) return null;
        const skip = Math.round((buckets.start - ago.ms - was.start) / buckets.stepMs);
        return { word: ago.word, values: buckets.values.map((_, i) => was.values[i + skip] ?? null) };
    }, [old.data, buckets]);
    const here = buckets && chosenMean(buckets, buckets.values, chosen);
    const then = buckets && ghost && chosenMean(buckets, ghost.values, chosen);
    const change = here?.mean && then?.mean && then.known > 0.5 ? here.mean / then.mean - 1 : null;
    return {
        span, chosen, now, asked, buckets, ghost, change,
        deployments: deployments.data?.deployments ?? [],
        annotations: annotations.data?.annotations ?? [],
    };
}
