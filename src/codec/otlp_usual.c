/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What there is most of, as senders write it, read straight through: functions, locations, stacks
 * and samples.
 *
 * An entry is usual if its lengths and tags are short, it has known fields only, and at least SLACK
 * bytes of its table follow it.  Then its numbers are read with wide loads and no look at the
 * end: a number that would run past the entry is noticed afterwards, since the entry then does not
 * end where its length says.  Whatever is not usual, bad input first of all, is left to
 * otlp_dict.c and otlp_profile.c, which know every shape and name what is wrong.
 */
#include "codec/otlp_int.h"
#include "core/bulk.h"

#define SLACK     48 /* what four fields may take: a tag and the ten bytes of a varint each */
#define ENTRY_MAX (2 + 127)

/*
 * The usual entry at `at`: its first byte, and *ret_stop its end.  NULL if it is not usual.  Empty
 * entries are not: the zero value is there already.
 */
KILN_INLINE const uint8_t *usual_entry(const uint8_t *at, const uint8_t *end, uint32_t tag,
                                       const uint8_t **ret_stop)
{
    if (KILN_UNLIKELY(end - at < ENTRY_MAX + SLACK) &&
        (end - at < 2 + SLACK || end - at - 2 - at[1] < SLACK))
        return NULL;
    if (KILN_UNLIKELY(at[0] != tag || at[1] - 1u > 0x7e))
        return NULL;
    *ret_stop = at + 2 + at[1];
    return at + 2;
}

/*
 * The number of a field, if `p` is at that field, and what comes after it.  Entries are read by a
 * row of these; the caller looks once, at the end of the row, whether it came to the `stop` of the
 * entry.  One that went past it stays past it.
 */
KILN_INLINE const uint8_t *usual_number(const uint8_t *p, const uint8_t *stop, uint32_t field,
                                        uint64_t *ret)
{
    if (*p != KILN_PB_VARINT(field))
        return p;
    p = kiln_pb_varint_near(p + 1, ret);
    return KILN_LIKELY(p != NULL) ? p : stop + 1;
}

/* Takes an entry of a table that is not new: what it has become is in no order. */
KILN_INLINE void note(struct otlp_map *map, uint32_t entry)
{
    map->to[map->n++] = entry;
}

KILN_INLINE const uint8_t *usual_functions(struct otlp_decoder *d, const uint8_t *at,
                                           const uint8_t *end, bool bulk)
{
    const struct otlp_map strings = d->maps[OTLP_STRINGS];
    struct otlp_map *map = &d->maps[OTLP_FUNCTIONS];
    const uint8_t *p, *stop;

    while ((p = usual_entry(at, end, KILN_PB_BYTES(OTLP_FUNCTIONS), &stop))) {
        uint64_t name = 0, system_name = 0, filename = 0, start_line = 0;
        struct kiln_function function = {0};

        if (*p == KILN_PB_VARINT(1u)) { /* ascending */
            p = usual_number(p, stop, 1, &name);
            p = usual_number(p, stop, 2, &system_name);
            p = usual_number(p, stop, 3, &filename);
            p = usual_number(p, stop, 4, &start_line);
        } else {
            p = usual_number(p, stop, 4, &start_line);
            p = usual_number(p, stop, 3, &filename);
            p = usual_number(p, stop, 2, &system_name);
            p = usual_number(p, stop, 1, &name);
        }
        if (p != stop || !otlp_map_get(&strings, name, &function.name) ||
            !otlp_map_get(&strings, system_name, &function.system_name) ||
            !otlp_map_get(&strings, filename, &function.filename))
            return at;
        function.start_line = (int64_t)start_line;
        if (!bulk)
            note(map, kiln_builder_function(d->b, &function));
        else if (kiln_builder_new_function(d->b, &function))
            map->n++;
        else
            return at;
        at = stop;
    }
    return at;
}

const uint8_t *otlp_usual_functions(struct otlp_decoder *d, const uint8_t *at, const uint8_t *end)
{
    return d->bulk ? usual_functions(d, at, end, true) : usual_functions(d, at, end, false);
}

/* What a location needs, out of the decoder: in registers, where no store can touch it. */
struct location_maps {
    struct otlp_map mappings, functions, attrs;
    const uint32_t *set_of_attr;
    uint32_t n_set_of_attr;
};

/* The lines at `p`, if it is at any.  Out of line: most locations of native code have none. */
static __attribute__((noinline)) const uint8_t *usual_lines(struct kiln_builder *b,
                                                            const struct otlp_map *functions,
                                                            const uint8_t *p, const uint8_t *stop,
                                                            uint32_t *ret_n)
{
    while (p < stop && *p == KILN_PB_BYTES(3u)) {
        struct kiln_line *line = kiln_builder_lines(b, *ret_n + 1);
        uint64_t function = 0, number = 0, column = 0;
        const uint8_t *inner = p + 2, *inner_stop = inner + p[1];
        uint32_t index;

        if (!line || p[1] >= 0x80 || inner_stop > stop)
            return stop + 1;
        if (*inner == KILN_PB_VARINT(1u)) { /* ascending */
            inner = usual_number(inner, inner_stop, 1, &function);
            inner = usual_number(inner, inner_stop, 2, &number);
            inner = usual_number(inner, inner_stop, 3, &column);
        } else {
            inner = usual_number(inner, inner_stop, 3, &column);
            inner = usual_number(inner, inner_stop, 2, &number);
            inner = usual_number(inner, inner_stop, 1, &function);
        }
        if (inner != inner_stop || !otlp_map_get(functions, function, &index))
            return stop + 1;
        line[(*ret_n)++] = (struct kiln_line){
            .function = index, .line = (int64_t)number, .column = (int64_t)column};
        p = inner_stop;
    }
    return p;
}

/*
 * The set of the attribute at `p`, if it is at one: usual locations have one, seen before.  The
 * tag, a length of 1 and an index below 128 are looked at together.
 */
KILN_INLINE const uint8_t *usual_set(const struct location_maps *maps, const uint8_t *p,
                                     uint32_t *ret)
{
    uint32_t bytes, attr;

    memcpy(&bytes, p, sizeof(bytes));
    if ((bytes & 0x80ffff) != (KILN_PB_BYTES(4u) | 1 << 8) ||
        !otlp_map_get(&maps->attrs, bytes >> 16 & 0xff, &attr) || attr >= maps->n_set_of_attr ||
        maps->set_of_attr[attr] == 0)
        return p;
    *ret = maps->set_of_attr[attr] - 1;
    return p + 3;
}

/* One location, written to `ret`, its lines behind those of the builder.  False if not usual. */
KILN_INLINE bool usual_location(struct kiln_builder *b, const struct location_maps *maps,
                                const uint8_t *p, const uint8_t *stop, struct kiln_location *ret)
{
    uint64_t mapping = 0, address = 0;
    uint32_t set = 0, n_lines = 0, index;

    if (*p != KILN_PB_BYTES(4u)) { /* ascending */
        p = usual_number(p, stop, 1, &mapping);
        p = usual_number(p, stop, 2, &address);
        if (*p == KILN_PB_BYTES(3u))
            p = usual_lines(b, &maps->functions, p, stop, &n_lines);
        p = usual_set(maps, p, &set);
    } else {
        p = usual_set(maps, p, &set);
        if (*p == KILN_PB_BYTES(3u))
            p = usual_lines(b, &maps->functions, p, stop, &n_lines);
        p = usual_number(p, stop, 2, &address);
        p = usual_number(p, stop, 1, &mapping);
    }
    if (p != stop || !otlp_map_get(&maps->mappings, mapping, &index))
        return false;
    *ret = (struct kiln_location){.address = address, .mapping = index, .attrs = set, .n = n_lines};
    return true;
}

static struct location_maps location_maps(const struct otlp_decoder *d)
{
    return (struct location_maps){
        .mappings = d->maps[OTLP_MAPPINGS],
        .functions = d->maps[OTLP_FUNCTIONS],
        .attrs = d->maps[OTLP_ATTRS],
        .set_of_attr = d->set_of_attr,
        .n_set_of_attr = d->n_set_of_attr,
    };
}

/* Through the ordinary door of the builder: most of them it has already. */
static const uint8_t *known_locations(struct otlp_decoder *d, const uint8_t *at, const uint8_t *end)
{
    const struct location_maps maps = location_maps(d);
    struct kiln_builder *b = d->b;
    const struct kiln_dict *dict = &kiln_builder_peek(b)->dict;
    struct otlp_map *map = &d->maps[OTLP_LOCATIONS];
    uint32_t *to = map->to + map->n;
    struct kiln_location location;
    const uint8_t *p, *stop;

    while ((p = usual_entry(at, end, KILN_PB_BYTES(OTLP_LOCATIONS), &stop)) &&
           usual_location(b, &maps, p, stop, &location)) {
        *to++ = kiln_builder_next_location(b, &location, dict->lines + dict->n_lines);
        at = stop;
    }
    map->n = (uint32_t)(to - map->to);
    return at;
}

static const uint8_t *new_locations(struct otlp_decoder *d, const uint8_t *at, const uint8_t *end)
{
    const struct location_maps maps = location_maps(d);
    struct kiln_builder *b = d->b;
    uint32_t room, n = 0;
    struct kiln_location *locations = kiln_builder_locations(b, &room);
    const uint8_t *p, *stop;

    while (n < room && (p = usual_entry(at, end, KILN_PB_BYTES(OTLP_LOCATIONS), &stop)) &&
           usual_location(b, &maps, p, stop, &locations[n])) {
        locations[n].first = kiln_builder_take_lines(b, locations[n].n);
        at = stop;
        n++;
    }
    kiln_builder_take_locations(b, n);
    d->maps[OTLP_LOCATIONS].n += n;
    return at;
}

const uint8_t *otlp_usual_locations(struct otlp_decoder *d, const uint8_t *at, const uint8_t *end)
{
    return d->bulk ? new_locations(d, at, end) : known_locations(d, at, end);
}

/* A tag and a length of one or two bytes, whose contents fit.  NULL if it is anything else. */
KILN_INLINE const uint8_t *short_bytes(const uint8_t *p, const uint8_t *end, uint32_t tag,
                                       const uint8_t **ret_stop)
{
    uint32_t len;

    if (end - p < SLACK || p[0] != tag)
        return NULL;
    len = p[1];
    p += 2;
    if (len >= 0x80) {
        if (*p >= 0x80)
            return NULL;
        len = (len & 0x7f) | (uint32_t)*p++ << 7;
    }
    if (len > end - p)
        return NULL;
    *ret_stop = p + len;
    return p;
}

/*
 * The entries that a packed field of indexes means; ten bytes may be read behind it.  Returns how
 * many there are, 0 if one is not usual.
 */
KILN_INLINE uint32_t usual_indexes(const uint8_t *p, const uint8_t *stop, uint32_t *ret,
                                   const struct otlp_map *map, bool mapped)
{
    uint32_t n = 0;

    while (p < stop) {
        uint64_t index = p[0];

        if (index < 0x80) {
            p++;
        } else if (p[1] < 0x80) {
            index = (index & 0x7f) | (uint32_t)p[1] << 7;
            p += 2;
        } else {
            p = kiln_pb_varint_near(p, &index);
        }
        if (KILN_UNLIKELY(index >= map->n || !p))
            return 0;
        ret[n++] = mapped ? map->to[index] : (uint32_t)index;
    }
    return p == stop ? n : 0;
}

/* Room for the indexes of a packed field: by its length if there is plenty, else counted. */
static uint32_t *room_for_frames(struct otlp_decoder *d, const uint8_t *p, const uint8_t *stop)
{
    struct kiln_str packed = {(const char *)p, (size_t)(stop - p)};
    size_t most = packed.len;

    if (most > kiln_builder_limits(d->b)->stack_depth)
        return NULL;
    if (most > kiln_builder_frames_left(d->b))
        most = kiln_pb_count_varints(packed);
    return kiln_builder_frames(d->b, (uint32_t)most);
}

const uint8_t *otlp_usual_stacks(struct otlp_decoder *d, const uint8_t *at, const uint8_t *end)
{
    const struct otlp_map locations = d->maps[OTLP_LOCATIONS];
    struct otlp_map *map = &d->maps[OTLP_STACKS];
    const uint8_t *p, *stop, *inner_stop;

    while ((p = short_bytes(at, end, KILN_PB_BYTES(OTLP_STACKS), &stop))) {
        uint32_t n_frames;
        uint32_t *frames;

        p = end - stop < SLACK ? NULL
                               : short_bytes(p, stop + SLACK, KILN_PB_BYTES(1u), &inner_stop);
        if (!p || inner_stop != stop)
            return at;
        frames = room_for_frames(d, p, stop);
        if (!frames)
            return at;
        n_frames = locations.to ? usual_indexes(p, stop, frames, &locations, true)
                                : usual_indexes(p, stop, frames, &locations, false);
        if (n_frames == 0)
            return at;
        if (!d->bulk)
            note(map, kiln_builder_stack_take(d->b, n_frames));
        else if (kiln_builder_new_stack(d->b, n_frames))
            map->n++;
        else
            return at;
        at = stop;
    }
    return at;
}

/* The value at `p`, a text or a number that ends at `stop`; false if it is anything else. */
KILN_INLINE bool usual_value(struct otlp_decoder *d, const uint8_t *p, const uint8_t *stop,
                             struct kiln_value *ret)
{
    uint64_t number;

    if (p[0] == KILN_PB_VARINT(3u)) {
        if (usual_number(p, stop, 3, &number) != stop)
            return false;
        *ret = kiln_value_int((int64_t)number);
    } else {
        struct kiln_str text = {(const char *)p + 2, p[1]};

        if (p[0] != KILN_PB_BYTES(1u) || p + 2 + p[1] != stop || !otlp_is_text(d, text))
            return false;
        *ret = kiln_value_string(otlp_bytes(d, text));
    }
    return true;
}

/* A key and a value, without a unit.  Of what is new, as in bulk, each is looked for anyway. */
const uint8_t *otlp_usual_attrs(struct otlp_decoder *d, const uint8_t *at, const uint8_t *end)
{
    const struct otlp_map strings = d->maps[OTLP_STRINGS];
    struct otlp_map *map = &d->maps[OTLP_ATTRS];
    const uint8_t *p, *stop;

    while (!d->bulk && (p = usual_entry(at, end, KILN_PB_BYTES(OTLP_ATTRS), &stop))) {
        struct kiln_value value;
        uint64_t wire = 0;
        uint32_t key;

        p = usual_number(p, stop, 1, &wire);
        if (stop - p < 3 || p[0] != KILN_PB_BYTES(2u) || p + 2 + p[1] != stop ||
            !otlp_map_get(&strings, wire, &key) || !usual_value(d, p + 2, stop, &value))
            return at;
        note(map, kiln_builder_attr(d->b, key, value, 0));
        at = stop;
    }
    return at;
}

/* ---- samples ---- */

/*
 * The set of a packed field of at most seven bytes, which most samples share with others: the bytes
 * themselves are the key.  Returns the byte after the field, or NULL.
 */
KILN_INLINE const uint8_t *usual_sample_set(struct otlp_decoder *d, const uint8_t *p,
                                            const uint8_t *stop, uint32_t *ret)
{
    uint32_t len = p[1];
    struct otlp_known_set *known;
    uint64_t key;

    p += 2;
    if (len - 1 > 6 || stop - p < len)
        return NULL;
    memcpy(&key, p, 8);
    key = (key & (((uint64_t)1 << len * 8) - 1)) | (uint64_t)len << 56;
    known = &d->known_sets[key * 0x9e3779b97f4a7c15u >> 58];
    if (KILN_UNLIKELY(known->key != key)) {
        if (!otlp_try_set(d, (struct kiln_str){(const char *)p, len}, &known->set))
            return NULL;
        known->key = key;
    }
    *ret = known->set;
    return p + len;
}

/* What was observed of a sample: two packed fields, either of which may be absent (NULL). */
struct observed {
    const uint8_t *values, *values_stop, *times, *times_stop;
};

/* Adds the sample, whose indexes are good.  False if its observations are not usual. */
KILN_INLINE bool add_usual_sample(struct otlp_decoder *d, uint32_t profile,
                                  struct kiln_sample sample, struct observed o)
{
    struct kiln_str packed = {(const char *)o.values, (size_t)(o.values_stop - o.values)};
    size_t n_values = o.values ? kiln_pb_count_varints(packed) : 0;
    size_t times_size = (size_t)(o.times_stop - o.times), n_times = times_size / sizeof(uint64_t);
    int64_t *at = kiln_builder_observations(d->b, n_values + n_times);

    if (!at || n_values + n_times == 0 || times_size % sizeof(uint64_t) ||
        (n_values && n_times && n_values != n_times))
        return false;
    while (o.values < o.values_stop) {
        uint64_t value;

        o.values = kiln_pb_varint_near(o.values, &value);
        if (!o.values || o.values > o.values_stop)
            return false;
        *at++ = (int64_t)value;
    }
    if (n_times)
        memcpy(at, o.times, times_size);
    sample.n = (n_values ? n_values : n_times) & 0x3fffffffu;
    sample.has_values = n_values != 0;
    sample.has_times = n_times != 0;
    return kiln_builder_new_sample(d->b, profile, sample);
}

/* The numbers are those of 1.10: see otlp_profile.c. */
KILN_INLINE bool usual_sample(struct otlp_decoder *d, const uint8_t *p, const uint8_t *stop,
                              uint32_t profile)
{
    struct observed o = {0};
    uint64_t stack = 0, link = 0;
    struct kiln_sample sample = {0};
    uint32_t set = 0, index;

    while (p && p < stop) {
        uint32_t tag = *p;

        if (tag == KILN_PB_VARINT(1u)) {
            p = kiln_pb_varint_near(p + 1, &stack);
        } else if (tag == KILN_PB_BYTES(2u) && set == 0) {
            p = usual_sample_set(d, p, stop, &set);
        } else if (tag == KILN_PB_VARINT(3u)) {
            p = kiln_pb_varint_near(p + 1, &link);
        } else if (tag == KILN_PB_BYTES(4u) && !o.values) {
            o.values = short_bytes(p, stop + SLACK, tag, &o.values_stop);
            p = o.values ? o.values_stop : NULL;
        } else if (tag == KILN_PB_BYTES(5u) && !o.times) {
            o.times = short_bytes(p, stop + SLACK, tag, &o.times_stop);
            p = o.times ? o.times_stop : NULL;
        } else {
            return false;
        }
    }
    if (p != stop || !otlp_map_get(&d->maps[OTLP_STACKS], stack, &index))
        return false;
    sample.stack = index;
    if (!otlp_map_get(&d->maps[OTLP_LINKS], link, &index))
        return false;
    sample.link = index;
    sample.attrs = set;
    return add_usual_sample(d, profile, sample, o);
}

const uint8_t *otlp_usual_samples(struct otlp_decoder *d, const uint8_t *at, const uint8_t *end,
                                  uint32_t profile, uint32_t *n)
{
    const uint8_t *readable = d->message_end; /* what follows the samples may be less than SLACK */
    const uint8_t *p, *stop;

    if (d->revision < KILN_OTLP_1_10)
        return at;
    while ((p = short_bytes(at, readable, KILN_PB_BYTES(2u), &stop))) {
        if (stop > end || readable - stop < SLACK || !usual_sample(d, p, stop, profile))
            return at;
        at = stop;
        ++*n;
    }
    return at;
}
