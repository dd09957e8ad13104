/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pprof_out - the state of the pprof encoder: the bytes, and the string table that grows with them.
 *
 * Threads: one owner at a time.
 */
#ifndef KILN_CODEC_PPROF_OUT_H
#define KILN_CODEC_PPROF_OUT_H

#include "base/arena.h"
#include "codec/pprof_int.h"
#include "codec/pprof_rows.h"
#include "core/intern.h"

struct kiln_pprof_out {
    const struct kiln_batch *batch;
    struct kiln_pprof_losses *losses;
    struct kiln_pprof_rows rows;
    struct kiln_pb_out w;
    int error; /* sticky */

    struct kiln_budget budget;
    struct kiln_arena arena;  /* texts made here */
    struct kiln_str *strings; /* string_table */
    uint32_t *string_of;      /* string of the batch -> string_table, 0: not there yet */
    struct kiln_intern made;  /* over the texts made here */
    uint32_t n_strings, cap_strings, cap_string_of;
    uint32_t empty_text; /* a second empty string, for labels with an empty text; 0: none yet */

    /* Labels of the last row, as they lie in the output: most rows have the same ones. */
    struct {
        uint32_t attrs, resource;
        size_t from, to; /* marks; equal: none yet */
    } same;

    uint8_t *mapping_flags; /* by mapping: bits MAPPING_HAS_* - MAPPING_HAS_FUNCTIONS */
    uint32_t cap_mapping_flags;

    /* Frame types of locations without a mapping: strings that become mappings "[kernel]", ... */
    uint32_t kinds[16];
    uint32_t n_kinds;
};

KILN_CHECK int kiln_pprof_out_init(struct kiln_pprof_out *o, const struct kiln_batch *batch,
                                   size_t max, struct kiln_pprof_losses *losses);
void kiln_pprof_out_done(struct kiln_pprof_out *o);

/* The place in string_table of a string of the batch, or of any text (copied). */
uint32_t kiln_pprof_put_string(struct kiln_pprof_out *o, uint32_t string);
uint32_t kiln_pprof_put_text(struct kiln_pprof_out *o, struct kiln_str text);

/* Writes the labels of a row, as fields of a sample. */
void kiln_pprof_put_labels(struct kiln_pprof_out *o, const struct kiln_pprof_row *row);

/* Writes a ValueType as `field`; and the fields that stand alone. */
void kiln_pprof_put_type(struct kiln_pprof_out *o, uint32_t field, struct kiln_value_type type);
void kiln_pprof_put_head(struct kiln_pprof_out *o);

#endif /* KILN_CODEC_PPROF_OUT_H */
