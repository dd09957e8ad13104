/* SPDX-License-Identifier: Apache-2.0 */
/*
 * making - a batch in the making: stacks with their locations and mappings, attributes, profiles.
 *
 * Threads: one owner at a time; between init and done it holds the lock of the mappings.
 */
#ifndef KILN_INPROC_KEEP_MAKING_H
#define KILN_INPROC_KEEP_MAKING_H

#include "core/builder.h"
#include "core/intern.h"
#include "inproc/keep/table.h"
#include "inproc/labels.h"

struct kiln_in_known {
    uint64_t what; /* an address, or a stack's id */
    uint32_t made; /* its location or stack */
};

struct kiln_in_making {
    struct kiln_builder *b;
    uint64_t since_ns, until_ns;
    struct kiln_budget budget;
    struct kiln_in_known *known;
    uint32_t n_known, cap_known;
    struct kiln_intern index;
};

/* Opens the resource. */
KILN_CHECK int kiln_in_making_init(struct kiln_in_making *m, uint64_t since_ns, uint64_t until_ns);
/* The batch; also after a failure, which is reported here. */
KILN_CHECK int kiln_in_making_done(struct kiln_in_making *m, struct kiln_batch **ret_batch,
                                   struct kiln_err *err);

/* `family` NULL: as the types of its profiles say. */
void kiln_in_making_scope(struct kiln_in_making *m, const char *family);
struct kiln_in_type {
    const char *type, *unit, *period_type, *period_unit;
    int64_t period;
};
uint32_t kiln_in_making_profile(struct kiln_in_making *m, const struct kiln_in_type *type);

/* The stack of an id. */
uint32_t kiln_in_making_stack(struct kiln_in_making *m, uint32_t id);

/* Attributes of a sample: its labels, and those of `more` (four at most) that have a value. */
uint32_t kiln_in_making_attrs(struct kiln_in_making *m, uint16_t labels,
                              const struct kiln_in_label *more, uint32_t n_more);
uint32_t kiln_in_making_link(struct kiln_in_making *m, const struct kiln_in_key *key);

#endif /* KILN_INPROC_KEEP_MAKING_H */
