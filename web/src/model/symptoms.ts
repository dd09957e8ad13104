// SPDX-License-Identifier: Apache-2.0
// From a symptom to the view that explains it: what to open first, what then, what to look for in
// it, and what it usually turns out to be.
import type { Service } from "../api/answers";
import { knowledgeOf } from "./know";

export type Kind = "cpu" | "wall" | "waiting" | "allocated" | "in use" | "locks" | "lag";

export interface Step {
    kind: Kind;
    view: "explore" | "compare" | "memory" | "waiting";
    text: string; // what to do there
}

export interface Symptom {
    id: string;
    short: string; // on a pill
    title: string;
    start: Step[];
    then: Step[];
    look: string[];
    often: { cause: string; fix: string };
}

export const SYMPTOMS: Symptom[] = [
    {
        id: "latency",
        short: "Latency up, database fine",
        title: "Requests are slower, the database is not",
        start: [{ kind: "cpu", view: "explore", text: "Find the widest frames of your own code" }],
        then: [
            { kind: "wall", view: "waiting", text: "If no frame is wide, see where time passes without CPU" },
            { kind: "allocated", view: "explore", text: "See what asks for memory on the way" },
        ],
        look: ["Wide frames at the tip of a stack", "The same function under many callers: work done again for each request", "Parsing, strings and regular expressions on top"],
        often: { cause: "The same text is parsed for every request", fix: "Parse it once and keep the result, or parse it as a stream" },
    },
    {
        id: "memory",
        short: "Memory climbs",
        title: "Memory climbs slowly and does not come back",
        start: [{ kind: "in use", view: "memory", text: "See which allocation is still held, and grows with each snapshot" }],
        then: [{ kind: "allocated", view: "explore", text: "See who makes what is never let go" }],
        look: ["One site that grows while all others stay", "Growth while traffic is even: it is kept, not used", "Maps, caches, lists of listeners"],
        often: { cause: "A cache or a map without an end", fix: "Bound it: drop the least used, or what is too old" },
    },
    {
        id: "gc",
        short: "Long GC pauses",
        title: "Garbage collection stops the program for long",
        start: [{ kind: "allocated", view: "explore", text: "Find what makes the garbage" }],
        then: [
            { kind: "in use", view: "memory", text: "A large heap takes long to walk: see what fills it" },
            { kind: "cpu", view: "explore", text: "See how much time the collector takes itself" },
        ],
        look: ["Many small allocations below one loop", "Buffers and strings that are joined piece by piece", "Frames of the collector, in grey, over a tenth of the width"],
        often: { cause: "Objects that live for a moment, made in a hot loop", fix: "Use them again, make room at once, work in batches" },
    },
    {
        id: "cpu",
        short: "CPU up, same load",
        title: "More CPU, for as many requests as before",
        start: [{ kind: "cpu", view: "compare", text: "Compare with the time before, and see what grew" }],
        then: [
            { kind: "locks", view: "explore", text: "Threads that spin on a lock burn CPU too" },
            { kind: "wall", view: "waiting", text: "See whether work waits while it burns" },
        ],
        look: ["The frame where the colour is strongest: the change starts there", "A deployment at the moment it rose", "One function over half of all"],
        often: { cause: "A change that does its work again for each request", fix: "Move it out of the request: cache, or do it when it starts" },
    },
    {
        id: "tail",
        short: "Slow tail",
        title: "Most requests are fast, a few are very slow",
        start: [{ kind: "wall", view: "waiting", text: "See where time passes, waiting included" }],
        then: [
            { kind: "cpu", view: "explore", text: "See what runs in the slow ones" },
            { kind: "locks", view: "explore", text: "See which lock they queue at" },
        ],
        look: ["Wall time where there is hardly any CPU time", "One lock below many stacks", "Calls of other services without a time limit"],
        often: { cause: "Everybody waits for one lock, or one worker empties the queue", fix: "Split the lock, or let several workers take from it" },
    },
    {
        id: "lag",
        short: "Event loop lags",
        title: "The event loop answers late",
        start: [
            { kind: "cpu", view: "explore", text: "Find what runs long without giving way" },
            { kind: "lag", view: "explore", text: "See when the loop was late, and below what" },
        ],
        then: [{ kind: "allocated", view: "explore", text: "Garbage collection holds the loop as well" }],
        look: ["Synchronous crypto, compression or file access", "CPU at its plateau while the loop is late", "JSON of large bodies"],
        often: { cause: "Crypto or compression on the loop itself", fix: "Hand it to a worker, or work it out beforehand" },
    },
    {
        id: "oom",
        short: "Out of memory after hours",
        title: "It is killed for its memory, after hours",
        start: [{ kind: "in use", view: "memory", text: "Compare the heap just before with hours before" }],
        then: [{ kind: "allocated", view: "explore", text: "Find who asks for what stayed" }],
        look: ["The site with the largest growth, not the largest size", "Growth in steps: one kind of request does it", "Objects that a closure or a listener holds"],
        often: { cause: "Something is added for each request and never removed", fix: "Remove it when the request ends; hold it weakly, or with an age" },
    },
];

// How to read a flame graph, for whoever sees one for the first time.
export const READING: { title: string; text: string }[] = [
    { title: "Width is cost", text: "A frame is a function; its width is its share, with all it calls. From left to right is not time." },
    { title: "Start at the tips", text: "Wide frames with nothing below them do the work themselves: they pay off first." },
    { title: "Same name, many places", text: "A function under many callers: keep its result, or call it less. Sandwich adds all of them up." },
    { title: "Wide above, crumbs below", text: "The framework takes the time, not your code. Ask for less of it." },
    { title: "Crumbs everywhere", text: "No frame dominates: it may not be CPU at all. Look at waiting, then at allocations." },
];

export const PLAYBOOKS: { title: string; steps: string[] }[] = [
    {
        title: "Is it a leak?",
        steps: [
            "Memory: take two snapshots half an hour apart and look at what grew.",
            "Compare with traffic: even requests and rising memory is a leak.",
            "Allocated: find where the growing objects come from.",
            "Bound what keeps them, deploy, and see the line go flat.",
        ],
    },
    {
        title: "Too much garbage?",
        steps: [
            "Allocated: find many short-lived objects below a hot loop.",
            "CPU time: see how wide the collector's frames are.",
            "Reuse buffers, size lists beforehand, join strings once at the end.",
            "Compare before and after: both should shrink.",
        ],
    },
];

const TYPES: Record<Kind, string[]> = {
    cpu: ["process_cpu:cpu"],
    wall: ["wall:wall", "off_cpu:off_cpu"],
    waiting: ["off_cpu:off_cpu", "wall:wall"],
    allocated: ["memory:alloc_space", "memory:alloc_in_new_tlab_bytes", "memory:alloc_objects"],
    "in use": ["memory:inuse_space", "memory:live", "memory:inuse_objects"],
    locks: ["mutex:delay", "block:delay", "mutex:contentions", "block:contentions"],
    lag: ["event_loop:lag"],
};

// The service's own type of a kind, or of any service's where none is chosen; null: nobody sends it.
export function typeFor(kind: Kind, services: Service[], service: string): string | null {
    const ids = services.filter(({ name }) => !service || name === service).flatMap(({ types }) => types.map(({ id }) => id));
    for (const prefix of TYPES[kind]) {
        const found = ids.find((id) => id.startsWith(prefix + ":"));
        if (found) return found;
    }
    return null;
}

export const kindTitle = (kind: Kind) => knowledgeOf(TYPES[kind][0]).title;

// The profile types worth a line each, by the first two parts of their ids.
export const TYPES_EXPLAINED = [
    "process_cpu:cpu", "wall:wall", "off_cpu:off_cpu", "memory:alloc_space", "memory:inuse_space", "mutex:delay", "goroutines:goroutine", "event_loop:lag",
];
