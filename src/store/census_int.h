/* SPDX-License-Identifier: Apache-2.0 */
/*
 * census_int - the inside of a census: census.c looks at blocks, census_tell.c tells what lacks
 * names and what names nothing needs.
 *
 * Locks are taken in this order: the census's, the tenant's, the book's.
 *
 * Threads: as store/census.h.
 */
#ifndef KILN_STORE_CENSUS_INT_H
#define KILN_STORE_CENSUS_INT_H

#include "store/census.h"
#include "store/lacks.h"
#include "store/store_int.h"

/* Under the lock of the census. */
struct kiln_block_names {
    struct kiln_build_use *uses; /* with the round in which its addresses were told */
    uint32_t n;
    uint64_t age;   /* of the names that count for it, */
    uint64_t as_of; /* when the book's last age was this */
    bool judged;
    uint64_t judged_age;      /* for which `stale` holds */
    struct kiln_stale *stale; /* a reference; NULL: nothing is */
};

struct kiln_census {
    struct kiln_book *book;
    pthread_mutex_t lock;
    struct kiln_lacks *lacks;
    uint32_t *rounds; /* by build: how often its addresses were forgotten */
    struct kiln_budget budget;
    uint64_t head;    /* its serial */
    uint32_t n_told;  /* locations of it */
    uint8_t *of_head; /* by build: it lacks something there */
    uint64_t *idle;   /* by build of the book: since when nothing refers to it; 0: something does */
    uint32_t cap_rounds, cap_of_head, cap_idle;
};

/* Looks at a block that nobody looked at yet, or, if `told`, whose addresses the list forgot. */
KILN_CHECK int kiln_census_look_at(const struct kiln_census_look *look, bool told,
                                   struct kiln_err *err);
/* Whether that was done.  Under the lock. */
bool kiln_census_knows(const struct kiln_census *census, const struct kiln_block *block, bool told);

/* Room for one more number in an array of the census; new ones are 0. */
KILN_CHECK int kiln_census_room(struct kiln_census *census, void **array, uint32_t *cap, uint32_t n,
                                size_t size);

#endif /* KILN_STORE_CENSUS_INT_H */
