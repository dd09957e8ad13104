/* SPDX-License-Identifier: Apache-2.0 */
/*
 * otlp_check_int - what the files of the checker share.
 *
 * Threads: a checker belongs to one call.
 */
#ifndef KILN_CODEC_OTLP_CHECK_INT_H
#define KILN_CODEC_OTLP_CHECK_INT_H

#include "base/arena.h"
#include "codec/otlp_check.h"
#include "codec/otlp_int.h"

#define PATH_MAX_LEN 160

struct check_table {
    struct kiln_str *entries; /* the bytes of each */
    uint8_t *used;            /* 1 where something refers to it */
    uint32_t n;
};

struct checker {
    struct kiln_check *check;
    const struct kiln_check_opts *opts;
    struct check_table tables[OTLP_TABLES];
    uint32_t *canon;    /* string -> the first string with the same text */
    uint32_t *attr_key; /* attribute -> its key's canon */
    uint32_t *seen_key; /* canon -> the owner that last had it as a key */
    uint32_t owner;     /* counts owners of attributes */
    bool has_build_id;  /* the owner has an attribute process.executable.build_id.* */
    struct kiln_budget budget;
    struct kiln_arena arena;
    int error; /* sticky: the check itself failed */
};

/* A finding at `where`, in the table named or a path. */
void check_found(struct checker *c, enum kiln_finding_level level, const char *rule,
                 const char *where, const char *fmt, ...) KILN_PRINTF(5, 6);

#define check_error(c, rule, where, ...)                                                           \
    check_found((c), KILN_FINDING_ERROR, (rule), (where), __VA_ARGS__)
#define check_warn(c, rule, where, ...)                                                            \
    check_found((c), KILN_FINDING_WARNING, (rule), (where), __VA_ARGS__)

/* Is the index inside the table?  If so, the entry is in use. */
bool check_index(struct checker *c, enum otlp_table table, uint64_t index, const char *where,
                 const char *field);

/* The same for each index of a packed (or one unpacked) field. */
void check_indexes(struct checker *c, enum otlp_table table, const struct kiln_pb_field *f,
                   const char *where, const char *field);

/* Attributes of one owner: indexes in range, keys unique.  Begin, then each field. */
void check_attrs_begin(struct checker *c);
void check_attrs(struct checker *c, const struct kiln_pb_field *f, const char *where);

/* Reports a message that is not protobuf; for `n` from kiln_pb_next(). */
void check_wire(struct checker *c, int n, const char *where);

void check_utf8(struct checker *c, struct kiln_str text, const char *where);

/* A KeyValue of a resource, scope or map; an AnyValue. */
struct check_keys {
    struct kiln_str *keys;
    uint32_t n, cap;
};
void check_key_value(struct checker *c, struct kiln_str bytes, struct check_keys *keys,
                     const char *where, uint32_t depth);
void check_value(struct checker *c, struct kiln_str bytes, const char *where, uint32_t depth);

/* otlp_check_dict.c */
void check_dictionary(struct checker *c, struct kiln_str message);
void check_orphans(struct checker *c);

/* otlp_check_profile.c */
void check_resources(struct checker *c, struct kiln_str message);

#endif /* KILN_CODEC_OTLP_CHECK_INT_H */
