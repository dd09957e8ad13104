/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An invented base: programs of several runtimes, each with executables and libraries, functions,
 * and stacks that grow out of each other like those of a real call tree.  A location calls six
 * others at most; a new stack shares its callers with an older one.
 *
 * For a host: one resource a program, its native frames mostly without names, as a host profiler
 * sends them.  For pprof: one program, all frames named, one scope for each type asked for.
 */
#include <errno.h>
#include <stdio.h>

#include "cli/load_int.h"

#define PROGRAMS       12u
#define HOST_STACKS    300u /* of one program */
#define FUNCTIONS      40u  /* of one program */
#define LOCATIONS      (FUNCTIONS * 3)
#define CALLEES        6u
#define DEPTH_MAX      64u
#define HOST_PERIOD_NS 52631578 /* 19 Hz */
#define CPU_PERIOD_NS  10000000

static const char *const services[] = {"checkout",  "cart",   "payment",  "search",    "frontend",
                                       "catalog",   "orders", "shipping", "inventory", "pricing",
                                       "recommend", "ads",    "auth",     "billing",   "currency",
                                       "email",     "fraud",  "images",   "ledger",    "quotes"};

struct runtime {
    const char *name, *file, *frame; /* "pkg.Name", "file", profile.frame.type */
    const char *path;                /* of the executable, %s its name */
    bool native;                     /* has addresses; host profilers see no names */
};

static const struct runtime runtimes[] = {
    {"acme.dev/%s/%s.(*%sServer).%s%u", "/src/%s/%s.go", "go", "/srv/%s/bin/%s", true},
    {"void acme.%s.%s.%sService.%s%u(int)", "%s/%s.java", "jvm", "/usr/lib/jvm/java-17/bin/java",
     false},
    {"acme::%s::%s::%sEngine::%s%u(int)", "/src/%s/%s.cc", "native", "/srv/%s/bin/%s", true},
    {"%s.%s.%sHandler.%s%u", "/srv/%s/%s.py", "cpython", "/usr/bin/python3.11", false},
    {"%s_%s_%s_%s%u", "/srv/%s/%s.js", "v8js", "/usr/bin/node", false},
};

static const char *const parts[] = {"store", "proto", "cache", "http", "sql", "codec"};
static const char *const verbs[] = {"Handle", "Decode", "Encode", "Lookup", "Flush",  "Merge",
                                    "Scan",   "Parse",  "Write",  "Await",  "Render", "Resolve"};

struct inventor {
    struct kiln_builder *b;
    struct kiln_dice dice;
    const struct kiln_load_opts *opts;
    const char *name; /* of the program at hand */
    const struct runtime *runtime;
    uint32_t mappings[3];
    uint32_t native, own; /* sets: profile.frame.type */
    uint32_t locations[LOCATIONS];
    uint32_t stack[DEPTH_MAX]; /* root first */
};

void kiln_load_service_name(uint32_t n, char ret[64])
{
    uint32_t count = KILN_ARRAY_LEN(services);

    if (n < count)
        snprintf(ret, 64, "%s", services[n]);
    else
        snprintf(ret, 64, "%s-%u", services[n % count], n / count + 1);
}

static uint32_t text(struct inventor *in, const char *c_string)
{
    return kiln_builder_string(in->b, kiln_str_of(c_string));
}

static uint32_t one_of_set(struct inventor *in, const char *key, const char *value)
{
    uint32_t attr = kiln_builder_text_attr(in->b, kiln_str_of(key), kiln_str_of(value));

    return kiln_builder_set(in->b, &attr, 1, NULL);
}

/* ---- code ---- */

static uint32_t invent_mapping(struct inventor *in, const char *file, uint64_t pages)
{
    char gnu[41], file_hash[33];
    uint32_t attrs[2];
    struct kiln_mapping mapping = {.start = 0x1000 * (1 + kiln_dice_below(&in->dice, 64))};

    snprintf(gnu, sizeof(gnu), "%016llx%016llx%08x", (unsigned long long)kiln_dice_next(&in->dice),
             (unsigned long long)kiln_dice_next(&in->dice), kiln_dice_below(&in->dice, UINT32_MAX));
    snprintf(file_hash, sizeof(file_hash), "%016llx%016llx",
             (unsigned long long)kiln_dice_next(&in->dice),
             (unsigned long long)kiln_dice_next(&in->dice));
    attrs[0] = kiln_builder_text_attr(in->b, KILN_STR("process.executable.build_id.gnu"),
                                      kiln_str_of(gnu));
    attrs[1] = kiln_builder_text_attr(in->b, KILN_STR("process.executable.build_id.htlhash"),
                                      kiln_str_of(file_hash));
    mapping.limit = mapping.start + pages * 0x1000;
    mapping.offset = mapping.start;
    mapping.filename = text(in, file);
    mapping.attrs = kiln_builder_set(in->b, attrs, 2, NULL);
    return kiln_builder_mapping(in->b, &mapping);
}

static uint32_t invent_function(struct inventor *in, uint32_t n)
{
    const char *part = parts[n % KILN_ARRAY_LEN(parts)];
    const char *verb = verbs[n / KILN_ARRAY_LEN(parts) % KILN_ARRAY_LEN(verbs)];
    char name[160], file[128];

    snprintf(name, sizeof(name), in->runtime->name, in->name, part, part, verb, n);
    snprintf(file, sizeof(file), in->runtime->file, in->name, part);
    return kiln_builder_function(in->b, &(struct kiln_function){.name = text(in, name),
                                                                .system_name = text(in, name),
                                                                .filename = text(in, file),
                                                                .start_line = 10 + n % 900});
}

/* A frame of the program's own code, or of a library in native code. */
static uint32_t invent_location(struct inventor *in, uint32_t function, uint32_t n)
{
    bool host = in->opts->shape == KILN_LOAD_HOST;
    bool library = host ? n % 3 != 0 : n % 5 == 0;
    bool addresses = library || in->runtime->native || !host;
    uint32_t mapping = in->mappings[library ? 1 + n % 2 : 0];
    const struct kiln_mapping *m = &kiln_builder_peek(in->b)->dict.mappings[mapping];
    uint32_t size = (uint32_t)(m->limit - m->start);
    bool named = !host || !(library || (in->runtime->native && n % 4));
    struct kiln_location location = {.attrs = host && library ? in->native : in->own};
    struct kiln_line line = {.function = function, .line = 10 + n % 2000};

    if (addresses) {
        location.mapping = mapping;
        location.address = m->start + kiln_dice_below(&in->dice, size);
    }
    return kiln_builder_location(in->b, &location, &line, named);
}

static void invent_code(struct inventor *in)
{
    in->mappings[0] = invent_mapping(in, in->name, 2000);
    in->mappings[1] = invent_mapping(in, "libc.so.6", 400);
    in->mappings[2] = invent_mapping(in, "libruntime.so.1", 900);
    in->native = one_of_set(in, "profile.frame.type", "native");
    in->own = one_of_set(in, "profile.frame.type", in->runtime->frame);
    for (uint32_t i = 0; i < FUNCTIONS; i++) {
        uint32_t function = invent_function(in, i);

        for (uint32_t j = 0; j < LOCATIONS / FUNCTIONS; j++)
            in->locations[i * (LOCATIONS / FUNCTIONS) + j] =
                invent_location(in, function, i * 3 + j);
    }
}

/* ---- stacks ---- */

/* Puts the callers of an older stack into in->stack, as many as are to be shared. */
static uint32_t share_callers(struct inventor *in, uint32_t older, uint32_t depth)
{
    const struct kiln_dict *dict = &kiln_builder_peek(in->b)->dict;
    struct kiln_range range = dict->stacks[older];
    uint32_t most = range.n < depth ? range.n : depth;
    uint32_t n = most > 3 ? 2 + kiln_dice_below(&in->dice, most - 2) : most;

    for (uint32_t i = 0; i < n; i++)
        in->stack[i] = dict->frames[range.first + range.n - 1 - i];
    return n;
}

static uint32_t callee_of(struct inventor *in, uint32_t location)
{
    uint64_t which = kiln_dice_skewed(&in->dice, CALLEES);

    return in->locations[(location * UINT64_C(31) + which * 977 + 7) % LOCATIONS];
}

static uint32_t invent_stack(struct inventor *in, uint32_t first, uint32_t n_older)
{
    uint32_t least = in->opts->shape == KILN_LOAD_HOST ? 12 : 10;
    uint32_t spread = in->opts->shape == KILN_LOAD_HOST ? 12 : 30;
    uint32_t depth = least + kiln_dice_below(&in->dice, spread);
    uint32_t leaf_first[DEPTH_MAX];
    uint32_t n = 0;

    if (n_older)
        n = share_callers(in, first + kiln_dice_below(&in->dice, n_older), depth);
    if (n == 0)
        in->stack[n++] = in->locations[0];
    for (; n < depth; n++)
        in->stack[n] = callee_of(in, in->stack[n - 1]);
    for (uint32_t i = 0; i < n; i++)
        leaf_first[i] = in->stack[n - 1 - i];
    return kiln_builder_stack(in->b, leaf_first, n);
}

/* `n` new stacks, one behind the other in the table; the first one's index. */
static uint32_t invent_stacks(struct inventor *in, uint32_t n)
{
    uint32_t first = kiln_builder_peek(in->b)->dict.n_stacks, made = 0;

    for (uint32_t tries = 0; made < n && tries < n * 4; tries++) {
        invent_stack(in, first, made);
        made = kiln_builder_peek(in->b)->dict.n_stacks - first;
    }
    return first;
}

/* ---- programs ---- */

static void start_program(struct inventor *in, uint32_t n)
{
    char name[64], path[128];
    uint32_t attrs[2];

    kiln_load_service_name(n, name);
    in->name = services[n % KILN_ARRAY_LEN(services)];
    in->runtime = &runtimes[n % KILN_ARRAY_LEN(runtimes)];
    snprintf(path, sizeof(path), in->runtime->path, in->name, in->name);
    attrs[0] = kiln_builder_text_attr(in->b, KILN_STR("process.executable.name"),
                                      kiln_str_of(strrchr(path, '/') + 1));
    attrs[1] =
        kiln_builder_text_attr(in->b, KILN_STR("process.executable.path"), kiln_str_of(path));
    invent_code(in);
    kiln_builder_add_resource(
        in->b, &(struct kiln_resource){.attrs = kiln_builder_set(in->b, attrs, 2, NULL)});
}

static struct kiln_profile head_of(struct inventor *in, const char *type, const char *unit,
                                   const char *period_type, const char *period_unit)
{
    return (struct kiln_profile){
        .sample_type = {text(in, type), text(in, unit)},
        .period_type = {text(in, period_type), text(in, period_unit)},
    };
}

static void invent_host_program(struct inventor *in, uint32_t n)
{
    struct kiln_profile head;
    uint32_t profile, first;
    char thread[32];

    start_program(in, n);
    first = invent_stacks(in, HOST_STACKS);
    kiln_builder_add_scope(in->b, &(struct kiln_scope){.name = text(in, "kiln-loadgen")});
    head = head_of(in, "samples", "count", "cpu", "nanoseconds");
    head.period = HOST_PERIOD_NS;
    profile = kiln_builder_add_profile(in->b, &head);
    for (uint32_t i = first; i < kiln_builder_peek(in->b)->dict.n_stacks; i++) {
        if (i % 3)
            snprintf(thread, sizeof(thread), "%s", in->name);
        else
            snprintf(thread, sizeof(thread), "worker-%u", i % 8);
        kiln_builder_add_value(in->b, profile, i, one_of_set(in, "thread.name", thread), 1);
    }
}

/* ---- types ---- */

struct value_type {
    const char *type, *unit;
    int64_t unit_value; /* values are so many times this */
};

static const struct {
    struct value_type values[4];
    const char *period_type, *period_unit;
    int64_t period;
} kinds[KILN_LOAD_TYPES] = {
    [KILN_LOAD_CPU] = {{{"samples", "count", 1}, {"cpu", "nanoseconds", CPU_PERIOD_NS}},
                       "cpu",
                       "nanoseconds",
                       CPU_PERIOD_NS},
    [KILN_LOAD_OFF_CPU] = {{{"off_cpu", "nanoseconds", 17001}}, "", "", 0},
    [KILN_LOAD_WALL] = {{{"wall", "nanoseconds", CPU_PERIOD_NS}},
                        "wall",
                        "nanoseconds",
                        CPU_PERIOD_NS},
    [KILN_LOAD_HEAP] = {{{"alloc_objects", "count", 3},
                         {"alloc_space", "bytes", 4608},
                         {"inuse_objects", "count", 1},
                         {"inuse_space", "bytes", 1536}},
                        "space",
                        "bytes",
                        524288},
    [KILN_LOAD_MUTEX] = {{{"contentions", "count", 1}, {"delay", "nanoseconds", 48271}},
                         "contentions",
                         "count",
                         1},
    [KILN_LOAD_BLOCK] = {{{"contentions", "count", 1}, {"delay", "nanoseconds", 90017}},
                         "contentions",
                         "count",
                         1},
    [KILN_LOAD_GOROUTINE] = {{{"goroutine", "count", 1}}, "goroutine", "count", 1},
};

static void invent_scope(struct inventor *in, enum kiln_load_type type, uint32_t first,
                         uint32_t n_stacks)
{
    struct kiln_scope scope = {.name = type == KILN_LOAD_BLOCK ? text(in, "block") : 0};

    kiln_builder_add_scope(in->b, &scope);
    for (uint32_t v = 0; v < 4 && kinds[type].values[v].type; v++) {
        const struct value_type *value = &kinds[type].values[v];
        struct kiln_dice dice = kiln_dice_of(in->opts->seed, type);
        struct kiln_profile head =
            head_of(in, value->type, value->unit, kinds[type].period_type, kinds[type].period_unit);
        uint32_t profile;

        head.period = kinds[type].period;
        profile = kiln_builder_add_profile(in->b, &head);
        for (uint32_t i = 0; i < n_stacks; i++) { /* most stacks are seen once or twice */
            uint32_t times = 1 + kiln_dice_skewed(&dice, 4) * kiln_dice_skewed(&dice, 20);

            kiln_builder_add_value(in->b, profile, first + i, 0, times * value->unit_value);
        }
    }
}

static void invent_pprof(struct inventor *in)
{
    uint32_t first, n;

    start_program(in, 0);
    first = invent_stacks(in, in->opts->samples);
    n = kiln_builder_peek(in->b)->dict.n_stacks - first;
    for (uint32_t type = 0; type < KILN_LOAD_TYPES; type++)
        if (in->opts->types & 1u << type)
            invent_scope(in, (enum kiln_load_type)type, first, n);
}

int kiln_load_invent(const struct kiln_load_opts *opts, struct kiln_batch **ret_base,
                     struct kiln_err *err)
{
    struct inventor *in = kiln_calloc(1, sizeof(*in));
    int r = in ? kiln_builder_new(NULL, &in->b) : -ENOMEM;

    if (r < 0) {
        kiln_free(in);
        return kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    }
    in->dice = kiln_dice_of(opts->seed, UINT64_MAX);
    in->opts = opts;
    if (opts->shape == KILN_LOAD_PPROF)
        invent_pprof(in);
    for (uint32_t i = 0; opts->shape == KILN_LOAD_HOST && i < PROGRAMS; i++)
        invent_host_program(in, i);
    r = kiln_builder_finish(in->b, ret_base, err);
    kiln_free(in);
    return r;
}
