/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The family of a type comes from a table of known sample types, else from the type of its period,
 * else it is the type itself.
 */
#include <errno.h>

#include "base/mem.h"
#include "core/type.h"

#define FAMILY_BYTES_MAX 256u

#define S(literal)                                                                                 \
    {                                                                                              \
        (literal), sizeof(literal) - 1                                                             \
    }

struct known {
    struct kiln_str type;
    struct kiln_str name;        /* family */
    struct kiln_str period_type; /* what the period is of when the profile does not say */
    struct kiln_str period_unit;
    bool level;
};

static const struct known known_types[] = {
    {S("cpu"), S("process_cpu"), S("cpu"), S("nanoseconds"), false},
    {S("wall"), S("wall"), S("wall"), S("nanoseconds"), false},
    {S("off_cpu"), S("off_cpu"), S(""), S(""), false},
    {S("alloc_objects"), S("memory"), S("space"), S("bytes"), false},
    {S("alloc_space"), S("memory"), S("space"), S("bytes"), false},
    {S("alloc_in_new_tlab_objects"), S("memory"), S("space"), S("bytes"), false},
    {S("alloc_in_new_tlab_bytes"), S("memory"), S("space"), S("bytes"), false},
    {S("alloc_outside_tlab_objects"), S("memory"), S("space"), S("bytes"), false},
    {S("alloc_outside_tlab_bytes"), S("memory"), S("space"), S("bytes"), false},
    {S("malloc_objects"), S("memory"), S("space"), S("bytes"), false},
    {S("malloc_bytes"), S("memory"), S("space"), S("bytes"), false},
    {S("inuse_objects"), S("memory"), S("space"), S("bytes"), true},
    {S("inuse_space"), S("memory"), S("space"), S("bytes"), true},
    {S("contentions"), S("mutex"), S("contentions"), S("count"), false},
    {S("delay"), S("mutex"), S("contentions"), S("count"), false},
    {S("goroutine"), S("goroutines"), S("goroutine"), S("count"), true},
    {S("goroutines"), S("goroutines"), S("goroutine"), S("count"), true},
    {S("threads"), S("threads"), S(""), S(""), true},
    {S("threadcreate"), S("threads"), S(""), S(""), true},
    {S("lag"), S("event_loop"), S(""), S(""), false},
};

/* Families of general types, by what their period is of. */
static const struct known known_periods[] = {
    {S("cpu"), S("process_cpu"), S(""), S(""), false},
    {S("wall"), S("wall"), S(""), S(""), false},
    {S("space"), S("memory"), S(""), S(""), true}, /* objects and space: what is live */
    {S("contentions"), S("mutex"), S(""), S(""), false},
    {S("goroutine"), S("goroutines"), S(""), S(""), true},
};

static const struct known *find_known(const struct known *table, size_t n, struct kiln_str type)
{
    for (size_t i = 0; i < n; i++) {
        if (kiln_str_eq(table[i].type, type))
            return &table[i];
    }
    return NULL;
}

static bool is(struct kiln_str s, const char *text)
{
    return kiln_str_eq(s, kiln_str_of(text));
}

/* What a profile takes over from its scope; looked up once, for both may have many entries. */
struct scope_facts {
    bool has_cpu_time;
    bool named_block;
    struct kiln_str family; /* empty: not said */
};

static const struct kiln_str type_key = {"profile.type", 12};

static bool is_cpu_time(struct kiln_str type, struct kiln_str unit)
{
    return is(type, "cpu") && is(unit, "nanoseconds");
}

static struct scope_facts facts_of(const struct kiln_batch *batch, const struct kiln_scope *scope)
{
    struct scope_facts facts = {
        .named_block = is(kiln_batch_str(batch, scope->name), "block"),
        .family = kiln_set_text(batch, scope->attrs, type_key),
    };

    for (uint32_t i = 0; i < scope->n_profiles && !facts.has_cpu_time; i++) {
        struct kiln_value_type t = batch->profiles[scope->first_profile + i].sample_type;

        facts.has_cpu_time =
            is_cpu_time(kiln_batch_str(batch, t.type), kiln_batch_str(batch, t.unit));
    }
    return facts;
}

static bool starts(struct kiln_str s, const char *prefix)
{
    return kiln_str_starts(s, kiln_str_of(prefix));
}

/* Names that are not in the tables but follow a habit: live_objects, alloc_size, lock_time. */
static void name_by_habit(struct kiln_type *t)
{
    t->level = is(t->type, "live") || starts(t->type, "live_") || starts(t->type, "inuse_");
    if (t->level || starts(t->type, "alloc"))
        t->name = KILN_STR("memory");
    else if (starts(t->type, "lock_"))
        t->name = KILN_STR("mutex");
    else
        t->name = t->type.len ? t->type : KILN_STR("unknown");
}

/* Types that say nothing by themselves: what they are is what their period is of. */
static bool is_general(struct kiln_str type)
{
    return is(type, "samples") || is(type, "sample") || is(type, "objects") || is(type, "space");
}

static void name_family(struct kiln_type *t)
{
    const struct known *known = find_known(known_types, KILN_ARRAY_LEN(known_types), t->type);

    if (known && !t->period_type.len && !t->period_unit.len) {
        t->period_type = known->period_type;
        t->period_unit = known->period_unit;
    }
    if (is_general(t->type))
        known = find_known(known_periods, KILN_ARRAY_LEN(known_periods), t->period_type);
    if (!known) {
        name_by_habit(t);
        return;
    }
    t->name = known->name;
    t->level = known->level;
}

bool kiln_type_is_level(const struct kiln_type *type)
{
    struct kiln_type t = *type;

    name_family(&t);
    return t.level;
}

/* Whether a text can be the first part of an id. */
static bool may_name(struct kiln_str text)
{
    return text.len && text.len <= FAMILY_BYTES_MAX && !memchr(text.ptr, ':', text.len);
}

static struct kiln_type type_of(const struct kiln_batch *batch, const struct kiln_profile *profile,
                                const struct scope_facts *scope)
{
    struct kiln_type t = {
        .type = kiln_batch_str(batch, profile->sample_type.type),
        .unit = kiln_batch_str(batch, profile->sample_type.unit),
        .period_type = kiln_batch_str(batch, profile->period_type.type),
        .period_unit = kiln_batch_str(batch, profile->period_type.unit),
        .period = profile->period > 0 ? profile->period : 0,
        .scale = 1,
    };
    struct kiln_str said;

    if (!scope->has_cpu_time && t.period && is_cpu_time(t.period_type, t.period_unit) &&
        (is(t.type, "samples") || is(t.type, "sample")) && is(t.unit, "count")) {
        t.type = KILN_STR("cpu");
        t.unit = KILN_STR("nanoseconds");
        t.scale = t.period;
    }
    name_family(&t);
    if (scope->named_block && is(t.name, "mutex"))
        t.name = KILN_STR("block");
    said = profile->attrs ? kiln_set_text(batch, profile->attrs, type_key) : KILN_STR_NONE;
    said = said.len ? said : scope->family;
    if (may_name(said))
        t.name = said;
    return t;
}

int kiln_types_of_batch(const struct kiln_batch *batch, bool counts_stay,
                        struct kiln_type **ret_types)
{
    struct kiln_type *types = kiln_calloc(batch->n_profiles, sizeof(*types));

    if (!types)
        return -ENOMEM;
    for (uint32_t s = 0; s < batch->n_scopes; s++) {
        const struct kiln_scope *scope = &batch->scopes[s];
        struct scope_facts facts = facts_of(batch, scope);

        facts.has_cpu_time |= counts_stay;
        for (uint32_t i = 0; i < scope->n_profiles; i++) {
            uint32_t p = scope->first_profile + i;

            types[p] = type_of(batch, &batch->profiles[p], &facts);
        }
    }
    *ret_types = types;
    return 0;
}

/* ---- the default type ---- */

#define NOT_FOUND UINT32_MAX

static uint32_t find_sample_type(const struct kiln_batch *batch, const struct kiln_scope *scope,
                                 struct kiln_str type)
{
    for (uint32_t i = 0; i < scope->n_profiles && type.len; i++) {
        uint32_t p = scope->first_profile + i;

        if (kiln_str_eq(kiln_batch_str(batch, batch->profiles[p].sample_type.type), type))
            return p;
    }
    return NOT_FOUND;
}

/*
 * The profile of the last type, as pprof counts: the order lists, for each profile of the scope,
 * the place of its type in the pprof file, or simply the types in the order of the file.
 */
static uint32_t find_last(const struct kiln_batch *batch, const struct kiln_scope *scope)
{
    const struct kiln_attr *order =
        kiln_set_find(batch, scope->attrs, KILN_STR("pprof.scope.sample_type_order"));
    uint32_t last = 0;

    if (!order || order->value.kind != KILN_VALUE_ARRAY || order->value.n == 0)
        return NOT_FOUND;
    for (uint32_t i = 0; i < order->value.n; i++) {
        const struct kiln_value *item = &batch->dict.nested[order->value.first + i].value;
        const struct kiln_value *most = &batch->dict.nested[order->value.first + last].value;

        if (item->kind == KILN_VALUE_STRING && i + 1 == order->value.n)
            return find_sample_type(batch, scope, batch->dict.strings[item->str]);
        if (item->kind == KILN_VALUE_INT && most->kind == KILN_VALUE_INT && item->i > most->i)
            last = i;
    }
    return last < scope->n_profiles ? scope->first_profile + last : NOT_FOUND;
}

static bool is_all_zero(const struct kiln_batch *batch, const struct kiln_profile *profile)
{
    for (uint32_t i = 0; i < profile->n_samples; i++) {
        if (kiln_sample_total(batch, &batch->samples[profile->first_sample + i]) != 0)
            return false;
    }
    return true;
}

uint32_t kiln_type_default(const struct kiln_batch *batch, const struct kiln_type *types)
{
    uint32_t found = NOT_FOUND;

    if (batch->n_scopes) {
        const struct kiln_scope *scope = &batch->scopes[0];
        const struct kiln_str key = KILN_STR("pprof.scope.default_sample_type");

        found = find_sample_type(batch, scope, kiln_set_text(batch, scope->attrs, key));
        if (found != NOT_FOUND)
            return found;
        found = find_last(batch, scope);
    }
    if (found != NOT_FOUND && !is_all_zero(batch, &batch->profiles[found]))
        return found;
    for (uint32_t p = 0; p < batch->n_profiles; p++) {
        if (is_cpu_time(types[p].type, types[p].unit))
            return p;
    }
    return found != NOT_FOUND ? found : 0;
}

/* ---- ids ---- */

void kiln_type_id(const struct kiln_type *type, struct kiln_buf *out)
{
    const struct kiln_str *parts[] = {&type->name, &type->type, &type->unit, &type->period_type,
                                      &type->period_unit};

    for (size_t i = 0; i < KILN_ARRAY_LEN(parts); i++) {
        if (i)
            kiln_buf_putc(out, ':');
        kiln_buf_add_str(out, *parts[i]);
    }
}

bool kiln_type_equal(const struct kiln_type *a, const struct kiln_type *b)
{
    return kiln_str_eq(a->name, b->name) && kiln_str_eq(a->type, b->type) &&
           kiln_str_eq(a->unit, b->unit) && kiln_str_eq(a->period_type, b->period_type) &&
           kiln_str_eq(a->period_unit, b->period_unit);
}

bool kiln_type_matches(const struct kiln_type *type, struct kiln_str wanted)
{
    struct kiln_str parts[5];
    size_t n = 0;

    while (wanted.ptr && n < KILN_ARRAY_LEN(parts))
        parts[n++] = kiln_str_cut(&wanted, ':');
    if (wanted.ptr || n == 0)
        return false;
    if (n == 1)
        return kiln_str_eq(parts[0], type->type);
    if (n == 2)
        return kiln_str_eq(parts[0], type->type) && kiln_str_eq(parts[1], type->unit);
    if (n == 4 || !kiln_str_eq(parts[0], type->name) || !kiln_str_eq(parts[1], type->type) ||
        !kiln_str_eq(parts[2], type->unit))
        return false;
    return n == 3 ||
           (kiln_str_eq(parts[3], type->period_type) && kiln_str_eq(parts[4], type->period_unit));
}

/* ---- types made of others ---- */

const struct kiln_made_type kiln_type_wall = {
    .type = {.name = S("wall"),
             .type = S("wall"),
             .unit = S("nanoseconds"),
             .period_type = S("wall"),
             .period_unit = S("nanoseconds"),
             .scale = 1},
    .id = S("wall:wall:nanoseconds:wall:nanoseconds"),
    .parts = {S("process_cpu:cpu:nanoseconds"), S("off_cpu:off_cpu:nanoseconds")},
};

bool kiln_type_id_is(struct kiln_str id, struct kiln_str type)
{
    return kiln_str_starts(id, type) && (id.len == type.len || id.ptr[type.len] == ':');
}

uint32_t kiln_made_part(const struct kiln_made_type *made, struct kiln_str id)
{
    uint32_t i = 0;

    while (i < KILN_MADE_PARTS && !kiln_type_id_is(id, made->parts[i]))
        i++;
    return i;
}

static uint32_t part_of(const struct kiln_made_type *made, const struct kiln_type *type)
{
    uint32_t i = 0;

    while (i < KILN_MADE_PARTS && !kiln_type_matches(type, made->parts[i]))
        i++;
    return i;
}

bool kiln_type_is_made(const struct kiln_type *type, const struct kiln_type *types, uint32_t n)
{
    bool has[KILN_MADE_PARTS + 1] = {0}, all = kiln_type_equal(type, &kiln_type_wall.type);

    for (uint32_t i = 0; all && i < n; i++) {
        all = !kiln_type_equal(&types[i], type);
        has[part_of(&kiln_type_wall, &types[i])] = true;
    }
    for (uint32_t i = 0; i < KILN_MADE_PARTS; i++)
        all = all && has[i];
    return all;
}

bool kiln_type_counts(const struct kiln_type *wanted, bool made, const struct kiln_type *type)
{
    return made ? part_of(&kiln_type_wall, type) < KILN_MADE_PARTS : kiln_type_equal(wanted, type);
}

enum kiln_unit_kind kiln_unit_kind(struct kiln_str unit)
{
    if (is(unit, "nanoseconds"))
        return KILN_UNIT_NANOSECONDS;
    if (is(unit, "bytes"))
        return KILN_UNIT_BYTES;
    return is(unit, "count") ? KILN_UNIT_COUNT : KILN_UNIT_OTHER;
}
