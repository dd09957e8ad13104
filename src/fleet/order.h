/* SPDX-License-Identifier: Apache-2.0 */
/*
 * order - what somebody told the profilers of hosts to do for a while: sample one service,
 * container or process more often (a boost), or leave it alone (a pause).
 *
 * A server keeps orders in a book (fleet/order_book.h), agents ask for theirs every few seconds
 * (fleet/link.h), and the host profiler follows them.  Every order ends by itself: expires_ns is
 * always set, and later than created_ns.  Both are Unix time, since an order travels between
 * machines and outlives restarts; who follows one turns the rest of its time into his own monotonic
 * clock.
 *
 * Threads: plain data, copied by assignment, nothing to free.
 */
#ifndef KILN_FLEET_ORDER_H
#define KILN_FLEET_ORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"

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

enum { KILN_ORDER_ID_BYTES = 24, KILN_ORDER_HZ_MAX = 1000 };

/* What is meant where nobody says, and the most that may be said. */
#define KILN_BOOST_HZ     199u
#define KILN_BOOST_NS     (600 * KILN_NS_PER_S)
#define KILN_BOOST_MAX_NS (86400 * KILN_NS_PER_S)
#define KILN_PAUSE_NS     (3600 * KILN_NS_PER_S)
#define KILN_PAUSE_MAX_NS (30 * 86400 * KILN_NS_PER_S)

/* The orders that a client may give, or that an agent follows: none, boosts, all. */
enum kiln_order_limit { KILN_ORDERS_OFF, KILN_ORDERS_BOOST, KILN_ORDERS_ALL };

struct kiln_order {
    char id[KILN_ORDER_ID_BYTES];
    enum kiln_order_kind kind;
    enum kiln_order_target target;
    char name[256]; /* service, container id or name, host name or id; "" of ALL and PROCESS */
    uint32_t pid;   /* PROCESS */
    char host[256]; /* PROCESS, or narrowing: only this host (name or id); "": every host */
    uint32_t hz;    /* BOOST */
    uint64_t created_ns, expires_ns; /* Unix time; always set */
    char by[64];                     /* who asked; "": nobody said */
    char why[256];
};

/* "boost", "pause"; "all", "host", "service", "container", "process". */
const char *kiln_order_kind_word(enum kiln_order_kind kind);
const char *kiln_order_target_word(enum kiln_order_target target);
/* KILN_E_UNKNOWN for any other word. */
KILN_CHECK int kiln_order_kind_parse(struct kiln_str word, enum kiln_order_kind *ret_kind);
KILN_CHECK int kiln_order_target_parse(struct kiln_str word, enum kiln_order_target *ret_target);

/* "off", "boost", "all", NULL. */
extern const char *const kiln_order_limits[];
KILN_CHECK int kiln_order_limit_parse(const char *word, enum kiln_order_limit *ret_limit);
bool kiln_order_within(enum kiln_order_limit limit, enum kiln_order_kind kind);
/*
 * The same for orders of anonymous clients: a boost up to KILN_BOOST_HZ and
 * KILN_BOOST_NS.  -EPERM: the error says what may be.
 */
KILN_CHECK int kiln_order_check_anonymous(const struct kiln_order *order,
                                          enum kiln_order_limit limit, struct kiln_err *err);

/* Whether it makes sense; -EINVAL: the error's place is the member that does not. */
KILN_CHECK int kiln_order_check(const struct kiln_order *order, struct kiln_err *err);

/* The same kind for the same target: the later of two takes the place of the earlier. */
bool kiln_order_same_aim(const struct kiln_order *a, const struct kiln_order *b);

/* Whether anything on this host may be meant. */
bool kiln_order_for_host(const struct kiln_order *order, const char *host_id,
                         const char *host_name);

/* "the service shop on web-1", "every host", ... */
void kiln_order_describe_target(const struct kiln_order *order, struct kiln_buf *out);
/* "boost service shop to 199 Hz for 600 s", and how many more there are. */
void kiln_order_describe(const struct kiln_order *order, uint32_t more, struct kiln_buf *out);

#endif /* KILN_FLEET_ORDER_H */
