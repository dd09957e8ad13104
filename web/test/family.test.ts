// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { familyOf, formOf, shortName, unitOf, type Family } from "../src/model/family";

const frame = (name: string, module = "", file = "", kind = "") => ({ name, file, module, kind });
const all = (cases: [Family, string, string?, string?, string?][], pinned?: ReadonlySet<string>) => {
    for (const [family, name, module, file, kind] of cases)
        assert.equal(familyOf(frame(name, module, file, kind), pinned), family, `${name} in ${module || "nothing"} ${file ?? ""}`);
};

test("native code: the program is own, shared libraries are libraries, start-up is runtime", () => all([
    ["own", "parse_order(int)", "/srv/shop/bin/shop", "", "native"],
    ["own", "main", "shop", "", "native"],
    ["library", "malloc", "/usr/lib/x86_64-linux-gnu/libc.so.6", "", "native"],
    ["library", "SSL_read", "libssl.so.3", "", "native"],
    ["library", "std::vector<int>::push_back(int&&)", "/srv/shop/bin/shop", "", "native"],
    ["library", "operator new(unsigned long)", "shop", "", "native"],
    ["runtime", "__libc_start_main", "/usr/lib/libc.so.6", "", "native"],
    ["runtime", "start_thread", "libc.so.6"],
    ["runtime", "JavaThread::run()", "/opt/jdk/lib/server/libjvm.so", "", "native"],
    ["runtime", "_PyEval_EvalFrameDefault", "/usr/bin/python3.11", "", "native"],
]));

test("the kernel is the kernel, whatever it is called", () => all([
    ["kernel", "tcp_sendmsg", "", "", "kernel"],
    ["kernel", "tcp_sendmsg", "[kernel.kallsyms]"],
    ["kernel", "ext4_read", "/lib/modules/6.1/ext4.ko.xz"],
    ["kernel", "do_syscall_64_[k]"],
]));

test("Go: main and modules of one's own, the standard library, the runtime", () => all([
    ["own", "main.handle", "shop", "/src/shop/main.go", "go"],
    ["own", "github.com/acme/shop/cart.(*Cart).Add", "shop", "/src/shop/cart/cart.go", "go"],
    ["library", "github.com/lib/pq.(*conn).query", "shop", "/root/go/pkg/mod/github.com/lib/pq@v1.10/conn.go", "go"],
    ["library", "encoding/json.Marshal", "shop", "/usr/local/go/src/encoding/json/encode.go"],
    ["library", "net/http.(*conn).serve", "", "", "go"],
    ["runtime", "runtime.gcDrain", "shop", "/usr/local/go/src/runtime/mgcmark.go"],
    ["runtime", "runtime/internal/syscall.Syscall6", "", "", "go"],
]));

test("JVM: packages tell", () => all([
    ["own", "com.acme.shop.Cart.add", "", "Cart.java", "jvm"],
    ["library", "java.util.HashMap.put", "", "", "jvm"],
    ["library", "org.springframework.web.servlet.DispatcherServlet.doDispatch", "", "", "jvm"],
    ["library", "io.netty.channel.nio.NioEventLoop.run", "", "NioEventLoop.java"],
    ["runtime", "java.lang.Thread.run", "", "", "jvm"],
    ["runtime", "Interpreter", "", "", "jvm"],
]));

test("Python: files tell", () => all([
    ["own", "handle", "", "/srv/shop/app.py", "cpython"],
    ["library", "request", "", "/usr/lib/python3/dist-packages/requests/api.py", "cpython"],
    ["library", "loads", "", "/usr/lib/python3.11/json/__init__.py", "cpython"],
    ["runtime", "run_forever", "", "/usr/lib/python3.11/asyncio/base_events.py", "cpython"],
    ["runtime", "_call_with_frames_removed", "", "<frozen importlib._bootstrap>", "cpython"],
]));

test("Node: files tell, and V8 is part built-in, part plumbing", () => all([
    ["own", "createOrder", "", "/srv/shop/orders.js", "v8js"],
    ["library", "handle", "", "/srv/shop/node_modules/express/lib/router.js", "v8js"],
    ["runtime", "processTicksAndRejections", "", "node:internal/process/task_queues", "v8js"],
    ["library", "gunzipSync", "", "node:zlib", "v8js"],
    ["runtime", "(garbage collector)", "", "", "v8js"],
    ["runtime", "node::Start(int, char**)", "/usr/bin/node", "", "native"],
    ["library", "Builtins_JsonParse", "/usr/bin/node", "", "native"],
    ["library", "v8::internal::JsonParser<unsigned char>::ParseJsonValue()", "node", "", "native"],
    ["runtime", "v8::internal::Heap::CollectGarbage()", "node", "", "native"],
    ["library", "JSON.parse", "/usr/lib/libnode.so.127", "", "native"],
    ["library", "JSObject::SetOwnProperty", "/usr/lib/libnode.so.127", "", "native"],
    ["runtime", "uv__io_poll", "/usr/bin/node", "", "native"],
]));

test("Rust: crates tell", () => all([
    ["own", "shop::cart::Cart::add", "/srv/shop", "src/cart.rs", "rust"],
    ["library", "serde_json::de::from_str", "/srv/shop", "", "rust"],
    ["library", "<alloc::vec::Vec<T> as core::clone::Clone>::clone", "/srv/shop", "", "rust"],
    ["library", "regex_automata::meta::Regex::search", "/srv/shop", "/root/.cargo/registry/src/x/regex.rs", "rust"],
    ["runtime", "std::rt::lang_start::{{closure}}", "/srv/shop", "", "rust"],
]));

test("a module that the reader pinned is own code", () =>
    all([["own", "decode", "libacme.so.1"]], new Set(["libacme.so.1"])));

test("a function that only its address names is nameless; one with a file is not", () => {
    assert.ok(formOf(frame("libvips.so.42+0x1f3a0", "/usr/lib/libvips.so.42")).nameless);
    assert.ok(formOf(frame("0x7f3a90c41e20")).nameless);
    assert.ok(formOf(frame("(unknown)")).nameless);
    assert.ok(!formOf(frame("hash+0x1", "", "hash.c")).nameless);
    assert.ok(!formOf(frame("to_hex")).nameless);
    assert.ok(formOf(frame("lambda", "", "a.js", "v8js")).jit);
    assert.ok(formOf(frame("swap_[i]")).inlined);
});

test("what it belongs to: package, class, namespace, folder, library", () => {
    const units: [string, string, string?, string?, string?][] = [
        ["net/http", "net/http.(*conn).serve", "shop", "", "go"],
        ["github.com/acme/shop/cart", "github.com/acme/shop/cart.Add[go.shape.int]", "", "", "go"],
        ["com.acme.shop.Cart", "com.acme.shop.Cart.add(int)", "", "", "jvm"],
        ["express", "handle", "", "/srv/node_modules/express/lib/router.js", "v8js"],
        ["@acme/ui", "draw", "", "/srv/node_modules/@acme/ui/x.js", "v8js"],
        ["checkout/rules", "loadRules", "", "/srv/checkout/rules.js", "v8js"],
        ["checkout/rules", "loadRules", "", "/srv/checkout/src/rules.js", "v8js"],
        ["shop::cart", "shop::cart::Cart::add", "/srv/shop", "", "rust"],
        ["acme::pricing", "acme::pricing::compute(int)", "shop", "", "native"],
        ["libc", "malloc", "/usr/lib/libc.so.6"],
        ["kernel", "tcp_sendmsg", "", "", "kernel"],
    ];
    for (const [unit, name, module, file, kind] of units) assert.equal(unitOf(frame(name, module, file, kind)), unit, name);
});

test("a long name has a short one that says most of it", () => {
    const shorts: [string, string][] = [
        ["org.apache.lucene.search.IndexSearcher.search", "IndexSearcher.search"],
        ["shop.Cart$Item.add(int, java.lang.String)", "Cart$Item.add"],
        ["net/http.(*conn).serve", "http.(*conn).serve"],
        ["github.com/acme/shop/cart.Add", "cart.Add"],
        ["void acme::pricing::Engine<int, std::string>::compute(std::vector<int> const&)", "Engine::compute"],
        ["<alloc::vec::Vec<T> as core::clone::Clone>::clone", "clone"],
        ["shop::cart::Cart::add::h0123456789abcdef", "Cart::add"],
        ["std::ostream::operator<<(int)", "ostream::operator<<(int)"],
        ["createOrder", "createOrder"],
        ["Map.get", "Map.get"],
        ["do_syscall_64", "do_syscall_64"],
        ["scan_block.isra.0.cold", "scan_block.isra.0.cold"],
    ];
    for (const [name, short] of shorts) assert.equal(shortName(name), short);
});
