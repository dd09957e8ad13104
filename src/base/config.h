/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config - a configuration file (YAML, or JSON, which is YAML) as a small tree, and its values.
 *
 * Every node knows its line and column, so that whoever finds fault with a value can say where.
 * In values (not in keys) ${env:NAME} becomes a variable of the environment, which must be there;
 * ${env:NAME:-text} is `text` where it is not there or empty; $$ is a dollar.  An alias counts as
 * all that it stands for; `<<` takes the keys of another map.  A key may stand once in a map.
 *
 * Reading is by table: each map names its fields, and a key that is none of them is an error that
 * suggests the nearest.
 *
 *   struct limits { uint64_t memory_bytes; bool strict; };
 *   static const struct kiln_field fields[] = {
 *       {"memory", KILN_FIELD_SIZE, offsetof(struct limits, memory_bytes)},
 *       {"strict", KILN_FIELD_BOOL, offsetof(struct limits, strict)},
 *   };
 *   r = kiln_node_read(map, fields, KILN_ARRAY_LEN(fields), &limits, &err);
 *
 * Limits: 1 MiB, 100,000 nodes, 32 deep.
 * Threads: constant once parsed.
 */
#ifndef KILN_BASE_CONFIG_H
#define KILN_BASE_CONFIG_H

#include "base/arena.h"
#include "base/attr.h"
#include "base/err.h"
#include "base/str.h"

#define KILN_CONFIG_MAX    (1u << 20) /* bytes */
#define KILN_CONFIG_MEMORY ((size_t)64 << 20)

enum kiln_node_kind { KILN_NODE_TEXT, KILN_NODE_LIST, KILN_NODE_MAP };

struct kiln_node {
    enum kiln_node_kind kind;
    bool quoted;           /* TEXT: it stood in quotes, so "null" is a word and "" a text, */
    bool strict;           /* and no number, and not true */
    const char *file;      /* NULL: of the only one, whose name the reader knows */
    uint32_t line, column; /* from 1; of the value.  0: the file says it all */
    const char *key;       /* of a member of a map; else NULL */
    uint32_t key_line, key_column;
    const char *text;              /* TEXT; else NULL */
    const char *original;          /* how it was written, for who wants a text; NULL: just so */
    const struct kiln_node *first; /* of the members or elements, in the order of the file */
    const struct kiln_node *next;  /* the next one beside it */
    uint32_t n;                    /* how many members or elements */
};

struct kiln_config;

/* Returns 0, -ENOMEM, KILN_E_LIMIT or KILN_E_MALFORMED; the error names line and column. */
KILN_CHECK int kiln_config_parse(struct kiln_str text, struct kiln_config **ret_config,
                                 struct kiln_err *err);
/* The same of a file; a missing one is -ENOENT. */
KILN_CHECK int kiln_config_load(const char *path, struct kiln_config **ret_config,
                                struct kiln_err *err);
/* Both without variables: a dollar is a dollar.  For what is full of them, as rules of redaction.
 */
KILN_CHECK int kiln_config_parse_plain(struct kiln_str text, struct kiln_config **ret_config,
                                       struct kiln_err *err);
KILN_CHECK int kiln_config_load_plain(const char *path, struct kiln_config **ret_config,
                                      struct kiln_err *err);
void kiln_config_free(struct kiln_config *config);

/* NULL for an empty file. */
const struct kiln_node *kiln_config_root(const struct kiln_config *config);

/* ---- trees in an arena of one's own ---- */

struct kiln_parse_opts {
    const char *file; /* for the places, borrowed; NULL: the caller knows it */
    bool variables;   /* ${env:NAME} is one */
};

/* *ret_root is NULL for an empty text.  Errors as above. */
KILN_CHECK int kiln_node_parse(struct kiln_arena *arena, struct kiln_str text,
                               const struct kiln_parse_opts *opts, struct kiln_node **ret_root,
                               struct kiln_err *err);

/* What a list or map is made of, one by one: {0} to begin with. */
struct kiln_members {
    const struct kiln_node *first;
    struct kiln_node *last;
    uint32_t n;
};
/* A copy of `node`, which shares what is below, at the end.  NULL: no memory. */
struct kiln_node *kiln_members_add(struct kiln_members *members, struct kiln_arena *arena,
                                   const struct kiln_node *node);
const struct kiln_node *kiln_members_find(const struct kiln_members *members, const char *key);

/* ---- looking ---- */

/* `key:`, ~ or null. */
bool kiln_node_is_null(const struct kiln_node *node);

/* The member of a map; NULL where there is none, or where it is null or empty (`key:`). */
const struct kiln_node *kiln_node_get(const struct kiln_node *map, const char *key);

/* Fills `err` with the place of a node; returns `code`. */
int kiln_node_fail(const struct kiln_node *node, int code, struct kiln_err *err, const char *fmt,
                   ...) KILN_PRINTF(4, 5);

/* Values.  All return 0 or KILN_E_MALFORMED, and then *ret is untouched. */
KILN_CHECK int kiln_node_text(const struct kiln_node *node, const char **ret, struct kiln_err *err);
KILN_CHECK int kiln_node_bool(const struct kiln_node *node, bool *ret, struct kiln_err *err);
KILN_CHECK int kiln_node_u64(const struct kiln_node *node, uint64_t *ret, struct kiln_err *err);
KILN_CHECK int kiln_node_size(const struct kiln_node *node, uint64_t *ret, struct kiln_err *err);
KILN_CHECK int kiln_node_duration(const struct kiln_node *node, uint64_t *ret_ns,
                                  struct kiln_err *err);

enum kiln_field_kind {
    KILN_FIELD_TEXT,     /* const char *, which lives as long as the configuration */
    KILN_FIELD_BOOL,     /* bool */
    KILN_FIELD_COUNT,    /* uint32_t */
    KILN_FIELD_SIZE,     /* uint64_t: bytes */
    KILN_FIELD_DURATION, /* uint64_t: nanoseconds */
    KILN_FIELD_LIST,     /* const struct kiln_node *: a list */
    KILN_FIELD_MAP,      /* const struct kiln_node *: a map */
    KILN_FIELD_NODE,     /* const struct kiln_node *: anything */
    KILN_FIELD_EITHER,   /* struct kiln_either: a text, or anything else */
};

/* What may be a list or a map in a file and is one word elsewhere. */
struct kiln_either {
    const char *text;             /* NULL: what `node` holds */
    const struct kiln_node *node; /* NULL: not from a file */
};

struct kiln_field {
    const char *key;
    enum kiln_field_kind kind;
    size_t offset;
};

/* Reads the members of a map into a structure; what is absent or null leaves its field alone.
 * A `map` that is NULL is an empty one. */
KILN_CHECK int kiln_node_read(const struct kiln_node *map, const struct kiln_field *fields,
                              uint32_t n, void *into, struct kiln_err *err);

#endif /* KILN_BASE_CONFIG_H */
