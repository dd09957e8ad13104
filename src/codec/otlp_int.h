/* SPDX-License-Identifier: Apache-2.0 */
/*
 * otlp_int - what the files of the OTLP decoder share.
 *
 * Threads: a decoder belongs to one call.
 */
#ifndef KILN_CODEC_OTLP_INT_H
#define KILN_CODEC_OTLP_INT_H

#include "base/mem.h"
#include "codec/otlp.h"
#include "codec/pb.h"

/* Field numbers of ProfilesDictionary: the tables. */
enum otlp_table {
    OTLP_MAPPINGS = 1,
    OTLP_LOCATIONS,
    OTLP_FUNCTIONS,
    OTLP_LINKS,
    OTLP_STRINGS,
    OTLP_ATTRS,
    OTLP_STACKS,
    OTLP_TABLES /* one past the last */
};

/*
 * Wire index -> builder index, for one table of one message.  Mostly the two are the same, and then
 * `to` is NULL.
 */
struct otlp_map {
    uint32_t *to;
    uint32_t n;
};

/* Where the entries of one table lie in a message: from `from` to `to`, perhaps among others. */
struct otlp_extent {
    uint32_t tag; /* of an entry */
    const uint8_t *from, *to;
    uint64_t n;
    uint64_t bytes;
};

/* A set of attributes that samples named before, under the bytes that named it. */
struct otlp_known_set {
    uint64_t key; /* up to seven bytes, and their number; 0: none yet */
    uint32_t set;
};
#define OTLP_KNOWN_SETS 64u

/*
 * Bytes that resources and scopes repeat (keys, names, whole attributes) and what they became: a
 * look here is cheaper than to check, hash and find them again.
 */
struct otlp_known_bytes {
    struct kiln_str bytes; /* of the message; empty: none yet */
    uint32_t index;
};
#define OTLP_KNOWN_BYTES 32u

/* A growable list of indexes, reused from record to record. */
struct otlp_ids {
    uint32_t *ids;
    uint32_t n, cap;
};

struct otlp_decoder {
    struct kiln_builder *b;
    struct kiln_err *err;
    struct kiln_otlp_info *info;
    bool drop_bad_profiles, copies, vouched;
    uint32_t of;                          /* messages that come into the builder */
    uint64_t n_resources, resource_bytes; /* of the message at hand */
    bool bulk; /* functions, locations and stacks are taken for distinct, and checked later */
    enum kiln_otlp_revision revision;
    const uint8_t *message_end;
    struct otlp_map maps[OTLP_TABLES];
    uint32_t *set_of_attr; /* attribute -> 1 + the set of it alone, 0 while unknown */
    uint32_t n_set_of_attr, cap_set_of_attr;
    struct otlp_known_set known_sets[OTLP_KNOWN_SETS];
    struct otlp_known_bytes known_texts[OTLP_KNOWN_BYTES];
    struct otlp_known_bytes known_pairs[OTLP_KNOWN_BYTES];
    struct kiln_budget budget; /* of the scratch lists below */
    struct otlp_ids ids;
    struct otlp_ids attr_ids;
    struct kiln_line *lines;
    uint32_t cap_lines;
    int64_t *values;
    uint32_t cap_values;
    uint64_t *times;
    uint32_t cap_times;
    uint32_t *unit_of; /* up to 1.7: string -> the unit of attributes with that key */
    uint32_t n_unit_of;
    struct otlp_ids stack_pool; /* up to 1.7: the locations that samples name slices of */
};

/* The builder's index for a wire index; false if it is outside.  Index 0 of an absent table is 0.
 */
KILN_INLINE bool otlp_map_get(const struct otlp_map *map, uint64_t wire, uint32_t *ret)
{
    if (KILN_LIKELY(wire < map->n)) {
        *ret = map->to ? map->to[wire] : (uint32_t)wire;
        return true;
    }
    *ret = 0;
    return wire == 0;
}

/* Errors that name the field. */
int otlp_bad_wire(struct kiln_err *err, int code);
int otlp_bad_index(struct kiln_err *err, const char *field, uint64_t index, uint32_t n);

/* How a message came to its end: a field of it was bad (e), the bytes were (n), or all is well. */
static inline int otlp_end(const struct otlp_decoder *d, int e, int n)
{
    return e < 0 || n >= 0 ? e : otlp_bad_wire(d->err, n);
}

/* Where bytes are kept in a table of OTLP_KNOWN_BYTES: by their length and their ends. */
KILN_INLINE struct otlp_known_bytes *otlp_known(struct otlp_known_bytes *table,
                                                struct kiln_str bytes)
{
    uint64_t first, last;

    if (bytes.len < 8)
        return &table[bytes.len];
    memcpy(&first, bytes.ptr, 8);
    memcpy(&last, bytes.ptr + bytes.len - 8, 8);
    return &table[((first ^ last << 1) + bytes.len) * 0x9e3779b97f4a7c15u >> 59];
}

/* Bytes of the input as a string of the builder; and as they are, for as long as the batch lives.
 */
static inline uint32_t otlp_bytes(struct otlp_decoder *d, struct kiln_str bytes)
{
    return d->copies ? kiln_builder_string(d->b, bytes) : kiln_builder_string_ref(d->b, bytes);
}
/* Whether it is a text; of a vouched message it is. */
static inline bool otlp_is_text(const struct otlp_decoder *d, struct kiln_str bytes)
{
    return d->vouched || kiln_utf8_valid(bytes);
}
struct kiln_str otlp_kept(struct otlp_decoder *d, struct kiln_str bytes);

/* A text of the input as a string of the builder; checks UTF-8. */
KILN_CHECK int otlp_string(struct otlp_decoder *d, struct kiln_str text, const char *field,
                           uint32_t *ret);

/* A reference into a table. */
KILN_INLINE KILN_CHECK int otlp_ref(struct otlp_decoder *d, enum otlp_table table, uint64_t wire,
                                    const char *field, uint32_t *ret)
{
    if (KILN_LIKELY(otlp_map_get(&d->maps[table], wire, ret)))
        return 0;
    return otlp_bad_index(d->err, field, wire, d->maps[table].n);
}

/* Appends the indexes of a packed (or one unpacked) field to `list`. */
KILN_CHECK int otlp_refs_packed(struct otlp_decoder *d, enum otlp_table table,
                                struct kiln_str packed, const char *field, struct otlp_ids *list);
KILN_CHECK int otlp_refs_one(struct otlp_decoder *d, enum otlp_table table, uint64_t wire,
                             const char *field, struct otlp_ids *list);

/* The field by value: it stays in registers. */
KILN_INLINE KILN_CHECK int otlp_refs(struct otlp_decoder *d, enum otlp_table table,
                                     struct kiln_pb_field f, const char *field,
                                     struct otlp_ids *list)
{
    /* One small index, as locations and mappings have it. */
    if (KILN_LIKELY((f.tag & 7) == 2 && f.bytes.len == 1 && list->n < list->cap &&
                    (uint8_t)f.bytes.ptr[0] < 0x80 &&
                    otlp_map_get(&d->maps[table], (uint8_t)f.bytes.ptr[0], &list->ids[list->n]))) {
        list->n++;
        return 0;
    }
    return (f.tag & 7) == 2 ? otlp_refs_packed(d, table, f.bytes, field, list)
                            : otlp_refs_one(d, table, f.number, field, list);
}

KILN_CHECK int otlp_ids_add(struct otlp_decoder *d, struct otlp_ids *list, uint32_t id);

/* The set of the attributes at the wire indexes of a packed field collected in d->attr_ids. */
uint32_t otlp_set_of(struct otlp_decoder *d, const struct otlp_ids *attrs);

/* The set of a packed field, if its indexes are good; says nothing if they are not. */
bool otlp_try_set(struct otlp_decoder *d, struct kiln_str packed, uint32_t *ret);

/* otlp_value.c: AnyValue; KeyValue, appended to `list` as attributes of the builder. */
KILN_CHECK int otlp_value(struct otlp_decoder *d, struct kiln_str bytes, uint32_t depth,
                          struct kiln_value *ret);
KILN_CHECK int otlp_key_value(struct otlp_decoder *d, struct kiln_str bytes, struct otlp_ids *list);

/*
 * otlp_dict.c: the dictionary of revisions 1.8 and later.  It may come in several pieces, which
 * _find joins; _look counts its tables; then it is decoded.
 */
KILN_CHECK int otlp_dictionary_find(struct otlp_decoder *d, struct kiln_str message,
                                    struct kiln_str *ret);
KILN_CHECK int otlp_dictionary_look(struct kiln_str dictionary, struct otlp_extent *extents);
KILN_CHECK int otlp_dictionary(struct otlp_decoder *d, const struct otlp_extent *extents);
/* The two halves of it: old revisions have something to do in between. */
KILN_CHECK int otlp_strings_and_links(struct otlp_decoder *d, const struct otlp_extent *extents);
KILN_CHECK int otlp_other_tables(struct otlp_decoder *d, const struct otlp_extent *extents);

/*
 * otlp_usual.c: entries as senders write them, read fast.  Each adds entries from `at` on as long
 * as they are usual, counts them in the table's map (which is there, unless d->bulk), and returns
 * where it stopped: at `end`, or at an entry for the ordinary way.
 */
typedef const uint8_t *otlp_usual(struct otlp_decoder *d, const uint8_t *at, const uint8_t *end);
otlp_usual otlp_usual_attrs, otlp_usual_functions, otlp_usual_locations, otlp_usual_stacks;
/* The same for the samples of a profile, counted in *n. */
const uint8_t *otlp_usual_samples(struct otlp_decoder *d, const uint8_t *at, const uint8_t *end,
                                  uint32_t profile, uint32_t *n);

/* Notes where the entries of one field lie in a message; and parts of entries both ages share. */
KILN_CHECK int otlp_find_table(struct kiln_str message, uint32_t field, struct otlp_extent *ret);
KILN_CHECK int otlp_line(struct otlp_decoder *d, struct kiln_str bytes, uint32_t at);
KILN_CHECK int otlp_value_type(struct otlp_decoder *d, struct kiln_str bytes, const char *field,
                               struct kiln_value_type *ret);
KILN_CHECK int otlp_id(struct otlp_decoder *d, struct kiln_str bytes, const char *field,
                       uint8_t *id, size_t size);
KILN_CHECK int otlp_varints(struct otlp_decoder *d, struct kiln_pb_field f, int64_t **values,
                            uint32_t *n, uint32_t *cap);
KILN_CHECK int otlp_comments(struct otlp_decoder *d);

/* otlp_detect.c: the length-prefixed form; the next record is cut off `rest`, false at the end. */
bool otlp_is_records(struct kiln_str bytes);
bool otlp_next_record(struct kiln_str *rest, struct kiln_str *ret_record);

/* The revision, for a message whose dictionary has been looked at. */
enum kiln_otlp_revision otlp_revision_by(struct kiln_str message,
                                         const struct otlp_extent *extents);

/* The same for a message nobody has looked at yet. */
enum kiln_otlp_revision otlp_revision_of(struct kiln_str message);

/* otlp_old.c: what revisions 1.4 to 1.7 did differently. */
KILN_CHECK int otlp_old_attr(struct otlp_decoder *d, struct kiln_str bytes, uint32_t *ret);
KILN_CHECK int otlp_old_mapping(struct otlp_decoder *d, struct kiln_str bytes, uint32_t *ret);
KILN_CHECK int otlp_old_location(struct otlp_decoder *d, struct kiln_str bytes, uint32_t *ret);
/* The tables of a message that has them at its top (1.6, 1.7); 1.4 has them in each profile. */
KILN_CHECK int otlp_old_tables(struct otlp_decoder *d, struct kiln_str message);
KILN_CHECK int otlp_old_profile(struct otlp_decoder *d, struct kiln_str bytes);

/* otlp_profile.c: a Profile of revisions 1.8 and later into the last scope. */
KILN_CHECK int otlp_profile(struct otlp_decoder *d, struct kiln_str bytes);

#endif /* KILN_CODEC_OTLP_INT_H */
