/* SPDX-License-Identifier: Apache-2.0 */
/*
 * builder_int - the inside of the builder, shared by builder.c (dictionary) and
 * builder_profiles.c (profiles, samples, finish).
 */
#ifndef KILN_CORE_BUILDER_INT_H
#define KILN_CORE_BUILDER_INT_H

#include "core/batch_int.h"
#include "core/builder.h"
#include "core/intern.h"

/* How many elements fit into each array of the batch. */
struct kiln_caps {
    uint32_t strings, functions, mappings, locations, lines, stacks, frames, links, attrs, nested,
        sets, members, resources, entities, entity_keys, scopes, profiles, samples, observations,
        owners;
};

struct kiln_builder {
    struct kiln_batch_box *box;
    struct kiln_limits limits;
    struct kiln_caps cap;
    struct kiln_arena scratch; /* gone at finish */
    int error;                 /* sticky */

    struct kiln_intern strings, functions, mappings, locations, stacks, links, attrs, lists, sets;

    /*
     * The profile of each sample, kept only once samples come out of the order of their profiles;
     * until then the profiles' ranges say it.
     */
    uint32_t *owners;
    uint32_t last_owner;
};

/* Room for `more` elements behind the `n` of a batch array; false (and sticky) on failure. */
#define ROOM(b, array, count, capacity, more)                                                      \
    kiln_builder_room((b), (void **)&(array), &(b)->cap.capacity, (uint64_t)(count) + (more),      \
                      sizeof(*(array)))

static inline bool kiln_builder_room(struct kiln_builder *b, void **array, uint32_t *cap,
                                     uint64_t need, size_t size)
{
    int r;

    if (KILN_LIKELY(need <= *cap))
        return b->error == 0;
    r = b->error ? b->error
                 : kiln_grow(&b->box->budget, array, cap, need, size, b->limits.table_count);
    if (r < 0)
        kiln_builder_fail(b, r);
    return r == 0;
}

#endif /* KILN_CORE_BUILDER_INT_H */
