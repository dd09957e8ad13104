/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A scan of its own, over all rows of the service.  Samples of a profile come in any order; that
 * their set of attributes is known already tells a mark by its number, which says in which series
 * and from which origin it was met last.
 */
#include "store/digest.h"

#include <errno.h>
#include <stdlib.h>

#include "base/sat.h"
#include "store/fund.h"

#define BYTES_MAX        ((size_t)32 << 20)
#define CACHE_OF_SERVICE 0x80000000u /* beside the number of a service, in the cache */

uint64_t kiln_digest_pairs_bytes = UINT64_C(128) << 20;

struct making {
    struct kiln_fund fund;
    struct kiln_digest_profile *profiles;
    uint32_t n_profiles, cap_profiles;
    struct kiln_fund_table pairs;
    uint32_t *marks; /* by set: 1 + the group it was met in last */
    uint32_t cap_marks, n_marks;
    uint32_t group; /* runs of profiles of one series and origin */
};

static int mark_pair(struct making *m, const struct kiln_digest_profile *p, uint64_t set)
{
    const uint64_t key[3] = {p->series, p->origin, set};
    uint32_t at;

    if (set < m->n_marks && m->marks[set] == m->group)
        return 0;
    if (set < m->n_marks)
        m->marks[set] = m->group;
    return kiln_fund_table_get(&m->pairs, &m->fund, key, &at);
}

static void add_values(struct kiln_row_sums *sums, const struct kiln_scan_run *run)
{
    uint32_t kind = run->timed ? KILN_SUM_TIMED : KILN_SUM_PLAIN;

    sums->of[kind].n += run->n;
    for (uint32_t i = 0; i < run->n; i++) {
        int64_t raw = run->values ? (int64_t)run->values[i] : 1;

        sums->of[kind].raw = kiln_sat_add(sums->of[kind].raw, raw);
        sums->of[kind].weight += raw < 0 ? -(double)raw : (double)raw;
    }
    for (uint32_t i = 0; run->times && i < run->n; i++) {
        sums->min_ns = run->times[i] < sums->min_ns ? run->times[i] : sums->min_ns;
        sums->max_ns = run->times[i] > sums->max_ns ? run->times[i] : sums->max_ns;
    }
}

static int add_run(struct making *m, struct kiln_digest_profile *p, const struct kiln_scan_run *run)
{
    uint64_t last = UINT64_MAX;
    int r = 0;

    add_values(&p->sums, run);
    for (uint32_t i = 0; r == 0 && i < run->n; i++) {
        if (run->attrs[i] != last)
            r = mark_pair(m, p, run->attrs[i]);
        last = run->attrs[i];
    }
    return r;
}

static int show(void *context, const struct kiln_scan_profile *p, struct kiln_err *err)
{
    struct making *m = context;
    struct kiln_digest_profile *to, *before;
    int r = kiln_fund_grow(&m->fund, (void **)&m->profiles, &m->cap_profiles,
                           (uint64_t)m->n_profiles + 1, sizeof(*m->profiles));

    (void)err;
    if (r < 0)
        return r;
    if (m->n_profiles * sizeof(*m->profiles) + m->pairs.n * (size_t)m->pairs.size > BYTES_MAX)
        return 1;
    to = &m->profiles[m->n_profiles++];
    before = m->n_profiles > 1 ? to - 1 : NULL;
    *to = (struct kiln_digest_profile){.series = p->series_number,
                                       .origin = p->origin_number,
                                       .time_ns = p->time_ns,
                                       .duration_ns = p->duration_ns,
                                       .sums = {.min_ns = UINT64_MAX}};
    if (p->id)
        memcpy(to->id, p->id, sizeof(to->id));
    m->group += !before || before->series != to->series || before->origin != to->origin;
    for (uint32_t i = 0; r == 0 && i < p->n_runs; i++)
        r = add_run(m, to, &p->runs[i]);
    return r;
}

static int begin(void *context, const struct kiln_scan_source *source, struct kiln_err *err)
{
    struct making *m = context;
    uint32_t n = source->batch->dict.n_sets;
    int r = kiln_fund_grow(&m->fund, (void **)&m->marks, &m->cap_marks, n, sizeof(*m->marks));

    (void)err;
    if (r < 0)
        return r;
    memset(m->marks, 0, n * sizeof(*m->marks));
    m->n_marks = n;
    return 0;
}

/* ---- keeping ---- */

static void free_digest(struct kiln_cached *object)
{
    struct kiln_digest *digest = (struct kiln_digest *)object;

    kiln_free(digest->profiles);
    kiln_free(digest->pairs);
    kiln_free(digest);
}

static int by_series(const void *a, const void *b)
{
    const struct kiln_digest_pair *x = a, *y = b;

    if (x->series != y->series)
        return x->series < y->series ? -1 : 1;
    return (x->origin > y->origin) - (x->origin < y->origin);
}

static int keep(const struct making *m, struct kiln_digest **ret_digest)
{
    struct kiln_digest *digest = kiln_calloc(1, sizeof(*digest));
    size_t profiles = m->n_profiles * sizeof(*m->profiles);
    size_t pairs = m->pairs.n * sizeof(struct kiln_digest_pair);

    if (!digest)
        return -ENOMEM;
    *digest = (struct kiln_digest){
        .cached = {.bytes = sizeof(*digest) + profiles + pairs, .free = free_digest},
        .profiles = kiln_malloc(profiles),
        .pairs = kiln_malloc(pairs),
        .n_profiles = m->n_profiles,
        .n_pairs = m->pairs.n,
    };
    atomic_init(&digest->cached.refs, 1);
    if (!digest->profiles || !digest->pairs) {
        kiln_digest_unref(digest);
        return -ENOMEM;
    }
    if (profiles)
        memcpy(digest->profiles, m->profiles, profiles);
    if (pairs)
        memcpy(digest->pairs, m->pairs.all, pairs);
    qsort(digest->pairs, digest->n_pairs, sizeof(*digest->pairs), by_series);
    *ret_digest = digest;
    return 0;
}

/* ---- making ---- */

static int make(struct kiln_scan *scan, struct kiln_scan_part *part, struct kiln_block *block,
                uint32_t service, struct making *m, struct kiln_err *err)
{
    const struct kiln_scan_visitor visitor = {.context = m, .begin = begin, .profile = show};
    const struct kiln_question all = {.leash = scan->q->leash};
    struct kiln_scan own = {
        .store = scan->store,
        .q = &all,
        .columns = KILN_SCAN_ATTRS | KILN_SCAN_TIMES | KILN_SCAN_IDS,
        .visitor = &visitor,
        .budget = {.limit = scan->budget.limit},
        .only_service = service + 1,
    };
    int r;

    kiln_fund_init(&own.fund, scan->q->leash);
    r = kiln_scan_block(&own, part, block, err);
    kiln_scan_done(&own);
    return r;
}

bool kiln_digest_is_there(struct kiln_scan *scan, const struct kiln_block *block, uint32_t service)
{
    return kiln_cache_has(&scan->store->cache, &kiln_block_info(block)->id,
                          CACHE_OF_SERVICE | service);
}

int kiln_digest_of_block(struct kiln_scan *scan, struct kiln_scan_part *part,
                         struct kiln_block *block, uint32_t service,
                         struct kiln_digest **ret_digest, struct kiln_err *err)
{
    struct kiln_cache *cache = &scan->store->cache;
    const struct kiln_block_id *id = &kiln_block_info(block)->id;
    struct kiln_digest *digest =
        (struct kiln_digest *)kiln_cache_find(cache, id, CACHE_OF_SERVICE | service, 0);
    struct making m = {0};
    int r;

    *ret_digest = digest;
    if (digest)
        return 0;
    kiln_fund_init(&m.fund, scan->q->leash);
    kiln_fund_table_init(&m.pairs, sizeof(struct kiln_digest_pair),
                         sizeof(struct kiln_digest_pair));
    r = make(scan, part, block, service, &m, err);
    if (r == 0)
        r = keep(&m, ret_digest);
    if (r == 0)
        kiln_cache_put(cache, id, CACHE_OF_SERVICE | service, 0, &(*ret_digest)->cached);
    kiln_fund_table_done(&m.pairs, &m.fund);
    kiln_array_free(&m.fund.budget, (void **)&m.profiles, &m.cap_profiles, sizeof(*m.profiles));
    kiln_array_free(&m.fund.budget, (void **)&m.marks, &m.cap_marks, sizeof(*m.marks));
    kiln_fund_done(&m.fund);
    return r;
}
