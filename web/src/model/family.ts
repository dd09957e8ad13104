// SPDX-License-Identifier: Apache-2.0
// Whose cost a frame is: own code, a library, the runtime (event loop, collector, start-up) or the
// kernel; what it belongs to; and the forms it is told apart by.  All from what a frame says of
// itself: name, file, module, kind.  A rule that is not sure says own code, because to be shown too
// much of it is less bad than to miss it.

export type Family = "root" | "own" | "library" | "runtime" | "kernel";

export interface Frame {
    name: string;
    file: string;
    module: string;
    kind: string;
}

export interface Form {
    jit: boolean;
    inlined: boolean;
    nameless: boolean; // FILE+0xBEGIN: nobody knows its name
}

export const ROOT_KIND = "root"; // of rows that the page makes itself: all, a label's value, a thread

export const baseName = (path: string) => path.slice(path.replace(/\/+$/, "").lastIndexOf("/") + 1);

const NAMELESS = /(^|\+)0x[0-9a-f]{1,16}$/;
const JIT_KINDS = new Set(["v8js", "jvm", "dotnet", "phpjit", "luajit", "beam"]);

export const isJit = (kind: string) => JIT_KINDS.has(kind);

export function formOf(frame: Frame, inlined = false): Form {
    return {
        jit: isJit(frame.kind) || frame.name.endsWith("_[j]"),
        inlined: inlined || frame.name.endsWith("_[i]"),
        nameless: !frame.file && (NAMELESS.test(frame.name) || frame.name === "(unknown)" || /^\[[^\]]+\]$/.test(frame.name)),
    };
}

// ---- kernel and native code ----

const KERNEL_MODULE = /^(\[?kernel|\[?vmlinux|\[guest\.kernel|vmlinux)|\.ko(\.\w+)?\]?$/;
const START = /^(_start|_dl_start\w*|__libc_start\w*|__libc_init_first|generic_start_main|start_thread|__?clone3?|clone3?|thread_start|__start_thread|\(?root\)?|__GI___clone\w*)$/;
const RUNTIME_PROGRAM = /^(node|nodejs|java|python[\d.]*|pypy[\d.]*|ruby[\d.]*|perl[\d.]*|php[\w.-]*|dotnet|beam(\.smp)?|deno|bun|mono|erl)$/;
const RUNTIME_LIBRARY = /^lib(jvm|node|python|ruby|perl|php|coreclr|clrjit|mono|uv|v8|java|jli|zip_jvm|luajit|hostfxr|hostpolicy)[\w.+-]*\.so/;
const SYSTEM_PATH = /^\/(usr\/)?(local\/)?lib(32|64|x32)?\/|^\/snap\/|^\/nix\/store\//;
const CPP_LIBRARY = /^(void |bool |int |auto )?(std|__gnu_cxx|__cxxabi\w*|boost|absl|google|folly|grpc|grpc_core|fmt|spdlog|rocksdb|leveldb|Eigen|tbb|asio|nlohmann|rapidjson|simdjson|tcmalloc|re2|icu[_\d]*|abi|v8|cxxbridge\d)::|^(operator (new|delete)|__cxa_|je_|tc_|mi_|_Unwind_)/;
const V8_PLUMBING = /Heap|Scaveng|Mark|Sweep|Evacuat|Collect|Compil|TurboFan|Maglev|Turboshaft|Worker|Isolate|Execution|Invoke|Microtask|Runtime_|Platform|Snapshot|Stub|Entry/;

const isSharedObject = (module: string) => /\.so(\.|$)|\.dylib$|\.dll$/i.test(module) || module.startsWith("[vdso]");

function rustFamily(name: string, file: string): Family | null {
    const path = name.replace(/^<+(dyn |impl |&|mut )*/, "");
    if (/^(std::(rt|sys|sys_common|panic|panicking|thread)::|__rust_|tokio::runtime|core::ops::function|rayon_core::)/.test(path)) return "runtime";
    if (/^(std|core|alloc|hashbrown|tokio|hyper|h2|serde\w*|futures\w*|tracing\w*|rayon|regex\w*|bytes|axum|tower\w*|reqwest|rustls|ring|crossbeam\w*|parking_lot\w*|memchr|aho_corasick)::/.test(path)) return "library";
    return /\/(\.cargo\/registry|rustc|rustlib)\//.test(file) ? "library" : null;
}

// In node's own program: the loop, the collector and the compilers run programs; the rest is what programs
// call: JSON, regular expressions, maps, compression.
function engineFamily(name: string): Family {
    if (/^(void |bool |int )?(node|v8::platform)::|^uv_|^main$/.test(name)) return "runtime";
    return name.includes("::") && V8_PLUMBING.test(name.replace(/^Builtins_/, "")) ? "runtime" : "library";
}

function nativeFamily({ name, file, module, kind }: Frame): Family {
    const base = baseName(module);
    if (START.test(name)) return "runtime";
    if (/^(node|nodejs|deno|libnode|libv8)\b/.test(base)) return engineFamily(name);
    if (RUNTIME_LIBRARY.test(base) || RUNTIME_PROGRAM.test(base)) return "runtime";
    if (kind === "rust" || /::h[0-9a-f]{16}$/.test(name) || file.endsWith(".rs")) {
        const rust = rustFamily(name, file);
        if (rust) return rust;
    }
    if (isSharedObject(base) || SYSTEM_PATH.test(module)) return "library";
    if (CPP_LIBRARY.test(name) || /^\/usr\/(local\/)?include\/|\/third_party\/|\/_deps\/|\/\.conan\d?\/|\/vcpkg\//.test(file)) return "library";
    return "own";
}

// ---- languages ----

const GO_RUNTIME = /^(runtime|runtime\/[\w/]+|internal\/runtime[\w/]*|internal\/poll|internal\/abi|gcWriteBarrier|reflect|go\.itab)(\.|$)/;
const GO_PACKAGE = /^((?:[\w.~-]+\/)*[\w~-]+)\./;

const goPackage = (name: string) => GO_PACKAGE.exec(name.replace(/\[.*\]/, ""))?.[1] ?? "";

function goFamily({ name, file }: Frame): Family {
    const inside = goPackage(name);
    if (GO_RUNTIME.test(inside + ".") || /^runtime[./]/.test(name)) return "runtime";
    if (inside === "main") return "own";
    if (/\/pkg\/mod\/|\/vendor\/|^vendor\//.test(file) || inside.startsWith("vendor/")) return "library";
    if (/(^|\/)go[\d.]*\/src\//.test(file)) return "library";
    const first = inside.split("/")[0];
    if (GO_STANDARD.has(first)) return "library";
    return !file && first.includes(".") && inside.includes("/") ? "library" : "own";
}

const GO_STANDARD = new Set(("archive bufio bytes cmp compress container context crypto database debug embed encoding errors expvar flag fmt go hash html " +
    "image index internal io iter log maps math mime net os path plugin reflect regexp slices sort strconv strings sync syscall testing text time unicode unique unsafe").split(" "));

const JVM_RUNTIME = /^(java\.lang\.(Thread|VirtualThread|ThreadBuilders|reflect|invoke|ref|Shutdown|Class(Loader)?[.$])|java\.util\.concurrent\.(ThreadPoolExecutor|ForkJoin|FutureTask|Executors|ScheduledThread)|jdk\.internal\.(reflect|vm|misc|invoke)|sun\.(reflect|misc|launcher))/;
const JVM_LIBRARY = /^(java|javax|jdk|sun|com\.sun|kotlin|kotlinx|scala|groovy|clojure|jakarta|akka|play|zio|cats|org\.(apache|springframework|hibernate|eclipse|jboss|slf4j|postgresql|mongodb|elasticsearch|lucene|w3c|xml|glassfish|jooq|bouncycastle|codehaus|json|mockito|junit|xerial|h2|xnio)|io\.(netty|grpc|micrometer|vertx|quarkus|micronaut|undertow|lettuce|opentelemetry|prometheus|reactivex|confluent|ktor|r2dbc|swagger)|com\.(google|fasterxml|zaxxer|mysql|amazonaws|azure|datadog|github|squareup|rabbitmq|oracle|ibm|microsoft|typesafe|mongodb|hazelcast|lmax)|reactor|okhttp3|okio|retrofit2|redis|ch\.qos|net\.(bytebuddy|sf|openhft)|software\.amazon|feign|rx)\./;
const jvmPath = (name: string) => name.replace(/^[\w.$<>[\]]+ (?=[\w.$/]+[.(])/, "").replace(/\//g, ".");

function jvmFamily(frame: Frame): Family {
    const path = jvmPath(frame.name);
    if (JVM_RUNTIME.test(path) || !/[.$]/.test(path)) return "runtime"; // stubs and the interpreter have no class
    return JVM_LIBRARY.test(path) ? "library" : "own";
}

function pythonFamily({ name, file }: Frame): Family {
    if (/^<frozen (importlib|runpy|zipimport|getpath)|\/(runpy|threading|selectors)\.py$|\/asyncio\/|\/concurrent\/futures\/|\/multiprocessing\//.test(file)) return "runtime";
    if (/\/(site|dist)-packages\/|\/lib\/python[\d.]+\/|\/lib\/pypy|^<(frozen|string|__array)/.test(file)) return "library";
    return !file && /^(_?Py|py)[A-Z_]/.test(name) ? "runtime" : "own";
}

function scriptFamily({ name, file }: Frame): Family {
    if (/node_modules\//.test(file)) return "library";
    const core = /^node:([\w/]+)/.exec(file);
    if (core) return /^(internal|events|timers|_http|http|net|stream|async_hooks|domain|_stream|diagnostics|module|vm)/.test(core[1]) ? "runtime" : "library";
    if (/^\((garbage collector|program|idle|root|no symbol)\)/.test(name)) return "runtime";
    if (file) return "own";
    return /^(JSON|Array|Map|Set|Object|Promise|RegExp|String|Date|Math|Number|Buffer|Symbol|Reflect|Proxy|Weak\w+|Typed\w+|\w+Array)\b[.:]/.test(name) ? "library" : "own";
}

function rubyFamily({ file }: Frame): Family {
    if (/^<internal:|^<cfunc>/.test(file)) return "runtime";
    return /\/gems\/|\/lib\/ruby\//.test(file) ? "library" : "own";
}

const byFolder = (library: RegExp) => ({ file }: Frame): Family => (library.test(file) ? "library" : "own");
const phpFamily = byFolder(/\/vendor\//);
const perlFamily = byFolder(/\/(usr\/(local\/)?(share|lib)\/|lib\/)[\w-]*\/?perl/);

function dotnetFamily({ name }: Frame): Family {
    if (/^System\.Threading\.(ThreadPool|PortableThreadPool|Thread\b|Tasks\.Task)|^System\.Private\./.test(name)) return "runtime";
    return /^(System|Microsoft|Newtonsoft|Grpc|Npgsql|Serilog|Dapper|AutoMapper)[.!]/.test(name) ? "library" : "own";
}

function beamFamily({ name }: Frame): Family {
    const module = name.split(":")[0];
    if (/^(gen_server|gen_statem|proc_lib|supervisor|gen|erts_\w+|erlang|init|timer)$/.test(module)) return "runtime";
    return /^(lists|maps|ets|binary|string|io\w*|file|gen_tcp|ssl\w*|crypto|cowboy\w*|Elixir\.(Enum|String|Map|Stream|List|Kernel|GenServer|Plug|Phoenix|Ecto|DBConnection|Jason)[\w.]*)$/.test(module) ? "library" : "own";
}

const BY_KIND = new Map(Object.entries<(frame: Frame) => Family>({
    go: goFamily, jvm: jvmFamily, cpython: pythonFamily, v8js: scriptFamily, ruby: rubyFamily, php: phpFamily,
    phpjit: phpFamily, perl: perlFamily, dotnet: dotnetFamily, beam: beamFamily,
}));

const BY_ENDING: [RegExp, string][] = [
    [/\.go$/, "go"], [/\.py[cx]?$|^<frozen/, "cpython"], [/\.[cm]?[jt]sx?$|^node:/, "v8js"], [/\.(java|kt|scala|groovy|clj)$/, "jvm"],
    [/\.rb$/, "ruby"], [/\.php$/, "php"], [/\.(cs|fs|vb)$/, "dotnet"], [/\.p[lm]$/, "perl"], [/\.(erl|exs?)$/, "beam"],
];

// The language a frame speaks: as its kind says, or the end of its file's name.
export function languageOf(frame: Frame): string {
    if (BY_KIND.has(frame.kind) || frame.kind === "kernel" || frame.kind === ROOT_KIND) return frame.kind;
    const known = BY_ENDING.find(([ending]) => ending.test(frame.file));
    if (known) return known[1];
    if (!frame.module && /^runtime\.\w|^main\.\w/.test(frame.name)) return "go";
    return frame.kind;
}

const isKernel = ({ name, module, kind }: Frame) => kind === "kernel" || KERNEL_MODULE.test(baseName(module)) || name.endsWith("_[k]");

// As the server calls the root of everything.
const isWhole = ({ name, file, module, kind }: Frame) => name === "total" && !file && !module && !kind;

export function familyOf(frame: Frame, pinned?: ReadonlySet<string>): Family {
    if (frame.kind === ROOT_KIND || isWhole(frame)) return "root";
    if (isKernel(frame)) return "kernel";
    const language = languageOf(frame);
    if (pinned?.size && (pinned.has(frame.module) || pinned.has(unitOf(frame)))) return "own";
    return (BY_KIND.get(language) ?? nativeFamily)(frame);
}

// ---- what it belongs to ----

const withoutArguments = (name: string) => name.replace(/[({<[].*$/s, "");

function nativeUnit({ name, module, file, kind }: Frame): string {
    const base = baseName(module).replace(/\.so[\d.]*$/, "");
    if (base && (isSharedObject(module) || RUNTIME_PROGRAM.test(base))) return base;
    const plain = withoutArguments(name.replace(/^<+(dyn |impl |&|mut )*/, "")).replace(/^.* (?=[\w:~]+$)/, "");
    const spaces = plain.split("::");
    if (spaces.length > 1 && spaces[0]) return spaces.slice(0, kind === "rust" ? Math.min(2, spaces.length - 1) : -1).join("::");
    const folder = file.split("/").slice(-2, -1)[0];
    return folder || base;
}

const COMMON_FOLDER = /^(src|lib|app|dist|built|build|source|sources|internal|pkg)$/;

function fileUnit(file: string): string {
    const inside = /(?:.*\/)?(?:node_modules|site-packages|dist-packages|gems)\/((?:@[^/]+\/)?[^/]+)/.exec(file);
    if (inside) return inside[1].replace(/\.py$/, "");
    if (file.startsWith("node:") || file.startsWith("<")) return file.split("/")[0];
    const parts = file.split("/");
    const said = parts.filter((part, i) => i === parts.length - 1 || !COMMON_FOLDER.test(part));
    return said.slice(-2).join("/").replace(/\.\w+$/, "");
}

// What a compiler makes of a C function: copies and parts of it.
const CLONE = /^\w+\.(isra|part|constprop|cold|lto_priv|llvm)\b/;

// "IndexSearcher.search" of "org.apache.lucene.search.IndexSearcher.search": what is left where the whole
// does not fit.
export function shortName(name: string): string {
    if (CLONE.test(name)) return name;
    const go = /^(?:[\w.~-]+\/)+(.+)$/.exec(name);
    if (go) return go[1];
    if (/^[\w$]+(\.[\w$<>]+){2,}(\(.*\))?$/.test(name)) return name.replace(/\(.*$/, "").split(".").slice(-2).join(".");
    if (!name.includes("::")) return name;
    const bare = withoutBrackets(name);
    const parts = bare.split("::").filter((part) => part && !/^h[0-9a-f]{16}$/.test(part));
    return parts.slice(-2).join("::").replace(/^.* (?=\S+$)/, "") || name;
}

// Without what stands in (), <> or {}, however deep.
function withoutBrackets(name: string): string {
    if (/operator/.test(name)) return name;
    let depth = 0;
    let kept = "";
    for (const letter of name) {
        if (/[(<{]/.test(letter)) depth++;
        else if (/[)>}]/.test(letter)) depth = Math.max(0, depth - 1);
        else if (!depth) kept += letter;
    }
    return kept;
}

// The package, class or namespace of a frame, else its module: what its neighbours share.
export function unitOf(frame: Frame): string {
    const { name, file, module } = frame;
    if (frame.kind === ROOT_KIND || isWhole(frame)) return "";
    if (isKernel(frame)) return "kernel";
    const language = languageOf(frame);
    if (language === "go") return goPackage(name) || baseName(module);
    if (language === "jvm" || language === "dotnet") {
        const parts = withoutArguments(jvmPath(name)).split(".");
        return parts.length > 1 ? parts.slice(0, -1).join(".") : baseName(module) || language;
    }
    if (language === "cpython" || language === "v8js" || language === "ruby" || language === "php" || language === "perl")
        return file ? fileUnit(file) : baseName(module);
    return nativeUnit(frame) || module;
}

export const FAMILY_WORD: Record<Family, string> = {
    root: "", own: "your code", library: "library", runtime: "runtime", kernel: "kernel",
};
