/* SPDX-License-Identifier: Apache-2.0 */
/*
 * caption - the words around a drawing: what it is, how much, how long, and what stands out.
 *
 * A picture starts a search and a sentence ends it: every drawing opens with the same sentences,
 * made here.  They are plain text of our own words; what comes from the profile goes through
 * codec/clean.h in the quoting asked for.
 *
 * Threads: no state.
 */
#ifndef KILN_CODEC_CAPTION_H
#define KILN_CODEC_CAPTION_H

#include "codec/clean.h"
#include "core/diff.h"
#include "core/tree.h"

struct kiln_caption {
    const struct kiln_view *view;   /* of a diff: the new one */
    const struct kiln_tree *tree;   /* NULL: it is not about a tree */
    const char *title;              /* what the profile is of, or NULL */
    enum kiln_normalize normalized; /* of a diff: how it was made comparable */
    enum kiln_quote quote;
};

/* "CPU time of checkout: 2.44 cores (73.2s in 30s)"; of a diff "... grew by 40 %: 2.4 → 3.4". */
void kiln_caption_headline(const struct kiln_caption *caption, struct kiln_buf *out);

/* "memcpy itself takes 12 %, most of it below main.load"; of a diff where it grew and shrank most;
 * may be empty. */
void kiln_caption_finding(const struct kiln_caption *caption, struct kiln_buf *out);

/* "process_cpu:cpu:nanoseconds · 20 430 samples · 3 profiles". */
void kiln_caption_source(const struct kiln_caption *caption, struct kiln_buf *out);

/* What stands out and where it is from, in one line. */
void kiln_caption_facts(const struct kiln_caption *caption, struct kiln_buf *out);

/* "CPU time", "Memory in use": what the values are, for people. */
void kiln_caption_type(const struct kiln_type *type, enum kiln_quote quote, struct kiln_buf *out);

/* The value as a rate where one is known ("2.44 cores"), else as a total ("73.2s"). */
void kiln_caption_amount(const struct kiln_caption *caption, double value, struct kiln_buf *out);

/* The value as a total, whether or not a rate is known. */
void kiln_caption_value(const struct kiln_caption *caption, double value, struct kiln_buf *out);

/* The amount of a change: always with its sign, "−" for minus. */
void kiln_caption_change(const struct kiln_caption *caption, double value, struct kiln_buf *out);

/* "+12.3 %": the change of a node of a diff as a share of the whole before. */
void kiln_caption_change_share(const struct kiln_tree *tree, uint32_t node, struct kiln_buf *out);

/* "12.3 %" of a part of a whole; "~0 %" for next to nothing. */
void kiln_caption_share(double part, double whole, struct kiln_buf *out);

/* "20 430": digits in groups, a thin space between in a drawing, a comma on a terminal. */
void kiln_caption_number(uint64_t number, enum kiln_quote quote, struct kiln_buf *out);

#endif /* KILN_CODEC_CAPTION_H */
