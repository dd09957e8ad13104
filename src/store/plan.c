/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Candidates are the blocks of one tier: level 0; or level 1 and what has waited for a day below
 * it, by the day their data ends.  They are sorted by the time of their data, and the first run of
 * at least two that fits both bounds is the plan.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "store/plan.h"

#define HOUR_NS           (3600 * KILN_NS_PER_S)
#define DAY_NS            (24 * HOUR_NS)
#define OUT_BYTES_DEFAULT (UINT64_C(256) << 20)
#define LATE_SHARE        8 /* what comes late is merged in when it is this part of its day */

struct planner {
    const struct kiln_block_info *const *blocks;
    const bool *skip;
    uint32_t n;
    struct kiln_plan_opts opts;
    uint32_t *picked; /* candidates of the tier at hand */
    uint32_t n_picked;
};

static uint64_t day_of(const struct kiln_block_info *block)
{
    return block->max_ns / DAY_NS;
}

static uint64_t waited(const struct planner *p, const struct kiln_block_info *block)
{
    return p->opts.now_ns > block->made_ns ? p->opts.now_ns - block->made_ns : 0;
}

/* The level that counts: a block that nobody joined for a day goes up with the next tier. */
static uint32_t tier_of(const struct planner *p, const struct kiln_block_info *block)
{
    return block->level == 0 && waited(p, block) >= DAY_NS ? 1 : block->level;
}

static bool is_full(const struct planner *p, const struct kiln_block_info *block)
{
    return block->bytes >= p->opts.out_bytes / 2 || block->dict_bytes >= p->opts.memory_bytes / 2;
}

/* ---- the order of data ---- */

static int by_time(const void *a, const void *b, void *context)
{
    const struct planner *p = context;
    const struct kiln_block_info *x = p->blocks[*(const uint32_t *)a];
    const struct kiln_block_info *y = p->blocks[*(const uint32_t *)b];

    if (x->min_ns != y->min_ns)
        return x->min_ns < y->min_ns ? -1 : 1;
    return memcmp(x->id.bytes, y->id.bytes, sizeof(x->id.bytes));
}

/* ---- choosing ---- */

static void pick(struct planner *p, bool (*wanted)(const struct planner *p, uint32_t i, uint64_t x),
                 uint64_t x)
{
    p->n_picked = 0;
    for (uint32_t i = 0; i < p->n; i++) {
        if (!(p->skip && p->skip[i]) && !is_full(p, p->blocks[i]) && wanted(p, i, x))
            p->picked[p->n_picked++] = i;
    }
    qsort_r(p->picked, p->n_picked, sizeof(*p->picked), by_time, p);
}

static bool any(const struct planner *p, uint32_t i, uint64_t x)
{
    (void)p;
    (void)i;
    (void)x;
    return true;
}

static bool of_tier(const struct planner *p, uint32_t i, uint64_t tier)
{
    return tier_of(p, p->blocks[i]) == tier;
}

static bool of_day(const struct planner *p, uint32_t i, uint64_t day)
{
    return tier_of(p, p->blocks[i]) == 1 && day_of(p->blocks[i]) == day;
}

static bool settled_of_day(const struct planner *p, uint32_t i, uint64_t day)
{
    return p->blocks[i]->level >= 2 && day_of(p->blocks[i]) == day;
}

/* Enough of them, or two of which the older has waited long enough. */
static bool is_due(const struct planner *p, uint32_t enough, uint64_t wait_ns)
{
    uint64_t longest = 0;

    for (uint32_t i = 0; i < p->n_picked; i++) {
        uint64_t w = waited(p, p->blocks[p->picked[i]]);

        longest = w > longest ? w : longest;
    }
    return p->n_picked >= enough || (p->n_picked >= 2 && longest >= wait_ns);
}

/* More than one merge can take: it need not wait, and its result is not merged again. */
static bool is_plenty(const struct planner *p)
{
    uint64_t bytes = 0, dict_bytes = 0;

    for (uint32_t i = 0; i < p->n_picked; i++) {
        bytes += p->blocks[p->picked[i]]->bytes;
        dict_bytes += p->blocks[p->picked[i]]->dict_bytes;
    }
    return p->n_picked >= 4 && (bytes > p->opts.out_bytes || dict_bytes > p->opts.memory_bytes);
}

static bool fits(const struct planner *p, const struct kiln_plan *plan,
                 const struct kiln_block_info *block)
{
    return plan->n < KILN_PLAN_FAN_MAX && plan->bytes + block->bytes <= p->opts.out_bytes &&
           plan->dict_bytes + block->dict_bytes <= p->opts.memory_bytes;
}

static void take(const struct planner *p, struct kiln_plan *plan, uint32_t i)
{
    const struct kiln_block_info *block = p->blocks[i];

    plan->blocks[plan->n++] = i;
    plan->bytes += block->bytes;
    plan->dict_bytes += block->dict_bytes;
    if (block->level >= plan->level)
        plan->level = block->level + 1;
}

/* The first run of candidates that fits; false if no two do. */
static bool first_run(const struct planner *p, struct kiln_plan *ret)
{
    for (uint32_t start = 0; start + 1 < p->n_picked; start++) {
        struct kiln_plan plan = {0};

        for (uint32_t i = start; i < p->n_picked && fits(p, &plan, p->blocks[p->picked[i]]); i++)
            take(p, &plan, p->picked[i]);
        if (plan.n >= 2) {
            *ret = plan;
            return true;
        }
    }
    return false;
}

/* ---- the tiers ---- */

static bool plan_fresh(struct planner *p, struct kiln_plan *ret)
{
    pick(p, of_tier, 0);
    if (!(is_due(p, KILN_PLAN_FRESH, HOUR_NS) || is_plenty(p)) || !first_run(p, ret))
        return false;
    ret->level = 1;
    return true;
}

/* What came late goes into the block of its day. */
static bool plan_late(struct planner *p, uint64_t day, struct kiln_plan *ret)
{
    struct kiln_plan late = {0};

    pick(p, of_day, day);
    if (p->n_picked == 0 || waited(p, p->blocks[p->picked[0]]) < DAY_NS)
        return false;
    for (uint32_t i = 0; i < p->n_picked && fits(p, &late, p->blocks[p->picked[i]]); i++)
        take(p, &late, p->picked[i]);
    pick(p, settled_of_day, day);
    for (uint32_t i = 0; i < p->n_picked; i++) {
        const struct kiln_block_info *block = p->blocks[p->picked[i]];

        if (late.bytes >= block->bytes / LATE_SHARE && fits(p, &late, block)) {
            take(p, &late, p->picked[i]);
            *ret = late;
            return true;
        }
    }
    return false;
}

static bool plan_day(struct planner *p, uint64_t day, struct kiln_plan *ret)
{
    pick(p, of_day, day);
    if (is_due(p, KILN_PLAN_DAY, DAY_NS) && first_run(p, ret)) {
        ret->level = 2;
        return true;
    }
    return plan_late(p, day, ret);
}

/* Each day that has blocks of level 1 is asked once: the first block that has it asks. */
static bool plan_days(struct planner *p, struct kiln_plan *ret)
{
    for (uint32_t i = 0; i < p->n; i++) {
        uint32_t earlier = 0;

        if (tier_of(p, p->blocks[i]) != 1)
            continue;
        while (earlier < i && !(tier_of(p, p->blocks[earlier]) == 1 &&
                                day_of(p->blocks[earlier]) == day_of(p->blocks[i])))
            earlier++;
        if (earlier == i && plan_day(p, day_of(p->blocks[i]), ret))
            return true;
    }
    return false;
}

static bool plan_all(struct planner *p, struct kiln_plan *ret)
{
    pick(p, any, 0);
    return first_run(p, ret);
}

static struct kiln_plan_opts with_defaults(const struct kiln_plan_opts *opts)
{
    struct kiln_plan_opts full = *opts;

    if (full.out_bytes == 0)
        full.out_bytes = OUT_BYTES_DEFAULT;
    if (full.memory_bytes == 0)
        full.memory_bytes = SIZE_MAX;
    return full;
}

int kiln_plan_next(const struct kiln_block_info *const *blocks, const bool *skip, uint32_t n,
                   const struct kiln_plan_opts *opts, struct kiln_plan *ret_plan)
{
    struct planner p = {.blocks = blocks, .skip = skip, .n = n, .opts = with_defaults(opts)};
    bool found;

    if (n < 2)
        return 0;
    p.picked = kiln_malloc(n * sizeof(*p.picked));
    if (!p.picked)
        return -ENOMEM;
    found =
        p.opts.all ? plan_all(&p, ret_plan) : plan_fresh(&p, ret_plan) || plan_days(&p, ret_plan);
    kiln_free(p.picked);
    return found;
}

/* ---- the backlog ---- */

struct kiln_backlog kiln_plan_backlog(const struct kiln_block_info *const *blocks, uint32_t n,
                                      const struct kiln_plan_opts *opts)
{
    struct planner p = {.blocks = blocks, .n = n, .opts = with_defaults(opts)};
    struct kiln_backlog fresh = {0}, rest = {0};
    bool waits = false;

    for (uint32_t i = 0; i < n; i++) {
        struct kiln_backlog *to = blocks[i]->level == 0 ? &fresh : &rest;

        if (blocks[i]->level > 1 || is_full(&p, blocks[i]))
            continue;
        if (blocks[i]->level == 1 && waited(&p, blocks[i]) < DAY_NS)
            continue;
        waits = waits || (blocks[i]->level == 0 && waited(&p, blocks[i]) >= HOUR_NS);
        to->blocks++;
        to->bytes += blocks[i]->bytes;
    }
    if (fresh.blocks < 2 || (fresh.blocks < KILN_PLAN_FRESH && !waits))
        fresh = (struct kiln_backlog){0};
    if (rest.blocks < 2)
        rest = (struct kiln_backlog){0};
    return (struct kiln_backlog){fresh.blocks + rest.blocks, fresh.bytes + rest.bytes};
}
