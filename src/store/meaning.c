/* SPDX-License-Identifier: Apache-2.0 */
#include "store/meaning.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/regex.h"

/* ---- labels ---- */

enum { WHOLE_TYPE = 5, SERVICE = 6 };

/* Numbers are parts of the type's id. */
static const struct {
    const char *name;
    uint32_t part;
} pseudo_labels[] = {
    {"__name__", 0},           {"__period_type__", 3},
    {"__period_unit__", 4},    {"__profile_type__", WHOLE_TYPE},
    {"__type__", 1},           {"__unit__", 2},
    {"service_name", SERVICE}, {"__service_name__", SERVICE},
    {"service.name", SERVICE},
};

const char *kiln_pseudo_label(uint32_t i)
{
    return i < KILN_ARRAY_LEN(pseudo_labels) ? pseudo_labels[i].name : NULL;
}

static struct kiln_str type_part(struct kiln_str type, uint32_t part)
{
    for (uint32_t i = 0; i < part && type.ptr; i++)
        kiln_str_cut(&type, ':');
    return type.ptr ? kiln_str_cut(&type, ':') : KILN_STR("");
}

bool kiln_meaning_of_series(const struct kiln_series *series, struct kiln_str name,
                            struct kiln_str *ret_value)
{
    struct kiln_str labels = series->labels, known, value;

    for (uint32_t i = 0; i < KILN_ARRAY_LEN(pseudo_labels); i++) {
        if (!kiln_str_eq(name, kiln_str_of(pseudo_labels[i].name)))
            continue;
        if (pseudo_labels[i].part == SERVICE)
            *ret_value = series->service;
        else if (pseudo_labels[i].part == WHOLE_TYPE)
            *ret_value = series->type;
        else
            *ret_value = type_part(series->type, pseudo_labels[i].part);
        return true;
    }
    while (kiln_series_label(&labels, &known, &value)) {
        if (kiln_str_eq(known, name)) {
            *ret_value = value;
            return true;
        }
    }
    return false;
}

struct kiln_str kiln_meaning_text(const struct kiln_batch *batch, const struct kiln_value *value,
                                  char scratch[KILN_MEANING_SCRATCH])
{
    int n = 0;

    switch (value->kind) {
    case KILN_VALUE_STRING:
        return kiln_batch_str(batch, (uint32_t)value->str);
    case KILN_VALUE_BOOL:
        return value->flag ? KILN_STR("true") : KILN_STR("false");
    case KILN_VALUE_INT:
        n = snprintf(scratch, KILN_MEANING_SCRATCH, "%lld", (long long)value->i);
        break;
    case KILN_VALUE_DOUBLE:
        n = snprintf(scratch, KILN_MEANING_SCRATCH, "%.17g", value->d);
        break;
    default:
        break;
    }
    return (struct kiln_str){scratch, n > 0 ? (size_t)n : 0};
}

static int by_key(const void *a, const void *b, void *context)
{
    const struct kiln_batch *batch = context;
    const uint32_t *x = a, *y = b;

    return kiln_str_cmp(kiln_batch_str(batch, batch->dict.attrs[*x].key),
                        kiln_batch_str(batch, batch->dict.attrs[*y].key));
}

static void add_attr(const struct kiln_batch *batch, const struct kiln_attr *attr,
                     struct kiln_buf *out)
{
    char scratch[KILN_MEANING_SCRATCH];

    kiln_buf_add_str(out, kiln_batch_str(batch, attr->key));
    kiln_buf_putc(out, '\0');
    kiln_buf_add_str(out, kiln_meaning_text(batch, &attr->value, scratch));
    kiln_buf_putc(out, '\0');
}

static void add_resource(const struct kiln_batch *batch, uint32_t set, struct kiln_buf *out)
{
    struct kiln_range range = batch->dict.sets[set];
    uint32_t *members = kiln_malloc(range.n * sizeof(*members));

    if (!members) {
        out->error = out->error ? out->error : -ENOMEM;
        return;
    }
    if (range.n)
        memcpy(members, batch->dict.members + range.first, range.n * sizeof(*members));
    qsort_r(members, range.n, sizeof(*members), by_key, (void *)batch);
    for (uint32_t i = 0; i < range.n; i++)
        add_attr(batch, &batch->dict.attrs[members[i]], out);
    kiln_free(members);
}

void kiln_meaning_process(const struct kiln_batch *batch, uint32_t set, struct kiln_buf *out)
{
    static const struct kiln_str names[] = {
        {"process.pid", 11}, {"process.creation.time", 21}, {"host.name", 9}, {"host.id", 7}};

    if (!kiln_set_find(batch, set, names[0])) {
        add_resource(batch, set, out);
        return;
    }
    for (uint32_t i = 0; i < KILN_ARRAY_LEN(names); i++) {
        const struct kiln_attr *attr = kiln_set_find(batch, set, names[i]);

        if (attr)
            add_attr(batch, attr, out);
    }
}

int kiln_meaning_match(const struct kiln_matcher *matcher, struct kiln_str value)
{
    int r;

    switch (matcher->op) {
    case KILN_MATCH_EQ:
        return kiln_str_eq(value, matcher->value);
    case KILN_MATCH_NE:
        return !kiln_str_eq(value, matcher->value);
    default:
        r = kiln_regex_matches(matcher->regex, value);
        if (r < 0)
            return r;
        return r == (matcher->op == KILN_MATCH_RE);
    }
}

/* ---- values ---- */

static bool is_samples(struct kiln_str type)
{
    return kiln_str_eq(type, KILN_STR("samples")) || kiln_str_eq(type, KILN_STR("sample"));
}

/* What a value is worth in observations: core/view_counts.c says more, where more is at hand. */
static double unit_of(const struct kiln_batch *batch, const struct kiln_profile *profile)
{
    struct kiln_str type = kiln_batch_str(batch, profile->sample_type.type);
    struct kiln_str unit = kiln_batch_str(batch, profile->sample_type.unit);
    int64_t placeholder = kiln_unit_kind(unit) == KILN_UNIT_COUNT ? 0 : 1;

    if (kiln_str_eq(unit, KILN_STR("count")) &&
        (is_samples(type) || kiln_str_eq(type, KILN_STR("contentions"))))
        return 1;
    if (profile->period > placeholder &&
        kiln_str_eq(kiln_batch_str(batch, profile->period_type.unit), unit))
        return (double)profile->period;
    return 0;
}

struct kiln_weight kiln_weight_of(const struct kiln_batch *batch,
                                  const struct kiln_profile *profile, struct kiln_str type)
{
    struct kiln_weight weight = {.scale = 1, .unit = unit_of(batch, profile)};

    if (is_samples(kiln_batch_str(batch, profile->sample_type.type)) && profile->period > 0 &&
        kiln_str_eq(kiln_batch_str(batch, profile->sample_type.unit), KILN_STR("count")) &&
        kiln_str_eq(type_part(type, 1), KILN_STR("cpu")) &&
        kiln_str_eq(type_part(type, 2), KILN_STR("nanoseconds")))
        weight.scale = profile->period;
    return weight;
}
