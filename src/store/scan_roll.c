/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What roll-ups (store/rollup.h) can show instead of rows.
 *
 * A group whose series are all chosen, with nothing left to be decided by attributes, gives every
 * day that lies in a window, and every hour of those that do not; what is left of the windows is
 * shown as rows, of the series of this group alone.  All other series are shown as rows.
 *
 * Short questions read rows: they are exact, and soon read.
 */
#include <errno.h>
#include <stdlib.h>

#include "store/rollup.h"
#include "store/scan_int.h"

#define MEMORY_MAX ((size_t)64 << 20) /* of the roll-ups of one service */

struct rolling {
    struct kiln_scan *scan;
    struct kiln_scan_source source;
    struct kiln_budget budget;
    struct kiln_rollup *rollup;
    const struct kiln_rollup_group *group;
    bool wanted[KILN_N_ROLLUP_LEVELS][KILN_ROLLUP_SPANS_MAX];
    struct kiln_window *left; /* windows for rows of the group */
    uint32_t n_left, cap_left;
    uint32_t n_wanted;
    uint32_t n_blocks;
    bool has_rolled;          /* something of the block */
    struct kiln_stale *stale; /* names of the block that would now be others; or NULL */
    bool *chosen;             /* by series: shown as rows with all windows */
    int (*rows)(struct kiln_scan *scan, struct kiln_scan_part *part, struct kiln_block *block,
                struct kiln_err *err);
    struct kiln_scan_part *part;
};

bool kiln_scan_may_roll(const struct kiln_scan *scan)
{
    const struct kiln_question *q = scan->q;
    uint64_t min = kiln_rollup_limits.range_ns, range = q->n_windows ? 0 : min;

    if (!scan->rolls || q->average || q->n_profile_ids || kiln_scan_has_links(scan) ||
        kiln_scan_has_stacks(scan))
        return false;
    for (uint32_t i = 0; i < q->n_windows && range < min; i++)
        range += q->windows[i].end_ns - q->windows[i].start_ns;
    return range >= min;
}

bool kiln_scan_is_rolled(const struct kiln_scan *scan, const struct kiln_block *block,
                         uint32_t service)
{
    const struct kiln_footer *f = &block->footer;

    if (f->info.level == 0 || !kiln_scan_may_roll(scan) ||
        !kiln_scan_covers(scan, f->info.min_ns, f->info.max_ns))
        return false;
    for (uint32_t i = 0; i < f->n_sections; i++) {
        if (f->sections[i].kind == KILN_SECTION_ROLLUP_NAMES && f->sections[i].owner == service)
            return true;
    }
    return false;
}

/* ---- which spans ---- */

/* Adds what a span has of the windows to those that are left. */
static int leave(struct rolling *o, const struct kiln_rollup_span *span)
{
    const struct kiln_question *q = o->scan->q;
    const struct kiln_window all = {0, UINT64_MAX};
    uint32_t n = q->n_windows ? q->n_windows : 1;

    for (uint32_t i = 0; i < n; i++) {
        struct kiln_window w = q->n_windows ? q->windows[i] : all;
        int r;

        w.start_ns = w.start_ns < span->start_ns ? span->start_ns : w.start_ns;
        w.end_ns = w.end_ns > span->end_ns ? span->end_ns : w.end_ns;
        if (w.start_ns >= w.end_ns)
            continue;
        if (o->n_left && o->left[o->n_left - 1].end_ns == w.start_ns) {
            o->left[o->n_left - 1].end_ns = w.end_ns;
            continue;
        }
        r = kiln_grow(&o->budget, (void **)&o->left, &o->cap_left, (uint64_t)o->n_left + 1,
                      sizeof(*o->left), UINT32_MAX);
        if (r < 0)
            return r;
        o->left[o->n_left++] = w;
    }
    return 0;
}

static bool is_whole(const struct rolling *o, const struct kiln_rollup_span *span)
{
    return (span->n_trees || o->scan->visitor->no_trees) &&
           kiln_scan_covers(o->scan, span->first_ns, span->last_ns);
}

static int plan_hours(struct rolling *o, const struct kiln_rollup_span *day)
{
    const struct kiln_rollup_group *g = o->group;
    bool any = false;
    int r = 0;

    for (uint32_t i = 0; r == 0 && i < g->n_hours; i++) {
        const struct kiln_rollup_span *hour = &g->spans[i];

        if (hour->start_ns < day->start_ns || hour->start_ns >= day->end_ns)
            continue;
        any = true;
        o->wanted[KILN_ROLLUP_HOURS][i] = is_whole(o, hour);
        o->n_wanted += o->wanted[KILN_ROLLUP_HOURS][i];
        if (!o->wanted[KILN_ROLLUP_HOURS][i])
            r = leave(o, hour);
    }
    return any || r < 0 ? r : leave(o, day);
}

/* Which spans are wanted, and which windows are left. */
static int plan(struct rolling *o)
{
    const struct kiln_rollup_group *g = o->group;
    int r = 0;

    memset(o->wanted, 0, sizeof(o->wanted));
    o->n_left = o->n_wanted = 0;
    for (uint32_t i = g->n_hours; r == 0 && i < g->n_spans; i++) {
        const struct kiln_rollup_span *day = &g->spans[i];
        bool whole = is_whole(o, day);

        o->wanted[KILN_ROLLUP_DAYS][i - g->n_hours] = whole;
        o->n_wanted += whole;
        if (!whole && kiln_scan_touches(o->scan, day->first_ns, day->last_ns))
            r = plan_hours(o, day);
    }
    return r;
}

/* ---- groups ---- */

/* Whether the question wants all of the group's series that are in its time. */
static bool is_chosen(const struct rolling *o)
{
    const struct kiln_footer *f = &o->source.block->footer;
    bool any = false;

    for (uint32_t i = 0; i < o->group->n_series; i++) {
        uint32_t series = o->group->series[i];
        const struct kiln_scan_series *s = &o->scan->memo.series[series];

        if (s->chosen && s->pending)
            return false;
        if (!s->chosen &&
            kiln_scan_touches(o->scan, f->series[series].min_ns, f->series[series].max_ns))
            return false;
        any = any || s->chosen;
    }
    return any;
}

static int count_spans(struct rolling *o)
{
    struct kiln_basis *basis = &o->scan->basis;
    int r = 0;

    for (uint32_t i = 0; r == 0 && i < o->group->n_spans; i++) {
        const struct kiln_rollup_span *s = &o->group->spans[i];
        bool is_hour = i < o->group->n_hours;

        if (!o->wanted[is_hour ? KILN_ROLLUP_HOURS : KILN_ROLLUP_DAYS]
                      [is_hour ? i : i - o->group->n_hours])
            continue;
        kiln_scan_widen(o->scan, s->first_ns, s->last_ns);
        basis->n_profiles += s->n_profiles;
        basis->n_unsure += s->n_continued;
        basis->n_time_set += s->n_time_set;
        r = kiln_scan_cover(o->scan, s->first_ns, s->covered_ns);
    }
    return r;
}

/* The rows that are left of the group. */
static int show_rest(struct rolling *o, struct kiln_err *err)
{
    const struct kiln_question *q = o->scan->q;
    struct kiln_question rest = *q;
    int r;

    rest.windows = o->left;
    rest.n_windows = o->n_left;
    for (uint32_t i = 0; i < o->scan->memo.n_series; i++)
        o->scan->memo.series[i].chosen = false;
    for (uint32_t i = 0; i < o->group->n_series; i++)
        o->scan->memo.series[o->group->series[i]].chosen = o->chosen[o->group->series[i]];
    o->scan->q = &rest;
    o->scan->is_rest = true;
    r = o->rows(o->scan, o->part, o->source.block, err);
    o->scan->is_rest = false;
    o->scan->q = q;
    for (uint32_t i = 0; i < o->scan->memo.n_series; i++)
        o->scan->memo.series[i].chosen = o->chosen[i];
    return r;
}

static bool ends_the_question(int r)
{
    return r == -ECANCELED || r == -ETIMEDOUT;
}

static int roll_group(struct rolling *o, uint32_t number, struct kiln_err *err)
{
    struct kiln_scan_rolled rolled = {.source = &o->source,
                                      .rollup = o->rollup,
                                      .group = number,
                                      .wanted = {o->wanted[0], o->wanted[1]},
                                      .n_blocks = o->n_blocks};
    const struct kiln_scan_visitor *v = o->scan->visitor;
    int r;

    if (!is_chosen(o))
        return 0;
    r = plan(o);
    if (r < 0 || o->n_wanted == 0)
        return r;
    r = v->rolled(v->context, &rolled, NULL);
    if (r < 0)
        return ends_the_question(r) ? r : 0;
    r = count_spans(o);
    o->has_rolled = true;
    if (r == 0 && o->n_left)
        r = show_rest(o, err);
    for (uint32_t i = 0; i < o->group->n_series; i++)
        o->chosen[o->group->series[i]] = o->scan->memo.series[o->group->series[i]].chosen = false;
    return r;
}

/* ---- services ---- */

/* A name that would now be another makes the roll-ups of its service useless. */
static bool is_usable(struct rolling *o)
{
    const struct kiln_rollup_name *names;
    uint32_t n;

    if (kiln_rollup_names(o->rollup, &names, &n, NULL) < 0)
        return false;
    for (uint32_t i = 0; o->stale && i < n; i++) {
        if (kiln_stale_has(o->stale, names[i].hash))
            return false;
    }
    return true;
}

static int roll_service(struct rolling *o, uint32_t service, struct kiln_err *err)
{
    const struct kiln_rollup_group *groups;
    uint32_t n = 0;
    int r = 0;

    o->source.service = service;
    if (kiln_rollup_open(o->source.block, service, &o->budget, &o->rollup, NULL) < 0 || !o->rollup)
        return 0; /* its rows say the same */
    groups = kiln_rollup_groups(o->rollup, &n);
    if (!is_usable(o))
        n = 0;
    for (uint32_t i = 0; r == 0 && i < n; i++) {
        o->group = &groups[i];
        r = roll_group(o, i, err);
    }
    kiln_rollup_free(o->rollup);
    o->rollup = NULL;
    return r;
}

/* Services of which something is chosen and that have roll-ups. */
static int roll_services(struct rolling *o, struct kiln_err *err)
{
    const struct kiln_census_look look = {o->scan->store, o->source.tenant, o->source.block};
    const struct kiln_footer *f = &o->source.block->footer;
    uint32_t series = 0;
    int r = 0;

    if (!f->info.level)
        return 0;
    r = kiln_leash_check(o->scan->q->leash);
    if (r < 0)
        return r;
    if (kiln_census_stale(&look, &o->stale, NULL) < 0)
        return 0; /* rows say the same */
    for (uint32_t i = 0; r == 0 && i < f->n_sections; i++) {
        bool any = false;

        if (f->sections[i].kind != KILN_SECTION_ROLLUP_NAMES)
            continue;
        while (series < f->info.n_series && f->services[series] < f->sections[i].owner)
            series++;
        for (; series < f->info.n_series && f->services[series] == f->sections[i].owner; series++)
            any = any || o->chosen[series];
        if (any)
            r = roll_service(o, f->sections[i].owner, err);
    }
    return r;
}

static uint32_t count_blocks(const struct kiln_scan *scan, const struct kiln_scan_part *part)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < part->blocks.n; i++) {
        const struct kiln_block_info *info = kiln_block_info(part->blocks.blocks[i]);

        n += kiln_scan_touches(scan, info->min_ns, info->max_ns);
    }
    return n;
}

int kiln_scan_roll(struct kiln_scan *scan, struct kiln_scan_part *part, struct kiln_block *block,
                   int (*rows)(struct kiln_scan *scan, struct kiln_scan_part *part,
                               struct kiln_block *block, struct kiln_err *err),
                   struct kiln_err *err)
{
    struct rolling *o = kiln_calloc(1, sizeof(*o));
    uint32_t n = scan->memo.n_series;
    bool any = false;
    int r = o ? 0 : -ENOMEM;

    if (r == 0) {
        o->chosen = kiln_calloc((size_t)n + 1, sizeof(*o->chosen));
        r = o->chosen ? 0 : -ENOMEM;
    }
    for (uint32_t i = 0; r == 0 && i < n; i++)
        o->chosen[i] = scan->memo.series[i].chosen;
    if (r == 0) {
        o->scan = scan;
        o->budget.limit = MEMORY_MAX;
        o->source = (struct kiln_scan_source){
            .tenant = part->tenant, .tenant_name = kiln_str_of(part->tenant->name), .block = block};
        o->rows = rows;
        o->part = part;
        o->n_blocks = count_blocks(scan, part);
        r = roll_services(o, err);
        scan->basis.n_rolled += o->has_rolled;
    }
    for (uint32_t i = 0; r == 0 && i < n; i++)
        any = any || o->chosen[i];
    if (r == 0 && any)
        r = rows(scan, part, block, err);
    if (o) {
        kiln_array_free(&o->budget, (void **)&o->left, &o->cap_left, sizeof(*o->left));
        kiln_stale_unref(o->stale);
        kiln_free(o->chosen);
    }
    kiln_free(o);
    return r;
}
