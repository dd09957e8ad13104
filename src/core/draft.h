/* SPDX-License-Identifier: Apache-2.0 */
/*
 * draft - a set of attributes that is being changed.
 *
 *   kiln_draft_open(&draft, b, resource->attrs);
 *   kiln_draft_put(&draft, KILN_STR("host"), value, 0);
 *   kiln_draft_drop(&draft, KILN_STR("secret"));
 *   resource->attrs = kiln_draft_close(&draft);
 *
 * The set it began with stays as it is, and so do its attributes, which others may have too.
 * Failures stick in the builder.
 *
 * Threads: one owner at a time.
 */
#ifndef KILN_CORE_DRAFT_H
#define KILN_CORE_DRAFT_H

#include "core/builder.h"

/* Zero is a draft that was never opened. */
struct kiln_draft {
    struct kiln_builder *b;
    uint32_t set;    /* that it began with */
    uint32_t *attrs; /* indexes; reused from one set to the next */
    uint32_t n, cap;
    bool changed;
};

void kiln_draft_open(struct kiln_draft *draft, struct kiln_builder *b, uint32_t set);
/* The set as it is now: the one it began with where nothing changed. */
uint32_t kiln_draft_close(struct kiln_draft *draft);
/* Gives its memory back; it may be opened again. */
void kiln_draft_done(struct kiln_draft *draft);

/* The attribute of this key, or NULL; lives until the builder is asked for anything. */
const struct kiln_attr *kiln_draft_find(const struct kiln_draft *draft, struct kiln_str key);
/* The i-th of draft->n, in no order. */
const struct kiln_attr *kiln_draft_at(const struct kiln_draft *draft, uint32_t i);
/* Sets a key, new or old, to a value of the builder. */
void kiln_draft_put(struct kiln_draft *draft, struct kiln_str key, struct kiln_value value);
/* True if it was there. */
bool kiln_draft_drop(struct kiln_draft *draft, struct kiln_str key);
/* Drops the i-th; the last one takes its place. */
void kiln_draft_drop_at(struct kiln_draft *draft, uint32_t i);

#endif /* KILN_CORE_DRAFT_H */
