/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much memory an answer will take, estimated from the footers of blocks.  Numbers of stacks are
 * known; what a forest takes is guessed from the number of frames.  A forest that is made goes to
 * the cache, which pays for it, but all forests of a query must be there at once.  What it takes to
 * find the largest nodes (store/merge_cut.c) was measured: of all stacks a little, for those that
 * are met on the way, and for each node a place in the sources that have it.
 *
 * Where that is more than the query may use, and the visitor can summarize (store/merge_wide.h),
 * the query is wide: it gets a fixed share, and what reading its largest source takes.
 */
#include "store/rollup.h"
#include "store/scan_int.h"

#define BASE         ((size_t)1 << 20) /* pages, columns, the answer */
#define FOREST_NODE  6u                /* bytes */
#define FOREST_STACK 24u
#define HEAD_FRAME   12u
#define CUT_STACK    18u /* of all sources */
#define CUT_NODE     180u
#define CUT_MEMBER   18u /* of a node in one source */
#define ROLLED_NODE  48u /* of a pruned tree */
#define NAME         88u /* of a function in a forest */
#define SOURCE       1024u
#define WIDE_MAX     ((size_t)48 << 20)
#define WIDE_MIN     ((size_t)4 << 20)

struct estimate {
    uint64_t a_stack; /* bytes; and as many for a source of which rows go by */
    uint64_t n_blocks, n_sources;
    uint64_t rolled; /* trees of roll-ups */
    uint64_t stacks;
    uint64_t largest; /* bytes, for a while */
    uint64_t frames;  /* of all sources, shared ones counted once: the nodes of their trees */
    uint64_t forests; /* bytes */
};

static uint64_t less(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* A service has no more names than its stacks have nodes, nor than its block has functions. */
static uint64_t forest_bytes(const struct kiln_footer *f, uint64_t stacks, uint64_t frames)
{
    const struct kiln_section *functions = kiln_footer_section(f, KILN_SECTION_FUNCTIONS);

    return stacks * FOREST_STACK + frames * FOREST_NODE +
           less(frames, functions ? functions->n_entries : 0) / 2 * NAME;
}

/* The services of a block that have a chosen series, each once. */
static int add_block(struct kiln_scan *scan, struct kiln_tenant *tenant, struct kiln_block *block,
                     bool forests, struct estimate *e)
{
    const struct kiln_footer *f = &block->footer;
    bool stale = kiln_census_is_stale(tenant, block);
    struct kiln_cache *cache = &scan->store->cache;
    uint64_t dict = kiln_cache_has(cache, &f->info.id, KILN_CACHE_META) ? 0 : f->info.dict_bytes;
    uint32_t last = UINT32_MAX;
    int r = 0;

    for (uint32_t i = 0; r == 0 && i < f->info.n_series; i++) {
        const struct kiln_block_series *s = &f->series[i];
        struct kiln_scan_series judged;
        uint64_t stacks, frames, bytes, forest;

        if (f->services[i] == last || !kiln_scan_touches(scan, s->min_ns, s->max_ns))
            continue;
        r = kiln_scan_judge_series(scan, s->key, &judged);
        if (r < 0 || !judged.chosen)
            continue;
        last = f->services[i];
        bytes = dict;
        if (!stale && kiln_scan_is_rolled(scan, block, last)) {
            e->rolled++;
            e->largest = bytes > e->largest ? bytes : e->largest;
            continue;
        }
        stacks = f->sections[f->stacks[last]].n_entries;
        e->stacks += stacks;
        e->n_sources++;
        bytes += stacks * e->a_stack;
        frames =
            f->info.n_stacks
                ? (uint64_t)((double)stacks / (double)f->info.n_stacks * (double)f->info.n_frames)
                : 0;
        forest = forest_bytes(f, stacks, frames);
        e->frames += frames;
        e->forests += forest;
        if (forests && !kiln_cache_has(cache, &f->info.id, last))
            bytes += forest;
        e->largest = bytes > e->largest ? bytes : e->largest;
    }
    return r;
}

static void add_head(const struct kiln_scan *scan, const struct kiln_dict *dict, uint32_t n_stacks,
                     bool forests, struct estimate *e)
{
    uint64_t bytes =
        forests && kiln_scan_has_stacks(scan) ? (uint64_t)dict->n_frames * HEAD_FRAME : 0;

    e->stacks += n_stacks;
    e->frames += dict->n_frames;
    e->n_sources++;
    bytes += (uint64_t)n_stacks * e->a_stack;
    e->largest = bytes > e->largest ? bytes : e->largest;
}

static int add_part(struct kiln_scan *scan, const struct kiln_scan_part *part, bool forests,
                    struct estimate *e)
{
    int r = 0;

    for (uint32_t i = 0; r == 0 && i < part->blocks.n; i++) {
        const struct kiln_block_info *info = kiln_block_info(part->blocks.blocks[i]);

        if (!kiln_scan_touches(scan, info->min_ns, info->max_ns))
            continue;
        e->n_blocks++;
        r = add_block(scan, part->tenant, part->blocks.blocks[i], forests, e);
    }
    if (part->cutting) {
        const struct kiln_dict *dict = &kiln_rows_batch(kiln_head_rows(part->cutting))->dict;

        add_head(scan, dict, dict->n_stacks, forests, e);
    }
    if (part->n_rows) {
        struct kiln_dict dict = {.n_frames = part->n_frames};

        add_head(scan, &dict, part->n_stacks, forests, e);
    }
    return r;
}

/* The trees of roll-ups are as large as their number leaves room for. */
static uint64_t rolled_bytes(const struct estimate *e)
{
    uint64_t nodes = KILN_SCAN_ROLLED_NODES / (e->n_blocks + 1);

    return e->rolled * (nodes < KILN_ROLLUP_NODES ? nodes : KILN_ROLLUP_NODES) * ROLLED_NODE;
}

static uint64_t cut_bytes(const struct estimate *e, uint32_t nodes_max)
{
    uint64_t nodes = less(nodes_max, e->stacks);

    return nodes_max ? e->stacks * CUT_STACK + nodes * CUT_NODE +
                           CUT_MEMBER * less(nodes * e->n_sources, e->frames)
                     : 0;
}

/* What all sources take at once. */
static uint64_t exact_bytes(const struct estimate *e, const struct kiln_scan_needs *needs)
{
    return BASE + e->stacks * e->a_stack + e->largest + rolled_bytes(e) +
           cut_bytes(e, needs->nodes_max) + (needs->forests ? e->forests : 0) +
           e->n_sources * SOURCE;
}

/* A wide query, of what is left beside its largest source. */
static int reserve_wide(struct kiln_scan *scan, const struct estimate *e, struct kiln_err *err)
{
    size_t most = kiln_leash_most(scan->q->leash), beside = BASE + (size_t)e->largest;
    size_t wide = most > beside ? (size_t)less(WIDE_MAX, (most - beside) / 8 * 7) : 0;

    wide = wide > WIDE_MIN ? wide : WIDE_MIN; /* or it is refused */
    scan->is_wide = true;
    scan->wide_bytes = wide;
    return kiln_scan_wait(scan, beside, wide, err);
}

int kiln_scan_reserve(struct kiln_scan *scan, const struct kiln_scan_needs *needs,
                      struct kiln_err *err)
{
    struct estimate e = {.a_stack = needs->bytes_a_stack};
    uint64_t bytes;
    int r = 0;

    for (uint32_t i = 0; r == 0 && i < scan->n_parts; i++)
        r = add_part(scan, &scan->parts[i], needs->forests, &e);
    if (r < 0)
        return kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    if (needs->may_be_wide &&
        (needs->is_wide || exact_bytes(&e, needs) > kiln_leash_most(scan->q->leash)))
        return reserve_wide(scan, &e, err);
    bytes = e.stacks * e.a_stack + e.largest + rolled_bytes(&e);
    return kiln_scan_wait(scan, BASE + (size_t)bytes, (size_t)cut_bytes(&e, needs->nodes_max), err);
}
