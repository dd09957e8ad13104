/* SPDX-License-Identifier: Apache-2.0 */
/* The rows that a question wants (store/scan.h), each put into its bucket (store/tally.h). */
#include <errno.h>

#include "base/sat.h"
#include "store/scan_int.h"
#include "store/tally.h"

/* Rows of one group, bucket and link that follow each other are added at once. */
struct gathering {
    struct kiln_tally *tally;
    const struct kiln_scan_profile *p;
    struct kiln_tally_value sum;
    uint64_t bucket;
    uint32_t n; /* rows in the sum */
    uint64_t set, link;
};

static int flush(struct gathering *g)
{
    int r = g->n ? kiln_tally_add(g->tally, &g->sum) : 0;

    g->n = 0;
    g->sum.value = 0;
    g->sum.count = 0;
    return r;
}

/* Makes the sum one that the next row belongs to. */
static int turn_to(struct gathering *g, uint64_t set, uint64_t link, uint64_t time_ns)
{
    const struct kiln_tally *t = g->tally;
    uint64_t bucket = (time_ns - t->start_ns) / t->opts->step_ns;
    int r = 0;

    if (g->n && set == g->set && link == g->link && bucket == g->bucket) {
        if (time_ns < g->sum.time_ns)
            g->sum.time_ns = time_ns;
        return 0;
    }
    r = flush(g);
    if (r == 0)
        r = kiln_tally_group(g->tally, g->p, set, &g->sum.group);
    g->set = set;
    g->link = link;
    g->bucket = bucket;
    g->sum.time_ns = time_ns;
    g->sum.link = link ? &g->p->source->batch->dict.links[link] : NULL;
    return r;
}

static int gather(struct gathering *g, const struct kiln_scan_run *run)
{
    const struct kiln_weight *weight = &g->p->weight;
    bool by_set = run->attrs && g->tally->opts->n_by;
    bool by_link = run->links && g->tally->opts->span_exemplars;
    int r = 0;

    for (uint32_t i = 0; r == 0 && i < run->n; i++) {
        int64_t raw = run->values ? (int64_t)run->values[i] : 1;

        r = turn_to(g, by_set ? run->attrs[i] : 0, by_link ? run->links[i] : 0,
                    run->times ? run->times[i] : g->p->time_ns);
        g->sum.value = kiln_sat_add(g->sum.value, kiln_sat_mul(raw, weight->scale));
        if (!run->summed)
            g->sum.count += kiln_weight_count(weight, run->timed, raw);
        g->n++;
    }
    if (run->summed)
        g->sum.count += run->count;
    return r;
}

/* ---- the visitor ---- */

static int begin(void *context, const struct kiln_scan_source *source, struct kiln_err *err)
{
    (void)source;
    (void)err;
    kiln_tally_next_source(context);
    return 0;
}

static int show(void *context, const struct kiln_scan_profile *p, struct kiln_err *err)
{
    struct gathering g = {.tally = context, .p = p};
    int r = kiln_tally_begin(g.tally, p);

    for (uint32_t i = 0; r == 0 && i < p->n_runs; i++)
        r = gather(&g, &p->runs[i]);
    if (r == 0)
        r = flush(&g);
    if (r == KILN_E_LIMIT)
        return kiln_err_set(err, r, NULL,
                            "more points than an answer may have: take longer steps, a shorter "
                            "time or fewer labels");
    if (r == 0)
        kiln_tally_end(g.tally);
    return r;
}

static void restart(void *context)
{
    struct kiln_tally *t = context;
    const struct kiln_question *q = t->q;
    const struct kiln_timeline_opts *opts = t->opts;

    kiln_tally_done(t);
    kiln_tally_init(t, q, opts);
}

/* ---- the answer ---- */

static unsigned columns_of(const struct kiln_timeline_opts *opts)
{
    unsigned columns = KILN_SCAN_TIMES | (opts->span_exemplars ? 0 : KILN_SCAN_SUMS);

    if (opts->n_by)
        columns |= KILN_SCAN_ATTRS;
    if (opts->span_exemplars)
        columns |= KILN_SCAN_LINKS;
    else if (opts->exemplars)
        columns |= KILN_SCAN_IDS;
    return columns;
}

static int answer(struct kiln_tally *t, struct kiln_store *store,
                  struct kiln_timeline **ret_timeline, struct kiln_err *err)
{
    const struct kiln_scan_visitor visitor = {
        .context = t, .begin = begin, .profile = show, .restart = restart};
    struct kiln_basis basis = {0};
    struct kiln_scan *scan;
    int r = kiln_scan_open(store, t->q, columns_of(t->opts), &scan, err);

    if (r < 0)
        return r;
    kiln_scan_asks(scan, t->opts->by, t->opts->n_by);
    r = kiln_scan_reserve(scan, &(struct kiln_scan_needs){.forests = kiln_scan_has_stacks(scan)},
                          err);
    if (r == 0)
        r = kiln_scan_run(scan, &visitor, &basis, err);
    if (r == 0)
        r = kiln_tally_finish(t, &basis, ret_timeline);
    kiln_scan_close(scan);
    return r;
}

int kiln_store_timeline(struct kiln_engine *engine, const struct kiln_question *question,
                        const struct kiln_timeline_opts *opts, struct kiln_timeline **ret_timeline,
                        struct kiln_err *err)
{
    struct kiln_tally tally;
    int r;

    if (!opts->step_ns)
        return kiln_err_set(err, -EINVAL, NULL, "the step of a timeline must be above 0");
    kiln_tally_init(&tally, question, opts);
    r = answer(&tally, kiln_store_of(engine), ret_timeline, err);
    kiln_tally_done(&tally);
    return r < 0 ? kiln_err_set(err, r, NULL, "%s", kiln_err_text(r)) : 0;
}
