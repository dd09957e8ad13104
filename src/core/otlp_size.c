/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every message of OTLP profiles has fewer than 16 fields, so a tag is always one byte.  The sizes
 * here follow the encoder's rules: fields of value zero are left out, repeated numbers are packed.
 *
 * An index takes as many bytes as its number is large, so a sizer numbers entries as the builder of
 * the message will: in the order of their first use.  `stamps` has one entry for each entry of the
 * tables; it says in which message the entry was last used, and its number there.  Without stamps
 * every entry keeps its number, and the tables are summed up as they are.
 */
#include <errno.h>

#include "base/mem.h"
#include "core/otlp_size.h"

#define LENGTH_MAX 5u /* bytes of the length of a message that is still open */

struct stamp {
    uint32_t message;
    uint32_t number;
};

enum table { STRINGS, FUNCTIONS, MAPPINGS, LOCATIONS, STACKS, LINKS, ATTRS, N_TABLES };

struct kiln_otlp_sizer {
    const struct kiln_batch *batch;
    struct stamp *stamps[N_TABLES]; /* in one block; NULL: every entry keeps its number */
    uint32_t used[N_TABLES];        /* entries of the message, the zero values included */
    uint32_t message;
    uint64_t dict_bytes;
};

/* ---- fields ---- */

static uint64_t varint(uint64_t number)
{
    return kiln_otlp_varint_size(number);
}

/* A number; nothing where it is zero. */
static uint64_t number_field(uint64_t number)
{
    return number ? 1 + varint(number) : 0;
}

/* A text, some bytes or a message. */
static uint64_t bytes_field(uint64_t len)
{
    return 1 + varint(len) + len;
}

static uint64_t list_field(uint64_t len)
{
    return len ? bytes_field(len) : 0;
}

/* ---- dictionary ---- */

/*
 * The number of an entry in the message.  *ret_new says that it is used for the first time: the
 * caller then adds its bytes.
 */
static uint32_t number_of(struct kiln_otlp_sizer *z, enum table table, uint32_t entry,
                          bool *ret_new)
{
    struct stamp *stamp;

    *ret_new = false;
    if (!z->stamps[table] || entry == 0)
        return entry;
    stamp = &z->stamps[table][entry];
    if (stamp->message != z->message) {
        *stamp = (struct stamp){z->message, z->used[table]++};
        *ret_new = true;
    }
    return stamp->number;
}

static uint32_t string_number(struct kiln_otlp_sizer *z, uint32_t string)
{
    bool is_new;
    uint32_t number = number_of(z, STRINGS, string, &is_new);

    if (is_new)
        z->dict_bytes += bytes_field(z->batch->dict.strings[string].len);
    return number;
}

static uint64_t string_field(struct kiln_otlp_sizer *z, uint32_t string)
{
    return number_field(string_number(z, string));
}

/* A text in the message itself, or a reference to it: whichever is larger. */
static uint64_t inline_field(struct kiln_otlp_sizer *z, uint32_t string)
{
    uint64_t by_number = 1 + varint(string_number(z, string));
    uint64_t by_text = bytes_field(z->batch->dict.strings[string].len);

    return by_text > by_number ? by_text : by_number;
}

static uint64_t value_size(struct kiln_otlp_sizer *z, struct kiln_value value)
{
    const struct kiln_attr *children = z->batch->dict.nested;
    uint64_t size = 0;

    switch (value.kind) {
    case KILN_VALUE_STRING:
    case KILN_VALUE_BYTES:
        return inline_field(z, (uint32_t)value.str);
    case KILN_VALUE_BOOL:
        return 2;
    case KILN_VALUE_INT:
        return 1 + varint((uint64_t)value.i);
    case KILN_VALUE_DOUBLE:
        return 1 + sizeof(double);
    case KILN_VALUE_ARRAY:
        for (uint32_t i = 0; i < value.n; i++)
            size += bytes_field(value_size(z, children[value.first + i].value));
        return bytes_field(size);
    case KILN_VALUE_MAP:
        for (uint32_t i = 0; i < value.n; i++) {
            uint64_t inner = bytes_field(value_size(z, children[value.first + i].value));

            inner += inline_field(z, children[value.first + i].key);
            string_number(z, children[value.first + i].unit);
            size += bytes_field(inner);
        }
        return bytes_field(size);
    default:
        return 0;
    }
}

static uint64_t attr_size(struct kiln_otlp_sizer *z, uint32_t attr)
{
    const struct kiln_attr *a = &z->batch->dict.attrs[attr];
    uint64_t size = bytes_field(value_size(z, a->value));

    size += string_field(z, a->key);
    return size + string_field(z, a->unit);
}

static uint32_t attr_number(struct kiln_otlp_sizer *z, uint32_t attr)
{
    bool is_new;
    uint32_t number = number_of(z, ATTRS, attr, &is_new);

    if (is_new)
        z->dict_bytes += bytes_field(attr_size(z, attr));
    return number;
}

/* The packed attribute_indices of an owner. */
static uint64_t set_field(struct kiln_otlp_sizer *z, uint32_t set)
{
    struct kiln_range range = z->batch->dict.sets[set];
    uint64_t size = 0;

    for (uint32_t i = 0; i < range.n; i++)
        size += varint(attr_number(z, z->batch->dict.members[range.first + i]));
    return list_field(size);
}

/* The attributes of a resource or scope, which stand in the message itself. */
static uint64_t inline_set(struct kiln_otlp_sizer *z, uint32_t set)
{
    struct kiln_range range = z->batch->dict.sets[set];
    uint64_t size = 0;

    for (uint32_t i = 0; i < range.n; i++) {
        uint32_t attr = z->batch->dict.members[range.first + i];
        const struct kiln_attr *a = &z->batch->dict.attrs[attr];

        attr_number(z, attr);
        size += bytes_field(inline_field(z, a->key) + bytes_field(value_size(z, a->value)));
    }
    return size;
}

static uint64_t function_size(struct kiln_otlp_sizer *z, uint32_t function)
{
    const struct kiln_function *f = &z->batch->dict.functions[function];
    uint64_t size = string_field(z, f->name);

    size += string_field(z, f->system_name);
    size += string_field(z, f->filename);
    return size + number_field((uint64_t)f->start_line);
}

static uint32_t function_number(struct kiln_otlp_sizer *z, uint32_t function)
{
    bool is_new;
    uint32_t number = number_of(z, FUNCTIONS, function, &is_new);

    if (is_new)
        z->dict_bytes += bytes_field(function_size(z, function));
    return number;
}

static uint64_t mapping_size(struct kiln_otlp_sizer *z, uint32_t mapping)
{
    const struct kiln_mapping *m = &z->batch->dict.mappings[mapping];
    uint64_t size = number_field(m->start) + number_field(m->limit) + number_field(m->offset);

    size += string_field(z, m->filename);
    return size + set_field(z, m->attrs);
}

static uint32_t mapping_number(struct kiln_otlp_sizer *z, uint32_t mapping)
{
    bool is_new;
    uint32_t number = number_of(z, MAPPINGS, mapping, &is_new);

    if (is_new)
        z->dict_bytes += bytes_field(mapping_size(z, mapping));
    return number;
}

static uint64_t location_size(struct kiln_otlp_sizer *z, uint32_t location)
{
    const struct kiln_location *l = &z->batch->dict.locations[location];
    uint64_t size = number_field(mapping_number(z, l->mapping)) + number_field(l->address);

    size += set_field(z, l->attrs);
    for (uint32_t i = 0; i < l->n; i++) {
        const struct kiln_line *line = &z->batch->dict.lines[l->first + i];

        size +=
            bytes_field(number_field(function_number(z, line->function)) +
                        number_field((uint64_t)line->line) + number_field((uint64_t)line->column));
    }
    return size;
}

static uint32_t location_number(struct kiln_otlp_sizer *z, uint32_t location)
{
    bool is_new;
    uint32_t number = number_of(z, LOCATIONS, location, &is_new);

    if (is_new)
        z->dict_bytes += bytes_field(location_size(z, location));
    return number;
}

static uint64_t stack_size(struct kiln_otlp_sizer *z, uint32_t stack)
{
    struct kiln_range range = z->batch->dict.stacks[stack];
    uint64_t size = 0;

    for (uint32_t i = 0; i < range.n; i++)
        size += varint(location_number(z, z->batch->dict.frames[range.first + i]));
    return list_field(size);
}

static uint32_t stack_number(struct kiln_otlp_sizer *z, uint32_t stack)
{
    bool is_new;
    uint32_t number = number_of(z, STACKS, stack, &is_new);

    if (is_new)
        z->dict_bytes += bytes_field(stack_size(z, stack));
    return number;
}

#define LINK_SIZE (bytes_field(16) + bytes_field(8))

static uint32_t link_number(struct kiln_otlp_sizer *z, uint32_t link)
{
    bool is_new;
    uint32_t number = number_of(z, LINKS, link, &is_new);

    if (is_new)
        z->dict_bytes += bytes_field(LINK_SIZE);
    return number;
}

/* ---- heads ---- */

static uint64_t entity_size(struct kiln_otlp_sizer *z, const struct kiln_entity *e)
{
    uint64_t size = inline_field(z, e->schema_url);

    size += inline_field(z, e->type);
    for (uint32_t i = 0; i < e->n_id_keys + e->n_description_keys; i++)
        size += inline_field(z, z->batch->entity_keys[e->first_key + i]);
    return size;
}

uint64_t kiln_otlp_sizer_resource(struct kiln_otlp_sizer *z, uint32_t resource)
{
    const struct kiln_resource *r = &z->batch->resources[resource];
    uint64_t size = inline_set(z, r->attrs) + number_field(r->dropped_attrs);
    uint64_t url = inline_field(z, r->schema_url);

    for (uint32_t i = 0; i < r->n_entities; i++)
        size += bytes_field(entity_size(z, &z->batch->entities[r->first_entity + i]));
    return 1 + LENGTH_MAX + bytes_field(size) + url;
}

uint64_t kiln_otlp_sizer_scope(struct kiln_otlp_sizer *z, uint32_t scope)
{
    const struct kiln_scope *s = &z->batch->scopes[scope];
    uint64_t size = inline_field(z, s->name);

    size += inline_field(z, s->version);
    size += inline_set(z, s->attrs) + number_field(s->dropped_attrs);
    return 1 + LENGTH_MAX + bytes_field(size) + inline_field(z, s->schema_url);
}

static uint64_t type_field(struct kiln_otlp_sizer *z, struct kiln_value_type type)
{
    uint64_t size = string_field(z, type.type);

    return bytes_field(size + string_field(z, type.unit));
}

uint64_t kiln_otlp_sizer_profile(struct kiln_otlp_sizer *z, uint32_t profile, bool payload)
{
    const struct kiln_profile *p = &z->batch->profiles[profile];
    uint64_t size = 1 + LENGTH_MAX + type_field(z, p->sample_type);

    size += type_field(z, p->period_type) + number_field((uint64_t)p->period);
    size += 1 + sizeof(uint64_t) + number_field(p->duration_ns) + bytes_field(sizeof(p->id));
    size += number_field(p->dropped_attrs);
    size += set_field(z, p->attrs);
    if (payload)
        size += inline_field(z, p->payload_format) + bytes_field(p->payload.len);
    return size;
}

/* ---- samples ---- */

uint64_t kiln_otlp_sizer_sample(struct kiln_otlp_sizer *z, uint32_t sample)
{
    const struct kiln_sample *s = &z->batch->samples[sample];
    uint64_t size = number_field(stack_number(z, s->stack));

    size += set_field(z, s->attrs);
    return size + number_field(link_number(z, s->link));
}

uint64_t kiln_otlp_sample_size(const struct kiln_sample *sample, uint64_t fixed, uint64_t n,
                               uint64_t value_bytes)
{
    uint64_t size = fixed;

    if (sample->has_values)
        size += list_field(value_bytes);
    if (sample->has_times)
        size += list_field(n * sizeof(uint64_t));
    return bytes_field(size);
}

/* ---- messages ---- */

void kiln_otlp_sizer_restart(struct kiln_otlp_sizer *z)
{
    z->message++;
    z->dict_bytes = 0;
    for (int i = 0; i < N_TABLES; i++)
        z->used[i] = 1;
}

uint64_t kiln_otlp_sizer_dict(const struct kiln_otlp_sizer *z)
{
    uint64_t zero_values = (N_TABLES - 1) * bytes_field(0) + bytes_field(LINK_SIZE);

    return 1 + LENGTH_MAX + zero_values + z->dict_bytes;
}

int kiln_otlp_sizer_new(const struct kiln_batch *batch, struct kiln_otlp_sizer **ret_sizer)
{
    const struct kiln_dict *d = &batch->dict;
    const uint32_t counts[N_TABLES] = {
        [STRINGS] = d->n_strings,     [FUNCTIONS] = d->n_functions, [MAPPINGS] = d->n_mappings,
        [LOCATIONS] = d->n_locations, [STACKS] = d->n_stacks,       [LINKS] = d->n_links,
        [ATTRS] = d->n_attrs};
    struct kiln_otlp_sizer *z;
    struct stamp *at;
    size_t n = 0;

    for (int i = 0; i < N_TABLES; i++)
        n += counts[i];
    z = kiln_calloc(1, sizeof(*z) + n * sizeof(struct stamp));
    if (!z)
        return -ENOMEM;
    z->batch = batch;
    at = (struct stamp *)(z + 1);
    for (int i = 0; i < N_TABLES; i++) {
        z->stamps[i] = at;
        at += counts[i];
    }
    kiln_otlp_sizer_restart(z);
    *ret_sizer = z;
    return 0;
}

void kiln_otlp_sizer_free(struct kiln_otlp_sizer *z)
{
    kiln_free(z);
}

/* What stands in the message itself but for samples, and the entries of the tables that are few. */
static uint64_t heads_size(struct kiln_otlp_sizer *z)
{
    const struct kiln_batch *batch = z->batch;
    uint64_t size = kiln_otlp_sizer_dict(z) + (batch->dict.n_links - 1) * bytes_field(LINK_SIZE);

    for (uint32_t i = 0; i < batch->n_resources; i++)
        size += kiln_otlp_sizer_resource(z, i);
    for (uint32_t i = 0; i < batch->n_scopes; i++)
        size += kiln_otlp_sizer_scope(z, i);
    for (uint32_t i = 0; i < batch->n_profiles; i++) {
        const struct kiln_profile *p = &batch->profiles[i];

        size += kiln_otlp_sizer_profile(z, i, p->payload.len || p->payload_format);
    }
    for (uint32_t i = 1; i < batch->dict.n_strings; i++)
        size += bytes_field(batch->dict.strings[i].len);
    for (uint32_t i = 1; i < batch->dict.n_mappings; i++)
        size += bytes_field(mapping_size(z, i));
    for (uint32_t i = 1; i < batch->dict.n_attrs; i++)
        size += bytes_field(attr_size(z, i));
    return size;
}

static uint64_t functions_and_stacks_size(struct kiln_otlp_sizer *z)
{
    const struct kiln_dict *d = &z->batch->dict;
    uint64_t size = 0;

    for (uint32_t i = 1; i < d->n_functions; i++)
        size += bytes_field(function_size(z, i));
    for (uint32_t i = 1; i < d->n_locations; i++)
        size += bytes_field(location_size(z, i));
    for (uint32_t i = 1; i < d->n_stacks; i++)
        size += bytes_field(stack_size(z, i));
    return size;
}

static uint64_t samples_size(struct kiln_otlp_sizer *z)
{
    const struct kiln_batch *batch = z->batch;
    uint64_t size = 0;

    for (uint32_t i = 0; i < batch->n_samples; i++) {
        const struct kiln_sample *s = &batch->samples[i];
        const int64_t *values = kiln_sample_values(batch, s);
        uint64_t value_bytes = 0;

        for (uint32_t k = 0; values && k < s->n; k++)
            value_bytes += varint((uint64_t)values[k]);
        size += kiln_otlp_sample_size(s, kiln_otlp_sizer_sample(z, i), s->n, value_bytes);
    }
    return size;
}

uint64_t kiln_otlp_size_max(const struct kiln_batch *batch)
{
    struct kiln_otlp_sizer z = {.batch = batch};
    uint64_t size = heads_size(&z);

    size += functions_and_stacks_size(&z);
    return size + samples_size(&z);
}

/* ---- a rough look ---- */

#define HEAD_MAX   (1u + LENGTH_MAX) /* of a message or a list */
#define INDEX_MAX  (1u + 5u)         /* tag and number of an entry */
#define NUMBER_MAX (1u + 10u)

/* No owner has a longer list of attributes. */
static uint64_t widest_set(const struct kiln_dict *d)
{
    uint32_t most = 0;

    for (uint32_t i = 1; i < d->n_sets; i++)
        most = d->sets[i].n > most ? d->sets[i].n : most;
    return HEAD_MAX + (uint64_t)most * varint(d->n_attrs);
}

/* What there is most of, each entry at its largest. */
static uint64_t rough_size(const struct kiln_batch *batch)
{
    const struct kiln_dict *d = &batch->dict;
    uint64_t set = widest_set(d);
    uint64_t size = (uint64_t)d->n_functions * (HEAD_MAX + 3 * INDEX_MAX + NUMBER_MAX);

    size += (uint64_t)d->n_locations * (HEAD_MAX + INDEX_MAX + NUMBER_MAX + set);
    size += (uint64_t)d->n_lines * (HEAD_MAX + INDEX_MAX + 2 * NUMBER_MAX);
    size += (uint64_t)d->n_stacks * 2 * HEAD_MAX + (uint64_t)d->n_frames * varint(d->n_locations);
    size += (uint64_t)batch->n_samples * (3 * HEAD_MAX + 2 * INDEX_MAX + set);
    return size + (uint64_t)batch->n_observations * NUMBER_MAX;
}

bool kiln_otlp_fits(const struct kiln_batch *batch, uint64_t max)
{
    struct kiln_otlp_sizer z = {.batch = batch};

    return rough_size(batch) + heads_size(&z) <= max || kiln_otlp_size_max(batch) <= max;
}
