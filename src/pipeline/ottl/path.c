/* SPDX-License-Identifier: Apache-2.0 */
/* What paths name: a table of fields, and how each is read. */
#include <errno.h>
#include <stdio.h>

#include "pipeline/ottl/ottl_int.h"

/* ---- names ---- */

#define IN(context) (1u << KILN_OTTL_##context)
#define HEADS       (IN(RESOURCE) | IN(SCOPE))
#define ANYWHERE    (HEADS | IN(PROFILE) | IN(SAMPLE))

static const struct {
    const char *names; /* one or two, with a dot between them */
    unsigned where;    /* contexts */
    enum kiln_ottl_field field;
    const char *unwritten; /* why it cannot be written */
} fields[] = {
    {"attributes", ANYWHERE, KILN_OTTL_ATTRIBUTES, NULL},
    {"cache", ANYWHERE, KILN_OTTL_CACHE, NULL},
    {"attribute_indices", IN(PROFILE) | IN(SAMPLE), KILN_OTTL_INDICES, NULL},
    {"dropped_attributes_count", HEADS | IN(PROFILE), KILN_OTTL_DROPPED, NULL},
    {"schema_url", HEADS, KILN_OTTL_SCHEMA_URL, NULL},
    {"name", IN(SCOPE), KILN_OTTL_SCOPE_NAME, NULL},
    {"version", IN(SCOPE), KILN_OTTL_SCOPE_VERSION, NULL},
    {"sample_type", IN(PROFILE), KILN_OTTL_SAMPLE_VALUE_TYPE, NULL},
    {"sample_type.type", IN(PROFILE), KILN_OTTL_SAMPLE_TYPE, NULL},
    {"sample_type.unit", IN(PROFILE), KILN_OTTL_SAMPLE_UNIT, NULL},
    {"period_type", IN(PROFILE), KILN_OTTL_PERIOD_VALUE_TYPE, NULL},
    {"period_type.type", IN(PROFILE), KILN_OTTL_PERIOD_TYPE, NULL},
    {"period_type.unit", IN(PROFILE), KILN_OTTL_PERIOD_UNIT, NULL},
    {"period", IN(PROFILE), KILN_OTTL_PERIOD, NULL},
    {"sample", IN(PROFILE), KILN_OTTL_ALL_SAMPLES,
     "samples are changed one by one: sample.values, sample.attributes"},
    {"time_unix_nano", IN(PROFILE), KILN_OTTL_TIME, NULL},
    {"time", IN(PROFILE), KILN_OTTL_TIME_MOMENT, NULL},
    {"duration_unix_nano", IN(PROFILE), KILN_OTTL_DURATION, NULL},
    {"duration", IN(PROFILE), KILN_OTTL_DURATION, NULL},
    {"profile_id", IN(PROFILE), KILN_OTTL_ID_BYTES, NULL},
    {"profile_id.string", IN(PROFILE), KILN_OTTL_ID_TEXT, NULL},
    {"original_payload_format", IN(PROFILE), KILN_OTTL_PAYLOAD_FORMAT, NULL},
    {"original_payload", IN(PROFILE), KILN_OTTL_PAYLOAD, NULL},
    {"values", IN(SAMPLE), KILN_OTTL_VALUES, NULL},
    {"timestamps_unix_nano", IN(SAMPLE), KILN_OTTL_TIMES, NULL},
    {"timestamps", IN(SAMPLE), KILN_OTTL_MOMENTS, "times are written as timestamps_unix_nano"},
    {"link_index", IN(SAMPLE), KILN_OTTL_LINK, NULL},
};

enum kiln_ottl_context kiln_ottl_context_named(struct kiln_str name)
{
    static const struct {
        const char *name;
        enum kiln_ottl_context context;
    } names[] = {
        {"resource", KILN_OTTL_RESOURCE}, {"scope", KILN_OTTL_SCOPE},
        {"profile", KILN_OTTL_PROFILE},   {"instrumentation_scope", KILN_OTTL_SCOPE},
        {"sample", KILN_OTTL_SAMPLE},     {"profilesample", KILN_OTTL_SAMPLE},
    };

    for (size_t i = 0; i < KILN_ARRAY_LEN(names); i++) {
        if (kiln_str_eq(name, kiln_str_of(names[i].name)))
            return names[i].context;
    }
    return KILN_OTTL_CONTEXTS;
}

static bool is_list(enum kiln_ottl_field field)
{
    return field == KILN_OTTL_VALUES || field == KILN_OTTL_TIMES || field == KILN_OTTL_MOMENTS ||
           field == KILN_OTTL_INDICES;
}

static bool has_names(enum kiln_ottl_field field)
{
    return field == KILN_OTTL_ATTRIBUTES || field == KILN_OTTL_CACHE;
}

/* Only attributes and lists have keys. */
static bool keys_fit(const struct kiln_ottl_path *path)
{
    if (is_list(path->field))
        return path->n_keys <= 1 && !(path->n_keys && path->keys[0].text.ptr);
    return path->n_keys == 0 || (has_names(path->field) && path->keys[0].text.ptr);
}

static bool field_is(const char *names, const struct kiln_str *said, uint32_t n)
{
    struct kiln_str rest = kiln_str_of(names);
    uint32_t i = 0;

    while (rest.ptr) {
        if (i == n || !kiln_str_eq(kiln_str_cut(&rest, '.'), said[i++]))
            return false;
    }
    return i == n;
}

bool kiln_ottl_path_find(const struct kiln_str *names, uint32_t n, enum kiln_ottl_context context,
                         struct kiln_ottl_path *path)
{
    enum kiln_ottl_context named = kiln_ottl_context_named(names[0]);

    if (named != KILN_OTTL_CONTEXTS) {
        context = named;
        names++;
        n--;
    }
    for (size_t i = 0; context != KILN_OTTL_CONTEXTS && i < KILN_ARRAY_LEN(fields); i++) {
        if (!(fields[i].where & 1u << context) || !field_is(fields[i].names, names, n))
            continue;
        path->context = context;
        path->field = fields[i].field;
        return keys_fit(path);
    }
    return false;
}

const char *kiln_ottl_path_unwritten(const struct kiln_ottl_path *path)
{
    const char *why = NULL;

    for (size_t i = 0; i < KILN_ARRAY_LEN(fields); i++) {
        if (fields[i].field == path->field)
            why = fields[i].unwritten;
    }
    if (path->field == KILN_OTTL_INDICES && path->n_keys)
        why = "attribute_indices are written all at once";
    return why;
}

bool kiln_ottl_path_is_map(const struct kiln_ottl_path *path)
{
    return has_names(path->field);
}

/* ---- reading ---- */

uint32_t kiln_ottl_set_of(const struct kiln_ottl_run *run, const struct kiln_ottl_path *path)
{
    const struct kiln_ottl_item *item = run->item;

    if (path->field == KILN_OTTL_CACHE)
        return item->cache ? *item->cache : 0;
    switch (path->context) {
    case KILN_OTTL_RESOURCE:
        return item->batch->resources[item->resource].attrs;
    case KILN_OTTL_SCOPE:
        return item->batch->scopes[item->scope].attrs;
    case KILN_OTTL_PROFILE:
        return item->batch->profiles[item->profile].attrs;
    default:
        return item->batch->samples[item->sample].attrs;
    }
}

/* What a key finds in a list or map. */
static struct kiln_ottl_value child(const struct kiln_batch *batch,
                                    const struct kiln_ottl_value *of,
                                    const struct kiln_ottl_key *key)
{
    const struct kiln_attr *children = batch->dict.nested + of->nested.first;

    if (of->kind == KILN_OTTL_LIST && !key->text.ptr && key->index < of->nested.n)
        return kiln_ottl_value_of(batch, children[key->index].value);
    for (uint32_t i = 0; of->kind == KILN_OTTL_MAP && key->text.ptr && i < of->nested.n; i++) {
        if (kiln_str_eq(kiln_batch_str(batch, children[i].key), key->text))
            return kiln_ottl_value_of(batch, children[i].value);
    }
    return (struct kiln_ottl_value){0};
}

static struct kiln_ottl_value attribute(const struct kiln_ottl_run *run,
                                        const struct kiln_ottl_path *path)
{
    const struct kiln_batch *batch = run->item->batch;
    struct kiln_ottl_value value = {.kind = KILN_OTTL_SET, .set = kiln_ottl_set_of(run, path)};
    const struct kiln_attr *attr;

    if (path->n_keys == 0)
        return value;
    attr = kiln_set_find(batch, value.set, path->keys[0].text);
    value = attr ? kiln_ottl_value_of(batch, attr->value) : (struct kiln_ottl_value){0};
    for (uint32_t i = 1; i < path->n_keys; i++)
        value = child(batch, &value, &path->keys[i]);
    return value;
}

static struct kiln_ottl_value numbers(const struct kiln_ottl_path *path, const int64_t *at,
                                      uint32_t n)
{
    struct kiln_ottl_value value = {0};

    if (path->n_keys == 0) {
        value.kind = KILN_OTTL_NUMBERS;
        value.numbers.at = at;
        value.numbers.n = at ? n : 0;
    } else if (at && path->keys[0].index < n) {
        value.kind = KILN_OTTL_INT;
        value.i = at[path->keys[0].index];
    }
    return value;
}

static struct kiln_ottl_value text(const struct kiln_batch *batch, uint32_t string)
{
    return (struct kiln_ottl_value){.kind = KILN_OTTL_TEXT, .text = kiln_batch_str(batch, string)};
}

static struct kiln_ottl_value whole(uint64_t number)
{
    return (struct kiln_ottl_value){.kind = KILN_OTTL_INT, .i = (int64_t)number};
}

static struct kiln_ottl_value moment(uint64_t ns)
{
    return (struct kiln_ottl_value){.kind = KILN_OTTL_MOMENT, .i = (int64_t)ns};
}

static struct kiln_ottl_value of_sample(const struct kiln_ottl_item *item,
                                        const struct kiln_ottl_path *path)
{
    const struct kiln_sample *sample = &item->batch->samples[item->sample];
    const int64_t *times = (const int64_t *)kiln_sample_times(item->batch, sample);
    struct kiln_ottl_value value;

    switch (path->field) {
    case KILN_OTTL_VALUES:
        return numbers(path, kiln_sample_values(item->batch, sample), sample->n);
    case KILN_OTTL_TIMES:
        return numbers(path, times, sample->n);
    case KILN_OTTL_MOMENTS:
        value = numbers(path, times, sample->n);
        return value.kind == KILN_OTTL_INT ? moment((uint64_t)value.i) : value;
    default:
        return whole(sample->link);
    }
}

/* Attributes of the batch's dictionary, in its own numbers. */
static int indices(struct kiln_ottl_run *run, const struct kiln_ottl_path *path,
                   struct kiln_ottl_value *ret)
{
    const struct kiln_dict *d = &run->item->batch->dict;
    struct kiln_range range = d->sets[kiln_ottl_set_of(run, path)];
    int64_t *at = kiln_arena_alloc(&run->made, (range.n + 1) * sizeof(*at));

    if (!at)
        return kiln_ottl_fail(run, -ENOMEM, "%s", kiln_err_text(-ENOMEM));
    for (uint32_t i = 0; i < range.n; i++)
        at[i] = d->members[range.first + i];
    *ret = numbers(path, at, range.n);
    return 0;
}

static int id_text(struct kiln_ottl_run *run, const uint8_t id[16], struct kiln_ottl_value *ret)
{
    char digits[33];

    for (int i = 0; i < 16; i++)
        snprintf(digits + 2 * i, 3, "%02x", id[i]);
    return kiln_ottl_make(run, kiln_str_of(digits), ret);
}

static struct kiln_ottl_value of_profile(const struct kiln_batch *batch,
                                         const struct kiln_profile *p, enum kiln_ottl_field field)
{
    switch (field) {
    case KILN_OTTL_SAMPLE_TYPE:
        return text(batch, p->sample_type.type);
    case KILN_OTTL_SAMPLE_UNIT:
        return text(batch, p->sample_type.unit);
    case KILN_OTTL_PERIOD_TYPE:
        return text(batch, p->period_type.type);
    case KILN_OTTL_PERIOD_UNIT:
        return text(batch, p->period_type.unit);
    case KILN_OTTL_SAMPLE_VALUE_TYPE:
        return (struct kiln_ottl_value){.kind = KILN_OTTL_TYPE, .type = p->sample_type};
    case KILN_OTTL_PERIOD_VALUE_TYPE:
        return (struct kiln_ottl_value){.kind = KILN_OTTL_TYPE, .type = p->period_type};
    case KILN_OTTL_ALL_SAMPLES:
        return (struct kiln_ottl_value){.kind = KILN_OTTL_SAMPLES, .i = p->n_samples};
    case KILN_OTTL_PERIOD:
        return whole((uint64_t)p->period);
    case KILN_OTTL_TIME_MOMENT:
        return moment(p->time_ns);
    case KILN_OTTL_TIME:
        return whole(p->time_ns);
    case KILN_OTTL_DURATION:
        return whole(p->duration_ns);
    case KILN_OTTL_DROPPED:
        return whole(p->dropped_attrs);
    case KILN_OTTL_PAYLOAD_FORMAT:
        return text(batch, p->payload_format);
    case KILN_OTTL_PAYLOAD:
        return (struct kiln_ottl_value){.kind = KILN_OTTL_BYTES, .text = p->payload};
    default:
        return (struct kiln_ottl_value){.kind = KILN_OTTL_BYTES,
                                        .text = {(const char *)p->id, sizeof(p->id)}};
    }
}

static struct kiln_ottl_value of_head(const struct kiln_ottl_item *item,
                                      const struct kiln_ottl_path *path)
{
    const struct kiln_resource *resource = &item->batch->resources[item->resource];
    const struct kiln_scope *scope = &item->batch->scopes[item->scope];
    bool outer = path->context == KILN_OTTL_RESOURCE;

    switch (path->field) {
    case KILN_OTTL_DROPPED:
        return whole(outer ? resource->dropped_attrs : scope->dropped_attrs);
    case KILN_OTTL_SCHEMA_URL:
        return text(item->batch, outer ? resource->schema_url : scope->schema_url);
    default:
        return text(item->batch,
                    path->field == KILN_OTTL_SCOPE_NAME ? scope->name : scope->version);
    }
}

int kiln_ottl_path_get(struct kiln_ottl_run *run, const struct kiln_ottl_path *path,
                       struct kiln_ottl_value *ret)
{
    const struct kiln_ottl_item *item = run->item;
    const struct kiln_profile *profile;

    if (path->field == KILN_OTTL_INDICES)
        return indices(run, path, ret);
    if (has_names(path->field)) {
        *ret = attribute(run, path);
    } else if (path->context == KILN_OTTL_SAMPLE) {
        *ret = of_sample(item, path);
    } else if (path->context != KILN_OTTL_PROFILE) {
        *ret = of_head(item, path);
    } else {
        profile = &item->batch->profiles[item->profile];
        if (path->field == KILN_OTTL_ID_TEXT)
            return id_text(run, profile->id, ret);
        *ret = of_profile(item->batch, profile, path->field);
    }
    return 0;
}
