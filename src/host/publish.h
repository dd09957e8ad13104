/* SPDX-License-Identifier: Apache-2.0 */
/*
 * publish - a gathering becomes a batch: names from symbol/resolver.h, attributes by
 * OpenTelemetry's conventions, one resource a process (one for all kernel threads) or a container.
 *
 * Threads: one owner, the publisher's thread.
 */
#ifndef KILN_HOST_PUBLISH_H
#define KILN_HOST_PUBLISH_H

#include "core/batch.h"
#include "host/gather.h"

struct kiln_log;
struct kiln_resolver;

/* All of it is borrowed until the publisher is freed. */
struct kiln_publish_opts {
    const char *host_name, *host_id; /* NULL: not said */
    const struct kiln_str *resource; /* names and values in turn, added to every resource */
    uint32_t n_resource;             /* pairs */
    struct kiln_resolver *resolver;  /* NULL: addresses without names */
    uint64_t names_wait_ns;          /* of a batch: until lines and inlines are there */
    size_t memory_max;               /* of a batch; 0: the builder's own limit */
    bool by_container;               /* one resource for all processes of a container */
    bool lean; /* without what linkers call functions, where these begin, columns; and without the
                  id of the thread that a process began with, which is the process' */
    struct kiln_log *log; /* may be NULL */
};

struct kiln_publisher;
KILN_CHECK int kiln_publisher_new(const struct kiln_publish_opts *opts,
                                  struct kiln_publisher **ret_publisher);
void kiln_publisher_free(struct kiln_publisher *publisher);

KILN_CHECK int kiln_publish(struct kiln_publisher *publisher, struct kiln_gathering *gathering,
                            struct kiln_batch **ret_batch, struct kiln_err *err);
/* Places that were looked up so far, and those of them that have no name.  From any thread. */
void kiln_publisher_counts(const struct kiln_publisher *publisher, uint64_t *ret_asked,
                           uint64_t *ret_missing);

#endif /* KILN_HOST_PUBLISH_H */
