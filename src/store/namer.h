/* SPDX-License-Identifier: Apache-2.0 */
/*
 * namer - the names of the functions of a dictionary: locations to names, each location once.
 *
 * A location gives a name for each of its lines, outermost first; where names came later that say
 * more (store/book.h), for each of those; one that has none is named as core/frame.h says.  Two
 * functions of one name are one.
 *
 * Threads: one owner at a time.
 */
#ifndef KILN_STORE_NAMER_H
#define KILN_STORE_NAMER_H

#include "base/arena.h"
#include "base/buf.h"
#include "core/batch.h"
#include "core/intern.h"

struct kiln_finder;

/* A function as its name says it; the rest is of one of its occurrences.  Texts are the
 * dictionary's or the namer's. */
struct kiln_function_name {
    struct kiln_str name, file, module, kind;
    bool inlined; /* into its caller, wherever this namer met it */
    bool is_made; /* name and file are the namer's texts, not the dictionary's */
};

struct kiln_named_location {
    uint32_t first;     /* into the pool */
    uint32_t n : 31;    /* 0: not looked at yet */
    uint32_t lacks : 1; /* symbols that come later may name it better */
};

struct kiln_namer {
    struct kiln_budget *budget;     /* borrowed */
    const struct kiln_batch *batch; /* borrowed; may grow between two calls */
    const struct kiln_batch *texts; /* has the same strings and sets, and lives longer; or NULL */
    struct kiln_finder *finder;
    struct kiln_function_name *names;
    uint64_t *hashes; /* of names: base/hash.h */
    struct kiln_named_location *locations;
    uint32_t *pool; /* numbers of names */
    uint32_t n_names, cap_names, cap_hashes, n_locations, cap_locations, n_pool, cap_pool;
    struct kiln_intern index;
    struct kiln_arena arena;
    struct kiln_buf text;
    uint64_t name_bytes; /* of work so far */
    bool lacks;          /* something with a build id may be named better later */
    bool apart;          /* two functions of one name are one only where all else is the same */
};

/* `finder` may be NULL; it is borrowed. */
void kiln_namer_init(struct kiln_namer *namer, const struct kiln_batch *batch,
                     struct kiln_budget *budget, struct kiln_finder *finder);
void kiln_namer_done(struct kiln_namer *namer);
/* Gives back all but the names: nothing more will be asked. */
void kiln_namer_trim(struct kiln_namer *namer);

/* Looks a location up for the first time. */
KILN_CHECK int kiln_namer_make(struct kiln_namer *namer, uint32_t location);

/* A name by itself, or what is known of it already.  `made`: its texts may be gone after the next
 * call, and are copied where they stay. */
KILN_CHECK int kiln_namer_add(struct kiln_namer *namer, struct kiln_function_name *name, bool made,
                              uint32_t *ret);

/* The names of a location: *ret_first ... in namer->pool, outermost first. */
static inline KILN_CHECK int kiln_namer_get(struct kiln_namer *namer, uint32_t location,
                                            struct kiln_named_location *ret)
{
    if (location >= namer->n_locations || namer->locations[location].n == 0) {
        int r = kiln_namer_make(namer, location);

        if (r < 0)
            return r;
    }
    *ret = namer->locations[location];
    return 0;
}

#endif /* KILN_STORE_NAMER_H */
