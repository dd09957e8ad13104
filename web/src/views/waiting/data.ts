// SPDX-License-Identifier: Apache-2.0
// What is known of waiting: the profile types that tell it, and the answers to the questions, how much
// was waited, how much CPU was used meanwhile, and what the kernel saw of it.
import { useMemo } from "preact/hooks";
import type { GapAnswer, ProfileType, QueryAnswer } from "../../api/answers";
import { useAsk } from "../../api/use";
import { matcherOf, runnableOf, seenIn, type Seen } from "../../model/kernel";
import { CPU_TYPE } from "../../model/know";
import { measureOf, type Measure } from "../../model/measure";
import { selector } from "../../model/selector";
import { treeOf, type Tree } from "../../model/tree";
import { chosen, gapOf, rowsOf, sumsOf, whysOf, type Why, type WaitRow } from "../../model/waiting";
import type { Scope } from "../../state/scope";

// How waiting is told, the best first.
export const TELLS = ["off_cpu", "wall", "block", "mutex"] as const;
export type Tell = (typeof TELLS)[number];

export const TELL_TITLE: Record<Tell, [title: string, long: string]> = {
    off_cpu: ["Off the CPU", "Time that threads spent off the processor"],
    wall: ["Wall less CPU", "Wall time less CPU time, stack by stack"],
    block: ["Blocking", "Time that goroutines or threads were blocked"],
    mutex: ["Lock delay", "Time that others waited for locks, by who held them"],
};

export function typeOfTell(tell: Tell, types: ProfileType[]): ProfileType | null {
    return (
        types.find(
            ({ name, type, unit }) =>
                unit === "nanoseconds" && name === tell && (tell === "wall" || tell === "off_cpu" || type === "delay"),
        ) ?? null
    );
}

export interface Waited {
    answer: QueryAnswer;
    whole: Tree; // idle stacks too
    whys: (Why | null)[]; // of its nodes
    sums: Record<Why, number>;
    tree: Tree; // what was chosen to be shown
    rows: WaitRow[];
    measure: Measure;
    cpu: CpuSide | null; // null: there is no CPU profile to hold it against
    seen: Seen[]; // by the kernel; empty: nobody asked it
    runnable: (name: string, what: "self" | "total") => number; // nanoseconds
}

export interface CpuSide {
    total: number; // cores
    of: (name: string, what: "self" | "total") => number; // cores
}

function cpuSide(answer: QueryAnswer | null): CpuSide | null {
    if (!answer?.total || !answer.basis.rate_seconds) return null;
    const cores = (value: number) => value / 1e9 / answer.basis.rate_seconds;
    const rows = new Map(answer.top?.rows.map((row) => [row.name, row]));
    return { total: cores(answer.total), of: (name, what) => cores(rows.get(name)?.[what] ?? 0) };
}

function wholeOf(tell: Tell, answer: QueryAnswer, cpu: QueryAnswer | null): Tree {
    const tree = treeOf(answer.flamegraph!);
    const seconds = answer.basis.rate_seconds;
    if (tell !== "wall" || !cpu?.flamegraph || !cpu.basis.rate_seconds || !seconds) return tree;
    return gapOf(tree, treeOf(cpu.flamegraph), seconds / cpu.basis.rate_seconds);
}

export interface AskedWaiting {
    waited: Waited | null;
    loading: boolean;
    error: ReturnType<typeof useAsk>["error"];
    reload: () => void;
}

// What is to be shown: `why`: only stacks that wait for it; `idle`: idle stacks too, where none is chosen;
// `reason`: only what the kernel saw wait for it.
export interface Choice {
    why: Why | null;
    idle: boolean;
    reason: string | null;
}

export function useWaiting(tell: Tell, type: ProfileType, scope: Scope, choice: Choice): AskedWaiting {
    const { why, idle } = choice;
    const off = tell === "off_cpu";
    const reason = off ? choice.reason : null;
    const question = (id: string, matchers = scope.matchers) => ({
        query: selector(id, scope.service, matchers),
        ...scope.range,
        limit: 5000,
    });
    const chosenOnes = reason === null ? scope.matchers : [...scope.matchers, matcherOf(reason)];
    const asked = useAsk<QueryAnswer>("/api/v1/query", question(type.id, chosenOnes));
    const cpu = useAsk<QueryAnswer>("/api/v1/query", question(CPU_TYPE));
    const gap = useAsk<GapAnswer>(off ? "/api/v1/gap" : null, question(""));
    const kernel = off ? gap.data : null;
    const ready = asked.data && (cpu.data || cpu.error) && (!off || kernel || gap.error) ? asked.data : null;
    const whole = useMemo(() => ready && wholeOf(tell, ready, cpu.data), [ready, cpu.data, tell]);
    const whys = useMemo(() => (whole ? whysOf(whole) : []), [whole]);
    const waited = useMemo((): Waited | null => {
        if (!ready || !whole) return null;
        const tree = chosen(whole, (node) => (why ? whys[node] === why : idle || whys[node] !== "idle"));
        const measure = measureOf(ready.type, ready.basis.rate_seconds); // of waits: they may be watched in part of the time
        return {
            answer: ready,
            whole,
            whys,
            sums: sumsOf(whole, whys),
            tree,
            rows: rowsOf(tree, whysOf(tree)),
            measure,
            cpu: cpuSide(cpu.data),
            seen: seenIn(kernel),
            runnable: runnableOf(kernel),
        };
    }, [ready, whole, whys, why, idle, kernel]);
    return { waited, loading: asked.loading || cpu.loading || gap.loading, error: asked.error, reload: asked.reload };
}
