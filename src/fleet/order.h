/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KILN_FLEET_ORDER_H
#define KILN_FLEET_ORDER_H

/* What somebody told the profilers of hosts to do for a while: sample one service, container or
 * process more often (a boost), or leave it alone (a pause).  A server keeps orders in a book
 * (fleet/book.h), agents ask for theirs every few seconds, and the host profiler follows them.
 *
 * Every order ends by itself: expires_ns is always set and later than created_ns.  Both are UNIX
 * time, since an order travels between machines and outlives restarts; who follows one turns the
 * rest of its time into its own monotonic clock.  A plain value: copied by assignment, nothing to
 * free.
 *
 * Threads: a value. */

#include <stdint.h>

enum kiln_order_kind {
    KILN_ORDER_BOOST,
    KILN_ORDER_PAUSE,
};

enum kiln_order_target {
    KILN_TARGET_ALL,
    KILN_TARGET_HOST,
    KILN_TARGET_SERVICE,
    KILN_TARGET_CONTAINER,
    KILN_TARGET_PROCESS,
};

struct kiln_order {
    char id[24];
    enum kiln_order_kind kind;
    enum kiln_order_target target;
    char name[256]; /* service, container id or name, host name or id; "" of ALL and PROCESS */
    uint32_t pid;   /* PROCESS */
    char host[256]; /* PROCESS, or narrowing: only this host (name or id); "": every host */
    uint32_t hz;    /* BOOST */
    uint64_t created_ns, expires_ns; /* UNIX time; always set */
    char by[64];                     /* who asked; "": nobody said */
    char why[256];
};

#endif
