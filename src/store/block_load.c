/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sections of attributes and heads (block_dict.c has their columns), into the reader's own
 * tables.  Each entry must get the number it has in the file: one that is there twice would not.
 * Sets, of which there are many, are looked at like this only where a block is checked.
 */
#include "core/bulk.h"
#include "store/block_reader.h"

static const struct kiln_dict *own_dict(const struct kiln_block_reader *r)
{
    return &kiln_builder_peek(r->own)->dict;
}

static bool is_string(const struct kiln_block_reader *r, uint64_t number)
{
    return number < own_dict(r)->n_strings;
}

static bool is_set(const struct kiln_block_reader *r, uint64_t number)
{
    return number < own_dict(r)->n_sets;
}

static bool is_count(uint64_t number)
{
    return number <= UINT32_MAX;
}

/* ---- values ---- */

/* A value from its two columns; false if there is none like this. */
static bool get_value(struct kiln_block_reader *r, uint64_t kind, uint64_t code,
                      struct kiln_value *ret)
{
    struct kiln_value value = {.kind = (uint32_t)kind, .bits = code};

    switch (kind) {
    case KILN_VALUE_EMPTY:
    case KILN_VALUE_DOUBLE:
        break;
    case KILN_VALUE_STRING:
    case KILN_VALUE_BYTES:
        if (!is_string(r, code))
            return false;
        break;
    case KILN_VALUE_BOOL:
        if (code > 1)
            return false;
        break;
    case KILN_VALUE_INT:
        value.bits = r->last = kiln_zigzag_add(r->last, code);
        break;
    case KILN_VALUE_ARRAY:
    case KILN_VALUE_MAP:
        if (code > r->n_lists)
            return false;
        value.n = code ? r->lists[code - 1].n : 0;
        value.first = code ? r->lists[code - 1].first : 0;
        break;
    default:
        return false;
    }
    *ret = value;
    return true;
}

/* The attribute in row `i` of the four columns from `column` on. */
static bool get_attr(struct kiln_block_reader *r, uint32_t column, uint32_t i,
                     struct kiln_attr *ret)
{
    const struct kiln_column *c = &r->columns[column];

    if (!is_string(r, c[0].v[i]) || !is_string(r, c[1].v[i]))
        return false;
    ret->key = (uint32_t)c[0].v[i];
    ret->unit = (uint32_t)c[1].v[i];
    return get_value(r, c[2].v[i], c[3].v[i], &ret->value);
}

/* How deep a list with this child is. */
static uint32_t depth_over(const struct kiln_block_reader *r, uint64_t kind, uint64_t code)
{
    /* Not `nested ? depth + 1 : 1`: gcc 14 reads the depth of any code, and masks what it read. */
    if ((kind == KILN_VALUE_ARRAY || kind == KILN_VALUE_MAP) && code)
        return r->lists[code - 1].depth + 1;
    return 1;
}

static int load_list(struct kiln_block_reader *r, uint32_t first, uint32_t n, struct kiln_err *err)
{
    struct kiln_attr *children = kiln_builder_scratch(r->own, n * sizeof(*children));
    struct kiln_reader_list list = {.n = n, .depth = 1};

    if (!children)
        return kiln_builder_error(r->own);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t depth;

        if (!get_attr(r, 1, first + i, &children[i]))
            return kiln_reader_damaged(err, "a value is damaged");
        depth = depth_over(r, r->columns[3].v[first + i], r->columns[4].v[first + i]);
        list.depth = depth > list.depth ? depth : list.depth;
    }
    if (list.depth > kiln_limits_default.value_depth)
        return kiln_reader_damaged(err, "values are nested too deeply");
    list.first = kiln_builder_nested(r->own, KILN_VALUE_ARRAY, children, n).first;
    r->lists[r->n_lists++] = list;
    return 0;
}

static int load_lists(struct kiln_block_reader *r, uint32_t n, struct kiln_err *err)
{
    uint32_t at = 0, n_children = r->columns[1].n;
    int result = READER_ROOM(r, r->lists, r->cap_lists, (uint64_t)r->n_lists + n);

    if (!kiln_reader_fits(r, 1, n) || r->columns[2].n != n_children ||
        r->columns[3].n != n_children || r->columns[4].n != n_children)
        return kiln_reader_damaged(err, "its columns do not fit together");
    for (uint32_t i = 0; result == 0 && i < n; i++) {
        uint64_t size = r->columns[0].v[i];

        if (size == 0 || size > n_children - at)
            return kiln_reader_damaged(err, "its columns do not fit together");
        result = load_list(r, at, (uint32_t)size, err);
        at += (uint32_t)size;
    }
    if (result == 0 && at != n_children)
        return kiln_reader_damaged(err, "its columns do not fit together");
    return result;
}

/* ---- attributes, sets, links ---- */

static int load_attrs(struct kiln_block_reader *r, uint32_t n, struct kiln_err *err)
{
    if (!kiln_reader_fits(r, 4, n))
        return kiln_reader_damaged(err, "its columns do not fit together");
    for (uint32_t i = 0; i < n; i++) {
        struct kiln_attr attr;
        uint32_t number = own_dict(r)->n_attrs;

        if (!get_attr(r, 0, i, &attr))
            return kiln_reader_damaged(err, "an attribute is damaged");
        if (kiln_builder_attr(r->own, attr.key, attr.value, attr.unit) != number)
            return kiln_reader_twice(r, err, "an attribute is there twice");
    }
    return 0;
}

/*
 * Versions up to 0.1 wrote references to the empty attribute (number 0), which are left out here.
 * A set of such references alone keeps its number, and is empty.
 */
static int load_set(struct kiln_block_reader *r, uint32_t first, uint32_t n, struct kiln_err *err)
{
    uint32_t number = own_dict(r)->n_sets, lost = 0, kept = 0;
    int result = READER_ROOM(r, r->path, r->cap_path, n);

    for (uint32_t i = 0; result == 0 && i < n; i++) {
        bool there;

        if (!kiln_recent_decode(r->columns[1].v[first + i], &r->next, &r->path[kept]))
            return kiln_reader_damaged(err, "a set has an attribute that is not there");
        there = r->path[kept] < own_dict(r)->n_attrs;
        if (!there && !r->opts.lost)
            return kiln_reader_damaged(err, "a set has an attribute that is not there");
        if (!there)
            result = kiln_reader_mark(r, KILN_SECTION_SETS, number);
        kept += there && r->path[kept] != 0;
    }
    if (result < 0)
        return result;
    if (r->b || r->opts.dict_only || kept < n) { /* bringing it over drops what is there twice */
        kiln_builder_new_set(r->own, r->path, kept);
        return kiln_builder_error(r->own);
    }
    if (kiln_builder_set(r->own, r->path, n, &lost) != number || lost)
        return kiln_reader_twice(r, err, "a set is there twice, or a key in it");
    return 0;
}

static int load_sets(struct kiln_block_reader *r, uint32_t n, struct kiln_err *err)
{
    uint32_t at = 0;
    int result = 0;

    if (!kiln_reader_fits(r, 1, n))
        return kiln_reader_damaged(err, "its columns do not fit together");
    for (uint32_t i = 0; result == 0 && i < n; i++) {
        uint64_t size = r->columns[0].v[i];

        if (size == 0 || size > r->columns[1].n - at)
            return kiln_reader_damaged(err, "its columns do not fit together");
        result = load_set(r, at, (uint32_t)size, err);
        at += (uint32_t)size;
    }
    if (result == 0 && at != r->columns[1].n)
        return kiln_reader_damaged(err, "its columns do not fit together");
    return result;
}

static int load_links(struct kiln_block_reader *r, uint32_t n, struct kiln_err *err)
{
    struct kiln_link link;

    if (r->bytes[0].len != (size_t)n * sizeof(link))
        return kiln_reader_damaged(err, "its columns do not fit together");
    for (uint32_t i = 0; i < n; i++) {
        uint32_t number = own_dict(r)->n_links;

        memcpy(&link, r->bytes[0].ptr + i * sizeof(link), sizeof(link));
        if (kiln_builder_link(r->own, &link) != number)
            return kiln_reader_twice(r, err, "a link is there twice");
    }
    return 0;
}

/* ---- heads ---- */

/* Entity references and their keys come one after another, across the resources of a page. */
struct entities {
    uint32_t entity, key;
};

static bool load_entity(struct kiln_block_reader *r, struct entities *at)
{
    const struct kiln_column *c = r->columns;
    uint32_t i = at->entity++;
    uint64_t n_ids, n_descriptions;
    uint32_t *keys;

    if (i >= c[4].n || !is_string(r, c[4].v[i]) || !is_string(r, c[5].v[i]))
        return false;
    n_ids = c[6].v[i];
    n_descriptions = c[7].v[i];
    if (n_ids > c[8].n - at->key || n_descriptions > c[8].n - at->key - n_ids)
        return false;
    keys = kiln_builder_scratch(r->own, (size_t)(n_ids + n_descriptions) * sizeof(*keys));
    for (uint64_t k = 0; keys && k < n_ids + n_descriptions; k++) {
        keys[k] = (uint32_t)c[8].v[at->key];
        if (!is_string(r, c[8].v[at->key++]))
            return false;
    }
    if (keys)
        kiln_builder_add_entity(r->own, (uint32_t)c[4].v[i], (uint32_t)c[5].v[i], keys,
                                (uint32_t)n_ids, keys + n_ids, (uint32_t)n_descriptions);
    return true;
}

static int load_resources(struct kiln_block_reader *r, uint32_t n, struct kiln_err *err)
{
    const struct kiln_column *c = r->columns;
    struct entities at = {0};

    if (!kiln_reader_fits(r, 4, n) || c[5].n != c[4].n || c[6].n != c[4].n || c[7].n != c[4].n)
        return kiln_reader_damaged(err, "its columns do not fit together");
    for (uint32_t i = 0; i < n && !kiln_builder_error(r->own); i++) {
        struct kiln_resource resource = {.attrs = (uint32_t)c[0].v[i],
                                         .dropped_attrs = (uint32_t)c[1].v[i],
                                         .schema_url = (uint32_t)c[2].v[i]};

        if (!is_set(r, c[0].v[i]) || !is_count(c[1].v[i]) || !is_string(r, c[2].v[i]) ||
            c[3].v[i] > c[4].n - at.entity)
            return kiln_reader_damaged(err, "a resource is damaged");
        kiln_builder_add_resource(r->own, &resource);
        for (uint64_t k = 0; k < c[3].v[i]; k++) {
            if (!load_entity(r, &at))
                return kiln_reader_damaged(err, "a reference to an entity is damaged");
        }
    }
    if (!kiln_builder_error(r->own) && (at.entity != c[4].n || at.key != c[8].n))
        return kiln_reader_damaged(err, "its columns do not fit together");
    return 0;
}

static int load_scopes(struct kiln_block_reader *r, uint32_t n, struct kiln_err *err)
{
    const struct kiln_column *c = r->columns;

    if (!kiln_reader_fits(r, 5, n) || kiln_builder_peek(r->own)->n_resources == 0)
        return kiln_reader_damaged(err, "its columns do not fit together");
    for (uint32_t i = 0; i < n; i++) {
        struct kiln_scope scope = {.name = (uint32_t)c[0].v[i],
                                   .version = (uint32_t)c[1].v[i],
                                   .attrs = (uint32_t)c[2].v[i],
                                   .dropped_attrs = (uint32_t)c[3].v[i],
                                   .schema_url = (uint32_t)c[4].v[i]};

        if (!is_string(r, c[0].v[i]) || !is_string(r, c[1].v[i]) || !is_set(r, c[2].v[i]) ||
            !is_count(c[3].v[i]) || !is_string(r, c[4].v[i]))
            return kiln_reader_damaged(err, "a scope is damaged");
        kiln_builder_add_scope(r->own, &scope);
    }
    return 0;
}

static bool load_origin(struct kiln_block_reader *r, uint32_t i, struct kiln_origin *ret)
{
    const struct kiln_batch *own = kiln_builder_peek(r->own);
    const struct kiln_column *c = r->columns;
    uint32_t resource;

    if (!kiln_recent_decode(c[0].v[i], &r->next, &resource) || resource == 0 ||
        resource > own->n_resources || c[1].v[i] == 0 || c[1].v[i] > own->n_scopes)
        return false;
    for (uint32_t k = 2; k <= 5; k++) {
        if (!is_string(r, c[k].v[i]))
            return false;
    }
    if (!is_set(r, c[7].v[i]) || !is_count(c[8].v[i]) || !is_string(r, c[9].v[i]) ||
        !is_count(c[10].v[i]))
        return false;
    *ret = (struct kiln_origin){
        .resource = resource,
        .scope = (uint32_t)c[1].v[i],
        .sample_type = {(uint32_t)c[2].v[i], (uint32_t)c[3].v[i]},
        .period_type = {(uint32_t)c[4].v[i], (uint32_t)c[5].v[i]},
        .period = kiln_unzigzag(c[6].v[i]),
        .attrs = (uint32_t)c[7].v[i],
        .dropped_attrs = (uint32_t)c[8].v[i],
        .payload_format = (uint32_t)c[9].v[i],
        .flags = (uint32_t)c[10].v[i],
    };
    return true;
}

static int load_origins(struct kiln_block_reader *r, uint32_t n, struct kiln_err *err)
{
    int result = READER_ROOM(r, r->origins, r->cap_origins, (uint64_t)r->n_origins + n);

    if (result < 0)
        return result;
    if (!kiln_reader_fits(r, 11, n))
        return kiln_reader_damaged(err, "its columns do not fit together");
    for (uint32_t i = 0; i < n; i++) {
        if (!load_origin(r, i, &r->origins[r->n_origins]))
            return kiln_reader_damaged(err, "an origin is damaged");
        r->n_origins++;
    }
    return 0;
}

static int load_moments(struct kiln_block_reader *r, uint32_t n, struct kiln_err *err)
{
    const struct kiln_column *c = r->columns;
    int result = READER_ROOM(r, r->moments, r->cap_moments, (uint64_t)r->n_moments + n);

    if (result < 0)
        return result;
    if (!kiln_reader_fits(r, 2, n))
        return kiln_reader_damaged(err, "its columns do not fit together");
    for (uint32_t i = 0; i < n; i++) {
        struct kiln_moment last =
            r->n_moments ? r->moments[r->n_moments - 1] : (struct kiln_moment){0};

        r->moments[r->n_moments++] = (struct kiln_moment){
            kiln_zigzag_add(last.time_ns, c[0].v[i]), kiln_zigzag_add(last.duration_ns, c[1].v[i])};
    }
    return 0;
}

int kiln_reader_load_dict(struct kiln_block_reader *r, struct kiln_err *err)
{
    static const struct {
        uint32_t kind;
        int (*take)(struct kiln_block_reader *r, uint32_t n, struct kiln_err *err);
    } parts[] = {
        {KILN_SECTION_LISTS, load_lists},         {KILN_SECTION_ATTRS, load_attrs},
        {KILN_SECTION_SETS, load_sets},           {KILN_SECTION_LINKS, load_links},
        {KILN_SECTION_RESOURCES, load_resources}, {KILN_SECTION_SCOPES, load_scopes},
        {KILN_SECTION_ORIGINS, load_origins},     {KILN_SECTION_MOMENTS, load_moments},
    };
    int result = 0;

    for (size_t i = 0; result == 0 && i < KILN_ARRAY_LEN(parts); i++)
        result = kiln_reader_section(r, kiln_footer_section(&r->block->footer, parts[i].kind),
                                     parts[i].take, err);
    return result;
}
