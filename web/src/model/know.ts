// SPDX-License-Identifier: Apache-2.0
// What Kiln knows of profile types: what to call them, what they sample, what they are good for, and
// what looks wrong in them.

export interface Knowledge {
    title: string; // how people call it
    term: string; // what it is called elsewhere
    samples: string;
    useFor: string;
    redFlags: string[];
}

const CPU: Knowledge = {
    title: "CPU time",
    term: "on-CPU profile",
    samples: "Stacks that were running on a processor, many times a second.",
    useFor: "Hot functions, wasted cycles, the choice of an algorithm.",
    redFlags: [
        "One function takes more than half",
        "Deep recursion",
        "JSON, strings or regular expressions on top",
        "Synchronous crypto or compression while a request waits",
    ],
};
const WALL: Knowledge = {
    title: "Wall time",
    term: "wall-clock profile",
    samples: "Time that passes in a function, waiting included.",
    useFor: "Input and output that stalls, locks, calls that block.",
    redFlags: ["Much wall time where there is little CPU time: it waits"],
};
const WAITING: Knowledge = {
    title: "Waiting",
    term: "off-CPU profile",
    samples: "Time that threads spend off the processor, and where they went to sleep.",
    useFor: "Locks, disks, networks, sleeps: latency without CPU.",
    redFlags: ["One lock that many stacks wait for", "A database call under every request"],
};
const ALLOCATED: Knowledge = {
    title: "Allocated",
    term: "allocation profile",
    samples: "Where memory was asked for, sampled by bytes.",
    useFor: "Pressure on the garbage collector, churn of memory.",
    redFlags: ["Many short-lived allocations in a tight loop", "Buffers joined again and again"],
};
const IN_USE: Knowledge = {
    title: "In use",
    term: "heap profile",
    samples: "Memory that was still held when the snapshot was taken, by who asked for it.",
    useFor: "Leaks, and how large things are.",
    redFlags: ["Something grows with every snapshot, while traffic does not"],
};
const LOCKS: Knowledge = {
    title: "Lock contention",
    term: "mutex profile",
    samples: "Stacks that held a lock while others waited for it.",
    useFor: "Tuning what runs at the same time.",
    redFlags: ["One lock delays many stacks"],
};
const BLOCKED: Knowledge = {
    title: "Blocking",
    term: "block profile",
    samples: "Stacks that waited for a lock, a channel or a condition.",
    useFor: "Finding who waits, and for what.",
    redFlags: ["A queue that a single worker empties"],
};
const THREADS: Knowledge = {
    title: "Threads",
    term: "thread or goroutine profile",
    samples: "What each thread or goroutine was doing at that moment.",
    useFor: "Leaks of threads, too many of them, tasks that never end.",
    redFlags: ["Their number only ever grows"],
};
const LAG: Knowledge = {
    title: "Event loop lag",
    term: "event loop delay",
    samples: "How late timers and ticks of the event loop came.",
    useFor: "Finding what blocks the loop of a Node program.",
    redFlags: ["High lag while the CPU is at its plateau: something synchronous holds the loop"],
};

const BY_TYPE: Record<string, Knowledge> = {
    "process_cpu:cpu": CPU,
    "off_cpu:off_cpu": WAITING,
    "wall:wall": WALL,
    "memory:alloc_space": { ...ALLOCATED, title: "Allocated bytes" },
    "memory:alloc_objects": { ...ALLOCATED, title: "Allocated objects" },
    "memory:inuse_space": { ...IN_USE, title: "Memory in use" },
    "memory:inuse_objects": { ...IN_USE, title: "Objects in use" },
    "mutex:contentions": { ...LOCKS, title: "Lock contentions" },
    "mutex:delay": { ...LOCKS, title: "Lock delay" },
    "block:contentions": { ...BLOCKED, title: "Blocking events" },
    "block:delay": { ...BLOCKED, title: "Blocking time" },
    "goroutines:goroutine": { ...THREADS, title: "Goroutines" },
    "goroutine:goroutine": { ...THREADS, title: "Goroutines" },
    "threads:threads": THREADS,
    "event_loop:lag": LAG,
};

export const CPU_TYPE = "process_cpu:cpu:nanoseconds:cpu:nanoseconds";
export const MEMORY_TYPE = "memory:inuse_space:bytes:space:bytes";

// The first two parts of an id decide; a type that nobody knows is called by its own words.
export function knowledgeOf(typeId: string): Knowledge {
    const [name, type] = typeId.split(":");
    const known = BY_TYPE[`${name}:${type}`];
    if (known) return known;
    const title = !type || name === type ? name : `${name} ${type}`;
    return { title: title.replace(/_/g, " "), term: typeId, samples: "", useFor: "", redFlags: [] };
}

// In lists: CPU first, then as people reach for them, what is unknown last.
export function typeOrder(a: string, b: string): number {
    const rank = (id: string) => {
        const at = Object.keys(BY_TYPE).indexOf(id.split(":").slice(0, 2).join(":"));
        return at < 0 ? 99 : at;
    };
    return rank(a) - rank(b) || (a < b ? -1 : 1);
}
