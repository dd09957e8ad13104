/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks of a head as a forest: named one after the other, from the root, then sorted.  Of a
 * growing head the naming is done under its lock, a slice at a time.
 */
#include "store/scan_int.h"

#define SLICE 256u

struct making {
    const struct kiln_forest_place *place;
    const struct kiln_head_stacks *list;
    struct kiln_forest_maker maker;
    struct kiln_budget budget;
    uint32_t *names, *starts;
    uint32_t n_names, cap_names, cap_starts;
};

static int name_stack(struct making *m, uint32_t number)
{
    struct kiln_namer *namer = &m->maker.forest->namer;
    const struct kiln_dict *d = &namer->batch->dict;
    struct kiln_range range = d->stacks[number - 1];
    int r = 0;

    for (uint32_t i = range.n; i > 0 && r == 0; i--) {
        struct kiln_named_location l;

        r = kiln_namer_get(namer, d->frames[range.first + i - 1], &l);
        if (r == 0)
            r = kiln_grow(&m->budget, (void **)&m->names, &m->cap_names, (uint64_t)m->n_names + l.n,
                          sizeof(*m->names), UINT32_MAX);
        for (uint32_t k = 0; r == 0 && k < l.n; k++)
            m->names[m->n_names++] = namer->pool[l.first + k];
    }
    return r;
}

static int name_all(struct making *m)
{
    const struct kiln_head_stacks *list = m->list;
    uint64_t since_ns;
    int r = kiln_reserve(&m->budget, (void **)&m->starts, &m->cap_starts, (uint64_t)list->n + 1,
                         sizeof(*m->starts), UINT32_MAX);

    if (r == 0) /* so that there is something to point to */
        r = kiln_grow(&m->budget, (void **)&m->names, &m->cap_names, 1, sizeof(*m->names),
                      UINT32_MAX);
    if (r < 0)
        return r;
    if (list->live)
        kiln_scan_lock(list->tenant, &since_ns);
    for (uint32_t i = 0; r == 0 && i < list->n; i++) {
        m->starts[i] = m->n_names;
        r = name_stack(m, list->stacks ? list->stacks[i] : i + 1);
        if (i % SLICE != SLICE - 1 || r < 0)
            continue;
        r = kiln_leash_check(m->place->fund->leash);
        if (list->live)
            kiln_scan_breathe(list->tenant, &since_ns);
    }
    if (list->live)
        kiln_scan_unlock(list->tenant);
    m->starts[list->n] = m->n_names;
    return r;
}

static void let_go_head(void *head)
{
    kiln_head_unref(head);
}

static void let_go_batch(void *batch)
{
    kiln_batch_unref(batch);
}

/* What has the dictionary lives as long as the forest. */
static void keep(struct kiln_forest *f, const struct kiln_head_stacks *stacks)
{
    if (stacks->batch) {
        f->namer.batch = stacks->batch;
        f->kept = kiln_batch_ref(stacks->batch);
        f->let_go = let_go_batch;
    } else {
        f->namer.batch = kiln_rows_batch(kiln_head_rows(stacks->head));
        f->kept = kiln_head_ref(stacks->head);
        f->let_go = let_go_head;
    }
}

int kiln_forest_of_head(const struct kiln_forest_place *place,
                        const struct kiln_head_stacks *stacks, struct kiln_forest **ret_forest)
{
    size_t limit = place->store->pool->limit;
    struct making m = {.place = place, .list = stacks, .budget = {.limit = limit}};
    struct kiln_finder *finder = NULL;
    struct kiln_forest *f;
    int r = kiln_forest_maker_init(&m.maker, limit);

    if (r < 0)
        return r;
    f = m.maker.forest;
    keep(f, stacks);
    r = kiln_finder_new(place->tenant ? place->tenant->book : NULL, &finder);
    f->namer.finder = finder;
    if (r == 0 && stacks->live)
        r = kiln_scan_load_names(stacks->tenant, f->namer.batch, finder);
    if (r == 0)
        r = name_all(&m);
    if (r == 0)
        r = kiln_forest_of_names(&m.maker, m.names, m.starts, stacks->n, ret_forest);
    else
        kiln_forest_maker_done(&m.maker);
    kiln_array_free(&m.budget, (void **)&m.names, &m.cap_names, sizeof(*m.names));
    kiln_array_free(&m.budget, (void **)&m.starts, &m.cap_starts, sizeof(*m.starts));
    kiln_finder_free(finder);
    if (r == 0) {
        r = kiln_fund_take(place->fund, (*ret_forest)->cached.bytes);
        if (r < 0)
            kiln_forest_unref(*ret_forest);
    }
    return r;
}
