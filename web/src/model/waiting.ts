// SPDX-License-Identifier: Apache-2.0
// Where time passes without CPU, and what is waited for.
//
// What a stack waits for is told by its innermost frames, from the one that went to sleep up to the
// first of the program's own code: beyond that it is the program's affair.  A stack that waits for work
// (an event loop without events, a pool without tasks) is idle, which is no problem; there are as many
// of these as there are threads, and they would hide the rest.
import { TreeBuilder } from "./build";
import { familyOf, type Frame } from "./family";
import { frameOf } from "./palette";
import { nameOf, type Tree } from "./tree";

export const WHYS = ["lock", "database", "io", "timer", "other", "idle"] as const;
export type Why = (typeof WHYS)[number];

export const WHY_TITLE: Record<Why, string> = {
    lock: "Locks",
    database: "Databases",
    io: "Network and files",
    timer: "Timers",
    other: "Other",
    idle: "Idle threads",
};

// Alternatives of an expression, each a word of the text.
const anyOf = (text: string, flags = "") => new RegExp(text.trim().split(/\s+/).join("|"), flags);
const wordOf = (text: string) => anyOf(`(^|[^a-z])(${text.trim().split(/\s+/).join("|")})([^a-z]|$)`, "i");

const LOCK = anyOf(
    String.raw`futex mutex ObjectMonitor semaphore semacquire rwsem pthread_(cond|join|rwlock|barrier) cond_?(timed)?wait
        (^|[^a-z])(lock|down_(read|write)) [a-z]Lock ^Lock (LockSupport|Unsafe)\.park Object\.wait CountDownLatch
        chan(recv|send) selectgo gopark take_gil PyThread_acquire synchroniz`,
    "i",
);
const CLOCK = /(b|c|un|f|B|C|Un|F)lock/g; // "block", "clock", "unlock", "flock" have no lock in them
const TIMER = anyOf(
    String.raw`(^|[^a-z])(clock_)?(nano|u|m)?sleep(_|$|[^a-z]) ^_*schedule_timeout timerfd setTimeout parkNanos parkUntil`,
    "i",
);
const EVENTS = anyOf(
    String.raw`^(__)?(do_)?(epoll_p?wait\d?|ep_poll|kevent|p?poll|sys_poll|p?select\w*|accept4?|wait|wait4|waitpid|pause)$
        ^(poll_schedule_timeout|inet_csk_accept|io_uring_enter|io_cqring_wait|uv__io_poll|sig(timed)?wait\w*)$ netpoll
        (Nio|Epoll|KQueue)EventLoop EPoll\w*\.wait Selector(Impl)?\.(select|lockAndDoSelect) IOLoop`,
);
const POOL = anyOf(
    String.raw`getTask awaitWork (Blocking|Transfer|Synchronous|DelayedWork)Queue queue\.get
        runtime\.(findRunnable|stopm|notesleep|gcBgMarkWorker|bgsweep|bgscavenge|sysmon|templateThread)
        net/http\.\(\*conn\)\.(serve|readRequest) (^|[^a-z])worker(_thread)?$ uv__work WorkerThread WaitForWork
        VMThread WatcherThread kthread rcu_ Sidekiq::(Manager|Launcher) Puma::ThreadPool`,
);
const DRIVER = wordOf(
    String.raw`pg pgx libpq postgres\w* mysql\w* mariadb mongo\w* redis ioredis jedis lettuce memcached? cassandra scylla
        sqlite\w* jdbc hikari dbcp c3p0 sqlx psycopg\w* asyncpg pymysql sqlalchemy activerecord sequel tiberius clickhouse
        elasticsearch couchbase dynamodb oracledb tedious`,
);
const isDatabase = (text: string) => DRIVER.test(text) || /^PQ[a-z]|database\/sql/.test(text);
const CALL = wordOf(
    String.raw`recv(from|msg|v)? send(to|msg|v)? p?readv?(64)? p?writev?(64)? connect getaddrinfo fetch fsync fdatasync
        openat? getdents\w* splice sendfile smtp https? grpc undici axios curl urllib\d? requests socket\w* tls dns`,
);
const KERNEL_IO = anyOf(
    String.raw`^(tcp|udp|sock|inet|unix|skb)_ SSL_ fs_(read|write|open) (ext4|xfs|btrfs|nfs|blk|bio|jbd2|filemap|folio)_
        io_schedule (File|Socket)(Input|Output|Channel|Dispatcher) send_smtp`,
);
const isIo = (text: string) => CALL.test(text) || KERNEL_IO.test(text);

const PACKAGE = /^.*\/(node_modules|site-packages|dist-packages|gems)\//;
const CLIENT = /^(undici|axios|got|node-fetch|aiohttp|httpx|requests|urllib3|faraday)/;

const RULES: [Why, (text: string) => boolean][] = [
    ["timer", (text) => TIMER.test(text)],
    ["idle", (text) => EVENTS.test(text)],
    ["lock", (text) => LOCK.test(text)],
    ["io", isIo],
];
const MOST = 24; // frames to look at

const textOf = (frame: Frame) => frame.name.replace(CLOCK, "");

// Frames from the innermost outwards.
export function whyOf(frames: Iterable<Frame>): Why {
    let why: Why = "other";
    let [database, pool, looked] = [false, false, 0];
    for (const frame of frames) {
        const text = textOf(frame);
        const inside = PACKAGE.test(frame.file) ? frame.file.replace(PACKAGE, "") : "";
        if (why === "other") why = RULES.find(([, rule]) => rule(text))?.[0] ?? (CLIENT.test(inside) ? "io" : "other");
        database ||= isDatabase(frame.name) || isDatabase(inside.split("/")[0]);
        pool ||= POOL.test(frame.name);
        if (++looked >= MOST || familyOf(frame) === "own") break;
    }
    if (database && why !== "lock" && why !== "timer") return "database";
    return pool && (why === "lock" || why === "other" || why === "timer") ? "idle" : why;
}

// Of each node, what stacks that end in it wait for; null: none does.
export function whysOf(tree: Tree): (Why | null)[] {
    function* inwards(node: number): Generator<Frame> {
        for (let at = node; at > 0; at = tree.parent[at]) yield frameOf(tree, tree.name[at]);
    }
    return Array.from({ length: tree.n }, (_, node) => (tree.self[node] > 0 ? whyOf(inwards(node)) : null));
}

export function sumsOf(tree: Tree, whys: (Why | null)[]): Record<Why, number> {
    const sums: Record<Why, number> = { lock: 0, database: 0, io: 0, timer: 0, other: 0, idle: 0 };
    whys.forEach((why, node) => why && (sums[why] += tree.self[node]));
    return sums;
}

// The stacks that are chosen, and no others.
export function chosen(tree: Tree, choose: (node: number) => boolean): Tree {
    const leads = new Uint8Array(tree.n);
    for (let i = tree.n - 1; i > 0; i--)
        if ((tree.self[i] > 0 && choose(i)) || leads[i]) leads[i] = leads[tree.parent[i]] = 1;
    const builder = new TreeBuilder(tree, tree.other, false);
    const to = new Int32Array(tree.n);
    for (let i = 0; i < tree.n; i++) {
        if (i && !leads[i]) continue;
        to[i] = builder.child(i ? to[tree.parent[i]] : -1, tree.name[i], i);
        if (tree.self[i] > 0 && choose(i)) builder.add(to[i], tree.self[i], 0);
    }
    return builder.finish();
}

// Wall time less CPU time, stack by stack; `factor` makes the CPU time comparable (it covers another
// time).  What chance made negative is nought.
export function gapOf(wall: Tree, cpu: Tree, factor: number): Tree {
    const spent = new Float64Array(wall.n);
    const pairs: [number, number][] = wall.n && cpu.n ? [[0, 0]] : [];
    while (pairs.length) {
        const [a, b] = pairs.pop()!;
        spent[a] = cpu.self[b] * factor;
        const byName = new Map<string, number>();
        for (let child = b + 1; child < cpu.end[b]; child = cpu.end[child]) byName.set(nameOf(cpu, child), child);
        for (let child = a + 1; child < wall.end[a]; child = wall.end[child]) {
            const other = byName.get(nameOf(wall, child));
            if (other !== undefined) pairs.push([child, other]);
        }
    }
    const self = wall.self.map((value, node) => Math.max(0, value - spent[node]));
    return chosen({ ...wall, self }, () => true);
}

export interface WaitRow {
    name: string;
    file: string;
    module: string;
    self: number;
    total: number; // a function that recurses counts once
    why: Why; // of most of what it or what it calls waits
}

// Who waits where a stack ends in the kernel: whoever called it, for all of them end there.
function sleeperOf(tree: Tree, node: number): number {
    let at = node;
    while (at > 0 && frameOf(tree, tree.name[at]).kind === "kernel") at = tree.parent[at];
    return at > 0 ? at : node;
}

// Functions, by their names and files.
export function rowsOf(tree: Tree, whys: (Why | null)[]): WaitRow[] {
    const self = new Float64Array(tree.n);
    for (let node = 1; node < tree.n; node++) if (tree.self[node]) self[sleeperOf(tree, node)] += tree.self[node];
    const rows = new Map<number, WaitRow & { parts: Partial<Record<Why, number>> }>();
    const open = new Map<number, number>(); // name: end of its outermost node
    const below = Array.from({ length: tree.n }, () => ({}) as Partial<Record<Why, number>>);
    for (let node = tree.n - 1; node > 0; node--) {
        const why = whys[node];
        if (why) below[node][why] = (below[node][why] ?? 0) + tree.self[node];
        for (const [key, value] of Object.entries(below[node]) as [Why, number][])
            below[tree.parent[node]][key] = (below[tree.parent[node]][key] ?? 0) + value;
    }
    for (let node = 1; node < tree.n; node++) {
        const id = tree.name[node];
        const frame = frameOf(tree, id);
        const row = rows.get(id) ?? {
            name: frame.name,
            file: frame.file,
            module: frame.module,
            self: 0,
            total: 0,
            why: "other" as Why,
            parts: {},
        };
        rows.set(id, row);
        row.self += self[node];
        if (node < (open.get(id) ?? 0)) continue;
        open.set(id, tree.end[node]);
        row.total += tree.total[node];
        for (const [why, value] of Object.entries(below[node]) as [Why, number][])
            row.parts[why] = (row.parts[why] ?? 0) + value;
    }
    return [...rows.values()].map(({ parts, ...row }) => ({
        ...row,
        why: (Object.entries(parts) as [Why, number][]).sort((a, b) => b[1] - a[1])[0]?.[0] ?? "other",
    }));
}
