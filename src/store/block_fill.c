/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What stands for entries of a damaged dictionary page, so that all others keep their numbers; and
 * what refers to them, directly or not: a profile that does is lost, all others are as they were.
 *
 * Lists, attributes, mappings, origins and moments have no placeholders: a page that refers to a
 * missing one is damaged too.  Sets and locations are only marked.
 */
#include "core/bulk.h"
#include "store/block_reader.h"

bool kiln_reader_stands_alone(uint32_t kind)
{
    return kind == KILN_SECTION_STRINGS || kind == KILN_SECTION_STACKS ||
           kind == KILN_SECTION_RANKS || kind == KILN_SECTION_RESOURCES ||
           kind == KILN_SECTION_SCOPES;
}

/* ---- marks ---- */

int kiln_reader_mark(struct kiln_block_reader *r, uint32_t kind, uint32_t number)
{
    struct kiln_reader_marks *marks = &r->marks[kind];
    uint32_t before = marks->cap;
    int result = READER_ROOM(r, marks->bits, marks->cap, (uint64_t)number / 64 + 1);

    if (result < 0)
        return result;
    memset(marks->bits + before, 0, (marks->cap - before) * sizeof(*marks->bits));
    marks->bits[number / 64] |= UINT64_C(1) << number % 64;
    r->has_marks = true;
    return 0;
}

bool kiln_reader_is_marked(const struct kiln_block_reader *r, uint32_t kind, uint64_t number)
{
    const struct kiln_reader_marks *marks = &r->marks[kind];

    return number / 64 < marks->cap && (marks->bits[number / 64] >> number % 64 & 1);
}

void kiln_reader_marks_done(struct kiln_block_reader *r)
{
    for (uint32_t i = 0; i < KILN_N_SECTIONS; i++)
        kiln_array_free(&r->budget, (void **)&r->marks[i].bits, &r->marks[i].cap,
                        sizeof(*r->marks[i].bits));
}

/* ---- placeholders ---- */

static int fill_stacks(struct kiln_block_reader *r, uint64_t n)
{
    int result = READER_ROOM(r, r->sorted, r->cap_sorted, n);

    r->has_marks = true;
    while (result == 0 && r->n_stacks < n)
        r->sorted[r->n_stacks++] = KILN_READER_BAD;
    return result;
}

/* Room was made for as many as there are stacks. */
static int fill_ranks(struct kiln_block_reader *r, uint64_t n)
{
    r->has_marks = true;
    while (r->next < n && r->next < r->n_stacks)
        r->stack_of[r->next++] = KILN_READER_BAD;
    return 0;
}

/* Adds one to a table of the builder and returns its number. */
static uint32_t add_placeholder(struct kiln_block_reader *r, uint32_t kind)
{
    switch (kind) {
    case KILN_SECTION_STRINGS:
        return kiln_builder_new_string(r->own, KILN_STR("[damaged]"));
    case KILN_SECTION_SETS:
        return kiln_builder_new_set(r->own, NULL, 0);
    case KILN_SECTION_FUNCTIONS:
        return kiln_builder_new_function(r->own, &(struct kiln_function){0});
    case KILN_SECTION_LOCATIONS:
        return kiln_builder_new_location(r->own, 0, 0, 0, NULL, 0);
    case KILN_SECTION_RESOURCES:
        return kiln_builder_add_resource(r->own, &(struct kiln_resource){0}) + 1;
    default:
        return kiln_builder_add_scope(r->own, &(struct kiln_scope){0}) + 1;
    }
}

/* How many entries of the file a table of the builder has; UINT32_MAX: it gets no placeholders. */
static uint32_t table_size(const struct kiln_block_reader *r, uint32_t kind)
{
    const struct kiln_batch *own = kiln_builder_peek(r->own);

    switch (kind) {
    case KILN_SECTION_STRINGS:
        return own->dict.n_strings - 1;
    case KILN_SECTION_SETS:
        return own->dict.n_sets - 1;
    case KILN_SECTION_FUNCTIONS:
        return own->dict.n_functions - 1;
    case KILN_SECTION_LOCATIONS:
        return own->dict.n_locations - 1;
    case KILN_SECTION_RESOURCES:
        return own->n_resources;
    case KILN_SECTION_SCOPES:
        return own->n_scopes;
    default:
        return UINT32_MAX;
    }
}

int kiln_reader_fill(struct kiln_block_reader *r, uint32_t kind, uint64_t n)
{
    int result = 0;

    if (kind == KILN_SECTION_STACKS)
        return fill_stacks(r, n);
    if (kind == KILN_SECTION_RANKS)
        return fill_ranks(r, n);
    while (result == 0 && table_size(r, kind) < n) {
        uint32_t number = add_placeholder(r, kind);

        result = kiln_builder_error(r->own);
        if (result == 0)
            result = kiln_reader_mark(r, kind, number);
    }
    return result;
}

/* ---- what refers to them ---- */

static bool is_bad_string(const struct kiln_block_reader *r, uint64_t number)
{
    return kiln_reader_is_marked(r, KILN_SECTION_STRINGS, number);
}

static bool is_bad_attr(const struct kiln_block_reader *r, const struct kiln_attr *attr)
{
    const struct kiln_dict *d = &kiln_builder_peek(r->own)->dict;
    const struct kiln_value *v = &attr->value;
    bool bad = is_bad_string(r, attr->key) || is_bad_string(r, attr->unit);

    if (v->kind == KILN_VALUE_STRING || v->kind == KILN_VALUE_BYTES)
        return bad || is_bad_string(r, v->str);
    if (v->kind != KILN_VALUE_ARRAY && v->kind != KILN_VALUE_MAP)
        return bad;
    for (uint32_t i = 0; !bad && i < v->n; i++)
        bad = is_bad_attr(r, &d->nested[v->first + i]);
    return bad;
}

static bool is_bad_set(const struct kiln_block_reader *r, uint32_t number)
{
    const struct kiln_dict *d = &kiln_builder_peek(r->own)->dict;
    struct kiln_range set = d->sets[number];
    bool bad = kiln_reader_is_marked(r, KILN_SECTION_SETS, number);

    for (uint32_t i = 0; !bad && i < set.n; i++)
        bad = is_bad_attr(r, &d->attrs[d->members[set.first + i]]);
    return bad;
}

static bool is_bad_function(const struct kiln_block_reader *r, uint32_t number)
{
    const struct kiln_function *f = &kiln_builder_peek(r->own)->dict.functions[number];

    return kiln_reader_is_marked(r, KILN_SECTION_FUNCTIONS, number) || is_bad_string(r, f->name) ||
           is_bad_string(r, f->system_name) || is_bad_string(r, f->filename);
}

static bool is_bad_location(const struct kiln_block_reader *r, uint32_t number)
{
    const struct kiln_dict *d = &kiln_builder_peek(r->own)->dict;
    const struct kiln_location *l = &d->locations[number];
    const struct kiln_mapping *m = &d->mappings[l->mapping];
    bool bad = kiln_reader_is_marked(r, KILN_SECTION_LOCATIONS, number) ||
               is_bad_string(r, m->filename) || is_bad_set(r, m->attrs) || is_bad_set(r, l->attrs);

    for (uint32_t i = 0; !bad && i < l->n; i++)
        bad = is_bad_function(r, d->lines[l->first + i].function);
    return bad;
}

static bool is_bad_resource(const struct kiln_block_reader *r, uint32_t index)
{
    const struct kiln_batch *own = kiln_builder_peek(r->own);
    const struct kiln_resource *resource = &own->resources[index];
    bool bad = kiln_reader_is_marked(r, KILN_SECTION_RESOURCES, (uint64_t)index + 1) ||
               is_bad_set(r, resource->attrs) || is_bad_string(r, resource->schema_url);

    for (uint32_t i = 0; !bad && i < resource->n_entities; i++) {
        const struct kiln_entity *e = &own->entities[resource->first_entity + i];

        bad = is_bad_string(r, e->schema_url) || is_bad_string(r, e->type);
        for (uint32_t k = 0; !bad && k < e->n_id_keys + e->n_description_keys; k++)
            bad = is_bad_string(r, own->entity_keys[e->first_key + k]);
    }
    return bad;
}

static bool is_bad_scope(const struct kiln_block_reader *r, uint32_t index)
{
    const struct kiln_scope *s = &kiln_builder_peek(r->own)->scopes[index];

    return kiln_reader_is_marked(r, KILN_SECTION_SCOPES, (uint64_t)index + 1) ||
           is_bad_set(r, s->attrs) || is_bad_string(r, s->name) || is_bad_string(r, s->version) ||
           is_bad_string(r, s->schema_url);
}

static bool is_bad_origin(const struct kiln_block_reader *r, const struct kiln_origin *o)
{
    return is_bad_resource(r, o->resource - 1) || is_bad_scope(r, o->scope - 1) ||
           is_bad_string(r, o->sample_type.type) || is_bad_string(r, o->sample_type.unit) ||
           is_bad_string(r, o->period_type.type) || is_bad_string(r, o->period_type.unit) ||
           is_bad_set(r, o->attrs) || is_bad_string(r, o->payload_format);
}

/* What rows and stacks refer to is marked; the rest is looked through for it. */
int kiln_reader_spread(struct kiln_block_reader *r)
{
    const struct kiln_dict *d = &kiln_builder_peek(r->own)->dict;
    int result = 0;

    if (!r->has_marks)
        return 0;
    for (uint32_t i = 1; result == 0 && i < d->n_sets; i++)
        result = is_bad_set(r, i) ? kiln_reader_mark(r, KILN_SECTION_SETS, i) : 0;
    for (uint32_t i = 1; result == 0 && i < d->n_locations; i++)
        result = is_bad_location(r, i) ? kiln_reader_mark(r, KILN_SECTION_LOCATIONS, i) : 0;
    for (uint32_t i = 0; result == 0 && i < r->n_origins; i++)
        result =
            is_bad_origin(r, &r->origins[i]) ? kiln_reader_mark(r, KILN_SECTION_ORIGINS, i + 1) : 0;
    return result;
}
