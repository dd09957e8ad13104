/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Revisions 1.4 to 1.7, which came closer to pprof:
 *
 *   where the tables are   1.4, 1.5: in each profile (3 mappings, 4 locations, 6 functions,
 *                          7 attributes, 8 units, 9 links, 10 strings); 1.6: beside the resources
 *                          (2 mappings, 3 locations, 4 functions, 5 links, 6 strings, 7 attributes,
 *                          8 units); 1.7: in a dictionary (numbered as today, 7 units)
 *   Profile, 1.4 and 1.5   1 sample types, 2 samples, 5 stack pool, 11 time, 12 duration, 13 period
 *                          type, 14 period, 15 comments, 16 default type, 17 id, 18 attributes
 *                          (1.4), 19 dropped, 20 payload format, 21 payload, 22 attributes (1.5)
 *   Profile, 1.6 and 1.7   1 sample types, 2 samples, 3 stack pool, 4 time, 5 duration, 6 period
 *                          type, 7 period, 8 comments, 9 default type, 10 id, 11 dropped,
 *                          12 payload format, 13 payload, 14 attributes
 *   Sample                 1 first location in the pool, 2 number of locations, 3 values (one a
 *                          sample type), 4 attributes, 5 link (if present), 6 timestamps (varints)
 *
 * Attributes are key-value pairs with their units in a table by key.  Index 0 is an entry like any
 * other; an optional index that is absent means none.  A profile of N sample types becomes N
 * profiles, the default one first, because that is the one to show.  A value that equals the number
 * of its timestamps is a count of them, a single timestamp belongs to the value; otherwise old
 * samples do not say which part of a value is of which time, and the timestamps are left out.  The
 * aggregation temporality has no meaning any more.
 */
#include "codec/otlp_int.h"

/* ---- tables ---- */

static uint32_t flag_attr(struct otlp_decoder *d, struct kiln_str key)
{
    return kiln_builder_attr(d->b, kiln_builder_string(d->b, key), kiln_value_bool(true), 0);
}

int otlp_old_attr(struct otlp_decoder *d, struct kiln_str bytes, uint32_t *ret)
{
    struct kiln_attr attr;
    int r;

    d->ids.n = 0;
    r = otlp_key_value(d, bytes, &d->ids);
    if (r < 0)
        return r;
    attr = kiln_builder_peek(d->b)->dict.attrs[d->ids.ids[0]];
    if (attr.key < d->n_unit_of && d->unit_of[attr.key])
        *ret = kiln_builder_attr(d->b, attr.key, attr.value, d->unit_of[attr.key]);
    else
        *ret = d->ids.ids[0];
    return 0;
}

int otlp_old_mapping(struct otlp_decoder *d, struct kiln_str bytes, uint32_t *ret)
{
    static const char *const flags[] = {
        "pprof.mapping.has_functions", "pprof.mapping.has_filenames",
        "pprof.mapping.has_line_numbers", "pprof.mapping.has_inline_frames"};
    struct kiln_pb r = kiln_pb_of(bytes);
    struct kiln_mapping mapping = {0};
    struct kiln_pb_field f;
    int n, e = 0;

    d->attr_ids.n = 0;
    while (e == 0 && (n = kiln_pb_next(&r, &f)) > 0) {
        uint32_t field = f.tag >> 3;

        if (f.tag == KILN_PB_VARINT(1u))
            mapping.start = f.number;
        else if (f.tag == KILN_PB_VARINT(2u))
            mapping.limit = f.number;
        else if (f.tag == KILN_PB_VARINT(3u))
            mapping.offset = f.number;
        else if (f.tag == KILN_PB_VARINT(4u))
            e = otlp_ref(d, OTLP_STRINGS, f.number, "filename_strindex", &mapping.filename);
        else if (field == 5)
            e = otlp_refs(d, OTLP_ATTRS, f, "attribute_indices", &d->attr_ids);
        else if (field >= 6 && field <= 9 && (f.tag & 7) == 0 && f.number)
            e = otlp_ids_add(d, &d->attr_ids, flag_attr(d, kiln_str_of(flags[field - 6])));
    }
    e = otlp_end(d, e, n);
    if (e < 0)
        return e;
    mapping.attrs = otlp_set_of(d, &d->attr_ids);
    *ret = kiln_builder_mapping(d->b, &mapping);
    return 0;
}

int otlp_old_location(struct otlp_decoder *d, struct kiln_str bytes, uint32_t *ret)
{
    struct kiln_pb r = kiln_pb_of(bytes);
    struct kiln_location location = {0};
    struct kiln_pb_field f;
    uint32_t n_lines = 0;
    int n, e = 0;

    d->attr_ids.n = 0;
    while (e == 0 && (n = kiln_pb_next(&r, &f)) > 0) {
        if (f.tag == KILN_PB_VARINT(1u))
            e = otlp_ref(d, OTLP_MAPPINGS, f.number, "mapping_index", &location.mapping);
        else if (f.tag == KILN_PB_VARINT(2u))
            location.address = f.number;
        else if (f.tag == KILN_PB_BYTES(3u))
            e = otlp_line(d, f.bytes, n_lines++);
        else if (f.tag == KILN_PB_VARINT(4u) && f.number)
            e = otlp_ids_add(d, &d->attr_ids, flag_attr(d, KILN_STR("pprof.location.is_folded")));
        else if (f.tag >> 3 == 5)
            e = otlp_refs(d, OTLP_ATTRS, f, "attribute_indices", &d->attr_ids);
    }
    e = otlp_end(d, e, n);
    if (e < 0)
        return e;
    location.attrs = otlp_set_of(d, &d->attr_ids);
    *ret = kiln_builder_location(d->b, &location, d->lines, n_lines);
    return 0;
}

/* AttributeUnit: 1 key, 2 unit. */
static int read_unit(struct otlp_decoder *d, struct kiln_str bytes)
{
    struct kiln_pb r = kiln_pb_of(bytes);
    struct kiln_pb_field f;
    uint32_t key = 0, unit = 0;
    int n, e = 0;

    while (e == 0 && (n = kiln_pb_next(&r, &f)) > 0) {
        if (f.tag == KILN_PB_VARINT(1u))
            e = otlp_ref(d, OTLP_STRINGS, f.number, "attribute_key_strindex", &key);
        else if (f.tag == KILN_PB_VARINT(2u))
            e = otlp_ref(d, OTLP_STRINGS, f.number, "unit_strindex", &unit);
    }
    e = otlp_end(d, e, n);
    if (e == 0 && key < d->n_unit_of)
        d->unit_of[key] = unit;
    return e;
}

static int read_units(struct otlp_decoder *d, struct kiln_str message, uint32_t field)
{
    struct kiln_pb r = kiln_pb_of(message);
    struct kiln_pb_field f;
    uint32_t i = 0;
    int e = 0;

    d->n_unit_of = kiln_builder_peek(d->b)->dict.n_strings;
    d->unit_of = kiln_builder_scratch(d->b, d->n_unit_of * sizeof(*d->unit_of));
    if (!d->unit_of)
        return kiln_builder_error(d->b);
    memset(d->unit_of, 0, d->n_unit_of * sizeof(*d->unit_of));
    while (e == 0 && kiln_pb_next(&r, &f) > 0) {
        if (f.tag != KILN_PB_BYTES(field))
            continue;
        e = read_unit(d, f.bytes);
        if (e < 0)
            kiln_err_within(d->err, "attribute_units[%u]", i);
        i++;
    }
    return e;
}

/* The field of each table, by the number it has today, and of the units. */
struct table_fields {
    uint8_t of[OTLP_TABLES];
    uint8_t units;
};

static const struct table_fields in_profile = {
    {[OTLP_MAPPINGS] = 3,
     [OTLP_LOCATIONS] = 4,
     [OTLP_FUNCTIONS] = 6,
     [OTLP_LINKS] = 9,
     [OTLP_STRINGS] = 10,
     [OTLP_ATTRS] = 7},
    8,
};
static const struct table_fields beside_resources = {
    {[OTLP_MAPPINGS] = 2,
     [OTLP_LOCATIONS] = 3,
     [OTLP_FUNCTIONS] = 4,
     [OTLP_LINKS] = 5,
     [OTLP_STRINGS] = 6,
     [OTLP_ATTRS] = 7},
    8,
};
static const struct table_fields in_dictionary = {
    {[OTLP_MAPPINGS] = 1,
     [OTLP_LOCATIONS] = 2,
     [OTLP_FUNCTIONS] = 3,
     [OTLP_LINKS] = 4,
     [OTLP_STRINGS] = 5,
     [OTLP_ATTRS] = 6},
    7,
};

static int read_tables(struct otlp_decoder *d, struct kiln_str message,
                       const struct table_fields *fields)
{
    struct otlp_extent extents[OTLP_TABLES] = {0};
    int r = 0;

    for (enum otlp_table t = OTLP_MAPPINGS; r == 0 && t < OTLP_STACKS; t++)
        r = otlp_find_table(message, fields->of[t], &extents[t]);
    if (r < 0)
        return otlp_bad_wire(d->err, r);
    r = otlp_strings_and_links(d, extents);
    if (r == 0)
        r = read_units(d, message, fields->units);
    return r < 0 ? r : otlp_other_tables(d, extents);
}

int otlp_old_tables(struct otlp_decoder *d, struct kiln_str message)
{
    struct kiln_str dictionary = {0};
    int r = 0;

    if (d->revision == KILN_OTLP_1_6)
        return read_tables(d, message, &beside_resources);
    if (d->revision == KILN_OTLP_1_7) {
        r = otlp_dictionary_find(d, message, &dictionary);
        if (r == 0)
            r = read_tables(d, dictionary, &in_dictionary);
        if (r < 0)
            kiln_err_within(d->err, "dictionary");
    }
    return r;
}

/* ---- profiles ---- */

enum role {
    NONE,
    SAMPLE_TYPE,
    POOL,
    TIME,
    DURATION,
    PERIOD_TYPE,
    PERIOD,
    COMMENTS,
    DEFAULT_TYPE,
    ID,
    PAIRS,
    DROPPED,
    FORMAT,
    PAYLOAD,
    ATTRS
};

#define FIELDS 23u

static const uint8_t roles_1_4[FIELDS] = {
    [1] = SAMPLE_TYPE, [5] = POOL,      [11] = TIME,         [12] = DURATION, [13] = PERIOD_TYPE,
    [14] = PERIOD,     [15] = COMMENTS, [16] = DEFAULT_TYPE, [17] = ID,       [18] = PAIRS,
    [19] = DROPPED,    [20] = FORMAT,   [21] = PAYLOAD,      [22] = ATTRS,
};
static const uint8_t roles_1_6[FIELDS] = {
    [1] = SAMPLE_TYPE, [3] = POOL,     [4] = TIME,         [5] = DURATION, [6] = PERIOD_TYPE,
    [7] = PERIOD,      [8] = COMMENTS, [9] = DEFAULT_TYPE, [10] = ID,      [11] = DROPPED,
    [12] = FORMAT,     [13] = PAYLOAD, [14] = ATTRS,
};

#define TYPES_MAX 64u /* sample types of one profile */

struct head {
    struct kiln_profile profile; /* without a sample type */
    struct kiln_value_type types[TYPES_MAX];
    uint32_t n_types;
    uint32_t default_type; /* 1.4: a string; 1.6, 1.7: a position */
    uint32_t first_type;   /* the position of the type that comes first */
};

/* The default type changes places with the first one. */
static uint32_t place_of(const struct head *h, uint32_t type)
{
    if (type == h->first_type)
        return 0;
    return type == 0 ? h->first_type : type;
}

static void find_first_type(struct otlp_decoder *d, struct head *h)
{
    h->first_type = 0;
    if (d->revision > KILN_OTLP_1_4)
        h->first_type = h->default_type < h->n_types ? h->default_type : 0;
    for (uint32_t i = 0; d->revision == KILN_OTLP_1_4 && i < h->n_types; i++) {
        if (h->default_type && h->types[i].type == h->default_type)
            h->first_type = i;
    }
}

static int add_type(struct otlp_decoder *d, struct kiln_str bytes, struct head *h)
{
    if (h->n_types == TYPES_MAX)
        return kiln_err_set(d->err, KILN_E_LIMIT, "sample_type", "more than %u sample types",
                            TYPES_MAX);
    h->types[h->n_types] = (struct kiln_value_type){0};
    return otlp_value_type(d, bytes, "sample_type", &h->types[h->n_types++]);
}

static int read_default_type(struct otlp_decoder *d, uint64_t number, struct head *h)
{
    if (d->revision == KILN_OTLP_1_4)
        return otlp_ref(d, OTLP_STRINGS, number, "default_sample_type_strindex", &h->default_type);
    h->default_type = number < TYPES_MAX ? (uint32_t)number : 0;
    return 0;
}

static int read_head_bytes(struct otlp_decoder *d, enum role role, struct kiln_pb_field f,
                           struct head *h)
{
    switch (role) {
    case SAMPLE_TYPE:
        return add_type(d, f.bytes, h);
    case PERIOD_TYPE:
        return otlp_value_type(d, f.bytes, "period_type", &h->profile.period_type);
    case POOL:
        return otlp_refs(d, OTLP_LOCATIONS, f, "location_indices", &d->stack_pool);
    case COMMENTS:
        return otlp_refs(d, OTLP_STRINGS, f, "comment_strindices", &d->ids);
    case ATTRS:
        return otlp_refs(d, OTLP_ATTRS, f, "attribute_indices", &d->attr_ids);
    case PAIRS:
        return otlp_key_value(d, f.bytes, &d->attr_ids);
    case ID:
        return otlp_id(d, f.bytes, "profile_id", h->profile.id, sizeof(h->profile.id));
    case FORMAT:
        return otlp_string(d, f.bytes, "original_payload_format", &h->profile.payload_format);
    case PAYLOAD:
        h->profile.payload = otlp_kept(d, f.bytes);
        return 0;
    default:
        return 0;
    }
}

static int read_head_number(struct otlp_decoder *d, enum role role, struct kiln_pb_field f,
                            struct head *h)
{
    switch (role) {
    case TIME:
        h->profile.time_ns = f.number;
        return 0;
    case DURATION:
        h->profile.duration_ns = f.number;
        return 0;
    case PERIOD:
        h->profile.period = (int64_t)f.number;
        return 0;
    case DROPPED:
        h->profile.dropped_attrs = (uint32_t)f.number;
        return 0;
    case DEFAULT_TYPE:
        return read_default_type(d, f.number, h);
    case POOL:
        return otlp_refs(d, OTLP_LOCATIONS, f, "location_indices", &d->stack_pool);
    case COMMENTS:
        return otlp_refs(d, OTLP_STRINGS, f, "comment_strindices", &d->ids);
    case ATTRS:
        return otlp_refs(d, OTLP_ATTRS, f, "attribute_indices", &d->attr_ids);
    default:
        return 0;
    }
}

static int read_head(struct otlp_decoder *d, struct kiln_str bytes, struct head *h)
{
    const uint8_t *roles = d->revision == KILN_OTLP_1_4 ? roles_1_4 : roles_1_6;
    struct kiln_pb r = kiln_pb_of(bytes);
    struct kiln_pb_field f;
    int n, e = 0;

    d->attr_ids.n = d->ids.n = d->stack_pool.n = 0;
    while (e == 0 && (n = kiln_pb_next(&r, &f)) > 0) {
        if (f.tag >> 3 >= FIELDS)
            continue;
        e = (f.tag & 7) == 2 ? read_head_bytes(d, roles[f.tag >> 3], f, h)
                             : read_head_number(d, roles[f.tag >> 3], f, h);
    }
    e = otlp_end(d, e, n);
    if (e == 0)
        e = otlp_comments(d);
    h->profile.attrs = otlp_set_of(d, &d->attr_ids);
    return e;
}

/* ---- samples ---- */

struct old_sample {
    uint64_t start, length;
    uint32_t link, n_values, n_times;
};

static int read_sample_field(struct otlp_decoder *d, struct kiln_pb_field f, struct old_sample *s)
{
    switch (f.tag) {
    case KILN_PB_VARINT(1u):
        s->start = f.number;
        return 0;
    case KILN_PB_VARINT(2u):
        s->length = f.number;
        return 0;
    case KILN_PB_VARINT(3u):
    case KILN_PB_BYTES(3u):
        return otlp_varints(d, f, &d->values, &s->n_values, &d->cap_values);
    case KILN_PB_VARINT(4u):
    case KILN_PB_BYTES(4u):
        return otlp_refs(d, OTLP_ATTRS, f, "attribute_indices", &d->attr_ids);
    case KILN_PB_VARINT(5u):
        return otlp_ref(d, OTLP_LINKS, f.number, "link_index", &s->link);
    case KILN_PB_VARINT(6u):
    case KILN_PB_BYTES(6u):
        return otlp_varints(d, f, (int64_t **)&d->times, &s->n_times, &d->cap_times);
    default:
        return 0;
    }
}

static int check_sample(struct otlp_decoder *d, const struct old_sample *s, uint32_t n_types)
{
    if (s->start > d->stack_pool.n || s->length > d->stack_pool.n - s->start)
        return kiln_err_set(d->err, KILN_E_RANGE, "locations_start_index",
                            "the slice is outside the %u location_indices", d->stack_pool.n);
    if (s->length > kiln_builder_limits(d->b)->stack_depth)
        return kiln_err_set(d->err, KILN_E_LIMIT, "locations_length", "the stack is too deep");
    if (s->n_values && s->n_values != n_types)
        return kiln_err_set(d->err, KILN_E_MALFORMED, "value", "%u values for %u sample types",
                            s->n_values, n_types);
    return 0;
}

/* Adds a sample to each of the profiles, which follow each other from `first` on. */
static void add_sample(struct otlp_decoder *d, const struct old_sample *s, uint32_t first,
                       const struct head *h)
{
    uint32_t stack = s->length == 0 ? 0
                                    : kiln_builder_stack(d->b, d->stack_pool.ids + s->start,
                                                         (uint32_t)s->length);
    uint32_t attrs = otlp_set_of(d, &d->attr_ids);

    for (uint32_t i = 0; i < h->n_types; i++) {
        uint32_t profile = first + place_of(h, i);
        int64_t value = s->n_values ? d->values[i] : (int64_t)s->n_times;

        if (s->n_times && value == (int64_t)s->n_times)
            kiln_builder_add_sample(d->b, profile, stack, attrs, s->link, NULL, d->times,
                                    s->n_times);
        else
            kiln_builder_add_sample(d->b, profile, stack, attrs, s->link, &value,
                                    s->n_times == 1 ? d->times : NULL, 1);
    }
}

static int read_sample(struct otlp_decoder *d, struct kiln_str bytes, uint32_t first,
                       const struct head *h)
{
    struct old_sample s = {0};
    struct kiln_pb r = kiln_pb_of(bytes);
    struct kiln_pb_field f;
    int n, e = 0;

    d->attr_ids.n = 0;
    while (e == 0 && (n = kiln_pb_next(&r, &f)) > 0)
        e = read_sample_field(d, f, &s);
    e = otlp_end(d, e, n);
    if (e == 0)
        e = check_sample(d, &s, h->n_types);
    if (e < 0)
        return e;
    add_sample(d, &s, first, h);
    return kiln_builder_error(d->b);
}

static int read_samples(struct otlp_decoder *d, struct kiln_str bytes, uint32_t first,
                        const struct head *h)
{
    struct kiln_pb r = kiln_pb_of(bytes);
    struct kiln_pb_field f;
    uint32_t i = 0;
    int e = 0;

    while (e == 0 && kiln_pb_next(&r, &f) > 0) {
        if (f.tag != KILN_PB_BYTES(2u))
            continue;
        e = read_sample(d, f.bytes, first, h);
        if (e < 0)
            kiln_err_within(d->err, "sample[%u]", i);
        i++;
    }
    return e;
}

int otlp_old_profile(struct otlp_decoder *d, struct kiln_str bytes)
{
    struct head h = {0};
    uint32_t first = kiln_builder_peek(d->b)->n_profiles;
    int r = d->revision == KILN_OTLP_1_4 ? read_tables(d, bytes, &in_profile) : 0;

    if (r == 0)
        r = read_head(d, bytes, &h);
    if (r < 0)
        return r;
    find_first_type(d, &h);
    for (uint32_t i = 0; i < h.n_types; i++) {
        h.profile.sample_type = h.types[place_of(&h, i)];
        kiln_builder_add_profile(d->b, &h.profile);
    }
    r = kiln_builder_error(d->b);
    return r < 0 ? r : read_samples(d, bytes, first, &h);
}
