/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Verifying is reading everything, and adding it up: a tree must have the total of its span, and
 * the functions of all hours those of all days.
 */
#include <errno.h>

#include "base/sat.h"
#include "store/block_int.h"
#include "store/rollup.h"

static int damaged(struct kiln_block *block, const char *what, struct kiln_err *err)
{
    return kiln_err_set(err, KILN_E_CORRUPT, block->path, "roll-ups: %s", what);
}

/* ---- functions ---- */

/* By name: self and total. */
struct sums {
    int64_t *self, *total;
};

static int sums_init(struct sums *sums, struct kiln_budget *budget, uint32_t n)
{
    int r = kiln_budget_take(budget, 2 * ((size_t)n + 1) * sizeof(*sums->self));

    if (r < 0)
        return r;
    sums->self = kiln_calloc(2 * ((size_t)n + 1), sizeof(*sums->self));
    sums->total = sums->self ? sums->self + n + 1 : NULL;
    if (!sums->self)
        kiln_budget_give(budget, 2 * ((size_t)n + 1) * sizeof(*sums->self));
    return sums->self ? 0 : -ENOMEM;
}

static void sums_done(struct sums *sums, struct kiln_budget *budget, uint32_t n)
{
    if (sums->self)
        kiln_budget_give(budget, 2 * ((size_t)n + 1) * sizeof(*sums->self));
    kiln_free(sums->self);
}

static int compare_levels(struct kiln_block *block, struct kiln_rollup *u, uint32_t group,
                          struct sums sums[2], uint32_t n_names, struct kiln_err *err)
{
    const struct kiln_rollup_group *g = &kiln_rollup_groups(u, &(uint32_t){0})[group];
    bool all[KILN_ROLLUP_SPANS_MAX];
    int r;

    memset(all, true, sizeof(all));
    r = kiln_rollup_functions(u, group, KILN_ROLLUP_HOURS, all, sums[0].self, sums[0].total, err);
    if (r == 0)
        r = kiln_rollup_functions(u, group, KILN_ROLLUP_DAYS, all, sums[1].self, sums[1].total,
                                  err);
    for (uint32_t i = 0; r == 0 && g->n_hours && i < n_names; i++) {
        if (sums[0].self[i] != sums[1].self[i] || sums[0].total[i] != sums[1].total[i])
            r = damaged(block, "hours and days do not say the same", err);
    }
    return r;
}

static int check_functions(struct kiln_block *block, struct kiln_rollup *u,
                           struct kiln_budget *budget, uint32_t group, uint32_t n_names,
                           struct kiln_err *err)
{
    struct sums sums[2] = {{0}};
    int r = sums_init(&sums[0], budget, n_names);

    if (r == 0)
        r = sums_init(&sums[1], budget, n_names);
    if (r == 0)
        r = compare_levels(block, u, group, sums, n_names, err);
    sums_done(&sums[0], budget, n_names);
    sums_done(&sums[1], budget, n_names);
    return r;
}

/* ---- trees ---- */

static int check_trees(struct kiln_block *block, struct kiln_rollup *u, uint32_t group,
                       struct kiln_rollup_nodes *nodes, struct kiln_err *err)
{
    const struct kiln_rollup_group *g = &kiln_rollup_groups(u, &(uint32_t){0})[group];
    int r = 0;

    for (uint32_t i = 0; r == 0 && i < g->n_trees; i++) {
        int64_t total = 0;

        r = kiln_rollup_tree(u, group, i, nodes, err);
        for (uint32_t k = 0; r == 0 && k < nodes->n; k++)
            total = kiln_sat_add(total, kiln_sat_add(nodes->self[k], nodes->folded[k]));
        if (r == 0 && total != g->spans[g->trees[i].span].total)
            r = damaged(block, "a tree has not the total of its span", err);
    }
    return r;
}

/* ---- all ---- */

static int check_service(struct kiln_block *block, uint32_t service, struct kiln_budget *budget,
                         struct kiln_err *err)
{
    const struct kiln_rollup_name *names;
    struct kiln_rollup_nodes nodes = {0};
    struct kiln_rollup *u;
    uint32_t n_groups = 0, n_names = 0;
    int r = kiln_rollup_open(block, service, budget, &u, err);

    if (r < 0 || !u)
        return r;
    (void)kiln_rollup_groups(u, &n_groups);
    r = kiln_rollup_names(u, &names, &n_names, err);
    for (uint32_t i = 0; r == 0 && i < n_groups; i++) {
        r = check_functions(block, u, budget, i, n_names, err);
        if (r == 0)
            r = check_trees(block, u, i, &nodes, err);
    }
    kiln_rollup_nodes_done(u, &nodes);
    kiln_rollup_free(u);
    return r;
}

int kiln_rollup_verify(struct kiln_block *block, struct kiln_budget *budget, struct kiln_err *err)
{
    const struct kiln_footer *f = &block->footer;
    uint32_t last = UINT32_MAX;
    int r = 0;

    for (uint32_t i = 0; r == 0 && i < f->n_sections; i++) {
        if (f->sections[i].kind != KILN_SECTION_ROLLUP || f->sections[i].owner == last)
            continue;
        last = f->sections[i].owner;
        r = check_service(block, last, budget, err);
    }
    if (r < 0 && err && err->text[0] == '\0')
        kiln_err_set(err, r, block->path, "roll-ups: %s", kiln_err_text(r));
    return r;
}
