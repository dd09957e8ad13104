/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A block by its digests (store/digest.h) instead of its rows: profiles as sums, for who asked for
 * KILN_SCAN_SUMS; or samples as sets of attributes, for who asked for KILN_SCAN_PAIRS.
 *
 * Sums will do where no row of a profile can be decided otherwise than all: not where samples have
 * an attribute that is asked about, nor where a window ends among the times of rows.  Whether it is
 * so is looked at before anything is shown.
 */
#include <errno.h>

#include "store/digest.h"

/* A service of a block. */
struct showing {
    struct kiln_scan *scan;
    struct kiln_block *block;
    struct kiln_block_dict *dict;
    struct kiln_digest *digest;
    struct kiln_scan_source source;
};

static bool wants(const struct kiln_scan *scan, unsigned flag)
{
    if (!(scan->columns & flag) || kiln_scan_has_links(scan) || kiln_scan_has_stacks(scan))
        return false;
    return flag == KILN_SCAN_SUMS || !scan->q->n_profile_ids;
}

bool kiln_scan_wants_sums(const struct kiln_scan *scan)
{
    return wants(scan, KILN_SCAN_SUMS);
}

static struct kiln_scan_profile profile_of(const struct showing *s, uint64_t series,
                                           uint64_t origin)
{
    const struct kiln_scan_series *known = &s->scan->memo.series[series];

    return (struct kiln_scan_profile){
        .source = &s->source,
        .series = &known->series,
        .key = known->key,
        .series_number = (uint32_t)series,
        .origin = &s->dict->origins[origin - 1],
        .origin_number = (uint32_t)origin,
    };
}

/* ---- whether sums will do ---- */

static bool sets_have(const struct showing *s, struct kiln_str name)
{
    for (uint32_t i = 0; i < s->digest->n_pairs; i++) {
        uint64_t set = s->digest->pairs[i].set;

        if (set && kiln_set_find(s->dict->batch, (uint32_t)set, name))
            return true;
    }
    return false;
}

static bool asks_samples(const struct showing *s)
{
    const struct kiln_scan *scan = s->scan;

    for (uint32_t i = 0; i < scan->n_names; i++) {
        if (sets_have(s, scan->names[i]))
            return true;
    }
    for (uint32_t i = 0; i < scan->q->n_matchers; i++) {
        if (sets_have(s, scan->q->matchers[i].name))
            return true;
    }
    return false;
}

bool kiln_scan_sums_do(const struct kiln_scan *scan, const struct kiln_row_sums *sums)
{
    if (sums->of[KILN_SUM_TIMED].n == 0)
        return true;
    return !(scan->columns & KILN_SCAN_TIMES) &&
           (!kiln_scan_touches(scan, sums->min_ns, sums->max_ns) ||
            kiln_scan_covers(scan, sums->min_ns, sums->max_ns));
}

static bool sums_will_do(const struct showing *s)
{
    for (uint32_t i = 0; i < s->digest->n_profiles; i++) {
        const struct kiln_digest_profile *p = &s->digest->profiles[i];

        if (s->scan->memo.series[p->series].chosen && !kiln_scan_sums_do(s->scan, &p->sums))
            return false;
    }
    return !asks_samples(s);
}

/* ---- sums ---- */

/* The columns of sums: itself, and nothing at the last time. */
struct columns {
    uint64_t values[KILN_N_SUMS][2];
    uint64_t times[2];
    uint64_t stacks[2];
};

static void add_run(struct kiln_scan_profile *p, const struct kiln_row_sums *sums,
                    struct columns *c, uint32_t kind)
{
    bool timed = kind == KILN_SUM_TIMED;
    uint64_t n = sums->of[kind].n;

    p->runs[p->n_runs++] = (struct kiln_scan_run){
        .n = timed ? 2 : 1,
        .stacks = c->stacks,
        .values = c->values[kind],
        .times = timed ? c->times : NULL,
        .timed = timed,
        .summed = n,
        .count = timed || p->weight.unit == 0 ? (double)n : sums->of[kind].weight / p->weight.unit,
    };
    c->values[kind][0] = (uint64_t)sums->of[kind].raw;
    c->values[kind][1] = 0;
}

static void add_runs(const struct kiln_scan *scan, const struct kiln_row_sums *sums,
                     struct kiln_scan_profile *p, struct columns *c)
{
    c->times[0] = sums->min_ns;
    c->times[1] = sums->max_ns;
    c->stacks[0] = c->stacks[1] = 1;
    if (sums->of[KILN_SUM_PLAIN].n && kiln_scan_in_time(scan, p->time_ns))
        add_run(p, sums, c, KILN_SUM_PLAIN);
    if (sums->of[KILN_SUM_TIMED].n && kiln_scan_covers(scan, sums->min_ns, sums->max_ns))
        add_run(p, sums, c, KILN_SUM_TIMED);
}

int kiln_scan_show_sums(struct kiln_scan *scan, struct kiln_scan_profile *p,
                        const struct kiln_row_sums *sums, struct kiln_err *err)
{
    const struct kiln_scan_sieve sieve = {.flags = p->origin->flags};
    struct kiln_scan_opinion opinion;
    struct columns columns;
    int r;

    if (!kiln_scan_id_wanted(scan, p->id))
        return 0;
    r = kiln_scan_judge(scan, &scan->memo.series[p->series_number], p->source->batch, p->origin,
                        p->origin_number, &opinion);
    if (r < 0 || (opinion.asked & ~opinion.holds & ~opinion.absent))
        return r;
    kiln_scan_weigh(p);
    add_runs(scan, sums, p, &columns);
    if (!p->n_runs && !kiln_scan_in_time(scan, p->time_ns))
        return 0;
    if (opinion.asked & ~opinion.holds)
        p->n_runs = 0;
    return kiln_scan_show(scan, p, &sieve, err);
}

static int show_sum(const struct showing *s, const struct kiln_digest_profile *from,
                    struct kiln_err *err)
{
    static const uint8_t none[16];
    struct kiln_scan_profile p = profile_of(s, from->series, from->origin);

    p.time_ns = from->time_ns;
    p.duration_ns = from->duration_ns;
    p.id = memcmp(from->id, none, sizeof(none)) ? from->id : NULL;
    return kiln_scan_show_sums(s->scan, &p, &from->sums, err);
}

static int show_sums(const struct showing *s, struct kiln_err *err)
{
    int r = 0;

    for (uint32_t i = 0; r == 0 && i < s->digest->n_profiles; i++) {
        if (s->scan->memo.series[s->digest->profiles[i].series].chosen)
            r = show_sum(s, &s->digest->profiles[i], err);
    }
    return r;
}

/* ---- pairs ---- */

/* 1 if samples of the pair count. */
static int pair_passes(const struct showing *s, const struct kiln_digest_pair *pair,
                       const struct kiln_scan_profile *p)
{
    struct kiln_scan *scan = s->scan;
    const struct kiln_scan_series *series = &scan->memo.series[pair->series];
    struct kiln_scan_opinion opinion;
    int r;

    if (!series->chosen)
        return 0;
    r = kiln_scan_judge(scan, series, s->dict->batch, p->origin, p->origin_number, &opinion);
    if (r < 0)
        return r;
    if (opinion.asked & ~scan->memo.in_sets & ~opinion.holds)
        return 0;
    return kiln_scan_set_passes(scan, s->dict->batch, pair->set,
                                series->pending & scan->memo.in_sets, opinion.holds);
}

static int show_pairs(const struct showing *s, struct kiln_err *err)
{
    const struct kiln_scan_visitor *v = s->scan->visitor;
    int r = 0;

    for (uint32_t i = 0; r == 0 && i < s->digest->n_pairs; i++) {
        const struct kiln_digest_pair *pair = &s->digest->pairs[i];
        struct kiln_scan_profile p = profile_of(s, pair->series, pair->origin);

        r = pair_passes(s, pair, &p);
        if (r <= 0)
            continue;
        p.runs[p.n_runs++] = (struct kiln_scan_run){.n = 1, .attrs = &pair->set};
        r = v->profile(v->context, &p, err);
    }
    return r;
}

/* ---- services ---- */

/* The numbers of origins and sets come from rows, and are those of this block. */
static int open_service(struct showing *s, struct kiln_scan_part *part, uint32_t service,
                        struct kiln_err *err)
{
    s->source.service = service;
    s->source.tenant = part->tenant;
    s->source.tenant_name = kiln_str_of(part->tenant->name);
    s->source.block = s->block;
    s->source.batch = s->dict->batch;
    return kiln_digest_of_block(s->scan, part, s->block, service, &s->digest, err);
}

static int show_service(const struct showing *s, struct kiln_err *err)
{
    const struct kiln_scan_visitor *v = s->scan->visitor;
    int r = v->begin ? v->begin(v->context, &s->source, err) : 0;

    if (r == 0)
        r = s->scan->columns & KILN_SCAN_SUMS ? show_sums(s, err) : show_pairs(s, err);
    return r == 0 && v->end ? v->end(v->context, &s->source, err) : r;
}

/* Whether the service of a series may be read for its pairs; counts it. */
static bool may_read(const struct showing *s, uint32_t first)
{
    const struct kiln_footer *f = &s->block->footer;
    uint32_t service = f->services[first];
    uint64_t bytes = 0;

    if (s->scan->columns & KILN_SCAN_SUMS || kiln_digest_is_there(s->scan, s->block, service))
        return true;
    while (first > 0 && f->services[first - 1] == service)
        first--;
    for (uint32_t i = first; i < f->info.n_series && f->services[i] == service; i++)
        bytes += f->series[i].bytes;
    if (bytes > s->scan->pairs_left) {
        s->scan->pairs_missing = true;
        return false;
    }
    s->scan->pairs_left -= bytes;
    return true;
}

/* Goes over the services that have a chosen series: `look` only finds out whether it will do. */
static int each_service(struct showing *s, struct kiln_scan_part *part, bool look,
                        struct kiln_err *err)
{
    const struct kiln_footer *f = &s->block->footer;
    uint32_t last = UINT32_MAX;
    int r = 0;

    for (uint32_t i = 0; r == 0 && i < f->info.n_series; i++) {
        if (!s->scan->memo.series[i].chosen || f->services[i] == last)
            continue;
        last = f->services[i];
        if (!may_read(s, i))
            continue;
        r = open_service(s, part, last, err);
        if (r == 0 && look)
            r = !sums_will_do(s);
        else if (r == 0)
            r = show_service(s, err);
        kiln_digest_unref(s->digest);
        s->digest = NULL;
    }
    return r;
}

int kiln_scan_digest(struct kiln_scan *scan, struct kiln_scan_part *part, struct kiln_block *block,
                     struct kiln_err *err)
{
    const struct kiln_block_info *info = kiln_block_info(block);
    struct showing s = {.scan = scan, .block = block};
    bool any;
    int r;

    if (!kiln_scan_wants_sums(scan) && !wants(scan, KILN_SCAN_PAIRS))
        return 1;
    if (!kiln_scan_touches(scan, info->min_ns, info->max_ns))
        return 0;
    kiln_scan_forget(scan);
    r = kiln_scan_choose_block(scan, block, &any);
    if (r < 0 || !any)
        return r;
    r = kiln_block_meta(&scan->store->cache, block, &scan->fund, &s.dict, err);
    if (r == 0)
        r = kiln_scan_learn(scan, s.dict->batch);
    /* Of pairs it does no harm to be shown twice, by the digest and by rows. */
    if (r == 0 && (scan->columns & KILN_SCAN_SUMS))
        r = each_service(&s, part, true, err);
    if (r == 0)
        r = each_service(&s, part, false, err);
    kiln_block_dict_done(s.dict, &scan->fund);
    scan->basis.n_blocks += r == 0;
    return r < 0 ? kiln_block_fail(block, err, r) : r;
}
