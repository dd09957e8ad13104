/* SPDX-License-Identifier: Apache-2.0 */
/*
 * otlp_json_int - what the files of the OTLP JSON decoder share: messages as tables of fields.
 *
 * A message is read by one loop over a table that says for each name what its value is and where in
 * a record it goes.  The loop knows the names, so it also makes the paths of errors.
 *
 * Threads: a decoder belongs to one call.
 */
#ifndef KILN_CODEC_OTLP_JSON_INT_H
#define KILN_CODEC_OTLP_JSON_INT_H

#include "base/json.h"
#include "base/mem.h"
#include "core/builder.h"

/* The tables of the dictionary, in the order they can be read: each needs only those before it. */
enum oj_table {
    OJ_STRINGS,
    OJ_ATTRS,
    OJ_MAPPINGS,
    OJ_FUNCTIONS,
    OJ_LOCATIONS,
    OJ_LINKS,
    OJ_STACKS,
    OJ_TABLES,
};

/* Index in the text -> index in the builder. */
struct oj_map {
    uint32_t *to;
    uint32_t n, cap;
};

struct oj_decoder {
    struct kiln_json r;
    struct kiln_builder *b;
    struct kiln_err *err;
    struct kiln_budget budget; /* of everything below */
    struct oj_map maps[OJ_TABLES];
    struct kiln_attr *nest; /* attributes read and not yet taken by the list they are in */
    uint32_t *ids;          /* the last list of indexes */
    uint32_t *keys;         /* description keys of an entity */
    struct kiln_line *lines;
    int64_t *values;
    uint64_t *times;
    uint32_t n_nest, cap_nest, n_ids, cap_ids, n_keys, cap_keys, n_lines, cap_lines, n_values,
        cap_values, n_times, cap_times;
    uint32_t value_depth;
    uint32_t profile; /* the one being read */
};

enum oj_kind {
    OJ_INDEX, /* into `table`; uint32_t */
    OJ_IDS,   /* indexes into `table`; left in d->ids */
    OJ_SET,   /* indexes of attributes; uint32_t, the set */
    OJ_TEXT,  /* uint32_t, a string of the builder */
    OJ_I64,
    OJ_U64,
    OJ_U32,
    OJ_VALUES, /* numbers; left in d->values */
    OJ_TIMES,  /* numbers; left in d->times */
    OJ_READ,   /* `read` reads the value */
    OJ_EACH,   /* an array; `read` reads each element */
    OJ_OLD,    /* only in revisions that are not read from JSON */
};

struct oj_field {
    const char *name;
    uint32_t len; /* of the name */
    enum oj_kind kind;
    uint32_t offset; /* in the record */
    enum oj_table table;
    int (*read)(struct oj_decoder *d, void *record);
};

/* A table of fields ends with an entry without a name. */
#define OJ_FIELD(record, name, kind, member)                                                       \
    {                                                                                              \
        name, sizeof(name) - 1, kind, offsetof(record, member), OJ_TABLES, NULL                    \
    }
#define OJ_REF(record, name, member, table)                                                        \
    {                                                                                              \
        name, sizeof(name) - 1, OJ_INDEX, offsetof(record, member), table, NULL                    \
    }
#define OJ_CALL(name, kind, function)                                                              \
    {                                                                                              \
        name, sizeof(name) - 1, kind, 0, OJ_TABLES, function                                       \
    }
#define OJ_LIST(name, kind, table)                                                                 \
    {                                                                                              \
        name, sizeof(name) - 1, kind, 0, table, NULL                                               \
    }
#define OJ_END                                                                                     \
    {                                                                                              \
        NULL, 0, OJ_OLD, 0, OJ_TABLES, NULL                                                        \
    }

/* Reads an object into `record`. */
KILN_CHECK int oj_object(struct oj_decoder *d, const struct oj_field *fields, void *record);

/* Integers, as numbers or in quotes. */
KILN_CHECK int oj_i64(struct oj_decoder *d, int64_t *ret);
KILN_CHECK int oj_u64(struct oj_decoder *d, uint64_t *ret);

/* An index into a table, as the builder's index. */
KILN_CHECK int oj_index(struct oj_decoder *d, enum oj_table table, uint32_t *ret);

/* Room for one more element of one of the decoder's lists. */
#define OJ_ROOM(d, list)                                                                           \
    kiln_grow(&(d)->budget, (void **)&(d)->list, &(d)->cap_##list, (uint64_t)(d)->n_##list + 1,    \
              sizeof(*(d)->list), UINT32_MAX)

/* otlp_json_value.c: a KeyValue, appended to d->nest; an AnyValue. */
KILN_CHECK int oj_pair(struct oj_decoder *d, void *unused);
KILN_CHECK int oj_value(struct oj_decoder *d, struct kiln_value *ret);

/* Takes the attributes from d->nest[first] on: as a set of attributes without units. */
KILN_CHECK int oj_take_set(struct oj_decoder *d, uint32_t first, uint32_t *ret_set);

/* otlp_json_dict.c: reads the tables, which start at these positions (0: absent). */
KILN_CHECK int oj_tables(struct oj_decoder *d, const size_t *positions);
extern const char *const oj_table_names[OJ_TABLES];

/* otlp_json_profile.c: an element of resourceProfiles. */
KILN_CHECK int oj_resource_profiles(struct oj_decoder *d, void *unused);

#endif /* KILN_CODEC_OTLP_JSON_INT_H */
