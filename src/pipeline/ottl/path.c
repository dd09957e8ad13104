/* SPDX-License-Identifier: Apache-2.0 */
/* What paths name: a table of fields, and how each is read and written. */
#include <inttypes.h>
#include <stdio.h>

#include "base/bytetext.h"
#include "core/reopen.h"
#include "pipeline/ottl/ottl_int.h"

/* ---- names ---- */

#define IN(context) (1u << KILN_OTTL_##context)
#define HEADS       (IN(RESOURCE) | IN(SCOPE))
#define READ_ONLY   (1u << KILN_OTTL_CONTEXTS)

static const struct {
    const char *names; /* one or two, with a dot between them */
    unsigned where;    /* contexts, READ_ONLY */
    enum kiln_ottl_field field;
} fields[] = {
    {"attributes", HEADS | IN(PROFILE) | IN(SAMPLE), KILN_OTTL_ATTRIBUTES},
    {"dropped_attributes_count", HEADS | IN(PROFILE), KILN_OTTL_DROPPED},
    {"schema_url", HEADS, KILN_OTTL_SCHEMA_URL},
    {"name", IN(SCOPE), KILN_OTTL_SCOPE_NAME},
    {"version", IN(SCOPE), KILN_OTTL_SCOPE_VERSION},
    {"sample_type.type", IN(PROFILE), KILN_OTTL_SAMPLE_TYPE},
    {"sample_type.unit", IN(PROFILE), KILN_OTTL_SAMPLE_UNIT},
    {"period_type.type", IN(PROFILE), KILN_OTTL_PERIOD_TYPE},
    {"period_type.unit", IN(PROFILE), KILN_OTTL_PERIOD_UNIT},
    {"period", IN(PROFILE), KILN_OTTL_PERIOD},
    {"time_unix_nano", IN(PROFILE), KILN_OTTL_TIME},
    {"duration_unix_nano", IN(PROFILE), KILN_OTTL_DURATION},
    {"duration", IN(PROFILE), KILN_OTTL_DURATION},
    {"profile_id", IN(PROFILE), KILN_OTTL_ID_BYTES},
    {"profile_id.string", IN(PROFILE), KILN_OTTL_ID_TEXT},
    {"original_payload_format", IN(PROFILE), KILN_OTTL_PAYLOAD_FORMAT},
    {"original_payload", IN(PROFILE), KILN_OTTL_PAYLOAD},
    {"values", IN(SAMPLE) | READ_ONLY, KILN_OTTL_VALUES},
    {"timestamps_unix_nano", IN(SAMPLE) | READ_ONLY, KILN_OTTL_TIMES},
    {"link_index", IN(SAMPLE), KILN_OTTL_LINK},
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

/* Only attributes, values and times have keys. */
static bool keys_fit(const struct kiln_ottl_path *path)
{
    if (path->field == KILN_OTTL_VALUES || path->field == KILN_OTTL_TIMES)
        return path->n_keys <= 1 && !(path->n_keys && path->keys[0].text.ptr);
    if (path->field == KILN_OTTL_ATTRIBUTES)
        return path->n_keys == 0 || path->keys[0].text.ptr;
    return path->n_keys == 0;
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

bool kiln_ottl_path_is_written(const struct kiln_ottl_path *path)
{
    for (size_t i = 0; i < KILN_ARRAY_LEN(fields); i++) {
        if (fields[i].field == path->field)
            return !(fields[i].where & READ_ONLY) && path->n_keys <= 1;
    }
    return false;
}

bool kiln_ottl_path_is_map(const struct kiln_ottl_path *path)
{
    return path->field == KILN_OTTL_ATTRIBUTES && path->n_keys == 0;
}

/* ---- values ---- */

struct kiln_ottl_value kiln_ottl_value_of(const struct kiln_batch *batch, struct kiln_value value)
{
    static const enum kiln_ottl_kind kinds[] = {
        [KILN_VALUE_EMPTY] = KILN_OTTL_NIL,     [KILN_VALUE_STRING] = KILN_OTTL_TEXT,
        [KILN_VALUE_BOOL] = KILN_OTTL_BOOL,     [KILN_VALUE_INT] = KILN_OTTL_INT,
        [KILN_VALUE_DOUBLE] = KILN_OTTL_DOUBLE, [KILN_VALUE_BYTES] = KILN_OTTL_BYTES,
        [KILN_VALUE_ARRAY] = KILN_OTTL_LIST,    [KILN_VALUE_MAP] = KILN_OTTL_MAP,
    };
    struct kiln_ottl_value to = {.kind = kinds[value.kind]};

    switch (to.kind) {
    case KILN_OTTL_TEXT:
    case KILN_OTTL_BYTES:
        to.text = kiln_batch_str(batch, (uint32_t)value.str);
        break;
    case KILN_OTTL_BOOL:
        to.flag = value.flag != 0;
        break;
    case KILN_OTTL_DOUBLE:
        to.d = value.d;
        break;
    case KILN_OTTL_LIST:
    case KILN_OTTL_MAP:
        to.nested = value;
        break;
    default:
        to.i = value.i;
        break;
    }
    return to;
}

bool kiln_ottl_value_in(struct kiln_builder *b, const struct kiln_ottl_value *value,
                        struct kiln_value *ret)
{
    switch (value->kind) {
    case KILN_OTTL_TEXT:
        *ret = kiln_value_string(kiln_builder_string(b, value->text));
        return true;
    case KILN_OTTL_BYTES:
        *ret = kiln_value_bytes(kiln_builder_string(b, value->text));
        return true;
    case KILN_OTTL_BOOL:
        *ret = kiln_value_bool(value->flag);
        return true;
    case KILN_OTTL_INT:
        *ret = kiln_value_int(value->i);
        return true;
    case KILN_OTTL_DOUBLE:
        *ret = kiln_value_double(value->d);
        return true;
    case KILN_OTTL_LIST:
    case KILN_OTTL_MAP:
        *ret = value->nested;
        return true;
    default:
        return false;
    }
}

/* ---- reading ---- */

uint32_t kiln_ottl_set_of(const struct kiln_ottl_run *run, enum kiln_ottl_context context)
{
    const struct kiln_ottl_item *item = run->item;

    switch (context) {
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
    struct kiln_ottl_value value = {.kind = KILN_OTTL_SET,
                                    .set = kiln_ottl_set_of(run, path->context)};
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

static struct kiln_ottl_value of_sample(const struct kiln_ottl_item *item,
                                        const struct kiln_ottl_path *path)
{
    const struct kiln_sample *sample = &item->batch->samples[item->sample];

    switch (path->field) {
    case KILN_OTTL_VALUES:
        return numbers(path, kiln_sample_values(item->batch, sample), sample->n);
    case KILN_OTTL_TIMES:
        return numbers(path, (const int64_t *)kiln_sample_times(item->batch, sample), sample->n);
    default:
        return whole(sample->link);
    }
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
    case KILN_OTTL_PERIOD:
        return whole((uint64_t)p->period);
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

    if (path->field == KILN_OTTL_ATTRIBUTES) {
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

/* ---- writing ---- */

void kiln_ottl_give_set(struct kiln_ottl_run *run, enum kiln_ottl_context context, uint32_t set)
{
    const struct kiln_ottl_item *item = run->item;

    if (kiln_builder_error(item->b))
        return;
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

static int set_attribute(struct kiln_ottl_run *run, const struct kiln_ottl_path *path,
                         const struct kiln_ottl_value *value)
{
    struct kiln_draft *draft = &run->ottl->draft;
    struct kiln_value to;

    if (value->kind == KILN_OTTL_NIL)
        return 0;
    if (path->n_keys == 0 && value->kind != KILN_OTTL_SET)
        return kiln_ottl_fail(run, KILN_E_MALFORMED, "attributes can only be set to attributes");
    if (path->n_keys && !kiln_ottl_value_in(run->item->b, value, &to))
        return kiln_ottl_fail(run, KILN_E_MALFORMED, "an attribute cannot have this value");
    kiln_draft_open(draft, run->item->b, kiln_ottl_set_of(run, path->context));
    if (path->n_keys)
        kiln_draft_put(draft, path->keys[0].text, to);
    else
        copy_set(run, draft, value->set);
    kiln_ottl_give_set(run, path->context, kiln_draft_close(draft));
    return 0;
}

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
    else if (path->field == KILN_OTTL_TIME)
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

int kiln_ottl_path_set(struct kiln_ottl_run *run, const struct kiln_ottl_path *path,
                       const struct kiln_ottl_value *value)
{
    uint32_t string, *field;

    if (path->field == KILN_OTTL_ATTRIBUTES)
        return set_attribute(run, path, value);
    if (value->kind == KILN_OTTL_NIL)
        return 0;
    if (path->field == KILN_OTTL_ID_BYTES || path->field == KILN_OTTL_ID_TEXT)
        return set_id(run, path->field == KILN_OTTL_ID_TEXT, value);
    if (path->field == KILN_OTTL_PAYLOAD)
        return set_payload(run, value);
    if (path->field == KILN_OTTL_LINK)
        return set_link(run, value);
    field = text_field(run, path);
    if (field && value->kind == KILN_OTTL_TEXT) {
        string = kiln_builder_string(run->item->b, value->text);
        *field = string;
        return 0;
    }
    if (field || value->kind != KILN_OTTL_INT)
        return kiln_ottl_fail(run, KILN_E_MALFORMED,
                              field ? "a text belongs into this field"
                                    : "a number belongs into this field");
    set_number(run, path, value->i);
    return 0;
}
