/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which series, origins, attribute sets and links a question wants.
 *
 * A matcher is decided by the series if it is about a label of it.  Any other is about attributes:
 * those of the sample first, then of profile, scope and resource.  The latter three are the
 * origin's, and are asked about once for each origin; the former only where the key occurs in the
 * dictionary at all, once for each set.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/hash.h"
#include "store/scan_int.h"

#define PROCESS_MAX  (1u << 20) /* bytes of what tells one from another */
#define JUDGED_EVERY 64u        /* series from one look at the leash to the next */
#define ROOM(scan, array, need)                                                                    \
    kiln_grow(&(scan)->memo.budget, (void **)&(scan)->memo.array, &(scan)->memo.cap_##array,       \
              (need), sizeof(*(scan)->memo.array), UINT32_MAX)

/* ---- labels ---- */

/* The sets of an origin that are searched, in their order. */
static const struct kiln_attr *origin_attr(const struct kiln_batch *batch,
                                           const struct kiln_origin *origin, struct kiln_str name)
{
    const uint32_t sets[] = {origin->attrs, batch->scopes[origin->scope - 1].attrs,
                             batch->resources[origin->resource - 1].attrs};
    const struct kiln_attr *attr = NULL;

    for (size_t i = 0; !attr && i < KILN_ARRAY_LEN(sets); i++)
        attr = sets[i] ? kiln_set_find(batch, sets[i], name) : NULL;
    return attr;
}

struct kiln_str kiln_scan_label(const struct kiln_scan_profile *p, struct kiln_str name,
                                uint64_t attrs, char scratch[KILN_MEANING_SCRATCH])
{
    const struct kiln_batch *batch = p->source->batch;
    const struct kiln_attr *attr = NULL;
    struct kiln_str value;

    if (kiln_meaning_of_series(p->series, name, &value))
        return value;
    if (attrs)
        attr = kiln_set_find(batch, (uint32_t)attrs, name);
    if (!attr)
        attr = origin_attr(batch, p->origin, name);
    return attr ? kiln_meaning_text(batch, &attr->value, scratch) : KILN_STR("");
}

/* `attr` NULL: absent, which is empty.  1, 0, or an error of the expression. */
static int attr_holds(const struct kiln_matcher *m, const struct kiln_batch *batch,
                      const struct kiln_attr *attr)
{
    char scratch[KILN_MEANING_SCRATCH];

    return kiln_meaning_match(m, attr ? kiln_meaning_text(batch, &attr->value, scratch)
                                      : KILN_STR(""));
}

/* ---- the memo ---- */

static bool is_service(struct kiln_str name)
{
    return kiln_str_eq(name, KILN_STR("service_name")) ||
           kiln_str_eq(name, KILN_STR("service.name")) ||
           kiln_str_eq(name, KILN_STR("__service_name__"));
}

void kiln_scan_forget(struct kiln_scan *scan)
{
    struct kiln_scan_memo *m = &scan->memo;

#define FREE(array)                                                                                \
    kiln_array_free(&m->budget, (void **)&m->array, &m->cap_##array, sizeof(*m->array))
    FREE(series);
    FREE(origins);
    FREE(sets);
    FREE(links);
    FREE(stacks);
#undef FREE
    *m = (struct kiln_scan_memo){.budget = {.limit = SIZE_MAX}};
}

/* Whether the conditions on the service alone hold: asked once for many series. */
static int service_passes(struct kiln_scan *scan, struct kiln_str service)
{
    const struct kiln_series series = {.service = service};
    int r = 1;

    if (scan->has_service && kiln_str_eq(scan->service, service))
        return scan->service_passes;
    for (uint32_t i = 0; r == 1 && i < scan->q->n_matchers; i++) {
        const struct kiln_matcher *m = &scan->q->matchers[i];

        if (is_service(m->name))
            r = kiln_meaning_match(m, series.service);
    }
    scan->has_service = r >= 0;
    scan->service = service;
    scan->service_passes = r;
    return r;
}

/* A block may have many series, and an expression may take long for each. */
static int check_leash(struct kiln_scan *scan)
{
    return scan->n_judged++ % JUDGED_EVERY ? 0 : kiln_leash_check(scan->q->leash);
}

int kiln_scan_judge_series(struct kiln_scan *scan, struct kiln_str key,
                           struct kiln_scan_series *ret_series)
{
    const struct kiln_question *q = scan->q;
    struct kiln_scan_series made = {.key = key};
    struct kiln_str value;
    int r = check_leash(scan);

    if (r == 0)
        r = service_passes(scan, kiln_block_service(key));
    if (r > 0 && kiln_series_parse(key, &made.series) < 0)
        r = 0; /* what is no key has no labels to be chosen by */
    if (r > 0)
        r = kiln_question_has(q, &made.series);
    if (r > 0 && scan->visitor && scan->visitor->series)
        r = scan->visitor->series(scan->visitor->context, &made.series);
    for (uint32_t i = 0; r > 0 && i < q->n_matchers; i++) {
        if (kiln_meaning_of_series(&made.series, q->matchers[i].name, &value))
            r = kiln_meaning_match(&q->matchers[i], value);
        else
            made.pending |= UINT64_C(1) << i;
    }
    made.chosen = r > 0;
    *ret_series = made;
    return r < 0 ? r : 0;
}

int kiln_scan_add_series(struct kiln_scan *scan, struct kiln_str key, bool touches)
{
    struct kiln_scan_series made = {.key = key};
    int r = ROOM(scan, series, (uint64_t)scan->memo.n_series + 1);

    if (r == 0 && touches)
        r = kiln_scan_judge_series(scan, key, &made);
    if (r == 0)
        scan->memo.series[scan->memo.n_series++] = made;
    return r;
}

bool kiln_scan_has_links(const struct kiln_scan *scan)
{
    return scan->q->n_trace_ids || scan->q->n_span_ids;
}

bool kiln_scan_has_stacks(const struct kiln_scan *scan)
{
    const struct kiln_stack_choice *c = &scan->q->stacks;

    return c->n_call_site || c->n_with || c->n_without || c->with_regex || c->without_regex;
}

static int compare_16(const void *a, const void *b)
{
    return memcmp(a, b, 16);
}

static int compare_8(const void *a, const void *b)
{
    return memcmp(a, b, 8);
}

static int sort_ids(struct kiln_scan_ids *ids, const void *from, uint32_t n, size_t size)
{
    *ids = (struct kiln_scan_ids){.n = n, .size = size};
    if (n == 0)
        return 0;
    ids->all = kiln_malloc(n * size);
    if (!ids->all)
        return -ENOMEM;
    memcpy(ids->all, from, n * size);
    qsort(ids->all, n, size, size == 16 ? compare_16 : compare_8);
    return 0;
}

int kiln_scan_sort_ids(struct kiln_scan *scan)
{
    const struct kiln_question *q = scan->q;
    int r = sort_ids(&scan->traces, q->trace_ids, q->n_trace_ids, 16);

    if (r == 0)
        r = sort_ids(&scan->spans, q->span_ids, q->n_span_ids, 8);
    if (r == 0)
        r = sort_ids(&scan->profiles, q->profile_ids, q->n_profile_ids, 16);
    return r;
}

/* Whether it is one of them; of none, any is. */
static bool has_id(const struct kiln_scan_ids *ids, const void *id)
{
    return ids->n == 0 ||
           bsearch(id, ids->all, ids->n, ids->size, ids->size == 16 ? compare_16 : compare_8);
}

bool kiln_scan_id_wanted(const struct kiln_scan *scan, const uint8_t *id)
{
    return scan->profiles.n == 0 || (id && has_id(&scan->profiles, id));
}

static int learn_links(struct kiln_scan *scan, const struct kiln_batch *batch)
{
    const struct kiln_question *q = scan->q;
    uint32_t n = batch->dict.n_links;
    int r = ROOM(scan, links, (uint64_t)n / 64 + 1);

    if (r < 0)
        return r;
    memset(scan->memo.links, 0, ((size_t)n / 64 + 1) * sizeof(*scan->memo.links));
    for (uint32_t i = 1; r == 0 && i < n; i++) {
        const struct kiln_link *link = &batch->dict.links[i];

        if (i % 4096 == 0)
            r = kiln_leash_check(q->leash);
        if (has_id(&scan->traces, link->trace_id) && has_id(&scan->spans, link->span_id))
            scan->memo.links[i / 64] |= UINT64_C(1) << i % 64;
    }
    return r;
}

bool kiln_scan_occurs(const struct kiln_batch *batch, struct kiln_str name)
{
    for (uint32_t i = 1; i < batch->dict.n_attrs; i++) {
        if (kiln_str_eq(batch->dict.strings[batch->dict.attrs[i].key], name))
            return true;
    }
    return false;
}

int kiln_scan_learn(struct kiln_scan *scan, const struct kiln_batch *batch)
{
    struct kiln_scan_memo *m = &scan->memo;
    uint64_t pending = 0;
    int r = 0;

    for (uint32_t i = 0; i < m->n_series; i++)
        pending |= m->series[i].chosen ? m->series[i].pending : 0;
    for (uint32_t i = 0; i < scan->q->n_matchers; i++) {
        if ((pending >> i & 1) && kiln_scan_occurs(batch, scan->q->matchers[i].name))
            m->in_sets |= UINT64_C(1) << i;
    }
    if (m->in_sets) {
        uint64_t n = (uint64_t)scan->q->n_matchers * batch->dict.n_sets;

        r = ROOM(scan, sets, n);
        if (r == 0)
            memset(m->sets, KILN_VERDICT_OPEN, n);
        m->n_sets = batch->dict.n_sets;
    }
    if (r == 0 && kiln_scan_has_links(scan))
        r = learn_links(scan, batch);
    return r;
}

/* ---- judging ---- */

static int judge_origin(const struct kiln_scan *scan, uint64_t pending,
                        const struct kiln_batch *batch, const struct kiln_origin *origin,
                        struct kiln_scan_opinion *ret)
{
    *ret = (struct kiln_scan_opinion){.asked = pending};
    for (uint32_t i = 0; i < scan->q->n_matchers; i++) {
        const struct kiln_matcher *m = &scan->q->matchers[i];
        const struct kiln_attr *attr;
        int r;

        if (!(pending >> i & 1))
            continue;
        attr = origin_attr(batch, origin, m->name);
        r = attr_holds(m, batch, attr);
        if (r < 0)
            return r;
        ret->holds |= (uint64_t)r << i;
        ret->absent |= (uint64_t)(!attr && !kiln_series_made_by(m->name)) << i;
    }
    return 0;
}

static int remember_origins(struct kiln_scan *scan, uint32_t number)
{
    struct kiln_scan_memo *m = &scan->memo;
    uint32_t known = m->n_origins;
    int r = ROOM(scan, origins, number);

    if (r < 0 || number <= known)
        return r;
    memset(m->origins + known, 0, (number - known) * sizeof(*m->origins));
    m->n_origins = number;
    return 0;
}

int kiln_scan_judge(struct kiln_scan *scan, const struct kiln_scan_series *series,
                    const struct kiln_batch *batch, const struct kiln_origin *origin,
                    uint32_t number, struct kiln_scan_opinion *ret)
{
    struct kiln_scan_memo *m = &scan->memo;
    int r = 0;

    if (!series->pending) {
        *ret = (struct kiln_scan_opinion){0};
        return 0;
    }
    if (number)
        r = remember_origins(scan, number);
    if (r < 0)
        return r;
    if (number && m->origins[number - 1].asked == series->pending) {
        *ret = m->origins[number - 1];
        return 0;
    }
    r = judge_origin(scan, series->pending, batch, origin, ret);
    if (r == 0 && number)
        m->origins[number - 1] = *ret;
    return r;
}

static int judge_set(struct kiln_scan *scan, const struct kiln_batch *batch, uint32_t matcher,
                     uint64_t set)
{
    uint8_t *known = &scan->memo.sets[(uint64_t)matcher * scan->memo.n_sets + set];
    const struct kiln_matcher *m = &scan->q->matchers[matcher];
    const struct kiln_attr *attr;
    int r = 0;

    if (*known != KILN_VERDICT_OPEN)
        return *known;
    attr = kiln_set_find(batch, (uint32_t)set, m->name);
    if (attr)
        r = attr_holds(m, batch, attr);
    if (r < 0)
        return r;
    *known = !attr ? KILN_VERDICT_LACKS : r ? KILN_VERDICT_YES : KILN_VERDICT_NO;
    return *known;
}

int kiln_scan_set_passes(struct kiln_scan *scan, const struct kiln_batch *batch, uint64_t set,
                         uint64_t pending, uint64_t origin_holds)
{
    for (uint64_t left = pending; left; left &= left - 1) {
        uint32_t i = (uint32_t)__builtin_ctzll(left);
        int verdict = set ? judge_set(scan, batch, i, set) : KILN_VERDICT_LACKS;

        if (verdict < 0)
            return verdict;
        if (verdict == KILN_VERDICT_NO ||
            (verdict == KILN_VERDICT_LACKS && !(origin_holds >> i & 1)))
            return 0;
    }
    return 1;
}

/* ---- weights and processes ---- */

void kiln_scan_weigh(struct kiln_scan_profile *p)
{
    const struct kiln_profile head = {
        .sample_type = p->origin->sample_type,
        .period_type = p->origin->period_type,
        .period = p->origin->period,
    };

    p->weight = kiln_weight_of(p->source->batch, &head, p->series->type);
}

int kiln_scan_process(const struct kiln_scan_profile *p, uint64_t *ret_hash)
{
    const struct kiln_batch *batch = p->source->batch;
    struct kiln_buf text;
    int r;

    kiln_buf_init(&text, PROCESS_MAX);
    kiln_buf_add_str(&text, p->source->tenant_name);
    kiln_buf_putc(&text, '\0');
    kiln_buf_add_str(&text, p->key);
    kiln_meaning_process(batch, batch->resources[p->origin->resource - 1].attrs, &text);
    *ret_hash = kiln_hash(text.ptr, text.len);
    r = text.error;
    kiln_buf_done(&text);
    return r;
}
