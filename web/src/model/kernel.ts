// SPDX-License-Identifier: Apache-2.0
// What the kernel saw of a wait: the attributes thread.state and wait.reason of samples, which the host
// profiler sends.  Of others nothing is known but where they waited (waiting.ts).
import type { GapAmounts, GapAnswer } from "../api/answers";
import type { Matcher } from "./selector";

export const RUNNABLE = "runnable"; // no reason: it waited for a processor

const MEANS: Record<string, string> = {
    futex: "A lock or a condition of the program's own",
    poll: "One of several files: poll, select, epoll",
    sleep: "Time to pass",
    pipe: "The other end of a pipe",
    socket: "The other end of a connection, or a new one",
    disk: "A file system or a block device",
    io: "A terminal, a device, a ring",
    child: "Another process",
    lock: "A lock on a file",
    ipc: "A message queue or a semaphore",
    page_fault: "Memory that was not there yet",
    [RUNNABLE]: "Nothing but a processor: all were busy, or its quota was used up",
};

export interface Seen {
    reason: string;
    title: string;
    means: string;
    value: number; // nanoseconds
}

const seen = (reason: string, value: number): Seen => ({
    reason,
    title: (reason[0] ?? "N").toUpperCase() + (reason.slice(1) || "ot said").replace(/_/g, " "),
    means: MEANS[reason] ?? "",
    value,
});

// Most time first, a lack of processors last; nothing where no reason was said at all.
export function seenIn(gap: GapAnswer | null): Seen[] {
    if (!gap?.reasons.some(({ reason }) => reason)) return [];
    const all = gap.reasons.map(({ reason, value }) => seen(reason, value));
    return gap.overall.runnable > 0 ? [...all, seen(RUNNABLE, gap.overall.runnable)] : all;
}

// Samples of one of them.
export const matcherOf = (reason: string): Matcher =>
    reason === RUNNABLE ? { name: "thread.state", op: "=", value: RUNNABLE } : { name: "wait.reason", op: "=", value: reason };

// Of each function, how long it could have run.
export function runnableOf(gap: GapAnswer | null): (name: string, what: "self" | "total") => number {
    const rows = new Map<string, { self: GapAmounts; total: GapAmounts }>(gap?.rows.map((row) => [row.name, row]));
    return (name, what) => rows.get(name)?.[what].runnable ?? 0;
}
