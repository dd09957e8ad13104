/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source - where the profiles of /debug/pprof come from: counters that are read, and differences
 * of two readings.  The library's own is kiln_in_source_own; tests have others.
 *
 * Threads: that of the server.
 */
#ifndef KILN_INPROC_PPROF_SOURCE_H
#define KILN_INPROC_PPROF_SOURCE_H

#include "base/buf.h"
#include "base/err.h"
#include "core/batch.h"

enum kiln_in_profile {
    KILN_IN_PROFILE_CPU,
    KILN_IN_PROFILE_WALL,
    KILN_IN_PROFILE_FGPROF, /* the same in the words of fgprof */
    KILN_IN_PROFILE_HEAP,
    KILN_IN_PROFILE_ALLOCS,
    KILN_IN_PROFILE_BLOCK,
    KILN_IN_PROFILE_MUTEX,   /* who waited for locks */
    KILN_IN_PROFILE_HOLDERS, /* who held them */
    KILN_IN_PROFILE_THREADS, /* "goroutine": threads by stack */
    KILN_IN_PROFILE_CREATE,  /* by whom threads were made */
    KILN_IN_PROFILE_LOOP,
    KILN_IN_PROFILES
};

struct kiln_in_mark; /* where counters stood */

struct kiln_in_source {
    /* Notes where the counters of a profile stand, and has them count until the mark is dropped,
     * although it is not among the profiles that are on. */
    int (*mark)(enum kiln_in_profile which, struct kiln_in_mark **ret, struct kiln_err *err);
    void (*drop)(struct kiln_in_mark *mark);
    /* What was counted since `from`, or NULL: since the start; with names as far as there are any.
     */
    int (*read)(enum kiln_in_profile which, const struct kiln_in_mark *from,
                struct kiln_batch **ret, struct kiln_err *err);
    /* Appends "0xADDRESS NAME\n" for each address that has a name. */
    int (*name)(const uint64_t *addresses, size_t n, struct kiln_buf *out);
};

extern const struct kiln_in_source kiln_in_source_own;
/* Frees what it keeps between requests, when nobody asks any more. */
void kiln_in_source_forget(void);

#endif /* KILN_INPROC_PPROF_SOURCE_H */
