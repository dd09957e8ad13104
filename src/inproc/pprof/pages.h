/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pages - what is behind each path under /debug/pprof, and who may see it.
 *
 *   /debug/pprof/                    a page for people
 *   .../profile?seconds=30  .../wall?seconds=30  /debug/fgprof?seconds=30
 *                                    what happens in a window from now on
 *   .../heap  allocs  block  mutex  mutex_holders  goroutine  threadcreate  event_loop
 *                                    since the start; ?seconds=N: in a window; ?debug=1, 2: as text
 *   .../cmdline  .../symbol          words of the command line; names of addresses
 *   /pprof/heap, profile, ...        the same for clients of gperftools
 *
 * A window is a job: whoever asked waits, nobody else does.
 *
 * Threads: that of the server.
 */
#ifndef KILN_INPROC_PPROF_PAGES_H
#define KILN_INPROC_PPROF_PAGES_H

#include "inproc/pprof/reader.h"
#include "inproc/pprof/reply.h"
#include "inproc/pprof/source.h"

enum { KILN_IN_SECONDS = 30, KILN_IN_SECONDS_MAX = 24 * 3600 };

struct kiln_in_pages {
    const struct kiln_in_source *source;
    const char *token; /* NULL: anybody may ask */
};

/* A request whose window has not ended. */
struct kiln_in_job {
    uint64_t due_ns; /* on the monotonic clock; 0: there is none */
    enum kiln_in_profile which;
    struct kiln_in_mark *from;
    char file[48];
};

/* Of a request's head: 0 where its body is welcome, or the status of the refusal in `reply`. */
int kiln_in_pages_admit(const struct kiln_in_pages *pages, const struct kiln_in_request *request,
                        struct kiln_in_reply *reply);

/*
 * Answers a request that was admitted.  0: `reply` has it; 1: at the end of *ret_job, which the
 * caller then finishes or drops.
 */
KILN_CHECK int kiln_in_pages_begin(const struct kiln_in_pages *pages,
                                   const struct kiln_in_request *request,
                                   struct kiln_in_reply *reply, struct kiln_in_job *ret_job);
void kiln_in_job_finish(const struct kiln_in_pages *pages, struct kiln_in_job *job,
                        struct kiln_in_reply *reply);
void kiln_in_job_drop(const struct kiln_in_pages *pages, struct kiln_in_job *job);

/* ---- index.c ---- */

void kiln_in_pages_index(struct kiln_in_reply *reply);

#endif /* KILN_INPROC_PPROF_PAGES_H */
