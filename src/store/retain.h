/* SPDX-License-Identifier: Apache-2.0 */
/*
 * retain - what is kept and what goes: pure decisions, no files.
 *
 * Everything has an age after which it goes: of the most specific rule that says one (tenant and
 * service, then service, then tenant), else of the store.  A rule of a service may also bound its
 * bytes, a rule of a tenant the bytes of the tenant, the store all bytes, and the disk: the blocks
 * may take a share of what is free and what they take already.  By bytes, the oldest goes first.
 *
 * A block goes when everything in it is out.  One of which a quarter is out is rewritten without
 * it, unless the rest is going within a day anyway.
 *
 * Threads: no state.
 */
#ifndef KILN_STORE_RETAIN_H
#define KILN_STORE_RETAIN_H

#include "store/block.h"
#include "store/store.h"

/* What a block holds of one service. */
struct kiln_retain_part {
    struct kiln_str service;
    uint64_t min_ns, max_ns, bytes;
    uint64_t cutoff_ns; /* decided: what is before it goes; UINT64_MAX: all of it */
};

enum kiln_retain_fate { KILN_RETAIN_KEEP, KILN_RETAIN_REWRITE, KILN_RETAIN_DROP };
enum kiln_retain_reason { KILN_RETAIN_AGE, KILN_RETAIN_BYTES, KILN_RETAIN_DISK };

struct kiln_retain_block {
    const struct kiln_block_info *info;
    struct kiln_retain_part *parts; /* one for each service, together all of the block */
    uint32_t n_parts;
    uint64_t newest_ns; /* decided, like the next */
    enum kiln_retain_fate fate;
    enum kiln_retain_reason reason;
    uint64_t out_bytes; /* about what would be won by rewriting it */
};

struct kiln_retain_opts {
    uint64_t now_ns;
    bool no_age; /* nothing goes by age: the clock is not to be trusted */
    struct kiln_retention retention;
    const struct kiln_retention_rule *rules;
    uint32_t n_rules;
    uint64_t disk_free, disk_total; /* 0, 0: not known */
};

/* How long something is kept. */
uint64_t kiln_retain_age_ns(const struct kiln_retention *retention,
                            const struct kiln_retention_rule *rules, uint32_t n_rules,
                            struct kiln_str tenant, struct kiln_str service);

/* Decides the fate of all blocks of a store.  Returns 0 or -ENOMEM. */
KILN_CHECK int kiln_retain_decide(const struct kiln_retain_opts *opts,
                                  struct kiln_retain_block *blocks, uint32_t n);

/* "age", "bytes", "disk". */
const char *kiln_retain_reason_name(enum kiln_retain_reason reason);

#endif /* KILN_STORE_RETAIN_H */
