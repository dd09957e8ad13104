/* SPDX-License-Identifier: Apache-2.0 */
/*
 * usage - what is in a store: bytes, profiles and samples of each tenant, service and profile type.
 *
 * The bytes of a block's dictionary are shared out among its series by the bytes of their samples,
 * so that the sum is what the disk holds.
 *
 * Threads: kiln_usage_collect() as store/engine.h; a list has one owner.
 */
#ifndef KILN_STORE_USAGE_H
#define KILN_STORE_USAGE_H

#include "base/buf.h"
#include "base/mem.h"
#include "store/engine.h"

enum { KILN_USAGE_LEVELS = 4 }; /* 0, 1, 2, and all above */

struct kiln_usage {
    struct kiln_str tenant, service, type;
    uint64_t series; /* counted in each block that has them: at least as many as there are */
    uint64_t profiles, samples, observations;
    uint64_t bytes;                     /* on disk; what is in memory only has none */
    uint64_t min_ns, max_ns;            /* of its data */
    uint32_t levels[KILN_USAGE_LEVELS]; /* blocks that have something of it */
    uint64_t in_head;                   /* profiles that are not in a block yet */
};

struct kiln_usage_list {
    struct kiln_usage *rows; /* by tenant, service, type */
    uint32_t n, cap;
    struct kiln_budget budget;
    struct kiln_buf texts; /* the names of all rows */
    struct kiln_engine_stats total;
};

/* `tenant` empty: all.  The list is freed by kiln_usage_done(), not on failure. */
KILN_CHECK int kiln_usage_collect(struct kiln_engine *engine, struct kiln_str tenant,
                                  struct kiln_usage_list *ret_list, struct kiln_err *err);
void kiln_usage_done(struct kiln_usage_list *list);

/* As a JSON object: docs/formats/cli-json.md. */
void kiln_usage_format(const struct kiln_usage_list *list, struct kiln_buf *out);

#endif /* KILN_STORE_USAGE_H */
