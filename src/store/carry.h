/* SPDX-License-Identifier: Apache-2.0 */
/*
 * carry - brings stacks of a source of a scan into a builder, with whole locations, and the names
 * that came later (store/book.h).
 *
 * Threads: one owner.
 */
#ifndef KILN_STORE_CARRY_H
#define KILN_STORE_CARRY_H

#include "core/builder.h"
#include "store/scan.h"

struct kiln_carrier {
    struct kiln_scan *scan;
    struct kiln_builder *b;
    void *context;
    /* Of a stack of the source, by its number less 1: whether it is to come; and what it is in the
     * builder. */
    bool (*wants)(void *context, uint32_t stack);
    int (*take)(void *context, uint32_t stack, uint32_t carried);
};

/* To be called in `end` of a visitor; `n` is how many stacks its rows may have. */
KILN_CHECK int kiln_carry_stacks(const struct kiln_carrier *carrier,
                                 const struct kiln_scan_source *source, uint32_t n,
                                 struct kiln_err *err);

#endif /* KILN_STORE_CARRY_H */
