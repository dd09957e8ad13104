/* SPDX-License-Identifier: Apache-2.0 */
/*
 * poller - the thread of a receiver that looks for profiles itself, again and again, and hands over
 * one after the other: files, programs that serve them.
 *
 * Threads: init, start, stop and done by the owner of the component; the rest by the thread.
 */
#ifndef KILN_COLLECTOR_RECEIVERS_POLLER_H
#define KILN_COLLECTOR_RECEIVERS_POLLER_H

#include <pthread.h>

#include "collector/component.h"
#include "pipeline/receivers/arrival.h"

struct kiln_poller {
    /* The owner's, set before the start. */
    uint64_t delay_ns, interval_ns; /* before the first look, between two */
    void (*look)(void *context);
    void *context;

    struct kiln_receivers *receivers; /* NULL: never initialised */
    enum kiln_receiver_kind kind;
    struct kiln_log *log;
    pthread_t thread;
    bool started;
    _Atomic bool stopping;
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t changed;
    bool ended; /* the delivery under way */
    struct kiln_outcome outcome;
};

/* `poller` is zero but for what the owner has set. */
KILN_CHECK int kiln_poller_init(struct kiln_poller *poller, const struct kiln_component_env *env,
                                enum kiln_receiver_kind kind, struct kiln_err *err);
KILN_CHECK int kiln_poller_start(struct kiln_poller *poller, struct kiln_err *err);
/* Waits for the look that is under way. */
void kiln_poller_stop(struct kiln_poller *poller);
void kiln_poller_done(struct kiln_poller *poller); /* also of one that was never initialised */

/*
 * Decodes and hands over, and waits for how that went; false: it should be tried again.  What is
 * given up is logged with `name`.
 */
bool kiln_poller_deliver(struct kiln_poller *poller, const struct kiln_source *source,
                         const char *name);

/* ---- collection_interval, initial_delay, timeout: as the Collector's scrapers have them ---- */

struct kiln_poll_settings {
    uint64_t interval_ns, delay_ns, timeout_ns;
};

#define KILN_POLL_FIELDS(type, member)                                                             \
    {"collection_interval", KILN_FIELD_DURATION, offsetof(type, member.interval_ns)},              \
        {"initial_delay", KILN_FIELD_DURATION, offsetof(type, member.delay_ns)},                   \
    {                                                                                              \
        "timeout", KILN_FIELD_DURATION, offsetof(type, member.timeout_ns)                          \
    }
extern const struct kiln_poll_settings kiln_poll_default;
KILN_CHECK int kiln_poll_check(const struct kiln_node *node,
                               const struct kiln_poll_settings *settings, struct kiln_err *err);

#endif /* KILN_COLLECTOR_RECEIVERS_POLLER_H */
