// SPDX-License-Identifier: Apache-2.0
// Invented profiles of any size, as the API answers them: deep, with few large subtrees and many small ones.
import type { Flamegraph } from "../../web/src/api/answers";

const NAMES = 20000;
const DEEPEST = 60;

function random(seed: number): () => number {
    return () => {
        seed = (Math.imul(seed ^ (seed >>> 15), 2246822507) + 0x9e3779b9) | 0;
        return ((seed ^ (seed >>> 13)) >>> 0) / 4294967296;
    };
}

const SHAPES: ((i: number) => [string, string, string, string])[] = [
    (i) => [`acme::shop${i % 40}::Engine::run${i}(int)`, `/src/shop${i % 40}/run.cc`, "/srv/shop/bin/shop", "native"],
    (i) => [`github.com/acme/shop/p${i % 50}.(*Cart).Add${i}`, `/src/shop/p${i % 50}/cart.go`, "/srv/shop/bin/shop", "go"],
    (i) => [`encoding/json.decode${i}`, "/usr/local/go/src/encoding/json/decode.go", "/srv/shop/bin/shop", "go"],
    (i) => [`handle${i}`, `/srv/node_modules/lib${i % 60}/index.js`, "/usr/bin/node", "v8js"],
    (i) => [`tcp_work_${i}`, "", "[kernel]", "kernel"],
    (i) => [`v8::internal::Heap::Collect${i}()`, "", "/usr/bin/node", "native"],
    (i) => [`libz.so.1+0x${(i * 4096).toString(16)}`, "", "/usr/lib/libz.so.1", "native"],
];

function namesOf(next: () => number): Pick<Flamegraph, "names" | "files" | "modules" | "kinds"> {
    const rows = Array.from({ length: NAMES }, (_, i) => SHAPES[Math.floor(next() * SHAPES.length)](i));
    const column = (k: number) => ["", ...rows.map((row) => row[k])];
    return { names: ["total", ...rows.map((row) => row[0])], files: column(1), modules: column(2), kinds: column(3) };
}

// Preorder: each step goes down, stays or climbs; subtrees begin with a share of their caller's weight.
export function invented(n: number, seed = 7): Flamegraph {
    const next = random(seed);
    const name = new Array<number>(n);
    const depth = new Array<number>(n);
    const self = new Array<number>(n);
    const total = new Array<number>(n).fill(0);
    const parent = new Int32Array(n);
    const path = [0];
    name[0] = depth[0] = self[0] = 0;
    for (let i = 1; i < n; i++) {
        const up = next() < 0.45 ? Math.floor(next() ** 3 * path.length) : 0;
        path.length = Math.max(1, Math.min(path.length - up, DEEPEST - 1));
        parent[i] = path[path.length - 1];
        depth[i] = path.length;
        name[i] = 1 + Math.floor(next() ** 2 * (NAMES - 1));
        self[i] = Math.round(1e6 * next() ** 8) + 1;
        path.push(i);
    }
    for (let i = n - 1; i >= 0; i--) {
        total[i] += self[i];
        if (i) total[parent[i]] += total[i];
    }
    return { ...namesOf(next), name, depth, self, total, other: null, nodes_all: n, error_bound: 0 };
}
