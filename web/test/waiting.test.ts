// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Flamegraph } from "../src/api/answers";
import { pathOf, treeOf, type Tree } from "../src/model/tree";
import { chosen, gapOf, rowsOf, sumsOf, whyOf, whysOf } from "../src/model/waiting";

const frame = (name: string, file = "", kind = "native", module = "/usr/lib/libc.so.6") => ({
    name,
    file,
    kind,
    module: file ? "" : module,
});
const own = (name: string) => frame(name, "/srv/shop/main.js", "v8js");

// Lines of "indent name self"; names with a capital are own code.
function drawn(text: string): Tree {
    const flame: Flamegraph = {
        names: [],
        files: [],
        modules: [],
        kinds: [],
        name: [],
        depth: [],
        self: [],
        total: [],
        other: null,
        nodes_all: null,
        error_bound: 0,
    };
    for (const line of text.split("\n").filter((one) => one.trim())) {
        const [name, self] = line.trim().split(/\s+/);
        let id = flame.names.indexOf(name);
        if (id < 0) {
            id = flame.names.push(name) - 1;
            const isOwn = /^[A-Z]/.test(name);
            flame.files.push(isOwn ? "/srv/shop/main.js" : "");
            flame.modules.push(isOwn || !id ? "" : "/usr/lib/libc.so.6");
            flame.kinds.push(isOwn ? "v8js" : "native");
        }
        flame.name.push(id);
        flame.depth.push((line.length - line.trimStart().length) / 2);
        flame.self.push(Number(self));
    }
    flame.total = flame.self.map((_, i) => {
        let sum = flame.self[i];
        for (let j = i + 1; j < flame.depth.length && flame.depth[j] > flame.depth[i]; j++) sum += flame.self[j];
        return sum;
    });
    return treeOf(flame);
}
const told = (tree: Tree) =>
    Array.from({ length: tree.n }, (_, i) => i)
        .filter((i) => tree.self[i] > 0)
        .map((i) => `${pathOf(tree, i).join(" ")} ${tree.self[i]}`);

test("what a stack waits for is told by its innermost frames", () => {
    const says = (...frames: ReturnType<typeof frame>[]) => whyOf(frames);
    assert.equal(
        says(
            frame("__schedule", "", "kernel", "vmlinux"),
            frame("futex_wait_queue", "", "kernel", "vmlinux"),
            own("save"),
        ),
        "lock",
    );
    assert.equal(says(frame("pthread_mutex_lock"), own("save")), "lock");
    assert.equal(says(frame("tcp_recvmsg", "", "kernel", "vmlinux"), frame("read"), own("load")), "io");
    assert.equal(says(frame("uv__fs_read"), own("load")), "io");
    assert.equal(says(frame("nanosleep"), own("retry")), "timer");
    assert.equal(says(frame("epoll_wait"), frame("uv__io_poll"), frame("uv_run"), frame("main")), "idle");
    assert.equal(says(own("compute")), "other");
});

test("a driver of a database counts more than the socket it reads", () => {
    const pg = frame("Client.query", "/srv/shop/node_modules/pg/lib/client.js", "v8js");
    assert.equal(whyOf([frame("read"), pg, own("saveOrder")]), "database");
    assert.equal(
        whyOf([frame("poll"), frame("PQgetResult", "", "native", "/usr/lib/libpq.so.5"), own("load")]),
        "database",
    );
    assert.equal(whyOf([frame("github.com/jackc/pgx/v5.(*Conn).Exec", "", "go"), own("Save")]), "database");
});

test("a pool without tasks is idle, a lock inside a task is not", () => {
    const java = (name: string) => frame(name, "X.java", "jvm");
    const pool = [
        java("jdk.internal.misc.Unsafe.park"),
        java("java.util.concurrent.LinkedBlockingQueue.take"),
        java("java.util.concurrent.ThreadPoolExecutor.getTask"),
        java("java.lang.Thread.run"),
    ];
    assert.equal(whyOf(pool), "idle");
    assert.equal(
        whyOf([pool[0], java("java.util.concurrent.locks.ReentrantLock.lock"), java("shop.Cache.put"), pool[3]]),
        "lock",
    );
});

test("clocks, blocks and unlocks are no locks", () => {
    for (const name of ["clock_gettime", "blkdev_block", "pthread_mutx_unlock", "readBlock"])
        assert.notEqual(whyOf([frame(name), own("f")]), "lock", name);
});

test("beyond own code a stack is the program's affair", () => {
    assert.equal(whyOf([own("compute"), frame("epoll_wait")]), "other");
});

const WAITS = `
total 0
  main 0
    epoll_wait 60
    Handle 0
      Save 5
        futex_wait 20
      Load 0
        recv 15
`;

test("idle stacks can be taken away, and totals follow", () => {
    const tree = drawn(WAITS);
    const whys = whysOf(tree);
    assert.deepEqual(sumsOf(tree, whys), { lock: 20, database: 0, io: 15, timer: 0, other: 5, idle: 60 });
    const busy = chosen(tree, (node) => whys[node] !== "idle");
    assert.equal(busy.total[0], 40);
    assert.deepEqual(told(busy), ["main Handle Save 5", "main Handle Save futex_wait 20", "main Handle Load recv 15"]);
});

test("functions are added up over their places, and have the reason of most of it", () => {
    const tree = drawn(WAITS);
    const rows = Object.fromEntries(rowsOf(tree, whysOf(tree)).map((row) => [row.name, row]));
    assert.deepEqual([rows.Handle.self, rows.Handle.total, rows.Handle.why], [0, 40, "lock"]);
    assert.deepEqual([rows.main.total, rows.main.why], [100, "idle"]);
    assert.deepEqual([rows.recv.self, rows.recv.why], [15, "io"]);
});

test("a function that recurses counts once", () => {
    const tree = drawn("total 0\n  F 1\n    F 2\n      futex_wait 4\n  F 8");
    const row = rowsOf(tree, whysOf(tree)).find(({ name }) => name === "F")!;
    assert.deepEqual([row.self, row.total], [11, 15]);
});

test("wall less CPU is what was waited, stack by stack", () => {
    const wall = drawn("total 0\n  F 100\n    recv 50\n  G 30");
    const cpu = drawn("total 0\n  F 20\n    recv 2\n    parse 9\n  G 40");
    assert.deepEqual(told(gapOf(wall, cpu, 2)), ["F 60", "F recv 46"]);
});

test("who went to sleep in the kernel is the function that called it", () => {
    const text = "total 0\n  Main 0\n    read 0\n      sys_read 2\n        schedule 5\n  kthread 0\n    kworker 3";
    const tree = drawn(text);
    tree.kinds = tree.names.map((name) => (/^(sys_|sched|kthr|kwork)/.test(name) ? "kernel" : "native"));
    const rows = new Map(rowsOf(tree, whysOf(tree)).map((row) => [row.name, [row.self, row.total]]));
    assert.deepEqual(rows.get("read"), [7, 7]);
    assert.deepEqual(rows.get("sys_read"), [0, 7]);
    assert.deepEqual(rows.get("schedule"), [0, 5]);
    assert.deepEqual(rows.get("kworker"), [3, 3]); // a thread of the kernel's own
});

test("polling in the kernel is no timer", () => {
    const kernel = (name: string) => frame(name, "", "kernel", "[kernel]");
    assert.equal(whyOf([kernel("poll_schedule_timeout"), kernel("do_sys_poll"), frame("poll")]), "idle");
    assert.equal(whyOf([kernel("schedule_timeout"), kernel("msleep")]), "timer");
    assert.equal(whyOf([kernel("io_schedule_timeout"), kernel("ext4_readpage")]), "io");
});
