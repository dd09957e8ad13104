/* SPDX-License-Identifier: Apache-2.0 */
/* How what a path names is written. */
#include <errno.h>

#include "base/bytetext.h"
#include "core/reopen.h"
#include "pipeline/ottl/ottl_int.h"

/* ---- attributes ---- */

void kiln_ottl_give_set(struct kiln_ottl_run *run, const struct kiln_ottl_path *path, uint32_t set)
{
    const struct kiln_ottl_item *item = run->item;
    enum kiln_ottl_context context = path->context;

    if (kiln_builder_error(item->b))
        return;
    if (path->field == KILN_OTTL_CACHE) {
        if (item->cache)
            *item->cache = set;
        return;
    }
    if (context == KILN_OTTL_RESOURCE)
        kiln_reopened_resource(item->b, item->resource, set);
    else if (context == KILN_OTTL_SCOPE)
        kiln_builder_scope(item->b, item->scope)->attrs = set;
    else if (context == KILN_OTTL_PROFILE)
        kiln_builder_profile(item->b, item->profile)->attrs = set;
    else
        kiln_reopened_sample(item->b, item->sample, set);
}

/* All attributes at once, of something else: units stay where they were. */
static void copy_set(struct kiln_ottl_run *run, struct kiln_draft *draft, uint32_t from)
{
    const struct kiln_dict *d = &run->item->batch->dict;
    struct kiln_range range = d->sets[from];

    while (draft->n)
        kiln_draft_drop_at(draft, draft->n - 1);
    for (uint32_t i = 0; i < range.n; i++) {
        struct kiln_attr attr = d->attrs[d->members[range.first + i]];

        kiln_draft_put(draft, d->strings[attr.key], attr.value);
    }
}

static int set_all(struct kiln_ottl_run *run, struct kiln_draft *draft,
                   const struct kiln_ottl_value *value)
{
    uint32_t from;

    if (value->kind != KILN_OTTL_SET && value->kind != KILN_OTTL_MAP)
        return kiln_ottl_fail(run, KILN_E_MALFORMED, "attributes can only be set to attributes");
    from = value->kind == KILN_OTTL_SET ? value->set : kiln_ottl_set_of_map(run, value->nested);
    copy_set(run, draft, from);
    return 0;
}

static int set_key(struct kiln_ottl_run *run, struct kiln_draft *draft,
                   const struct kiln_ottl_path *path, const struct kiln_ottl_value *value)
{
    const struct kiln_attr *attr = kiln_draft_find(draft, path->keys[0].text);
    struct kiln_value now = attr && path->n_keys > 1 ? attr->value : (struct kiln_value){0};
    struct kiln_value to;
    int r = kiln_ottl_value_in(run, value, &to);

    if (r == 0)
        r = kiln_ottl_put_part(run, &now, path->keys + 1, path->n_keys - 1, to);
    if (r == 0)
        r = kiln_ottl_weigh(run, now);
    if (r == 0)
        kiln_draft_put(draft, path->keys[0].text, now);
    return r;
}

static int set_attribute(struct kiln_ottl_run *run, const struct kiln_ottl_path *path,
                         const struct kiln_ottl_value *value)
{
    struct kiln_draft *draft = &run->ottl->draft;
    int r;

    kiln_draft_open(draft, run->item->b, kiln_ottl_set_of(run, path));
    r = path->n_keys ? set_key(run, draft, path, value) : set_all(run, draft, value);
    if (r == 0)
        kiln_ottl_give_set(run, path, kiln_draft_close(draft));
    return r;
}

/* Attributes of the dictionary, by its own numbers; no key twice. */
static int set_indices(struct kiln_ottl_run *run, const struct kiln_ottl_path *path,
                       const struct kiln_ottl_value *value)
{
    const struct kiln_dict *d = &run->item->batch->dict;
    uint32_t n, twice = 0, set, *attrs;
    int64_t *at;
    int r = kiln_ottl_integers(run, value, &at, &n);

    if (r < 0)
        return r;
    attrs = kiln_arena_alloc(&run->made, (n + 1) * sizeof(*attrs));
    if (!attrs)
        return kiln_ottl_fail(run, -ENOMEM, "%s", kiln_err_text(-ENOMEM));
    for (uint32_t i = 0; i < n; i++) {
        if (at[i] <= 0 || at[i] >= d->n_attrs)
            return kiln_ottl_fail(run, KILN_E_RANGE, "there is no attribute of this number");
        attrs[i] = (uint32_t)at[i];
    }
    set = kiln_builder_set(run->item->b, attrs, n, &twice);
    if (twice)
        return kiln_ottl_fail(run, KILN_E_MALFORMED, "two of these attributes have the same key");
    kiln_ottl_give_set(run, path, set);
    return 0;
}

/* ---- fields ---- */

/* The field that holds a text, or NULL. */
static uint32_t *text_field(const struct kiln_ottl_run *run, const struct kiln_ottl_path *path)
{
    struct kiln_builder *b = run->item->b;
    struct kiln_scope *scope;
    struct kiln_profile *profile;

    if (path->context == KILN_OTTL_RESOURCE)
        return path->field == KILN_OTTL_SCHEMA_URL
                   ? &kiln_builder_resource(b, run->item->resource)->schema_url
                   : NULL;
    if (path->context == KILN_OTTL_SCOPE) {
        scope = kiln_builder_scope(b, run->item->scope);
        return path->field == KILN_OTTL_SCHEMA_URL      ? &scope->schema_url
               : path->field == KILN_OTTL_SCOPE_NAME    ? &scope->name
               : path->field == KILN_OTTL_SCOPE_VERSION ? &scope->version
                                                        : NULL;
    }
    profile = kiln_builder_profile(b, run->item->profile);
    return path->field == KILN_OTTL_SAMPLE_TYPE      ? &profile->sample_type.type
           : path->field == KILN_OTTL_SAMPLE_UNIT    ? &profile->sample_type.unit
           : path->field == KILN_OTTL_PERIOD_TYPE    ? &profile->period_type.type
           : path->field == KILN_OTTL_PERIOD_UNIT    ? &profile->period_type.unit
           : path->field == KILN_OTTL_PAYLOAD_FORMAT ? &profile->payload_format
                                                     : NULL;
}

static void set_number(const struct kiln_ottl_run *run, const struct kiln_ottl_path *path,
                       int64_t number)
{
    struct kiln_builder *b = run->item->b;
    struct kiln_profile *profile;

    if (path->context == KILN_OTTL_RESOURCE) {
        kiln_builder_resource(b, run->item->resource)->dropped_attrs = (uint32_t)number;
        return;
    }
    if (path->context == KILN_OTTL_SCOPE) {
        kiln_builder_scope(b, run->item->scope)->dropped_attrs = (uint32_t)number;
        return;
    }
    profile = kiln_builder_profile(b, run->item->profile);
    if (path->field == KILN_OTTL_PERIOD)
        profile->period = number;
    else if (path->field == KILN_OTTL_TIME || path->field == KILN_OTTL_TIME_MOMENT)
        profile->time_ns = (uint64_t)number;
    else if (path->field == KILN_OTTL_DURATION)
        profile->duration_ns = (uint64_t)number;
    else
        profile->dropped_attrs = (uint32_t)number;
}

/* Sixteen bytes, or their 32 digits; not all of them zero. */
static int set_id(struct kiln_ottl_run *run, bool digits, const struct kiln_ottl_value *value)
{
    static const uint8_t none[16];
    enum kiln_ottl_kind kind = digits ? KILN_OTTL_TEXT : KILN_OTTL_BYTES;
    uint8_t id[16];
    bool fits = value->kind == kind && value->text.len == (digits ? 32 : sizeof(id));

    if (fits && digits)
        fits = kiln_hex_decode(value->text, id, sizeof(id)) == 0;
    else if (fits)
        memcpy(id, value->text.ptr, sizeof(id));
    if (!fits || memcmp(id, none, sizeof(id)) == 0)
        return kiln_ottl_fail(run, KILN_E_MALFORMED, "a profile_id is %s, not all of them zero",
                              digits ? "32 hexadecimal digits" : "16 bytes");
    memcpy(kiln_builder_profile(run->item->b, run->item->profile)->id, id, sizeof(id));
    return 0;
}

static int set_payload(struct kiln_ottl_run *run, const struct kiln_ottl_value *value)
{
    struct kiln_str bytes = value->text;
    char *copy;

    if (value->kind != KILN_OTTL_BYTES)
        return kiln_ottl_fail(run, KILN_E_MALFORMED, "bytes belong into this field");
    copy = kiln_builder_alloc(run->item->b, bytes.len + 1);
    if (copy) /* else the builder has the error */
        kiln_builder_profile(run->item->b, run->item->profile)->payload =
            (struct kiln_str){memcpy(copy, bytes.ptr, bytes.len), bytes.len};
    return 0;
}

/* Of a link that there is: the dictionary's. */
static int set_link(struct kiln_ottl_run *run, const struct kiln_ottl_value *value)
{
    if (value->kind != KILN_OTTL_INT || value->i < 0 ||
        (uint64_t)value->i >= run->item->batch->dict.n_links)
        return kiln_ottl_fail(run, KILN_E_RANGE, "there is no link of this number");
    kiln_reopened_link(run->item->b, run->item->sample, (uint32_t)value->i);
    return 0;
}

/* ---- observations ---- */

/* The list that a sample has, with one of its numbers changed. */
static int with_one(struct kiln_ottl_run *run, const struct kiln_ottl_path *path,
                    const struct kiln_ottl_value *value, int64_t *at, uint32_t n)
{
    if (value->kind != KILN_OTTL_INT)
        return kiln_ottl_fail(run, KILN_E_MALFORMED, "a number belongs into this field");
    if (path->keys[0].index >= n)
        return kiln_ottl_fail(run, KILN_E_RANGE, "there is no number of this index");
    at[path->keys[0].index] = value->i;
    return 0;
}

/* What a list is to be: all of it, or the one there is with another number. */
static int new_numbers(struct kiln_ottl_run *run, const struct kiln_ottl_path *path,
                       const struct kiln_ottl_value *value, int64_t **ret_at, uint32_t *ret_n)
{
    struct kiln_ottl_path all = *path;
    struct kiln_ottl_value now;
    int r;

    if (path->n_keys == 0)
        return kiln_ottl_integers(run, value, ret_at, ret_n);
    all.n_keys = 0;
    r = kiln_ottl_path_get(run, &all, &now);
    if (r == 0)
        r = kiln_ottl_integers(run, &now, ret_at, ret_n);
    return r < 0 ? r : with_one(run, path, value, *ret_at, *ret_n);
}

/* A sample that loses its times, and has nothing else, keeps their number: each counted one. */
static void without_times(struct kiln_ottl_run *run, const struct kiln_sample *sample)
{
    int64_t count = sample->n;

    kiln_reopened_observations(run->item->b, run->item->sample, &count, NULL, 1);
}

static int set_observations(struct kiln_ottl_run *run, const struct kiln_ottl_path *path,
                            const struct kiln_ottl_value *value)
{
    const struct kiln_batch *batch = run->item->batch;
    const struct kiln_sample *sample = &batch->samples[run->item->sample];
    bool times = path->field == KILN_OTTL_TIMES;
    struct kiln_ottl_path beside = {.context = KILN_OTTL_SAMPLE,
                                    .field = times ? KILN_OTTL_VALUES : KILN_OTTL_TIMES};
    struct kiln_ottl_value other;
    int64_t *at, *kept = NULL;
    uint32_t n, n_kept = 0;
    int r = new_numbers(run, path, value, &at, &n);

    if (r == 0)
        r = kiln_ottl_path_get(run, &beside, &other);
    if (r == 0)
        r = kiln_ottl_integers(run, &other, &kept, &n_kept);
    if (r < 0)
        return r;
    if (n == 0 && n_kept == 0) {
        if (!times)
            return kiln_ottl_fail(run, KILN_E_MALFORMED, "a sample has a value or a timestamp");
        without_times(run, sample);
        return 0;
    }
    if (n && n_kept && n != n_kept)
        return kiln_ottl_fail(run, KILN_E_MALFORMED,
                              "a sample has a value for each timestamp: %u of one, %u of the other",
                              n, n_kept);
    kept = n_kept ? kept : NULL;
    at = n ? at : NULL;
    kiln_reopened_observations(run->item->b, run->item->sample, times ? kept : at,
                               (const uint64_t *)(times ? at : kept), n ? n : n_kept);
    return 0;
}

static int set_type(struct kiln_ottl_run *run, bool period, const struct kiln_ottl_value *value)
{
    struct kiln_profile *profile = kiln_builder_profile(run->item->b, run->item->profile);

    if (value->kind != KILN_OTTL_TYPE)
        return kiln_ottl_fail(run, KILN_E_MALFORMED, "a type belongs into this field");
    *(period ? &profile->period_type : &profile->sample_type) = value->type;
    return 0;
}

/* ---- all of them ---- */

/* Fields of one text or one number. */
static int set_plain(struct kiln_ottl_run *run, const struct kiln_ottl_path *path,
                     const struct kiln_ottl_value *value)
{
    enum kiln_ottl_kind number =
        path->field == KILN_OTTL_TIME_MOMENT ? KILN_OTTL_MOMENT : KILN_OTTL_INT;
    uint32_t string, *field = text_field(run, path);

    if (field && value->kind == KILN_OTTL_TEXT) {
        string = kiln_builder_string(run->item->b, value->text);
        *field = string;
        return 0;
    }
    if (field || value->kind != number)
        return kiln_ottl_fail(run, KILN_E_MALFORMED, "a %s belongs into this field",
                              field                        ? "text"
                              : number == KILN_OTTL_MOMENT ? "time"
                                                           : "number");
    if (value->i < 0 && path->field != KILN_OTTL_PERIOD)
        return kiln_ottl_fail(run, KILN_E_RANGE, "a number from 0 belongs into this field");
    set_number(run, path, value->i);
    return 0;
}

int kiln_ottl_path_set(struct kiln_ottl_run *run, const struct kiln_ottl_path *path,
                       const struct kiln_ottl_value *value)
{
    if (value->kind == KILN_OTTL_NIL)
        return 0;
    switch (path->field) {
    case KILN_OTTL_ATTRIBUTES:
    case KILN_OTTL_CACHE:
        return set_attribute(run, path, value);
    case KILN_OTTL_INDICES:
        return set_indices(run, path, value);
    case KILN_OTTL_ID_BYTES:
    case KILN_OTTL_ID_TEXT:
        return set_id(run, path->field == KILN_OTTL_ID_TEXT, value);
    case KILN_OTTL_PAYLOAD:
        return set_payload(run, value);
    case KILN_OTTL_LINK:
        return set_link(run, value);
    case KILN_OTTL_VALUES:
    case KILN_OTTL_TIMES:
        return set_observations(run, path, value);
    case KILN_OTTL_SAMPLE_VALUE_TYPE:
    case KILN_OTTL_PERIOD_VALUE_TYPE:
        return set_type(run, path->field == KILN_OTTL_PERIOD_VALUE_TYPE, value);
    default:
        return set_plain(run, path, value);
    }
}
