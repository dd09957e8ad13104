/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose code a frame is, is guessed from what compilers, linkers and package managers leave in
 * names and paths.  The rules are tables: the first that fits decides, kernel before runtime before
 * library, and what no rule knows is the program's own.
 */
#include <math.h>

#include "codec/palette.h"

enum field { NAME, SOURCE, MODULE, KIND };
enum how { STARTS, HOLDS, ENDS, IS };

struct rule {
    enum kiln_family family;
    enum field field;
    enum how how;
    const char *text;
};

/* clang-format off */
static const struct rule rules[] = {
    {KILN_FAMILY_KERNEL, KIND, IS, "kernel"},
    {KILN_FAMILY_KERNEL, MODULE, STARTS, "[kernel"},
    {KILN_FAMILY_KERNEL, MODULE, STARTS, "[guest.kernel"},
    {KILN_FAMILY_KERNEL, MODULE, IS, "vmlinux"},
    {KILN_FAMILY_KERNEL, MODULE, HOLDS, ".ko"},
    {KILN_FAMILY_KERNEL, NAME, ENDS, "_[k]"},

    {KILN_FAMILY_LIBRARY, NAME, STARTS, "runtime/pprof."},
    {KILN_FAMILY_LIBRARY, NAME, STARTS, "runtime/trace."},
    {KILN_FAMILY_RUNTIME, NAME, STARTS, "runtime."},
    {KILN_FAMILY_RUNTIME, NAME, STARTS, "runtime/"},
    {KILN_FAMILY_RUNTIME, NAME, STARTS, "internal/runtime/"},
    {KILN_FAMILY_RUNTIME, NAME, STARTS, "gcBgMarkWorker"},
    {KILN_FAMILY_RUNTIME, NAME, STARTS, "__libc_start"},
    {KILN_FAMILY_RUNTIME, NAME, STARTS, "__GI___clone"},
    {KILN_FAMILY_RUNTIME, NAME, IS, "_start"},
    {KILN_FAMILY_RUNTIME, NAME, IS, "start_thread"},
    {KILN_FAMILY_RUNTIME, NAME, IS, "clone"},
    {KILN_FAMILY_RUNTIME, NAME, IS, "clone3"},
    {KILN_FAMILY_RUNTIME, NAME, STARTS, "std::rt::"},
    {KILN_FAMILY_RUNTIME, NAME, STARTS, "std::sys"},
    {KILN_FAMILY_RUNTIME, NAME, STARTS, "core::ops::function::"},
    {KILN_FAMILY_RUNTIME, NAME, STARTS, "node::"},
    {KILN_FAMILY_RUNTIME, NAME, STARTS, "v8::"},
    {KILN_FAMILY_RUNTIME, NAME, STARTS, "uv_"},
    {KILN_FAMILY_RUNTIME, NAME, STARTS, "uv__"},
    {KILN_FAMILY_RUNTIME, NAME, STARTS, "_PyEval_"},
    {KILN_FAMILY_RUNTIME, NAME, STARTS, "PyEval_"},
    {KILN_FAMILY_RUNTIME, NAME, STARTS, "Py_RunMain"},
    {KILN_FAMILY_RUNTIME, NAME, STARTS, "JavaMain"},
    {KILN_FAMILY_RUNTIME, NAME, STARTS, "JavaThread::"},
    {KILN_FAMILY_RUNTIME, NAME, STARTS, "StubRoutines"},
    {KILN_FAMILY_RUNTIME, NAME, STARTS, "call_stub"},
    {KILN_FAMILY_RUNTIME, NAME, STARTS, "Interpreter"},
    {KILN_FAMILY_RUNTIME, NAME, IS, "interpreter"},
    {KILN_FAMILY_RUNTIME, NAME, STARTS, "libjvm.so"},
    {KILN_FAMILY_RUNTIME, NAME, STARTS, "java/lang/Thread.run"},
    {KILN_FAMILY_RUNTIME, NAME, STARTS, "java.lang.Thread.run"},
    {KILN_FAMILY_RUNTIME, NAME, STARTS, "System.Threading"},
    {KILN_FAMILY_RUNTIME, NAME, STARTS, "System.Runtime.CompilerServices"},
    {KILN_FAMILY_RUNTIME, NAME, STARTS, "[GC"},
    {KILN_FAMILY_RUNTIME, SOURCE, STARTS, "node:internal"},
    {KILN_FAMILY_RUNTIME, MODULE, HOLDS, "libjvm.so"},
    {KILN_FAMILY_RUNTIME, MODULE, HOLDS, "libpython"},
    {KILN_FAMILY_RUNTIME, MODULE, HOLDS, "libruby"},
    {KILN_FAMILY_RUNTIME, MODULE, HOLDS, "libcoreclr.so"},
    {KILN_FAMILY_RUNTIME, MODULE, HOLDS, "ld-linux"},
    {KILN_FAMILY_RUNTIME, MODULE, IS, "[vdso]"},

    {KILN_FAMILY_LIBRARY, SOURCE, HOLDS, "/vendor/"},
    {KILN_FAMILY_LIBRARY, SOURCE, HOLDS, "/pkg/mod/"},
    {KILN_FAMILY_LIBRARY, SOURCE, HOLDS, "@v"},
    {KILN_FAMILY_LIBRARY, SOURCE, HOLDS, "/go/src/"},
    {KILN_FAMILY_LIBRARY, SOURCE, HOLDS, "golang/src/"},
    {KILN_FAMILY_LIBRARY, SOURCE, STARTS, "$GOROOT/"},
    {KILN_FAMILY_LIBRARY, SOURCE, HOLDS, "node_modules/"},
    {KILN_FAMILY_LIBRARY, SOURCE, STARTS, "node:"},
    {KILN_FAMILY_LIBRARY, SOURCE, HOLDS, "site-packages/"},
    {KILN_FAMILY_LIBRARY, SOURCE, HOLDS, "dist-packages/"},
    {KILN_FAMILY_LIBRARY, SOURCE, HOLDS, "/lib/python"},
    {KILN_FAMILY_LIBRARY, SOURCE, STARTS, "<frozen "},
    {KILN_FAMILY_LIBRARY, SOURCE, HOLDS, "/gems/"},
    {KILN_FAMILY_LIBRARY, SOURCE, HOLDS, "/lib/ruby/"},
    {KILN_FAMILY_LIBRARY, SOURCE, HOLDS, "/rustc/"},
    {KILN_FAMILY_LIBRARY, SOURCE, HOLDS, "/.cargo/"},
    {KILN_FAMILY_LIBRARY, SOURCE, HOLDS, "/usr/include/"},
    {KILN_FAMILY_LIBRARY, SOURCE, HOLDS, "/usr/lib/"},
    {KILN_FAMILY_LIBRARY, SOURCE, STARTS, "System."},
    {KILN_FAMILY_LIBRARY, SOURCE, STARTS, "Microsoft."},
    {KILN_FAMILY_LIBRARY, NAME, STARTS, "std::"},
    {KILN_FAMILY_LIBRARY, NAME, STARTS, "core::"},
    {KILN_FAMILY_LIBRARY, NAME, STARTS, "alloc::"},
    {KILN_FAMILY_LIBRARY, NAME, STARTS, "java/"},
    {KILN_FAMILY_LIBRARY, NAME, STARTS, "java."},
    {KILN_FAMILY_LIBRARY, NAME, STARTS, "javax"},
    {KILN_FAMILY_LIBRARY, NAME, STARTS, "jdk/"},
    {KILN_FAMILY_LIBRARY, NAME, STARTS, "jdk."},
    {KILN_FAMILY_LIBRARY, NAME, STARTS, "sun/"},
    {KILN_FAMILY_LIBRARY, NAME, STARTS, "sun."},
    {KILN_FAMILY_LIBRARY, NAME, STARTS, "com/sun/"},
    {KILN_FAMILY_LIBRARY, NAME, STARTS, "com.sun."},
    {KILN_FAMILY_LIBRARY, NAME, STARTS, "scala/"},
    {KILN_FAMILY_LIBRARY, NAME, STARTS, "scala."},
    {KILN_FAMILY_LIBRARY, NAME, STARTS, "kotlin/"},
    {KILN_FAMILY_LIBRARY, NAME, STARTS, "kotlin."},
    {KILN_FAMILY_LIBRARY, NAME, STARTS, "org/apache/"},
    {KILN_FAMILY_LIBRARY, NAME, STARTS, "org.apache."},
    {KILN_FAMILY_LIBRARY, NAME, STARTS, "io/netty/"},
    {KILN_FAMILY_LIBRARY, NAME, STARTS, "io.netty."},
    {KILN_FAMILY_LIBRARY, NAME, STARTS, "System."},
    {KILN_FAMILY_LIBRARY, NAME, STARTS, "Microsoft."},
    {KILN_FAMILY_LIBRARY, NAME, HOLDS, ".so."},
    {KILN_FAMILY_LIBRARY, MODULE, ENDS, ".so"},
    {KILN_FAMILY_LIBRARY, MODULE, HOLDS, ".so."},
};
/* clang-format on */

/* First elements of import paths of Go's own packages; other modules have a dot in theirs. */
static const char *const go_packages[] = {
    "archive",  "bufio",   "bytes",   "compress", "container", "context",  "crypto",
    "database", "debug",   "embed",   "encoding", "errors",    "expvar",   "flag",
    "fmt",      "go",      "hash",    "html",     "image",     "internal", "io",
    "iter",     "log",     "maps",    "math",     "mime",      "net",      "os",
    "path",     "reflect", "regexp",  "slices",   "sort",      "strconv",  "strings",
    "sync",     "syscall", "testing", "text",     "time",      "unicode",
};

/* No more of a text is looked at, and nothing is told apart by what comes later. */
#define LOOKED_AT 1024u

static struct kiln_str beginning(struct kiln_str s)
{
    return (struct kiln_str){s.ptr, s.len < LOOKED_AT ? s.len : LOOKED_AT};
}

/* The name without a return type before it ("void java.lang.Thread.run()"). */
static struct kiln_str skip_type(struct kiln_str name)
{
    size_t start = 0;

    for (size_t i = 1; i + 1 < name.len && !strchr("(<[", name.ptr[i]); i++)
        if (name.ptr[i] == ' ' && !strchr("(<[ ", name.ptr[i + 1]))
            start = i + 1;
    return (struct kiln_str){name.ptr + start, name.len - start};
}

static bool is_go(const struct kiln_frame *frame)
{
    return kiln_str_ends(frame->file, KILN_STR(".go")) || kiln_str_eq(frame->kind, KILN_STR("go"));
}

static bool is_go_package(struct kiln_str name)
{
    size_t n = 0;

    while (n < name.len && name.ptr[n] != '/' && name.ptr[n] != '.')
        n++;
    for (size_t i = 0; i < KILN_ARRAY_LEN(go_packages); i++)
        if (kiln_str_eq((struct kiln_str){name.ptr, n}, kiln_str_of(go_packages[i])))
            return true;
    return false;
}

static bool fits(const struct rule *rule, struct kiln_str s)
{
    struct kiln_str text = kiln_str_of(rule->text);

    switch (rule->how) {
    case STARTS:
        return kiln_str_starts(s, text);
    case HOLDS:
        return kiln_str_contains(s, text);
    case ENDS:
        return kiln_str_ends(s, text);
    default:
        return kiln_str_eq(s, text);
    }
}

enum kiln_family kiln_frame_family(const struct kiln_frame *frame)
{
    const struct kiln_str texts[] = {
        [NAME] = skip_type(beginning(frame->name)),
        [SOURCE] = beginning(frame->file),
        [MODULE] = beginning(frame->module),
        [KIND] = beginning(frame->kind),
    };

    for (size_t i = 0; i < KILN_ARRAY_LEN(rules); i++)
        if (fits(&rules[i], texts[rules[i].field]))
            return rules[i].family;
    return is_go(frame) && is_go_package(texts[NAME]) ? KILN_FAMILY_LIBRARY : KILN_FAMILY_OWN;
}

const char *kiln_family_text(enum kiln_family family)
{
    static const char *const texts[] = {"your code", "library", "runtime", "kernel"};

    return texts[family];
}

/* The name without arguments, receivers and type parameters. */
static struct kiln_str bare_name(struct kiln_str name)
{
    for (size_t i = 1; i < name.len; i++)
        if (strchr("(<[! ", name.ptr[i]))
            return (struct kiln_str){name.ptr, i};
    return name;
}

/* How much of `s` stands before the last (or first) `c` from `from` on; 0 if there is none. */
static size_t before(struct kiln_str s, char c, size_t from, bool last)
{
    size_t found = 0;

    for (size_t i = from; i < s.len && (last || !found); i++)
        if (s.ptr[i] == c)
            found = i;
    return found;
}

struct kiln_str kiln_frame_module(const struct kiln_frame *frame)
{
    struct kiln_str full = skip_type(beginning(frame->name)), name = bare_name(full);
    size_t cut = name.len < full.len && full.ptr[name.len] == '!' ? name.len : 0;

    if (frame->unnamed)
        return frame->module;
    if (!cut)
        cut = before(name, ':', 1, true); /* the second colon of "::" */
    if (cut && name.ptr[cut - 1] == ':')
        cut--;
    if (!cut) {
        size_t slash = before(name, '/', 0, true);

        cut = before(name, '.', slash, !slash && !is_go(frame));
    }
    if (cut)
        return (struct kiln_str){name.ptr, cut};
    return frame->file.len ? frame->file : frame->module.len ? frame->module : frame->name;
}

/* FNV-1a: the same everywhere and always, unlike the hashes of our tables. */
static uint32_t stable_hash(struct kiln_str s)
{
    uint32_t hash = 2166136261u;

    for (size_t i = 0; i < s.len; i++)
        hash = (hash ^ (unsigned char)s.ptr[i]) * 16777619u;
    return hash ^ hash >> 15;
}

unsigned kiln_frame_swatch(const struct kiln_frame *frame)
{
    return stable_hash(kiln_frame_module(frame)) % KILN_SWATCHES;
}

unsigned kiln_frame_shade(const struct kiln_frame *frame)
{
    return stable_hash(beginning(frame->name)) % KILN_SHADES;
}

/* The variance of a sum of observations of about equal weight; one more where there was none. */
static double variance(double value, double count)
{
    return count > 0 ? value * value / count : 0;
}

double kiln_diff_noise(double a, double count_a, double b, double count_b)
{
    double var = variance(a, count_a) + variance(b, count_b);

    if (count_a <= 0 && count_b > 0)
        var += b * b / (count_b * count_b);
    if (count_b <= 0 && count_a > 0)
        var += a * a / (count_a * count_a);
    return 1.96 * sqrt(var);
}

static double change(const struct kiln_tree_node *node)
{
    return (double)node->total_b - (double)node->total_a;
}

bool kiln_diff_is_real(const struct kiln_tree *tree, uint32_t at)
{
    const struct kiln_tree_node *node = &tree->nodes[at];

    return fabs(change(node)) > kiln_diff_noise((double)node->total_a, node->count_a,
                                                (double)node->total_b, node->count_b);
}

bool kiln_diff_hands_on(const struct kiln_tree *tree, uint32_t at)
{
    double all = change(&tree->nodes[at]);
    uint32_t end = at + tree->nodes[at].subtree;

    for (uint32_t i = at + 1; i < end; i += tree->nodes[i].subtree)
        if (change(&tree->nodes[i]) / all >= 0.9)
            return true;
    return false;
}

int kiln_diff_step(const struct kiln_tree *tree, uint32_t at)
{
    static const double steps[KILN_DIFF_STEPS] = {0.001, 0.006, 0.03, 0.12};
    const struct kiln_tree_node *root = &tree->nodes[0];
    double whole = fmax((double)root->total_a, (double)root->total_b);
    double delta = change(&tree->nodes[at]);
    int step = 0;

    if (whole <= 0 || !kiln_diff_is_real(tree, at))
        return 0;
    while (step < KILN_DIFF_STEPS && fabs(delta) >= steps[step] * whole)
        step++;
    if (step > 1 && kiln_diff_hands_on(tree, at))
        step = 1;
    return delta < 0 ? -step : step;
}
