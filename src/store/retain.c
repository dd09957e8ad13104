/* SPDX-License-Identifier: Apache-2.0 */
/*
 * First every part of every block gets its cutoff, by age and then by the bytes of its service;
 * from the cutoffs follows what becomes of a block.  Then the blocks that stay are counted, and the
 * oldest go until the tenant's bytes, the store's and the disk's are kept.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "store/retain.h"

#define DAY_NS          (24 * 3600 * KILN_NS_PER_S)
#define AGE_DEFAULT_NS  (14 * DAY_NS)
#define DISK_DEFAULT    80
#define WORTH_REWRITING 4 /* a block is rewritten when one part in this many is out */

/* ---- rules ---- */

static bool names(const char *name, struct kiln_str text)
{
    return !name || kiln_str_eq(kiln_str_of(name), text);
}

/* How well a rule fits: 0 not at all, more for a rule that says more. */
static uint32_t fit(const struct kiln_retention_rule *rule, struct kiln_str tenant,
                    struct kiln_str service)
{
    if (!names(rule->tenant, tenant) || !names(rule->service, service))
        return 0;
    return 1 + (rule->tenant ? 1 : 0) + (rule->service ? 2 : 0);
}

uint64_t kiln_retain_age_ns(const struct kiln_retention *retention,
                            const struct kiln_retention_rule *rules, uint32_t n_rules,
                            struct kiln_str tenant, struct kiln_str service)
{
    uint64_t age = retention->age_ns ? retention->age_ns : AGE_DEFAULT_NS;
    uint32_t best = 0;

    for (uint32_t i = 0; i < n_rules; i++) {
        uint32_t f = fit(&rules[i], tenant, service);

        if (rules[i].age_ns && f > best) {
            best = f;
            age = rules[i].age_ns;
        }
    }
    return age;
}

const char *kiln_retain_reason_name(enum kiln_retain_reason reason)
{
    static const char *const names_of[] = {"age", "bytes", "disk"};

    return names_of[reason];
}

/* ---- the order of age ---- */

static int by_age(const void *a, const void *b, void *context)
{
    const struct kiln_retain_block *blocks = context;
    const struct kiln_retain_block *x = &blocks[*(const uint32_t *)a];
    const struct kiln_retain_block *y = &blocks[*(const uint32_t *)b];

    if (x->newest_ns != y->newest_ns)
        return x->newest_ns < y->newest_ns ? -1 : 1;
    return memcmp(x->info->id.bytes, y->info->id.bytes, sizeof(x->info->id.bytes));
}

/* ---- parts ---- */

static uint64_t age_cutoff(const struct kiln_retain_opts *opts, struct kiln_str tenant,
                           struct kiln_str service)
{
    uint64_t age =
        kiln_retain_age_ns(&opts->retention, opts->rules, opts->n_rules, tenant, service);

    return !opts->no_age && opts->now_ns > age ? opts->now_ns - age : 0;
}

static struct kiln_retain_part *part_of(const struct kiln_retain_block *block,
                                        const struct kiln_retention_rule *rule)
{
    if (!names(rule->tenant, block->info->tenant))
        return NULL;
    for (uint32_t i = 0; i < block->n_parts; i++) {
        if (names(rule->service, block->parts[i].service))
            return &block->parts[i];
    }
    return NULL;
}

/* From the newest block back, until the service has had its bytes; older parts are out. */
static void bound_service(const struct kiln_retention_rule *rule, struct kiln_retain_block *blocks,
                          const uint32_t *order, uint32_t n)
{
    uint64_t sum = 0;

    for (uint32_t i = n; i > 0; i--) {
        struct kiln_retain_block *block = &blocks[order[i - 1]];
        struct kiln_retain_part *part = part_of(block, rule);

        if (!part || part->max_ns < part->cutoff_ns)
            continue;
        sum += part->bytes;
        if (sum > rule->bytes) {
            part->cutoff_ns = UINT64_MAX;
            block->reason = KILN_RETAIN_BYTES;
        }
    }
}

/* About how many bytes of a part are before its cutoff. */
static uint64_t bytes_out(const struct kiln_retain_part *part)
{
    uint64_t span = part->max_ns - part->min_ns;

    if (part->cutoff_ns > part->max_ns)
        return part->bytes;
    if (part->cutoff_ns <= part->min_ns)
        return 0;
    return (uint64_t)((double)part->bytes * (double)(part->cutoff_ns - part->min_ns) /
                      (double)span);
}

/* ---- blocks ---- */

/* True if the last thing in it is out by age within a day. */
static bool goes_soon(const struct kiln_retain_opts *opts, const struct kiln_retain_block *block)
{
    for (uint32_t i = 0; i < block->n_parts; i++) {
        const struct kiln_retain_part *part = &block->parts[i];
        uint64_t cutoff = age_cutoff(opts, block->info->tenant, part->service);

        if (part->cutoff_ns <= part->max_ns && part->max_ns >= cutoff + DAY_NS)
            return false;
    }
    return true;
}

static void decide_block(const struct kiln_retain_opts *opts, struct kiln_retain_block *block)
{
    uint64_t all = 0;
    bool left = false;

    block->out_bytes = 0;
    for (uint32_t i = 0; i < block->n_parts; i++) {
        const struct kiln_retain_part *part = &block->parts[i];

        block->out_bytes += bytes_out(part);
        all += part->bytes;
        left = left || part->cutoff_ns <= part->max_ns;
    }
    if (!left)
        block->fate = KILN_RETAIN_DROP;
    else if (block->out_bytes && block->out_bytes >= all / WORTH_REWRITING &&
             !goes_soon(opts, block))
        block->fate = KILN_RETAIN_REWRITE;
    else
        block->fate = KILN_RETAIN_KEEP;
}

static void decide_parts(const struct kiln_retain_opts *opts, struct kiln_retain_block *block)
{
    block->reason = KILN_RETAIN_AGE;
    block->newest_ns = kiln_block_newest(block->info, block->info->max_ns, opts->now_ns);
    for (uint32_t i = 0; i < block->n_parts; i++) {
        struct kiln_retain_part *part = &block->parts[i];

        part->max_ns = kiln_block_newest(block->info, part->max_ns, opts->now_ns);
        part->cutoff_ns = age_cutoff(opts, block->info->tenant, part->service);
    }
}

/* ---- bytes of many blocks ---- */

static uint64_t bytes_left(const struct kiln_retain_block *block)
{
    uint64_t out = block->fate == KILN_RETAIN_REWRITE ? block->out_bytes : 0;

    if (block->fate == KILN_RETAIN_DROP)
        return 0;
    return block->info->bytes > out ? block->info->bytes - out : 0;
}

/* Drops the oldest blocks (of a tenant; NULL: of all) until at most `bytes` are left. */
static void bound_bytes(const char *tenant, uint64_t bytes, enum kiln_retain_reason reason,
                        struct kiln_retain_block *blocks, const uint32_t *order, uint32_t n)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < n; i++)
        sum += names(tenant, blocks[i].info->tenant) ? bytes_left(&blocks[i]) : 0;
    for (uint32_t i = 0; i < n && sum > bytes; i++) {
        struct kiln_retain_block *block = &blocks[order[i]];

        if (!names(tenant, block->info->tenant) || block->fate == KILN_RETAIN_DROP)
            continue;
        sum -= bytes_left(block);
        block->fate = KILN_RETAIN_DROP;
        block->reason = reason;
    }
}

/* What the blocks may take of the disk: a share of what is free and what they have. */
static uint64_t disk_bound(const struct kiln_retain_opts *opts,
                           const struct kiln_retain_block *blocks, uint32_t n)
{
    uint32_t percent = opts->retention.disk_percent ? opts->retention.disk_percent : DISK_DEFAULT;
    uint64_t own = 0;

    for (uint32_t i = 0; i < n; i++)
        own += blocks[i].info->bytes;
    return (opts->disk_free + own) / 100 * percent;
}

/* A rule without a tenant bounds every tenant by itself. */
static void bound_tenants(const struct kiln_retention_rule *rule, struct kiln_retain_block *blocks,
                          const uint32_t *order, uint32_t n)
{
    char tenant[256];

    if (rule->tenant) {
        bound_bytes(rule->tenant, rule->bytes, KILN_RETAIN_BYTES, blocks, order, n);
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        struct kiln_str name = blocks[i].info->tenant;
        uint32_t earlier = 0;

        while (earlier < i && !kiln_str_eq(blocks[earlier].info->tenant, name))
            earlier++;
        if (earlier < i || name.len >= sizeof(tenant))
            continue;
        memcpy(tenant, name.ptr, name.len);
        tenant[name.len] = '\0';
        bound_bytes(tenant, rule->bytes, KILN_RETAIN_BYTES, blocks, order, n);
    }
}

int kiln_retain_decide(const struct kiln_retain_opts *opts, struct kiln_retain_block *blocks,
                       uint32_t n)
{
    uint32_t *order = kiln_malloc((n + 1) * sizeof(*order));

    if (!order)
        return -ENOMEM;
    for (uint32_t i = 0; i < n; i++) {
        order[i] = i;
        decide_parts(opts, &blocks[i]);
    }
    qsort_r(order, n, sizeof(*order), by_age, blocks);
    for (uint32_t r = 0; r < opts->n_rules; r++) {
        if (opts->rules[r].service && opts->rules[r].bytes)
            bound_service(&opts->rules[r], blocks, order, n);
    }
    for (uint32_t i = 0; i < n; i++)
        decide_block(opts, &blocks[i]);
    for (uint32_t r = 0; r < opts->n_rules; r++) {
        if (!opts->rules[r].service && opts->rules[r].bytes)
            bound_tenants(&opts->rules[r], blocks, order, n);
    }
    if (opts->retention.bytes)
        bound_bytes(NULL, opts->retention.bytes, KILN_RETAIN_BYTES, blocks, order, n);
    if (opts->disk_total)
        bound_bytes(NULL, disk_bound(opts, blocks, n), KILN_RETAIN_DISK, blocks, order, n);
    kiln_free(order);
    return 0;
}
