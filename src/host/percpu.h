/* SPDX-License-Identifier: Apache-2.0 */
/*
 * percpu - perf events, one on every processor that is online.
 *
 * Processors come and go: kiln_percpu_rescan(), called now and then, opens an event on those that
 * came since, and closes those that went.  One that went and came back between two looks, as all
 * but the first do when a machine sleeps, has lost its event for good, though the descriptor is
 * there: where the time of an event stands still and that of another went on, it is opened anew.
 *
 * Threads: one owner at a time.
 */
#ifndef KILN_HOST_PERCPU_H
#define KILN_HOST_PERCPU_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

enum { KILN_CPUS_MAX = 8192 };

struct kiln_percpu {
    struct perf_event_attr attr;
    int *fds;             /* by number of processor; -1: none */
    uint64_t *enabled_ns; /* how long each had been enabled when it was looked at last */
    uint32_t n;
    uint32_t opened_again; /* so often: what it would have told meanwhile was lost */
    uint64_t rescan_ns;    /* when processors are looked for again (monotonic) */
    /* Called with a new event; a negative error closes it again. */
    int (*attach)(void *context, uint32_t cpu, int fd);
    /* Called before an event is closed; may be NULL. */
    void (*detach)(void *context, uint32_t cpu, int fd);
    void *context;
};

/* The caller has set attr, attach, detach and context.  Undone by kiln_percpu_close(). */
KILN_CHECK int kiln_percpu_open(struct kiln_percpu *percpu);
void kiln_percpu_close(struct kiln_percpu *percpu);

/* Does nothing where it was done within the last ten seconds. */
KILN_CHECK int kiln_percpu_rescan(struct kiln_percpu *percpu);

uint32_t kiln_percpu_count(const struct kiln_percpu *percpu);

/*
 * Sets online[cpu] by a list as the kernel writes it ("0-3,5"), which says nothing beyond
 * KILN_CPUS_MAX.  Returns the highest number + 1, or KILN_E_MALFORMED.
 */
int kiln_cpus_parse(const char *list, bool online[KILN_CPUS_MAX]);

#endif /* KILN_HOST_PERCPU_H */
