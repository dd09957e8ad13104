/* SPDX-License-Identifier: Apache-2.0 */
/*
 * otlp_tables - which strings and attributes of a batch stand in the tables of an OTLP message, and
 * under which index.
 *
 * A batch keeps all texts in one table; OTLP writes those of resources, scopes and attribute values
 * inline, so only what is referred to by index goes to string_table, and only attributes of
 * samples, profiles, locations and mappings to attribute_table.  Relative order is kept: reading a
 * message and writing it again changes nothing.  Only of a dense message (codec/otlp.h) names of
 * functions stand before all other texts, so that functions count them up, and names that are made
 * up behind them.
 *
 * Threads: one owner at a time.
 */
#ifndef KILN_CODEC_OTLP_TABLES_H
#define KILN_CODEC_OTLP_TABLES_H

#include "codec/otlp.h"

#define OTLP_UNUSED UINT32_MAX

enum { OTLP_STRING_KINDS = 3 };

struct otlp_tables {
    uint32_t *strings; /* batch index -> wire index, or OTLP_UNUSED */
    uint32_t *attrs;
    uint32_t n_strings, n_attrs;       /* on the wire */
    uint32_t first[OTLP_STRING_KINDS]; /* strings: where those of each kind begin */
};

/* `opts` may be NULL.  Returns 0 or -ENOMEM. */
KILN_CHECK int otlp_tables_init(struct otlp_tables *t, const struct kiln_batch *batch,
                                const struct kiln_otlp_encode_opts *opts);
void otlp_tables_done(struct otlp_tables *t);

/*
 * The attributes of a resource or scope, sorted by key: the order they are written in.  The caller
 * frees *ret_sorted with kiln_free(); it is NULL for an empty set.
 */
KILN_CHECK int otlp_sorted_attrs(const struct kiln_batch *batch, uint32_t set,
                                 const struct kiln_attr ***ret_sorted, uint32_t *ret_n);

#endif /* KILN_CODEC_OTLP_TABLES_H */
