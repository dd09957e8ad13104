/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config_int - the reader of a collector's configuration, between its files.
 *
 *   config.c          the order of things
 *   config_source.c   what a URI names
 *   config_merge.c    two trees into one, keys that are paths
 *   config_expand.c   ${...}
 *   config_scalar.c   the type of a plain scalar
 *   config_print.c    the tree as text
 *
 * Threads: one owner.
 */
#ifndef KILN_COLLECTOR_CONFIG_INT_H
#define KILN_COLLECTOR_CONFIG_INT_H

#include "collector/config.h"

struct kiln_resolver {
    const struct kiln_collector_sources *sources;
    struct kiln_arena *arena;
    uint32_t nodes;         /* of the result, so far */
    uint32_t substitutions; /* in all */
    struct kiln_err *err;
};

int kiln_resolver_no_memory(struct kiln_resolver *r);

/* ---- config_source.c ---- */

enum kiln_scheme {
    KILN_SCHEME_FILE,
    KILN_SCHEME_ENV,
    KILN_SCHEME_YAML,
    KILN_SCHEME_HTTP,
    KILN_SCHEME_HTTPS
};

struct kiln_location {
    enum kiln_scheme scheme;
    struct kiln_str value; /* what stands behind the colon */
};

/* What a location has. */
struct kiln_retrieved {
    struct kiln_str text; /* in the arena, followed by NUL */
    const char *file;     /* where it stands; NULL: where it was asked for */
    bool is_text;         /* a default that is empty: "", and not nothing */
};

/* Of the command line, where what has no scheme is a file; of ${...}, where it is a variable. */
KILN_CHECK int kiln_location_of_source(const char *uri, struct kiln_location *ret,
                                       struct kiln_err *err);
KILN_CHECK int kiln_location_of_reference(const struct kiln_node *place, struct kiln_str inside,
                                          struct kiln_location *ret, struct kiln_err *err);
/* `place` is where it is asked for; NULL: on the command line. */
KILN_CHECK int kiln_location_retrieve(struct kiln_resolver *r, const struct kiln_location *location,
                                      const struct kiln_node *place, struct kiln_retrieved *ret);

/* ---- config_fetch.c ---- */

struct kiln_answer;
/* What http://... or https://... answers to GET, in answer->body; an error without its place. */
KILN_CHECK int kiln_location_fetch(struct kiln_str url, struct kiln_answer *answer,
                                   struct kiln_err *err);

/* ---- config_merge.c ---- */

/* `map` with its keys that are paths turned into maps. */
KILN_CHECK int kiln_config_unfold(struct kiln_resolver *r, const struct kiln_node *map,
                                  const struct kiln_node **ret);
/* `later` over `earlier`, under the key of `later`. */
KILN_CHECK int kiln_config_merge(struct kiln_resolver *r, const struct kiln_node *earlier,
                                 const struct kiln_node *later, const struct kiln_node **ret);

/* ---- config_expand.c ---- */

/* A copy of the tree with everything put in, and typed. */
KILN_CHECK int kiln_config_expand(struct kiln_resolver *r, const struct kiln_node *root,
                                  const struct kiln_node **ret);

/* ---- config_scalar.c ---- */

enum kiln_scalar {
    KILN_SCALAR_NULL,
    KILN_SCALAR_BOOL,
    KILN_SCALAR_INT,
    KILN_SCALAR_FLOAT,
    KILN_SCALAR_TEXT
};

/* What a plain scalar is. */
enum kiln_scalar kiln_scalar_of(const char *text);
/* Of a node that is a TEXT, quoted or not. */
enum kiln_scalar kiln_scalar_of_node(const struct kiln_node *node);

enum { KILN_SCALAR_BYTES = 24 };
/* The plain form of a number (decimal) or of true and false, if it is written in another; else
 * NULL. `room` has KILN_SCALAR_BYTES. */
const char *kiln_scalar_plain(const char *text, char *room);

#endif /* KILN_COLLECTOR_CONFIG_INT_H */
