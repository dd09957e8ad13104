/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resolver_int - the parts of a resolver:
 *
 *   resolver.c          what is asked: from what is kept, else from the child; who is set aside
 *   resolver_process.c  the child as a process: started, asked, watched, ended
 *   resolver_cache.c    answers that are kept
 *   resolver_child.c    what runs in the child
 *   names_wire.h        what the two say to each other
 *   confine.h           what the child gives up
 *
 * Threads: one owner at a time.
 */
#ifndef KILN_SYMBOL_RESOLVER_INT_H
#define KILN_SYMBOL_RESOLVER_INT_H

#include <sys/types.h>

#include "base/arena.h"
#include "symbol/names_wire.h"

/* ---- answers that are kept ---- */

struct kiln_kept_key {
    uint64_t id, version, address;
};

struct kiln_kept_half;

/*
 * Two halves: what is asked for goes to the new one, and when that is full the old one goes away.
 * So what was not asked for during one half's life is forgotten.
 */
struct kiln_name_cache {
    size_t half_bytes;
    struct kiln_kept_half *now, *before;
    struct kiln_kept_half *gone; /* until kiln_name_cache_turn() */
};

void kiln_name_cache_init(struct kiln_name_cache *cache, size_t bytes);
void kiln_name_cache_done(struct kiln_name_cache *cache);
/* From now on texts that were given out need not live any more. */
void kiln_name_cache_turn(struct kiln_name_cache *cache);
size_t kiln_name_cache_bytes(const struct kiln_name_cache *cache);
/* 1: it is kept (also that there is no name); 0: it is not; -ENOMEM. */
KILN_CHECK int kiln_name_cache_get(struct kiln_name_cache *cache, const struct kiln_kept_key *key,
                                   struct kiln_name *ret_name);
/* `ret_kept` has the texts that are kept. */
KILN_CHECK int kiln_name_cache_put(struct kiln_name_cache *cache, const struct kiln_kept_key *key,
                                   const struct kiln_name *name, struct kiln_name *ret_kept);

/* ---- the child ---- */

struct kiln_child {
    const char *program;
    size_t memory_bytes;
    uint32_t cpu_ms, wall_ms; /* for one ask */
    pid_t pid;                /* 0: there is none */
    int fd;
    uint64_t spent_ns; /* CPU time of those before it */
    pid_t ended[16];   /* not reaped yet: a process may hang in the kernel after it was killed */
    uint32_t n_ended;
};

/* Who gets an answer: name `i` of the ask; it and its texts are only lent. */
struct kiln_child_sink {
    int (*take)(void *context, uint32_t i, const struct kiln_name *name);
    void *context;
};

KILN_CHECK int kiln_child_start(struct kiln_child *child);
void kiln_child_end(struct kiln_child *child);
/* CPU time of all children so far, and the memory of the one that there is. */
uint64_t kiln_child_cpu_ns(const struct kiln_child *child);
uint64_t kiln_child_bytes(const struct kiln_child *child);
/* False: there is none, or it died while nobody asked. */
bool kiln_child_is_well(const struct kiln_child *child);
/*
 * Asks, and waits for all of the answer.  The child's own verdict on the file is in *ret_status.
 * -EPIPE: it died; -ETIME: it took too long; -EBADMSG: it said what it must not: then it is ended.
 * Any other is the sink's.  *ret_cpu_ms: what it took.
 */
KILN_CHECK int kiln_child_ask(struct kiln_child *child, const struct kiln_names_ask *ask,
                              const uint64_t *addresses, int fd, const struct kiln_child_sink *sink,
                              int *ret_status, uint32_t *ret_cpu_ms);

#endif /* KILN_SYMBOL_RESOLVER_INT_H */
