/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/receivers/pyroscope_types.h"
#include "base/clock.h"
#include "base/json.h"

/* ---- sample_type_config ---- */

/* Cuts what does not fit, between characters: no type that means something is so long. */
static void copy(char *to, size_t size, struct kiln_str from)
{
    size_t n = from.len < size - 1 ? from.len : size - 1;

    while (n && n < from.len && (from.ptr[n] & 0xc0) == 0x80)
        n--;
    if (n)
        memcpy(to, from.ptr, n);
    to[n] = '\0';
}

static int read_entry(struct kiln_json *r, char *display, size_t size)
{
    struct kiln_str name, text;
    int n = kiln_json_null(r);

    if (n != 0)
        return n < 0 ? n : 0;
    n = kiln_json_object(r);
    while (n == 0 && (n = kiln_json_member(r, &name)) > 0) {
        bool wanted = kiln_str_eq(name, KILN_STR("display-name"));

        if (wanted && kiln_json_peek(r) == KILN_JSON_STRING) {
            n = kiln_json_string(r, &text);
            if (n == 0)
                copy(display, size, text);
        } else {
            n = kiln_json_skip(r);
        }
    }
    return n;
}

int kiln_type_config_add(struct kiln_type_config *config, struct kiln_str type,
                         struct kiln_str display, struct kiln_err *err)
{
    if (config->n == KILN_ARRAY_LEN(config->list))
        return kiln_err_set(err, KILN_E_LIMIT, NULL, "more than %zu sample types",
                            KILN_ARRAY_LEN(config->list));
    copy(config->list[config->n].type, sizeof(config->list->type), type);
    copy(config->list[config->n].display, sizeof(config->list->display), display);
    config->n++;
    return 0;
}

int kiln_type_config_parse(struct kiln_str json, struct kiln_type_config *ret_config,
                           struct kiln_err *err)
{
    struct kiln_type_config config = {.given = true};
    struct kiln_json r;
    struct kiln_str name;
    int n;

    kiln_json_init(&r, json, err);
    n = kiln_json_object(&r);
    while (n == 0 && (n = kiln_json_member(&r, &name)) > 0) {
        if (config.n == KILN_ARRAY_LEN(config.list)) {
            n = kiln_json_fail(&r, KILN_E_LIMIT, "more than %zu sample types",
                               KILN_ARRAY_LEN(config.list));
            break;
        }
        copy(config.list[config.n].type, sizeof(config.list->type), name);
        n = read_entry(&r, config.list[config.n].display, sizeof(config.list->display));
        config.n++;
    }
    if (n == 0 && kiln_json_more(&r) > 0)
        n = kiln_json_fail(&r, KILN_E_MALFORMED, "something stands behind the object");
    kiln_json_done(&r);
    if (n < 0) {
        kiln_err_within(err, "sample_type_config");
        return n;
    }
    *ret_config = config;
    return 0;
}

static struct kiln_str displayed(struct kiln_str type, const struct kiln_type_config *config)
{
    static const char *const defaults[][2] = {{"samples", "cpu"},
                                              {"goroutine", "goroutines"},
                                              {"contentions", "mutex_count"},
                                              {"delay", "mutex_duration"}};

    for (uint32_t i = 0; config->given && i < config->n; i++) {
        if (kiln_str_eq(type, kiln_str_of(config->list[i].type)) && config->list[i].display[0])
            return kiln_str_of(config->list[i].display);
    }
    for (size_t i = 0; !config->given && i < KILN_ARRAY_LEN(defaults); i++) {
        if (kiln_str_eq(type, kiln_str_of(defaults[i][0])))
            return kiln_str_of(defaults[i][1]);
    }
    return type;
}

/* ---- families of pprofs ---- */

static struct kiln_str family_named(struct kiln_str type)
{
    static const struct {
        const char *part, *family;
    } rules[] = {{"cpu", "process_cpu"}, {"alloc_", "memory"}, {"inuse_", "memory"},
                 {"mutex_", "mutex"},    {"block_", "block"},  {"goroutines", "goroutines"}};

    for (size_t i = 0; i < KILN_ARRAY_LEN(rules); i++) {
        if (kiln_str_contains(type, kiln_str_of(rules[i].part)))
            return kiln_str_of(rules[i].family);
    }
    if (kiln_str_eq(type, KILN_STR("space")) || kiln_str_eq(type, KILN_STR("objects")))
        return KILN_STR("memory");
    return KILN_STR_NONE;
}

/* The profile that was sample type `i` in the file: the decoder puts the default type first. */
static struct kiln_str type_at(const struct kiln_batch *batch, uint32_t i)
{
    const struct kiln_scope *scope = &batch->scopes[0];
    const struct kiln_attr *order =
        kiln_set_find(batch, scope->attrs, KILN_STR("pprof.scope.sample_type_order"));
    uint64_t first = 0;

    if (order && order->value.kind == KILN_VALUE_ARRAY && order->value.n)
        first = (uint64_t)batch->dict.nested[order->value.first].value.i;
    if (first >= scope->n_profiles)
        first = 0;
    if (i == first)
        i = 0;
    else if (i < first)
        i++;
    return kiln_batch_str(batch, batch->profiles[scope->first_profile + i].sample_type.type);
}

struct kiln_str kiln_pprof_family(const struct kiln_builder *b,
                                  const struct kiln_type_config *config)
{
    const struct kiln_batch *batch = kiln_builder_peek(b);
    struct kiln_str type = KILN_STR_NONE, family;
    uint32_t n = batch->n_scopes ? batch->scopes[0].n_profiles : 0;

    for (uint32_t i = 0; i < n; i++) {
        if (kiln_str_eq(type_at(batch, i), KILN_STR("wall")))
            return KILN_STR("wall");
    }
    for (uint32_t i = 0; i < n; i++) {
        type = displayed(type_at(batch, i), config);
        family = family_named(type);
        if (family.len)
            return family;
    }
    return type;
}

/* ---- types of applications ---- */

struct kiln_named_type {
    const char *suffix, *family, *type, *unit;
    const char *timed; /* what samples at a rate are; NULL: not sampled by a clock */
};

static const struct kiln_named_type named_types[] = {
    {"cpu", "process_cpu", "samples", "count", "cpu"},
    {"itimer", "process_cpu", "samples", "count", "cpu"},
    {"wall", "wall", "samples", "count", "wall"},
    {"seconds", "wall", "samples", "count", "wall"},
    {"milliseconds", "wall", "samples", "count", "wall"},
    {"microseconds", "wall", "samples", "count", "wall"},
    {"nanoseconds", "wall", "samples", "count", "wall"},
    {"inuse_objects", "memory", "inuse_objects", "count", NULL},
    {"inuse_space", "memory", "inuse_space", "bytes", NULL},
    {"alloc_objects", "memory", "alloc_objects", "count", NULL},
    {"alloc_space", "memory", "alloc_space", "bytes", NULL},
    {"alloc_in_new_tlab_objects", "memory", "alloc_in_new_tlab_objects", "count", NULL},
    {"alloc_in_new_tlab_bytes", "memory", "alloc_in_new_tlab_bytes", "bytes", NULL},
    {"alloc_outside_tlab_objects", "memory", "alloc_outside_tlab_objects", "count", NULL},
    {"alloc_outside_tlab_bytes", "memory", "alloc_outside_tlab_bytes", "bytes", NULL},
    {"live", "memory", "live", "count", NULL},
    {"bytes", "memory", "samples", "bytes", NULL},
    {"goroutines", "goroutine", "goroutines", "count", NULL},
    {"mutex_count", "mutex", "contentions", "count", NULL},
    {"mutex_duration", "mutex", "delay", "nanoseconds", NULL},
    {"block_count", "block", "contentions", "count", NULL},
    {"block_duration", "block", "delay", "nanoseconds", NULL},
    {"lock_count", "block", "contentions", "count", NULL},
    {"lock_duration", "block", "delay", "nanoseconds", NULL},
    {"exceptions", "exceptions", "samples", "count", NULL},
};

int kiln_named_type_cut(struct kiln_str *app, const struct kiln_named_type **ret_type,
                        struct kiln_err *err)
{
    const char *dot = memrchr(app->ptr, '.', app->len);
    struct kiln_str suffix = KILN_STR("cpu");

    if (dot)
        suffix = (struct kiln_str){dot + 1, (size_t)(app->ptr + app->len - dot - 1)};
    for (size_t i = 0; i < KILN_ARRAY_LEN(named_types); i++) {
        if (!kiln_str_eq(suffix, kiln_str_of(named_types[i].suffix)))
            continue;
        if (dot)
            app->len = (size_t)(dot - app->ptr);
        *ret_type = &named_types[i];
        return 0;
    }
    return kiln_err_set(err, KILN_E_MALFORMED, "name",
                        "%.*s is no profile type: end the name in .cpu, .wall, .alloc_space, ...",
                        (int)(suffix.len < 64 ? suffix.len : 64), suffix.ptr);
}

static bool is_counted(const struct kiln_batch *batch, const struct kiln_profile *profile)
{
    return kiln_str_eq(kiln_batch_str(batch, profile->sample_type.type), KILN_STR("samples")) &&
           kiln_str_eq(kiln_batch_str(batch, profile->sample_type.unit), KILN_STR("count"));
}

static struct kiln_value_type value_type(struct kiln_builder *b, const char *type, const char *unit)
{
    return (struct kiln_value_type){kiln_builder_string(b, kiln_str_of(type)),
                                    kiln_builder_string(b, kiln_str_of(unit))};
}

/* A speedscope says its unit: time is wall-clock time, bytes are memory. */
static void apply_unit(struct kiln_builder *b, struct kiln_profile *profile)
{
    struct kiln_str unit = kiln_batch_str(kiln_builder_peek(b), profile->sample_type.unit);

    if (kiln_str_eq(unit, KILN_STR("nanoseconds")))
        profile->sample_type = value_type(b, "wall", "nanoseconds");
    else if (kiln_str_eq(unit, KILN_STR("bytes")))
        profile->period_type = value_type(b, "space", "bytes");
}

void kiln_named_type_apply(const struct kiln_named_type *type, uint32_t rate,
                           struct kiln_tags *tags, struct kiln_builder *b)
{
    bool timed = type->timed && rate;
    struct kiln_value_type sample =
        timed ? value_type(b, type->timed, "nanoseconds") : value_type(b, type->type, type->unit);
    struct kiln_value_type period =
        timed ? value_type(b, "cpu", "nanoseconds") : (struct kiln_value_type){0};
    int64_t period_ns = timed ? (int64_t)(KILN_NS_PER_S / rate) : 0;

    for (uint32_t i = 0; i < kiln_builder_peek(b)->n_profiles; i++) {
        struct kiln_profile *profile = kiln_builder_profile(b, i);

        if (!is_counted(kiln_builder_peek(b), profile)) {
            apply_unit(b, profile);
            continue;
        }
        profile->sample_type = sample;
        profile->period_type = period;
        profile->period = period_ns;
        tags->family = kiln_str_of(type->family);
        if (timed)
            kiln_builder_scale_profile(b, i, period_ns ? period_ns : 1);
    }
}
