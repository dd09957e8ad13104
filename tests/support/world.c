/* SPDX-License-Identifier: Apache-2.0 */
#include "world.h"

#include <stdio.h>

#include "core/type.h"
#include "random_batch.h"
#include "test.h"

#define NOW             1000000000u
#define SPAN            100000u /* of times: the last before now */
#define SIDES(w, array) (array)[world_roll((w), KILN_ARRAY_LEN(array))]

const struct kiln_str world_tenants[WORLD_TENANTS] = {{"anonymous", 9}, {"blue", 4}};

/* What a profile can be of. */
static const struct {
    const char *type, *unit, *period_type, *period_unit;
    int64_t period;
    const char *id;
} types[] = {
    {"cpu", "nanoseconds", "cpu", "nanoseconds", 10, "process_cpu:cpu:nanoseconds:cpu:nanoseconds"},
    {"samples", "count", "cpu", "nanoseconds", 7, "process_cpu:samples:count:cpu:nanoseconds"},
    {"alloc_space", "bytes", "space", "bytes", 512, "memory:alloc_space:bytes:space:bytes"},
    {"inuse_space", "bytes", "space", "bytes", 512, "memory:inuse_space:bytes:space:bytes"},
    {"contentions", "count", "contentions", "count", 1,
     "mutex:contentions:count:contentions:count"},
    {"off_cpu", "nanoseconds", "", "", 0, "off_cpu:off_cpu:nanoseconds::"},
    {"wall", "nanoseconds", "wall", "nanoseconds", 10, "wall:wall:nanoseconds:wall:nanoseconds"},
    {"goroutine", "count", "goroutine", "count", 1, "goroutines:goroutine:count:goroutine:count"},
};

uint64_t world_time(struct world *w)
{
    return NOW - SPAN + dice_roll(&w->dice, SPAN);
}

struct kiln_str world_type(struct world *w)
{
    return kiln_str_of(SIDES(w, types).id);
}

/* ---- attributes ---- */

struct attrs {
    struct kiln_builder *b;
    uint32_t list[16];
    uint32_t n;
};

static void add_text(struct attrs *a, const char *key, const char *value)
{
    a->list[a->n++] = kiln_builder_text_attr(a->b, kiln_str_of(key), kiln_str_of(value));
}

static void add_value(struct attrs *a, const char *key, struct kiln_value value)
{
    a->list[a->n++] =
        kiln_builder_attr(a->b, kiln_builder_string(a->b, kiln_str_of(key)), value, 0);
}

static uint32_t end_set(struct attrs *a)
{
    return kiln_builder_set(a->b, a->list, a->n, NULL);
}

static const char *const services[] = {"shop", "cart", "pay"};
static const char *const versions[] = {"1.0", "1.1", "2.0"};
static const char *const hosts[] = {"web-1", "web-2", "db"};
static const char *const colors[] = {"red", "green", "blue", ""};
static const char *const labels[] = {"service_name",
                                     "service.name",
                                     "__service_name__",
                                     "service.version",
                                     "host.name",
                                     "process.pid",
                                     "color",
                                     "n",
                                     "ratio",
                                     "flag",
                                     "team",
                                     "list",
                                     "nowhere",
                                     "__profile_type__",
                                     "__name__",
                                     "__type__",
                                     "__unit__",
                                     "__period_type__",
                                     "__period_unit__",
                                     "kiln.overflow"};
static const char *const values[] = {"shop",
                                     "cart",
                                     "1.0",
                                     "2.0",
                                     "web-1",
                                     "db",
                                     "1",
                                     "2",
                                     "red",
                                     "blue",
                                     "true",
                                     "0.5",
                                     "0.10000000000000001",
                                     "",
                                     "cpu",
                                     "bytes",
                                     "memory",
                                     "nothing"};
static const char *const expressions[] = {"s.*",   "web-.*", "red|blue", ".*",          ".+",
                                          "[0-9]", "1\\..",  "",         "inuse_.*|cpu"};

struct kiln_str world_label(struct world *w)
{
    return kiln_str_of(SIDES(w, labels));
}

/* Attributes that may stand anywhere. */
static void add_any(struct world *w, struct attrs *a)
{
    struct kiln_value items[1];

    if (world_roll(w, 3) == 0)
        add_text(a, "color", SIDES(w, colors));
    if (world_roll(w, 5) == 0)
        add_value(a, "n", kiln_value_int(world_roll(w, 3)));
    if (world_roll(w, 8) == 0)
        add_value(a, "ratio", kiln_value_double(world_roll(w, 2) ? 0.5 : 0.1));
    if (world_roll(w, 8) == 0)
        add_value(a, "flag", kiln_value_bool(world_roll(w, 2)));
    if (world_roll(w, 16) == 0) {
        items[0] = kiln_value_int(1);
        add_value(a, "list", kiln_builder_array(a->b, items, 1));
    }
}

static uint32_t resource_attrs(struct world *w, struct kiln_builder *b)
{
    struct attrs a = {.b = b};

    if (world_roll(w, 8))
        add_text(&a, "service.name", SIDES(w, services));
    if (world_roll(w, 2))
        add_text(&a, "service.version", SIDES(w, versions));
    if (world_roll(w, 2))
        add_text(&a, "host.name", SIDES(w, hosts));
    if (world_roll(w, 2))
        add_value(&a, "process.pid", kiln_value_int(1 + world_roll(w, 2)));
    if (world_roll(w, 6) == 0)
        add_text(&a, "team", "a");
    if (world_roll(w, 4) == 0)
        add_any(w, &a);
    return end_set(&a);
}

static uint32_t few_attrs(struct world *w, struct kiln_builder *b)
{
    struct attrs a = {.b = b};

    if (world_roll(w, 3) == 0)
        add_any(w, &a);
    return end_set(&a);
}

/* `alone`: no other sample has the same, for the count of values would not survive their sum. */
static uint32_t sample_attrs(struct world *w, struct kiln_builder *b, bool alone)
{
    struct attrs a = {.b = b};

    if (alone)
        add_value(&a, "serial", (struct kiln_value){.kind = KILN_VALUE_INT, .i = ++w->n_alone});
    if (world_roll(w, 2))
        add_any(w, &a);
    if (world_roll(w, 16) == 0)
        add_text(&a, "host.name", SIDES(w, hosts));
    return end_set(&a);
}

/* ---- stacks ---- */

static uint32_t function(struct world *w, struct kiln_builder *b)
{
    struct kiln_function f = {0};
    char name[8];

    snprintf(name, sizeof(name), "f%u", world_roll(w, 7));
    f.name = kiln_builder_string(b, kiln_str_of(name));
    if (world_roll(w, 4) == 0)
        f.filename = kiln_builder_string(b, KILN_STR("a.c"));
    return kiln_builder_function(b, &f);
}

static uint32_t location(struct world *w, struct kiln_builder *b)
{
    struct kiln_mapping mapping = {.start = 0x1000, .limit = 0x9000};
    struct kiln_location l = {0};
    struct kiln_line lines[2] = {{0}};
    uint32_t n = world_roll(w, 8) ? 1 + !world_roll(w, 4) : 0;

    if (world_roll(w, 3) == 0) {
        mapping.filename = kiln_builder_string(b, KILN_STR("/lib/x.so"));
        l.mapping = kiln_builder_mapping(b, &mapping);
        l.address = 0x2000 + world_roll(w, 3);
    }
    if (w->names && world_roll(w, 2))
        l.mapping = world_mapping(w, b, &l.address);
    for (uint32_t i = 0; i < n; i++) {
        lines[i].function = function(w, b);
        lines[i].line = world_roll(w, 2);
    }
    return kiln_builder_location(b, &l, lines, n);
}

static uint32_t stack(struct world *w, struct kiln_builder *b)
{
    uint32_t frames[5], n = world_roll(w, 6);

    for (uint32_t i = 0; i < n; i++)
        frames[i] = location(w, b);
    return kiln_builder_stack(b, frames, n);
}

static uint32_t link_to(struct world *w, struct kiln_builder *b)
{
    struct kiln_link link = {0};

    if (world_roll(w, 3))
        return 0;
    link.trace_id[15] = (uint8_t)(1 + world_roll(w, 3));
    link.span_id[7] = (uint8_t)(1 + world_roll(w, 3));
    return kiln_builder_link(b, &link);
}

/* ---- profiles ---- */

static void add_sample(struct world *w, struct kiln_builder *b, uint32_t profile, bool alone)
{
    uint64_t time_ns = kiln_builder_peek(b)->profiles[profile].time_ns;
    uint32_t shape = w->no_times ? 2 : world_roll(w, 5),
             n = 1 + (world_roll(w, 4) == 0) + (world_roll(w, 8) == 0);
    int64_t observed[3];
    uint64_t times[3];

    n = alone && shape > 1 ? 1 : n;
    for (uint32_t i = 0; i < 3; i++) {
        observed[i] = world_roll(w, 12) ? (int64_t)world_roll(w, 1000) : 0;
        times[i] = time_ns + world_roll(w, 3000) - (world_roll(w, 8) == 0 ? 2000 : 0);
    }
    kiln_builder_add_sample(b, profile, stack(w, b), sample_attrs(w, b, alone), link_to(w, b),
                            shape == 0 ? NULL : observed, shape > 1 ? NULL : times, n);
}

static void add_profile(struct world *w, struct kiln_builder *b, uint32_t type, uint64_t time_ns)
{
    struct kiln_profile p = {
        .sample_type = {kiln_builder_string(b, kiln_str_of(types[type].type)),
                        kiln_builder_string(b, kiln_str_of(types[type].unit))},
        .period_type = {kiln_builder_string(b, kiln_str_of(types[type].period_type)),
                        kiln_builder_string(b, kiln_str_of(types[type].period_unit))},
        .period = types[type].period,
        .time_ns = time_ns,
        .duration_ns = world_roll(w, 3) ? 1000 * world_roll(w, 4) : 0,
    };
    uint32_t profile, n = world_roll(w, 8) ? world_roll(w, 9) : 0;

    p.attrs = few_attrs(w, b);
    if (world_roll(w, 3) == 0)
        p.id[15] = (uint8_t)(1 + world_roll(w, 6));
    profile = kiln_builder_add_profile(b, &p);
    for (uint32_t i = 0; i < n; i++)
        add_sample(w, b, profile, p.period == 0);
}

/* No two profiles begin at one time: none is taken for a second delivery. */
static uint64_t own_time(struct world *w)
{
    w->serial++;
    return (world_time(w) / 1000) * 1000 + w->serial;
}

static struct kiln_batch *make_batch(struct world *w)
{
    struct kiln_batch *batch;
    struct kiln_builder *b;
    uint32_t n = 1 + world_roll(w, 3);

    CHECK_OK(kiln_builder_new(NULL, &b));
    for (uint32_t i = 0; i < n; i++) {
        struct kiln_resource resource = {.attrs = resource_attrs(w, b)};
        struct kiln_scope scope = {.attrs = few_attrs(w, b)};
        uint32_t profiles = world_roll(w, 6);
        bool again = world_roll(w, 2);
        uint32_t type = world_roll(w, KILN_ARRAY_LEN(types));

        kiln_builder_add_resource(b, &resource);
        kiln_builder_add_scope(b, &scope);
        for (uint32_t p = 0; p < profiles; p++) {
            if (!again)
                type = world_roll(w, KILN_ARRAY_LEN(types));
            add_profile(w, b, type, own_time(w));
        }
    }
    CHECK_OK(kiln_builder_finish(b, &batch, NULL));
    place_times(batch, NOW);
    return batch;
}

/* ---- the store ---- */

void world_init(struct world *w, uint64_t seed)
{
    *w = (struct world){.dice = {seed}};
    w->no_times = world_roll(w, 3) == 0;
    kit_init(&w->kit, NOW);
}

void world_done(struct world *w)
{
    for (uint32_t i = 0; i < w->n; i++)
        kiln_batch_unref(w->batches[i]);
    kit_done(&w->kit);
}

static void append(struct world *w)
{
    struct kit_outcome outcome;
    uint32_t tenant = world_roll(w, 4) == 0;

    if (w->n == WORLD_BATCHES)
        return;
    w->batches[w->n] = make_batch(w);
    w->tenants[w->n] = tenant;
    outcome = kit_append_to(&w->kit, world_tenants[tenant].ptr, w->batches[w->n++]);
    if (outcome.code < 0 || outcome.rejected)
        fail_msg("append: %s", outcome.err.text);
}

/* Everything that is there becomes as few blocks as may be. */
static void merge_all(struct world *w)
{
    CHECK_OK(kiln_store_flush(w->kit.engine, NULL));
    append(w);
    CHECK_OK(kiln_store_flush(w->kit.engine, NULL));
    CHECK_OK(kiln_store_compact(w->kit.engine, true, NULL));
}

void world_step(struct world *w)
{
    if (w->names && world_roll(w, 3) == 0)
        world_name(w);
    if (w->rolls && world_roll(w, 3) == 0) {
        merge_all(w);
        return;
    }
    switch (world_roll(w, 12)) {
    case 0:
    case 1:
        CHECK_OK(kiln_store_flush(w->kit.engine, NULL));
        break;
    case 2:
        CHECK_OK(kiln_store_compact(w->kit.engine, world_roll(w, 2), NULL));
        break;
    case 3:
        if (world_roll(w, 2))
            kit_reopen(&w->kit);
        else
            kit_cut_power(&w->kit, world_roll(w, 1000)), kit_open(&w->kit);
        break;
    default:
        append(w);
        break;
    }
}

/* ---- truth ---- */

static int64_t sample_total(const struct kiln_batch *batch, const struct kiln_profile *p,
                            const struct kiln_sample *s, const struct kiln_window *window)
{
    const int64_t *observed = kiln_sample_values(batch, s);
    const uint64_t *times = kiln_sample_times(batch, s);
    int64_t sum = 0;

    for (uint32_t i = 0; i < s->n; i++) {
        uint64_t time_ns = times ? times[i] : p->time_ns;

        if (!window->end_ns || (time_ns >= window->start_ns && time_ns < window->end_ns))
            sum += observed ? observed[i] : 1;
    }
    return sum;
}

static bool has_type(const struct kiln_type *type, struct kiln_str id)
{
    struct kiln_buf text;
    bool same;

    kiln_buf_init(&text, 1024);
    kiln_type_id(type, &text);
    same = kiln_str_eq(kiln_buf_str(&text), id);
    kiln_buf_done(&text);
    return same;
}

static int64_t batch_total(const struct kiln_batch *batch, struct kiln_str id,
                           const struct kiln_window *window)
{
    struct kiln_type *of;
    int64_t sum = 0;

    CHECK_OK(kiln_types_of_batch(batch, false, &of));
    for (uint32_t i = 0; i < batch->n_profiles; i++) {
        const struct kiln_profile *p = &batch->profiles[i];

        if (!has_type(&of[i], id))
            continue;
        for (uint32_t k = 0; k < p->n_samples; k++)
            sum +=
                of[i].scale * sample_total(batch, p, &batch->samples[p->first_sample + k], window);
    }
    kiln_free(of);
    return sum;
}

int64_t world_total(const struct world *w, uint32_t tenant, struct kiln_str type, uint64_t start_ns,
                    uint64_t end_ns)
{
    struct kiln_window window = {start_ns, end_ns};
    int64_t sum = 0;

    for (uint32_t i = 0; i < w->n; i++) {
        if (w->tenants[i] == tenant)
            sum += batch_total(w->batches[i], type, &window);
    }
    return sum;
}

/* ---- questions ---- */

static void choose_windows(struct world *w, struct world_question *ask)
{
    uint64_t at = world_time(w);
    uint32_t n = world_roll(w, 3) ? 1 : world_roll(w, WORLD_WINDOWS + 1);

    if (world_roll(w, 3) == 0)
        return;
    for (uint32_t i = 0; i < n; i++) {
        ask->windows[i].start_ns = at;
        at += 1 + world_roll(w, world_roll(w, 2) ? SPAN : 5000);
        ask->windows[i].end_ns = at;
        at += 1 + world_roll(w, 5000);
    }
    ask->q.windows = ask->windows;
    ask->q.n_windows = n;
}

static void choose_labels(struct world *w, struct world_question *ask)
{
    uint32_t n = world_roll(w, 2) ? 0 : 1 + world_roll(w, WORLD_MATCHERS);

    for (uint32_t i = 0; i < n; i++) {
        struct kiln_matcher *m = &ask->matchers[i];

        *m = (struct kiln_matcher){.name = world_label(w),
                                   .op = (enum kiln_match_op)world_roll(w, 4)};
        m->value = kiln_str_of(SIDES(w, values));
        if (m->op == KILN_MATCH_RE || m->op == KILN_MATCH_NRE) {
            m->value = kiln_str_of(SIDES(w, expressions));
            CHECK_OK(kiln_regex_new(m->value, KILN_REGEX_WHOLE, &m->regex, NULL));
        }
    }
    ask->q.matchers = ask->matchers;
    ask->q.n_matchers = n;
}

static void choose_ids(struct world *w, struct world_question *ask)
{
    if (world_roll(w, 6) == 0)
        ask->q.n_trace_ids = 1 + world_roll(w, 2);
    if (world_roll(w, 6) == 0)
        ask->q.n_span_ids = 1 + world_roll(w, 2);
    if (world_roll(w, 8) == 0)
        ask->q.n_profile_ids = 1 + world_roll(w, 2);
    for (uint32_t i = 0; i < 2; i++) {
        ask->trace_ids[i][15] = (uint8_t)(1 + world_roll(w, 3));
        ask->span_ids[i][7] = (uint8_t)(1 + world_roll(w, 4));
        ask->profile_ids[i][15] = (uint8_t)(1 + world_roll(w, 7));
    }
    ask->q.trace_ids = (const uint8_t(*)[16])ask->trace_ids;
    ask->q.span_ids = (const uint8_t(*)[8])ask->span_ids;
    ask->q.profile_ids = (const uint8_t(*)[16])ask->profile_ids;
}

static struct kiln_str function_name(struct world *w)
{
    static const char *const names[] = {"f0", "f1", "f2", "f3",          "f4",
                                        "f5", "f6", "f7", "x.so+0x1001", "(unknown)"};

    return kiln_str_of(SIDES(w, names));
}

static void choose_stacks(struct world *w, struct world_question *ask)
{
    struct kiln_stack_choice *c = &ask->q.stacks;

    for (uint32_t i = 0; i < 3; i++) {
        ask->names[i][0] = function_name(w);
        ask->names[i][1] = function_name(w);
    }
    c->call_site = ask->names[0];
    c->with = ask->names[1];
    c->without = ask->names[2];
    if (world_roll(w, 8) == 0)
        c->n_call_site = 1 + world_roll(w, 2);
    if (world_roll(w, 6) == 0)
        c->n_with = 1 + world_roll(w, 2);
    if (world_roll(w, 8) == 0)
        c->n_without = 1 + world_roll(w, 2);
    if (world_roll(w, 12) == 0)
        CHECK_OK(kiln_regex_new(KILN_STR("f[1-3]|x"), 0, &c->with_regex, NULL));
    if (world_roll(w, 12) == 0)
        CHECK_OK(kiln_regex_new(KILN_STR("4|\\+0x"), 0, &c->without_regex, NULL));
}

/* A type that others add up to, but for some services. */
static void choose_parts(struct world *w, struct world_question *ask)
{
    static const struct kiln_str some[] = {{"cart", 4}, {"pay", 3}, {"shop", 4}};

    ask->q.type = kiln_type_wall.id;
    ask->q.parts = kiln_type_wall.parts;
    ask->q.n_parts = KILN_MADE_PARTS;
    ask->q.whole = some + world_roll(w, 2);
    ask->q.n_whole = world_roll(w, 3);
}

void world_ask(struct world *w, struct world_question *ask)
{
    *ask = (struct world_question){.q = {.tenants = ask->tenants, .leash = &ask->leash}};
    if (world_roll(w, 8))
        ask->tenants[ask->q.n_tenants++] = world_tenants[0];
    if (world_roll(w, 3) == 0)
        ask->tenants[ask->q.n_tenants++] = world_tenants[1];
    if (world_roll(w, 4) == 0)
        choose_parts(w, ask);
    else if (world_roll(w, 4))
        ask->q.type = world_type(w);
    choose_windows(w, ask);
    if (w->rolls && world_roll(w, 4))
        return;
    ask->q.average = world_roll(w, 4) == 0;
    choose_labels(w, ask);
    choose_ids(w, ask);
    choose_stacks(w, ask);
}

void world_asked(struct world_question *ask)
{
    for (uint32_t i = 0; i < WORLD_MATCHERS; i++)
        kiln_regex_free(ask->matchers[i].regex);
    kiln_regex_free(ask->q.stacks.with_regex);
    kiln_regex_free(ask->q.stacks.without_regex);
}
