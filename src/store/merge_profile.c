/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks of all sources are brought into one builder, where equal ones meet; the sums wait beside
 * it until all are there.  Symbols that came later are applied at the end, to the whole batch.
 */
#include "store/merge_profile.h"

#include <errno.h>

#include "base/sat.h"
#include "core/remap.h"
#include "store/scan_int.h"
#include "store/symbols.h"

#define PAGES_MAX ((size_t)256 << 20)
#define SLICE     256u /* stacks of a head */

struct kiln_merge_profile {
    struct kiln_scan *scan;
    const struct kiln_question *q;
    struct kiln_limits limits;
    struct kiln_builder *b;
    struct kiln_budget budget;
    struct sum {
        int64_t sum;
        double mean;
    } * sums; /* by stack of the builder */
    uint32_t n_sums, cap_sums;
    struct kiln_buf type; /* five-part id of the first profile seen */
    int64_t period;
    bool saw;
    size_t charged; /* to the question */
};

int kiln_merge_profile_new(struct kiln_scan *scan, const struct kiln_question *question,
                           struct kiln_merge_profile **ret_profile, struct kiln_err *err)
{
    struct kiln_merge_profile *p = kiln_calloc(1, sizeof(*p));
    int r;

    if (!p)
        return kiln_err_set(err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));
    p->scan = scan;
    p->q = question;
    p->limits = kiln_limits_default;
    if (question->leash->memory_max)
        p->limits.memory_bytes = question->leash->memory_max;
    p->budget.limit = p->limits.memory_bytes;
    kiln_buf_init(&p->type, 1u << 20);
    r = kiln_builder_new(&p->limits, &p->b);
    if (r < 0) {
        kiln_merge_profile_free(p);
        return kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    }
    *ret_profile = p;
    return 0;
}

void kiln_merge_profile_free(struct kiln_merge_profile *p)
{
    if (!p)
        return;
    kiln_builder_free(p->b);
    kiln_array_free(&p->budget, (void **)&p->sums, &p->cap_sums, sizeof(*p->sums));
    kiln_buf_done(&p->type);
    kiln_free(p);
}

void kiln_merge_profile_restart(struct kiln_merge_profile *p)
{
    /* Stacks that nothing adds up to are no samples. */
    for (uint32_t i = 0; i < p->n_sums; i++)
        p->sums[i] = (struct sum){0};
    p->saw = false;
}

int kiln_merge_profile_saw(struct kiln_merge_profile *p, const struct kiln_scan_profile *seen)
{
    if (p->saw)
        return 0;
    p->saw = true;
    p->period = seen->origin->period;
    kiln_buf_clear(&p->type);
    kiln_buf_add_str(&p->type, seen->series->type);
    return p->type.error;
}

/* ---- stacks ---- */

static struct sum sum_of(const struct kiln_merge_sums *sums, uint32_t i)
{
    return (struct sum){sums->sums[i], sums->means ? sums->means[i] : 0};
}

static bool is_nothing(struct sum sum)
{
    return sum.sum == 0 && sum.mean == 0;
}

static int add_sum(struct kiln_merge_profile *p, uint32_t stack, struct sum sum)
{
    int r = kiln_builder_error(p->b);

    if (r == 0)
        r = kiln_grow(&p->budget, (void **)&p->sums, &p->cap_sums, (uint64_t)stack + 1,
                      sizeof(*p->sums), UINT32_MAX);
    if (r < 0)
        return r;
    for (; p->n_sums <= stack; p->n_sums++)
        p->sums[p->n_sums] = (struct sum){0};
    p->sums[stack].sum = (int64_t)((uint64_t)p->sums[stack].sum + (uint64_t)sum.sum);
    p->sums[stack].mean += sum.mean;
    return 0;
}

static int add_head(struct kiln_merge_profile *p, const struct kiln_scan_source *source,
                    const struct kiln_merge_sums *sums)
{
    struct kiln_remap *remap = NULL;
    uint64_t since_ns;
    int r;

    if (source->live)
        kiln_scan_lock(source->tenant, &since_ns);
    r = kiln_remap_new(p->b, source->batch, NULL, &remap);
    for (uint32_t i = 0; r == 0 && i < sums->n; i++) {
        if (!is_nothing(sum_of(sums, i)))
            r = add_sum(p, kiln_remap_stack(remap, i), sum_of(sums, i));
        if (i % SLICE != SLICE - 1 || r < 0)
            continue;
        r = kiln_leash_check(p->q->leash);
        if (source->live)
            kiln_scan_breathe(source->tenant, &since_ns);
    }
    if (source->live)
        kiln_scan_unlock(source->tenant);
    kiln_remap_free(remap);
    return r;
}

/* ---- stacks of a block ---- */

/* One forward pass over them, in the order of ranks. */
struct reading {
    struct kiln_merge_profile *p;
    struct kiln_block *block;
    struct kiln_block_dict *dict;
    struct kiln_remap *remap;
    struct kiln_budget budget;
    struct kiln_page_in in;
    struct kiln_column columns[3];
    uint32_t *path; /* from the root, as indexes of the builder */
    uint32_t n_path, cap_path;
    const struct sum *by_rank;
    uint32_t rank, n_ranks;
};

static int damaged(struct kiln_err *err, const char *what)
{
    return kiln_err_set(err, KILN_E_CORRUPT, NULL, "%s", what);
}

static int add_stack(struct reading *rd, uint64_t kept, const uint64_t *own, uint64_t n)
{
    struct kiln_builder *b = rd->p->b;
    uint32_t depth = (uint32_t)(kept + n), *frames;
    struct sum sum = rd->by_rank[rd->rank++];

    kiln_remap_locations(rd->remap, own, (uint32_t)n, rd->path + kept);
    rd->n_path = depth;
    if (is_nothing(sum))
        return 0;
    frames = kiln_builder_stack_room(b, depth);
    if (!frames)
        return kiln_builder_error(b);
    for (uint32_t i = 0; i < depth; i++)
        frames[i] = rd->path[depth - 1 - i];
    return add_sum(rd->p, kiln_builder_stack_take(b, depth), sum);
}

static int add_page(struct reading *rd, uint64_t n, struct kiln_err *err)
{
    const struct kiln_column *c = rd->columns;
    uint32_t n_locations = rd->dict->batch->dict.n_locations;
    uint64_t at = 0;
    int r = 0;

    if (c[0].n != n || c[1].n != n || n > rd->n_ranks - rd->rank)
        return damaged(err, "its columns do not fit together");
    for (uint32_t i = 0; i < c[2].n; i++) {
        if (c[2].v[i] >= n_locations)
            return damaged(err, "a stack has a location that is not there");
    }
    rd->n_path = 0;
    for (uint64_t i = 0; r == 0 && i < n; i++) {
        uint64_t kept = c[0].v[i], own = c[1].v[i];

        if (own > c[2].n - at || kept > rd->n_path || own > kiln_limits_default.stack_depth - kept)
            return damaged(err, "a stack is damaged");
        r = add_stack(rd, kept, c[2].v + at, own);
        at += own;
    }
    return r;
}

static int read_stacks(struct reading *rd, const struct kiln_section *section, struct kiln_err *err)
{
    struct kiln_leash *leash = rd->p->q->leash;
    int r = kiln_grow(&rd->budget, (void **)&rd->path, &rd->cap_path,
                      (uint64_t)kiln_limits_default.stack_depth + 1, sizeof(*rd->path), UINT32_MAX);

    for (uint32_t i = 0; r == 0 && i < section->n_pages; i++) {
        const struct kiln_page_ref *ref = &rd->block->footer.pages[section->first_page + i];

        r = kiln_leash_check(leash);
        if (r == 0)
            r = kiln_leash_read(leash, ref->size);
        if (r == 0)
            r = kiln_page_load(&rd->in, rd->block->io, rd->block->fd, ref->offset, ref->size, err);
        for (uint32_t k = 0; r == 0 && k < KILN_ARRAY_LEN(rd->columns); k++)
            r = kiln_page_get(&rd->in, &rd->columns[k], UINT32_MAX, err);
        if (r == 0)
            r = add_page(rd, ref->n_entries, err);
    }
    return r;
}

/* Sums in the order of ranks; the forest knows it. */
static int sort_sums(struct kiln_merge_profile *p, const struct kiln_scan_source *source,
                     const struct kiln_merge_sums *sums, struct sum **ret_by_rank,
                     struct kiln_err *err)
{
    struct kiln_forest *forest;
    struct sum *by_rank;
    int r = kiln_scan_forest(p->scan, source, NULL, 0, &forest, err);

    if (r < 0)
        return r;
    by_rank = kiln_calloc((size_t)forest->n_stacks + 1, sizeof(*by_rank));
    for (uint32_t i = 0; by_rank && i < forest->n_stacks; i++)
        by_rank[forest->rank[i]] = sum_of(sums, i);
    kiln_forest_unref(forest);
    *ret_by_rank = by_rank;
    return by_rank ? 0 : -ENOMEM;
}

static int add_block(struct kiln_merge_profile *p, const struct kiln_scan_source *source,
                     const struct kiln_merge_sums *sums, struct kiln_err *err)
{
    const struct kiln_footer *f = &source->block->footer;
    struct reading rd = {.p = p, .block = source->block, .budget = {.limit = PAGES_MAX}};
    struct sum *by_rank = NULL;
    int r = kiln_block_dict(&p->scan->store->cache, source->block, &p->scan->fund, &rd.dict, err);

    if (r == 0)
        r = sort_sums(p, source, sums, &by_rank, err);
    if (r == 0)
        r = kiln_remap_new(p->b, rd.dict->batch, NULL, &rd.remap);
    rd.in.budget = &rd.budget;
    if (r == 0)
        r = kiln_page_in_init(&rd.in, &rd.budget);
    rd.by_rank = by_rank;
    rd.n_ranks = source->n_stacks;
    if (r == 0)
        r = read_stacks(&rd, &f->sections[f->stacks[source->service]], err);
    kiln_page_in_done(&rd.in);
    for (size_t i = 0; i < KILN_ARRAY_LEN(rd.columns); i++)
        kiln_column_done(&rd.columns[i], &rd.budget);
    kiln_array_free(&rd.budget, (void **)&rd.path, &rd.cap_path, sizeof(*rd.path));
    kiln_remap_free(rd.remap);
    kiln_block_dict_unref(rd.dict);
    kiln_free(by_rank);
    return r;
}

int kiln_merge_profile_add(struct kiln_merge_profile *p, const struct kiln_scan_source *source,
                           const struct kiln_merge_sums *sums, struct kiln_err *err)
{
    size_t bytes;
    int r = source->block ? add_block(p, source, sums, err) : add_head(p, source, sums);

    if (r < 0)
        return r;
    bytes = kiln_batch_bytes(kiln_builder_peek(p->b)) + p->budget.used;
    if (bytes > p->charged) {
        r = kiln_fund_take(&p->scan->fund, bytes - p->charged);
        p->charged = bytes;
    }
    return r;
}

/* ---- the batch ---- */

static struct kiln_value_type named(struct kiln_builder *b, struct kiln_str type,
                                    struct kiln_str unit)
{
    return (struct kiln_value_type){kiln_builder_string(b, type), kiln_builder_string(b, unit)};
}

/* A count must not be taken as time for its period a second time. */
static uint32_t open_profile(struct kiln_merge_profile *p, const struct kiln_basis *basis)
{
    struct kiln_profile head = {.time_ns = basis->min_ns, .duration_ns = basis->covered_ns};
    struct kiln_str id = p->saw ? kiln_buf_str(&p->type) : p->q->type, parts[5] = {{0}};

    for (uint32_t i = 0; i < KILN_ARRAY_LEN(parts) && id.ptr; i++)
        parts[i] = kiln_str_cut(&id, ':');
    head.sample_type = named(p->b, parts[1], parts[2]);
    head.period_type = named(p->b, parts[3], parts[4]);
    if (p->saw && !kiln_str_eq(parts[2], KILN_STR("count")))
        head.period = p->period;
    kiln_builder_add_resource(p->b, &(struct kiln_resource){0});
    kiln_builder_add_scope(p->b, &(struct kiln_scope){0});
    return kiln_builder_add_profile(p->b, &head);
}

/* Symbols are a tenant's; where several tenants are asked those of the first count. */
static int name_batch(struct kiln_merge_profile *p, struct kiln_batch **batch, struct kiln_err *err)
{
    uint32_t damaged_files;

    if (p->q->n_tenants == 0)
        return 0;
    return kiln_symbols_apply(p->scan->store->io, p->q->tenants[0], p->limits.memory_bytes, batch,
                              &damaged_files, err);
}

int kiln_merge_profile_finish(struct kiln_merge_profile *p, const struct kiln_basis *basis,
                              struct kiln_batch **ret_batch, struct kiln_err *err)
{
    uint32_t profile = open_profile(p, basis);
    struct kiln_builder *b = p->b;
    struct kiln_batch *batch;
    int r;

    for (uint32_t i = 0; i < p->n_sums; i++) {
        int64_t value = p->q->average ? kiln_sat_round(p->sums[i].mean) : p->sums[i].sum;

        if (value)
            kiln_builder_add_value(b, profile, i, 0, value);
    }
    p->b = NULL;
    r = kiln_builder_finish(b, &batch, err);
    if (r < 0)
        return r;
    r = name_batch(p, &batch, err);
    if (r < 0)
        kiln_batch_unref(batch);
    else
        *ret_batch = batch;
    return r;
}
