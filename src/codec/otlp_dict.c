/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dictionary of revisions 1.8 and later (field 2 of the message): 1 mappings, 2 locations,
 * 3 functions, 4 links, 5 strings, 6 attributes, 7 stacks.
 *
 * Senders write the tables in ascending or descending order, while locations need functions need
 * strings.  So a first look counts the entries of each table and notes where they lie, which also
 * sizes everything once; then the tables are decoded in the order of need, each by one run over its
 * part of the bytes.  Entries are taken by value: a table with doubles, or one whose entry 0 is not
 * the zero value, still means what its indexes say.
 */
#include <errno.h>

#include "codec/otlp_int.h"
#include "core/bulk.h"

static const char *const table_names[OTLP_TABLES] = {
    [OTLP_MAPPINGS] = "mapping_table",   [OTLP_LOCATIONS] = "location_table",
    [OTLP_FUNCTIONS] = "function_table", [OTLP_LINKS] = "link_table",
    [OTLP_STRINGS] = "string_table",     [OTLP_ATTRS] = "attribute_table",
    [OTLP_STACKS] = "stack_table",
};

/* ---- one entry of each table ---- */

typedef int decode_entry(struct otlp_decoder *d, struct kiln_str bytes, uint32_t *ret);

static int decode_string(struct otlp_decoder *d, struct kiln_str bytes, uint32_t *ret)
{
    if (KILN_UNLIKELY(!otlp_is_text(d, bytes)))
        return kiln_err_set(d->err, KILN_E_UTF8, NULL, "the text is not valid UTF-8");
    *ret = otlp_bytes(d, bytes);
    return 0;
}

static int decode_function(struct otlp_decoder *d, struct kiln_str bytes, uint32_t *ret)
{
    struct kiln_pb r = kiln_pb_of(bytes);
    uint32_t name = 0, system_name = 0, filename = 0;
    int64_t start_line = 0;
    struct kiln_function function;
    struct kiln_pb_field f;
    int n, e = 0;

    while (e == 0 && (n = kiln_pb_next(&r, &f)) > 0) {
        switch (f.tag) {
        case KILN_PB_VARINT(1u):
            e = otlp_ref(d, OTLP_STRINGS, f.number, "name_strindex", &name);
            break;
        case KILN_PB_VARINT(2u):
            e = otlp_ref(d, OTLP_STRINGS, f.number, "system_name_strindex", &system_name);
            break;
        case KILN_PB_VARINT(3u):
            e = otlp_ref(d, OTLP_STRINGS, f.number, "filename_strindex", &filename);
            break;
        case KILN_PB_VARINT(4u):
            start_line = (int64_t)f.number;
            break;
        default:
            break;
        }
    }
    e = otlp_end(d, e, n);
    if (e < 0)
        return e;
    function = (struct kiln_function){name, system_name, filename, 0, start_line};
    if (KILN_UNLIKELY(!d->bulk))
        *ret = kiln_builder_function(d->b, &function);
    else if (name || filename || system_name || start_line)
        *ret = kiln_builder_new_function(d->b, &function);
    else
        *ret = 0;
    return 0;
}

static int decode_mapping(struct otlp_decoder *d, struct kiln_str bytes, uint32_t *ret)
{
    struct kiln_pb r = kiln_pb_of(bytes);
    struct kiln_mapping mapping = {0};
    struct kiln_pb_field f;
    int n, e = 0;

    d->attr_ids.n = 0;
    while (e == 0 && (n = kiln_pb_next(&r, &f)) > 0) {
        switch (f.tag) {
        case KILN_PB_VARINT(1u):
            mapping.start = f.number;
            break;
        case KILN_PB_VARINT(2u):
            mapping.limit = f.number;
            break;
        case KILN_PB_VARINT(3u):
            mapping.offset = f.number;
            break;
        case KILN_PB_VARINT(4u):
            e = otlp_ref(d, OTLP_STRINGS, f.number, "filename_strindex", &mapping.filename);
            break;
        case KILN_PB_VARINT(5u):
        case KILN_PB_BYTES(5u):
            e = otlp_refs(d, OTLP_ATTRS, f, "attribute_indices", &d->attr_ids);
            break;
        default:
            break;
        }
    }
    e = otlp_end(d, e, n);
    if (e < 0)
        return e;
    mapping.attrs = otlp_set_of(d, &d->attr_ids);
    *ret = kiln_builder_mapping(d->b, &mapping);
    return 0;
}

static int decode_line(struct otlp_decoder *d, struct kiln_str bytes, struct kiln_line *ret)
{
    struct kiln_pb r = kiln_pb_of(bytes);
    struct kiln_pb_field f;
    int n;

    *ret = (struct kiln_line){0};
    /* Before 1.8 function 0 is one like any other, and an index of 0 is not written. */
    if (d->revision < KILN_OTLP_1_8 && d->maps[OTLP_FUNCTIONS].n)
        otlp_map_get(&d->maps[OTLP_FUNCTIONS], 0, &ret->function);
    while ((n = kiln_pb_next(&r, &f)) > 0) {
        int e = 0;

        if (f.tag == KILN_PB_VARINT(1u))
            e = otlp_ref(d, OTLP_FUNCTIONS, f.number, "function_index", &ret->function);
        else if (f.tag == KILN_PB_VARINT(2u))
            ret->line = (int64_t)f.number;
        else if (f.tag == KILN_PB_VARINT(3u))
            ret->column = (int64_t)f.number;
        if (KILN_UNLIKELY(e < 0))
            return e;
    }
    return n < 0 ? otlp_bad_wire(d->err, n) : 0;
}

int otlp_line(struct otlp_decoder *d, struct kiln_str bytes, uint32_t at)
{
    int r = kiln_grow(&d->budget, (void **)&d->lines, &d->cap_lines, (uint64_t)at + 1,
                      sizeof(*d->lines), UINT32_MAX);

    if (r == 0)
        r = decode_line(d, bytes, &d->lines[at]);
    if (KILN_UNLIKELY(r < 0))
        kiln_err_within(d->err, "lines[%u]", at);
    return r;
}

/* A location through the ordinary door. */
static uint32_t intern_location(struct otlp_decoder *d, uint64_t address, uint32_t mapping,
                                uint32_t attrs, uint32_t n_lines)
{
    struct kiln_location location = {.address = address, .mapping = mapping, .attrs = attrs};

    return kiln_builder_location(d->b, &location, d->lines, n_lines);
}

static int decode_location(struct otlp_decoder *d, struct kiln_str bytes, uint32_t *ret)
{
    struct kiln_pb r = kiln_pb_of(bytes);
    struct kiln_pb_field f;
    uint64_t address = 0;
    uint32_t mapping = 0, attrs, n_lines = 0;
    int n, e = 0;

    d->attr_ids.n = 0;
    while (e == 0 && (n = kiln_pb_next(&r, &f)) > 0) {
        switch (f.tag) {
        case KILN_PB_VARINT(1u):
            e = otlp_ref(d, OTLP_MAPPINGS, f.number, "mapping_index", &mapping);
            break;
        case KILN_PB_VARINT(2u):
            address = f.number;
            break;
        case KILN_PB_BYTES(3u):
            e = otlp_line(d, f.bytes, n_lines++);
            break;
        case KILN_PB_VARINT(4u):
        case KILN_PB_BYTES(4u):
            e = otlp_refs(d, OTLP_ATTRS, f, "attribute_indices", &d->attr_ids);
            break;
        default:
            break;
        }
    }
    e = otlp_end(d, e, n);
    if (e < 0)
        return e;
    attrs = otlp_set_of(d, &d->attr_ids);
    if (KILN_UNLIKELY(!d->bulk))
        *ret = intern_location(d, address, mapping, attrs, n_lines);
    else if (address || n_lines || mapping || attrs)
        *ret = kiln_builder_new_location(d->b, address, mapping, attrs, d->lines, n_lines);
    else
        *ret = 0;
    return 0;
}

/* Copies an id of exactly `size` bytes; an empty one stays zero. */
int otlp_id(struct otlp_decoder *d, struct kiln_str bytes, const char *field, uint8_t *id,
            size_t size)
{
    if (bytes.len == 0)
        return 0;
    if (bytes.len != size)
        return kiln_err_set(d->err, KILN_E_MALFORMED, field, "has %zu bytes instead of %zu",
                            bytes.len, size);
    memcpy(id, bytes.ptr, size);
    return 0;
}

static int decode_link(struct otlp_decoder *d, struct kiln_str bytes, uint32_t *ret)
{
    struct kiln_pb r = kiln_pb_of(bytes);
    struct kiln_link link = {0};
    struct kiln_pb_field f;
    int n, e = 0;

    while (e == 0 && (n = kiln_pb_next(&r, &f)) > 0) {
        if (f.tag == KILN_PB_BYTES(1u))
            e = otlp_id(d, f.bytes, "trace_id", link.trace_id, sizeof(link.trace_id));
        else if (f.tag == KILN_PB_BYTES(2u))
            e = otlp_id(d, f.bytes, "span_id", link.span_id, sizeof(link.span_id));
    }
    e = otlp_end(d, e, n);
    if (e < 0)
        return e;
    *ret = kiln_builder_link(d->b, &link);
    return 0;
}

static int decode_attr(struct otlp_decoder *d, struct kiln_str bytes, uint32_t *ret)
{
    struct kiln_pb r = kiln_pb_of(bytes);
    struct kiln_value value = {0};
    struct kiln_pb_field f;
    uint32_t key = 0, unit = 0;
    int n, e = 0;

    while (e == 0 && (n = kiln_pb_next(&r, &f)) > 0) {
        if (f.tag == KILN_PB_VARINT(1u))
            e = otlp_ref(d, OTLP_STRINGS, f.number, "key_strindex", &key);
        else if (f.tag == KILN_PB_BYTES(2u))
            e = otlp_value(d, f.bytes, kiln_builder_limits(d->b)->value_depth, &value);
        else if (f.tag == KILN_PB_VARINT(3u))
            e = otlp_ref(d, OTLP_STRINGS, f.number, "unit_strindex", &unit);
    }
    e = otlp_end(d, e, n);
    if (e < 0)
        return e;
    *ret = kiln_builder_attr(d->b, key, value, unit);
    return 0;
}

static int decode_stack(struct otlp_decoder *d, struct kiln_str bytes, uint32_t *ret)
{
    struct kiln_pb r = kiln_pb_of(bytes);
    struct kiln_pb_field f;
    uint32_t *frames;
    int n, e = 0;

    d->ids.n = 0;
    while (e == 0 && (n = kiln_pb_next(&r, &f)) > 0) {
        if (f.tag == KILN_PB_BYTES(1u) || f.tag == KILN_PB_VARINT(1u))
            e = otlp_refs(d, OTLP_LOCATIONS, f, "location_indices", &d->ids);
    }
    e = otlp_end(d, e, n);
    if (e < 0)
        return e;
    if (d->ids.n > kiln_builder_limits(d->b)->stack_depth)
        return kiln_err_set(d->err, KILN_E_LIMIT, NULL, "the stack has %u locations", d->ids.n);
    if (!d->bulk || d->ids.n == 0) {
        *ret = kiln_builder_stack(d->b, d->ids.ids, d->ids.n);
        return 0;
    }
    frames = kiln_builder_frames(d->b, d->ids.n);
    if (!frames)
        return kiln_builder_error(d->b);
    memcpy(frames, d->ids.ids, d->ids.n * sizeof(*frames));
    *ret = kiln_builder_new_stack(d->b, d->ids.n);
    return 0;
}

/* ---- whole tables ---- */

/* Notes that the next wire index is not the builder's: from here on the map is needed. */
static int map_entry(struct otlp_decoder *d, struct otlp_map *map, uint32_t entry, uint64_t n)
{
    if (!map->to) {
        map->to = kiln_builder_scratch(d->b, n * sizeof(*map->to));
        if (!map->to)
            return kiln_builder_error(d->b);
        for (uint32_t i = 0; i < map->n; i++)
            map->to[i] = i;
    }
    map->to[map->n] = entry;
    return 0;
}

KILN_INLINE int decode_table(struct otlp_decoder *d, enum otlp_table table,
                             const struct otlp_extent *extent, decode_entry *decode,
                             otlp_usual *usual)
{
    struct otlp_map *map = &d->maps[table];
    struct kiln_pb r = {extent->from, extent->to};
    struct kiln_pb_field f = {0};
    uint32_t entry = 0;
    int n = 1;

    if (usual && !d->bulk && extent->n) {
        map->to = kiln_builder_scratch(d->b, extent->n * sizeof(*map->to));
        if (!map->to)
            return kiln_builder_error(d->b);
    }
    for (;;) {
        int e;

        /* From the second entry on: the first is the zero value, which is there already. */
        if (usual && map->n && d->bulk != (map->to != NULL))
            r.at = usual(d, r.at, r.end);
        if (!kiln_pb_element(&r, extent->tag, &f.bytes)) {
            n = kiln_pb_next(&r, &f);
            if (n <= 0)
                break;
            if (f.tag != extent->tag)
                continue;
        }
        e = decode(d, f.bytes, &entry);
        if (e == 0 && KILN_UNLIKELY(entry != map->n || map->to))
            e = map_entry(d, map, entry, extent->n);
        if (KILN_UNLIKELY(e < 0)) {
            kiln_err_within(d->err, "%s[%u]", table_names[table], map->n);
            return e;
        }
        map->n++;
    }
    return n < 0 ? otlp_bad_wire(d->err, n) : kiln_builder_error(d->b);
}

/* Over entries of less than 128 bytes, as long as there is room for one; adds them up. */
KILN_INLINE void hop(struct kiln_pb *r, uint32_t tag, uint64_t *count, uint64_t *size)
{
    const uint8_t *p = r->at;
    uint64_t n = 0;

    for (; r->end - p >= 2 + 0x7f && p[0] == tag && p[1] < 0x80; n++)
        p += 2 + p[1];
    *count += n;
    *size += (uint64_t)(p - r->at) - 2 * n;
    r->at = p;
}

int otlp_dictionary_look(struct kiln_str bytes, struct otlp_extent *extents)
{
    struct kiln_pb r = kiln_pb_of(bytes);
    const uint8_t *before = r.at;
    struct kiln_pb_field f;
    struct kiln_str entry;
    int n;

    for (; (n = kiln_pb_next(&r, &f)) > 0; before = r.at) {
        struct otlp_extent *extent;
        uint64_t count = 1, size = f.bytes.len;

        if ((f.tag & 7) != 2 || f.tag >> 3 >= OTLP_TABLES)
            continue;
        for (hop(&r, f.tag, &count, &size); kiln_pb_element(&r, f.tag, &entry);
             hop(&r, f.tag, &count, &size)) {
            size += entry.len;
            count++;
        }
        extent = &extents[f.tag >> 3];
        extent->tag = f.tag;
        if (extent->n == 0)
            extent->from = before;
        extent->n += count;
        extent->bytes += size;
        extent->to = r.at;
    }
    return n;
}

int otlp_find_table(struct kiln_str message, uint32_t field, struct otlp_extent *ret)
{
    struct kiln_pb r = kiln_pb_of(message);
    const uint8_t *before = r.at;
    struct kiln_pb_field f;
    int n;

    *ret = (struct otlp_extent){.tag = KILN_PB_BYTES(field)};
    for (; (n = kiln_pb_next(&r, &f)) > 0; before = r.at) {
        if (f.tag != ret->tag)
            continue;
        if (ret->n++ == 0)
            ret->from = before;
        ret->to = r.at;
        ret->bytes += f.bytes.len;
    }
    return n;
}

/*
 * Room for the frames of all stacks: their varints but for two tags and lengths each.  The first
 * one, the empty stack, has but one of both.
 */
static uint64_t room_for_frames(const struct otlp_extent *stacks)
{
    struct kiln_str bytes = {(const char *)stacks->from, (size_t)(stacks->to - stacks->from)};
    uint64_t varints = kiln_pb_count_varints(bytes) + 2;

    return varints > 4 * stacks->n ? varints - 4 * stacks->n : 0;
}

/*
 * How often as much as in the first message is in the dictionary of all of them: most of it they
 * have in common.  A guess: sixteen of a host profiler have four times as much.
 */
static uint64_t growth(uint32_t messages)
{
    return 1 + 3 * (31 - (uint64_t)__builtin_clz(messages)) / 4;
}

/* Sizes the tables for what the dictionary has; resources bring a few more strings and attributes.
 */
#define SAMPLE_BYTES 48u /* a message has one for about so many bytes beside its dictionary */

static void expect(struct otlp_decoder *d, const struct otlp_extent *extents)
{
    uint64_t times = growth(d->of), resources = d->n_resources * d->of;
    uint64_t samples = d->resource_bytes * d->of / SAMPLE_BYTES;
    struct kiln_counts counts = {
        .strings = times * (extents[OTLP_STRINGS].n + extents[OTLP_STRINGS].n / 4),
        .functions = times * extents[OTLP_FUNCTIONS].n,
        .mappings = times * extents[OTLP_MAPPINGS].n,
        .locations = times * extents[OTLP_LOCATIONS].n,
        .lines = times * extents[OTLP_FUNCTIONS].n * 5 / 4, /* a guess, as are the sets */
        .stacks = times * extents[OTLP_STACKS].n,
        .frames = times * room_for_frames(&extents[OTLP_STACKS]),
        .links = times * extents[OTLP_LINKS].n,
        .attrs = times * (extents[OTLP_ATTRS].n + extents[OTLP_ATTRS].n / 2),
        .sets = times * extents[OTLP_ATTRS].n,
        .members = times * extents[OTLP_ATTRS].n * 2,
        .resources = resources,
        .scopes = resources,
        .profiles = resources,
        .samples = samples,
        .observations = samples,
        .bulk = d->bulk,
    };

    kiln_builder_expect(d->b, &counts);
}

static int size_tables(struct otlp_decoder *d, const struct otlp_extent *extents)
{
    int r;

    for (enum otlp_table t = OTLP_MAPPINGS; t < OTLP_TABLES; t++) {
        if (extents[t].n > kiln_builder_limits(d->b)->table_count)
            return kiln_err_set(d->err, KILN_E_LIMIT, table_names[t], "has %llu entries",
                                (unsigned long long)extents[t].n);
        d->maps[t] = (struct otlp_map){0};
    }
    memset(d->known_sets, 0, sizeof(d->known_sets));
    memset(d->known_texts, 0, sizeof(d->known_texts));
    memset(d->known_pairs, 0, sizeof(d->known_pairs));
    d->bulk = d->revision >= KILN_OTLP_1_8 && kiln_builder_has_no_stacks(d->b);
    if (d->bulk || d->revision < KILN_OTLP_1_8) /* else most of it is likely to be there */
        expect(d, extents);
    d->n_set_of_attr = kiln_builder_peek(d->b)->dict.n_attrs + (uint32_t)extents[OTLP_ATTRS].n;
    r = kiln_reserve(&d->budget, (void **)&d->set_of_attr, &d->cap_set_of_attr, d->n_set_of_attr,
                     sizeof(*d->set_of_attr), UINT32_MAX);
    if (r < 0)
        return r;
    memset(d->set_of_attr, 0, d->n_set_of_attr * sizeof(*d->set_of_attr));
    return 0;
}

static int decode_stacks(struct otlp_decoder *d, const struct otlp_extent *x)
{
    int r =
        decode_table(d, OTLP_FUNCTIONS, &x[OTLP_FUNCTIONS], decode_function, otlp_usual_functions);

    if (r == 0)
        r = decode_table(d, OTLP_LOCATIONS, &x[OTLP_LOCATIONS], decode_location,
                         otlp_usual_locations);
    if (r == 0)
        r = decode_table(d, OTLP_STACKS, &x[OTLP_STACKS], decode_stack, otlp_usual_stacks);
    return r;
}

/*
 * Senders should not repeat entries, and they do not.  So the large tables of the first message are
 * taken as they come and checked at the end; only a sender that does repeat costs a second run.
 */
static int decode_new_tables(struct otlp_decoder *d, const struct otlp_extent *x)
{
    int r = decode_table(d, OTLP_ATTRS, &x[OTLP_ATTRS], decode_attr, otlp_usual_attrs);

    if (r == 0)
        r = decode_table(d, OTLP_MAPPINGS, &x[OTLP_MAPPINGS], decode_mapping, NULL);
    if (r == 0)
        r = decode_stacks(d, x);
    if (r < 0 || !d->bulk || kiln_builder_distinct(d->b))
        return r;
    d->bulk = false;
    kiln_builder_forget_stacks(d->b);
    d->maps[OTLP_FUNCTIONS] = d->maps[OTLP_LOCATIONS] = d->maps[OTLP_STACKS] = (struct otlp_map){0};
    return decode_stacks(d, x);
}

static int decode_old_tables(struct otlp_decoder *d, const struct otlp_extent *x)
{
    int r = decode_table(d, OTLP_ATTRS, &x[OTLP_ATTRS], otlp_old_attr, NULL);

    if (r == 0)
        r = decode_table(d, OTLP_FUNCTIONS, &x[OTLP_FUNCTIONS], decode_function, NULL);
    if (r == 0)
        r = decode_table(d, OTLP_MAPPINGS, &x[OTLP_MAPPINGS], otlp_old_mapping, NULL);
    if (r == 0)
        r = decode_table(d, OTLP_LOCATIONS, &x[OTLP_LOCATIONS], otlp_old_location, NULL);
    return r;
}

int otlp_strings_and_links(struct otlp_decoder *d, const struct otlp_extent *x)
{
    int r = size_tables(d, x);

    if (r == 0)
        r = decode_table(d, OTLP_STRINGS, &x[OTLP_STRINGS], decode_string, NULL);
    if (r == 0)
        r = decode_table(d, OTLP_LINKS, &x[OTLP_LINKS], decode_link, NULL);
    return r;
}

int otlp_other_tables(struct otlp_decoder *d, const struct otlp_extent *x)
{
    return d->revision < KILN_OTLP_1_8 ? decode_old_tables(d, x) : decode_new_tables(d, x);
}

/*
 * A message has one dictionary; protobuf allows it to come in pieces, and then they are one after
 * the other.  Pieces are joined first, which never happens in practice.
 */
int otlp_dictionary_find(struct otlp_decoder *d, struct kiln_str message, struct kiln_str *ret)
{
    struct kiln_pb r = kiln_pb_of(message);
    struct kiln_pb_field f;
    size_t len = 0;
    char *joined;
    int n, pieces = 0;

    d->n_resources = 0;
    d->resource_bytes = 0;
    while ((n = kiln_pb_next(&r, &f)) > 0) {
        if (f.tag == KILN_PB_BYTES(1u)) {
            d->n_resources++;
            d->resource_bytes += f.bytes.len;
        }
        if (f.tag != KILN_PB_BYTES(2u))
            continue;
        pieces++;
        len += f.bytes.len;
        *ret = f.bytes;
    }
    if (n < 0)
        return otlp_bad_wire(d->err, n);
    if (pieces <= 1)
        return 0;
    joined = kiln_builder_alloc(d->b, len);
    if (!joined)
        return kiln_builder_error(d->b);
    *ret = (struct kiln_str){joined, len};
    for (r = kiln_pb_of(message); kiln_pb_next(&r, &f) > 0;) {
        if (f.tag == KILN_PB_BYTES(2u) && f.bytes.len)
            joined = (char *)memcpy(joined, f.bytes.ptr, f.bytes.len) + f.bytes.len;
    }
    return 0;
}

int otlp_dictionary(struct otlp_decoder *d, const struct otlp_extent *extents)
{
    int r = otlp_strings_and_links(d, extents);

    if (r == 0)
        r = otlp_other_tables(d, extents);
    if (r < 0)
        kiln_err_within(d->err, "dictionary");
    return r;
}
