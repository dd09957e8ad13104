/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples of a pprof: one row of the grid of profiles (core/builder.h) each.
 *
 *   Sample     1 location_id*  2 value*  3 label*        (numbers packed or not)
 *   ValueType  1 type  2 unit
 *
 * The default sample type comes first among the profiles: the one that is named, else, as pprof has
 * it, the last.  `order` says which sample type a profile was.
 */
#include "codec/pprof_int.h"

static int read_type(struct kiln_pprof_in *in, struct kiln_str message, struct kiln_value_type *ret)
{
    struct kiln_pb r = kiln_pb_of(message);
    struct kiln_value_type type = {0};
    struct kiln_pb_field f;
    int n, bad = 0;

    while (bad == 0 && (n = kiln_pb_next(&r, &f)) > 0) {
        if (f.tag == KILN_PB_VARINT(TYPE_TYPE))
            bad = kiln_pprof_string(in, f.number, "type", &type.type);
        else if (f.tag == KILN_PB_VARINT(TYPE_UNIT))
            bad = kiln_pprof_string(in, f.number, "unit", &type.unit);
    }
    if (bad == 0 && n < 0)
        bad = kiln_pprof_bad_wire(in, n);
    if (bad == 0)
        *ret = type;
    return bad;
}

static int read_listed_type(struct kiln_pprof_in *in, struct kiln_str message, uint32_t i)
{
    return read_type(in, message, &in->types[i]);
}

/* ---- profiles ---- */

/* Adds a text attribute for a string index that is not 0. */
static int add_text(struct kiln_pprof_in *in, uint64_t index, const char *field,
                    struct kiln_str key, uint32_t *attrs, uint32_t *n)
{
    uint32_t text;
    int r = kiln_pprof_string(in, index, field, &text);

    if (r == 0 && text)
        attrs[(*n)++] =
            kiln_builder_attr(in->b, kiln_builder_string(in->b, key), kiln_value_string(text), 0);
    return r;
}

static int add_comments(struct kiln_pprof_in *in, uint32_t *attrs, uint32_t *n)
{
    uint32_t n_comments = in->comments.n, i = 0, text;
    struct kiln_value *list;
    int r = 0;

    if (n_comments == 0)
        return 0;
    list = kiln_builder_scratch(in->b, n_comments * sizeof(*list));
    if (!list)
        return kiln_pprof_builder_failure(in);
    for (const struct offset_chunk *c = in->comments.first; c; c = c->next) {
        for (uint32_t k = 0; k < c->n; k++, i++) {
            r = kiln_pprof_string(in, c->offsets[k], NULL, &text);
            if (r < 0) {
                kiln_err_within(in->err, "comment[%u]", i);
                return r;
            }
            list[i] = kiln_value_string(text);
        }
    }
    attrs[(*n)++] = kiln_builder_attr(in->b, kiln_builder_string(in->b, ATTR_COMMENT),
                                      kiln_builder_array(in->b, list, n_comments), 0);
    return 0;
}

/* What all profiles have in common. */
static int read_head(struct kiln_pprof_in *in, struct kiln_profile *head)
{
    uint32_t attrs[4], n = 0;
    int r = 0;

    *head = (struct kiln_profile){
        .time_ns = in->time_ns > 0 ? (uint64_t)in->time_ns : 0,
        .duration_ns = in->duration_ns > 0 ? (uint64_t)in->duration_ns : 0,
        .period = in->period,
    };
    if (in->period_type.ptr) {
        r = read_type(in, in->period_type, &head->period_type);
        if (r < 0)
            kiln_err_within(in->err, "period_type");
    }
    if (r == 0)
        r = add_text(in, in->drop_frames, "drop_frames", ATTR_DROP_FRAMES, attrs, &n);
    if (r == 0)
        r = add_text(in, in->keep_frames, "keep_frames", ATTR_KEEP_FRAMES, attrs, &n);
    if (r == 0)
        r = add_text(in, in->doc_url, "doc_url", ATTR_DOC_URL, attrs, &n);
    if (r == 0)
        r = add_comments(in, attrs, &n);
    if (r == 0)
        head->attrs = kiln_builder_set(in->b, attrs, n, NULL);
    return r;
}

/* The place of the default sample type. */
static uint32_t default_type(const struct kiln_pprof_in *in, uint32_t n, uint32_t name)
{
    for (uint32_t i = 0; i < n && name; i++) {
        if (in->types[i].type == name)
            return i;
    }
    return n - 1;
}

static int add_scope(struct kiln_pprof_in *in, uint32_t n_types)
{
    struct kiln_value *order = kiln_builder_scratch(in->b, (n_types + 1) * sizeof(*order));
    uint32_t attrs[2], n = 0, name = 0;
    int r;

    if (!order)
        return kiln_pprof_builder_failure(in);
    r = add_text(in, in->default_type, "default_sample_type", ATTR_DEFAULT_TYPE, attrs, &n);
    if (r < 0)
        return r;
    if (n)
        name = in->strings[in->default_type];
    in->order[0] = 0;
    if (n_types > 1) {
        uint32_t first = default_type(in, n_types, name);

        in->order[0] = first;
        for (uint32_t i = 1; i < n_types; i++)
            in->order[i] = i - (i <= first);
        for (uint32_t i = 0; i < n_types; i++)
            order[i] = kiln_value_int(in->order[i]);
        attrs[n++] = kiln_builder_attr(in->b, kiln_builder_string(in->b, ATTR_TYPE_ORDER),
                                       kiln_builder_array(in->b, order, n_types), 0);
    }
    kiln_builder_add_resource(in->b, &(struct kiln_resource){0});
    kiln_builder_add_scope(in->b,
                           &(struct kiln_scope){.attrs = kiln_builder_set(in->b, attrs, n, NULL)});
    return kiln_pprof_builder_failure(in);
}

/* ---- samples ---- */

static int bad_location(struct kiln_pprof_in *in, uint32_t n, uint64_t id)
{
    kiln_pprof_fail(in, KILN_E_RANGE, NULL, "no location has id %llu", (unsigned long long)id);
    kiln_err_within(in->err, "location_id[%u]", n);
    return KILN_E_RANGE;
}

static int too_deep(struct kiln_pprof_in *in)
{
    return kiln_pprof_fail(in, KILN_E_LIMIT, "location_id", "more than %u locations",
                           kiln_builder_limits(in->b)->stack_depth);
}

static int add_location(struct kiln_pprof_in *in, uint64_t id, uint32_t *n)
{
    uint32_t location = kiln_pprof_id(&in->locations, id);

    if (KILN_UNLIKELY(location == NO_INDEX))
        return bad_location(in, *n, id);
    if (KILN_UNLIKELY(*n == in->stack_cap))
        return too_deep(in);
    in->stack[(*n)++] = location;
    return 0;
}

#define BLOCK 64 /* bytes of ids whose ends are found at once */

/* Which of the first `n` of BLOCK bytes have no high bit, and so end a number: one bit a byte. */
static inline uint64_t find_ends(const uint8_t *at, size_t n)
{
    uint64_t ends = 0, word;

    for (size_t i = 0; i < n; i += sizeof(word)) {
        memcpy(&word, at + i, sizeof(word));
        ends |= ((~word & 0x8080808080808080u) >> 7) * 0x0102040810204080u >> 56 << i;
    }
    return n < BLOCK ? ends & (((uint64_t)1 << n) - 1) : ends;
}

/*
 * Reads ids into `out`, which has room for one a byte.  Where the numbers end is found out for a
 * whole block at once, so that none has to wait for the one before it; the block may reach past the
 * ids, up to `limit`.  Stops at the first id that is not in the array or has more than 3 bytes, and
 * where less than a block is left.  Returns how many it read.  With `same`, every id up to the
 * number of locations is its own index.
 */
static inline __attribute__((always_inline)) uint32_t read_dense_ids(const struct id_map *map,
                                                                     struct kiln_pb *r,
                                                                     const uint8_t *limit,
                                                                     uint32_t *out, bool same)
{
    const uint32_t *dense = map->dense;
    uint32_t *to = out;
    uint32_t n_dense = map->n;

    while (r->at < r->end && limit - r->at >= BLOCK + (ptrdiff_t)sizeof(uint32_t)) {
        size_t left = (size_t)(r->end - r->at);
        uint64_t ends = find_ends(r->at, left < BLOCK ? left : BLOCK);
        unsigned from = 0;

        for (; ends; ends &= ends - 1) {
            unsigned last = (unsigned)__builtin_ctzll(ends), more = last - from;
            uint32_t x, id;

            if (KILN_UNLIKELY(more > 2))
                break;
            memcpy(&x, r->at + from, sizeof(x));
            x &= 0xffffffu >> (16 - 8 * more); /* its own bytes */
            id = (x & 0x7f) | (x >> 1 & 0x3f80) | (x >> 2 & 0x1fc000);
            if (KILN_UNLIKELY(same ? id - 1 >= n_dense : id > n_dense || dense[id] == NO_INDEX))
                break;
            *to++ = same ? id : dense[id];
            from = last + 1;
        }
        r->at += from;
        if (KILN_UNLIKELY(ends || from == 0))
            break;
    }
    return (uint32_t)(to - out);
}

/* The same, without a look-up where every id is its own index. */
static uint32_t read_ids(struct kiln_pprof_in *in, struct kiln_pb *r, uint32_t *out)
{
    const struct id_map *map = &in->locations;
    const uint8_t *limit = (const uint8_t *)in->raw.ptr + in->raw.len;

    return map->n_same == map->n ? read_dense_ids(map, r, limit, out, true)
                                 : read_dense_ids(map, r, limit, out, false);
}

static int add_locations(struct kiln_pprof_in *in, struct kiln_str packed, uint32_t *n)
{
    struct kiln_pb r = kiln_pb_of(packed);
    uint64_t id;
    int more, bad = 0;

    do {
        if ((size_t)(r.end - r.at) <= in->stack_cap - *n)
            *n += read_ids(in, &r, in->stack + *n);
        more = kiln_pb_varint(&r, &id);
        if (more > 0)
            bad = add_location(in, id, n);
    } while (bad == 0 && more > 0);
    if (bad == 0 && more < 0)
        bad = kiln_pprof_bad_wire(in, more);
    return bad;
}

static int add_value(struct kiln_pprof_in *in, uint64_t value, uint32_t *n)
{
    if (KILN_LIKELY(*n < in->grid.n_profiles))
        in->values[*n] = (int64_t)value;
    ++*n;
    return 0;
}

static int add_values(struct kiln_pprof_in *in, struct kiln_str packed, uint32_t *n)
{
    struct kiln_pb r = kiln_pb_of(packed);
    uint64_t value;
    int more, bad = 0;

    while (bad == 0 && (more = kiln_pb_varint(&r, &value)) > 0)
        bad = add_value(in, value, n);
    if (bad == 0 && more < 0)
        bad = kiln_pprof_bad_wire(in, more);
    return bad;
}

/* Puts a complete sample into its row. */
static int finish_sample(struct kiln_pprof_in *in, uint32_t i, uint32_t depth, uint32_t n_values,
                         struct kiln_str labels)
{
    uint32_t set = 0;
    int r = 0;

    if (KILN_UNLIKELY(n_values != in->grid.n_profiles))
        return kiln_pprof_fail(in, KILN_E_MALFORMED, "value", "%u values for %u sample types",
                               n_values, in->grid.n_profiles);
    if (labels.len)
        r = kiln_pprof_labels(in, labels, &set);
    if (KILN_UNLIKELY(r < 0))
        return r;
    for (uint32_t p = 0; p < n_values; p++)
        in->row[p] = in->values[in->order[p]];
    kiln_builder_set_row(in->b, &in->grid, i, kiln_builder_stack_take(in->b, depth), set, in->row);
    return 0;
}

static int read_sample(struct kiln_pprof_in *in, struct kiln_str message, uint32_t i)
{
    struct kiln_pb r = kiln_pb_of(message);
    const uint8_t *at = r.at, *labels_from = NULL, *labels_to = NULL;
    uint32_t depth = 0, n_values = 0;
    struct kiln_pb_field f;
    int n, bad = 0;

    in->stack = kiln_builder_stack_room(in->b, in->stack_cap);
    if (!in->stack)
        return kiln_pprof_builder_failure(in);
    for (; bad == 0 && (n = kiln_pb_next(&r, &f)) > 0; at = r.at) {
        switch (f.tag) {
        case KILN_PB_BYTES(SAMPLE_LOCATION_ID):
            bad = add_locations(in, f.bytes, &depth);
            break;
        case KILN_PB_VARINT(SAMPLE_LOCATION_ID):
            bad = add_location(in, f.number, &depth);
            break;
        case KILN_PB_BYTES(SAMPLE_VALUE):
            bad = add_values(in, f.bytes, &n_values);
            break;
        case KILN_PB_VARINT(SAMPLE_VALUE):
            bad = add_value(in, f.number, &n_values);
            break;
        case KILN_PB_BYTES(SAMPLE_LABEL):
            labels_from = labels_from ? labels_from : at;
            labels_to = r.at;
            break;
        default:
            break;
        }
    }
    if (bad < 0)
        return bad;
    if (n < 0)
        return kiln_pprof_bad_wire(in, n);
    return finish_sample(
        in, i, depth, n_values,
        (struct kiln_str){(const char *)labels_from, (size_t)(labels_to - labels_from)});
}

/* Room for the samples, and for the parts of one. */
static int prepare(struct kiln_pprof_in *in, uint32_t n_types, uint32_t n_samples)
{
    uint32_t depth_max = kiln_builder_limits(in->b)->stack_depth;
    struct kiln_counts counts = {.stacks = n_samples / 2};
    int r;

    /* Each value is a byte at least: more than that is not worth the memory it asks for. */
    if ((uint64_t)n_types * n_samples > in->sample_bytes)
        return kiln_pprof_fail(in, KILN_E_MALFORMED, "sample",
                               "%u samples are too short for %u sample types", n_samples, n_types);
    in->stack_cap = in->sample_bytes_max < depth_max ? (uint32_t)in->sample_bytes_max : depth_max;
    in->values = kiln_builder_scratch(in->b, n_types * sizeof(*in->values));
    in->row = kiln_builder_scratch(in->b, n_types * sizeof(*in->row));
    counts.frames = in->sample_bytes / 8 + in->stack_cap;
    kiln_builder_drop_indexes(in->b);
    kiln_builder_expect(in->b, &counts);
    if (!in->values || !in->row)
        return kiln_pprof_builder_failure(in);
    r = kiln_builder_open_grid(in->b, n_types, n_samples, &in->grid);
    return r < 0 ? kiln_pprof_builder_failure(in) : 0;
}

int kiln_pprof_read_profiles(struct kiln_pprof_in *in)
{
    uint32_t n_types = in->lists[PROFILE_SAMPLE_TYPE].n, n_samples = in->lists[PROFILE_SAMPLE].n;
    struct kiln_profile head;
    int r;

    if (n_types == 0 && n_samples > 0)
        return kiln_pprof_fail(in, KILN_E_MALFORMED, "sample_type", "there is none");
    in->types = kiln_builder_scratch(in->b, n_types * sizeof(*in->types));
    in->order = kiln_builder_scratch(in->b, ((size_t)n_types + 1) * sizeof(*in->order));
    if (!in->types || !in->order)
        return kiln_pprof_builder_failure(in);
    r = kiln_pprof_each(in, PROFILE_SAMPLE_TYPE, "sample_type", read_listed_type);
    if (r == 0)
        r = read_head(in, &head);
    if (r == 0)
        r = add_scope(in, n_types);
    for (uint32_t i = 0; r == 0 && i < n_types; i++) {
        head.sample_type = in->types[in->order[i]];
        kiln_builder_add_profile(in->b, &head);
    }
    if (r == 0)
        r = prepare(in, n_types, n_samples);
    if (r == 0)
        r = kiln_pprof_each(in, PROFILE_SAMPLE, "sample", read_sample);
    return r;
}
