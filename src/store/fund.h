/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fund - memory for an answer that grows while it is made, taken from the leash of its question
 * piece by piece; and tables that live on it.
 *
 * Threads: one owner.
 */
#ifndef KILN_STORE_FUND_H
#define KILN_STORE_FUND_H

#include "base/arena.h"
#include "base/leash.h"
#include "core/intern.h"

struct kiln_fund {
    struct kiln_leash *leash;
    struct kiln_budget budget; /* its limit is what was taken */
    size_t ahead;              /* of it: for what will be taken */
};

void kiln_fund_init(struct kiln_fund *fund, struct kiln_leash *leash);
/* Gives everything back; nothing that lived on it may be there any more. */
void kiln_fund_done(struct kiln_fund *fund);

/* Bytes that somebody else counts; given back with the rest. */
KILN_CHECK int kiln_fund_take(struct kiln_fund *fund, size_t bytes);
/* The same, but waits for its turn: before anything else is taken.  `ahead` is for what will be
 * taken later. */
KILN_CHECK int kiln_fund_reserve(struct kiln_fund *fund, size_t bytes, size_t ahead,
                                 struct kiln_err *err);
/* Bytes that were taken are free again: what is taken next draws on them first. */
void kiln_fund_return(struct kiln_fund *fund, size_t bytes);
/* As kiln_grow() without a maximum. */
KILN_CHECK int kiln_fund_grow(struct kiln_fund *fund, void **ptr, uint32_t *cap, uint64_t need,
                              size_t size);

/* ---- entries by key ---- */

/* Entries of one size that begin with their key, which has no padding; each key once. */
struct kiln_fund_table {
    struct kiln_intern index;
    void *all;
    uint32_t n, cap;
    uint32_t key_size, size;
};

void kiln_fund_table_init(struct kiln_fund_table *table, uint32_t key_size, uint32_t size);
void kiln_fund_table_done(struct kiln_fund_table *table, struct kiln_fund *fund);
/* The number of the entry of a key; a new one is zero but for the key. */
KILN_CHECK int kiln_fund_table_get(struct kiln_fund_table *table, struct kiln_fund *fund,
                                   const void *key, uint32_t *ret_number);

/* ---- texts, each once ---- */

struct kiln_fund_texts {
    struct kiln_intern index;
    struct kiln_arena arena;
    struct kiln_str *all;
    uint32_t n, cap;
};

void kiln_fund_texts_init(struct kiln_fund_texts *names, struct kiln_fund *fund);
void kiln_fund_texts_done(struct kiln_fund_texts *names, struct kiln_fund *fund);
KILN_CHECK int kiln_fund_texts_get(struct kiln_fund_texts *names, struct kiln_fund *fund,
                                   struct kiln_str text, uint32_t *ret_number);

#endif /* KILN_STORE_FUND_H */
