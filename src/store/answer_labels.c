/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Combinations of label values, and the names of labels.
 *
 * First all series are listed that the question touches, from the footers of blocks and the heads.
 * One that decides everything that is asked for and about, by its own labels, gives its combination
 * at once.  Of the others the rows are looked at, in blocks by what is remembered of them
 * (store/digest.h), and where nothing is remembered not of all, lest a list of names reads months
 * of rows: the answer then says that there may be more.  A combination has the times and sizes of
 * the series that it occurs in.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/clock.h"
#include "store/block_int.h"
#include "store/fund.h"
#include "store/scan_int.h"

#define ROWS_MAX      100000u
#define KEY_MAX       (1u << 24)
#define BREATHE_EVERY 64u /* series */

struct series {
    uint64_t tenant, text; /* the key, as numbers of texts */
    uint64_t min_ns, max_ns, n_profiles;
    bool decided;
};

/* What was looked at already, in the source at hand. */
struct seen {
    uint64_t source, series, resource, scope, attrs, set;
};

/* A combination occurs in a series. */
struct hit {
    uint64_t row, series;
};

struct listing {
    struct kiln_scan *scan;
    const struct kiln_question *q;
    const struct kiln_str *names;
    uint32_t n_names;
    struct kiln_fund fund;
    struct kiln_fund_texts texts; /* tenants, and keys of series */
    struct kiln_fund_table series;
    struct kiln_fund_texts rows; /* values, each with its length */
    struct kiln_fund_table hits;
    struct kiln_fund_table seen;
    uint64_t source;
    bool undecided, truncated, again;
};

static void init(struct listing *l)
{
    kiln_fund_init(&l->fund, l->q->leash);
    kiln_fund_texts_init(&l->texts, &l->fund);
    kiln_fund_texts_init(&l->rows, &l->fund);
    kiln_fund_table_init(&l->series, offsetof(struct series, min_ns), sizeof(struct series));
    kiln_fund_table_init(&l->hits, sizeof(struct hit), sizeof(struct hit));
    kiln_fund_table_init(&l->seen, sizeof(struct seen), sizeof(struct seen));
}

static void done(struct listing *l)
{
    kiln_fund_texts_done(&l->texts, &l->fund);
    kiln_fund_texts_done(&l->rows, &l->fund);
    kiln_fund_table_done(&l->series, &l->fund);
    kiln_fund_table_done(&l->hits, &l->fund);
    kiln_fund_table_done(&l->seen, &l->fund);
    kiln_fund_done(&l->fund);
}

/* ---- rows ---- */

static void add_value(struct kiln_buf *key, struct kiln_str value)
{
    uint32_t len = (uint32_t)value.len;

    kiln_buf_add(key, &len, sizeof(len));
    kiln_buf_add_str(key, value);
}

/* Takes the key over. */
static int add_row(struct listing *l, uint64_t series, struct kiln_buf *key)
{
    struct hit hit = {.series = series};
    uint32_t row = 0, at;
    int r = key->error;

    if (r == 0 && l->rows.n == ROWS_MAX)
        l->truncated = true;
    else if (r == 0)
        r = kiln_fund_texts_get(&l->rows, &l->fund, kiln_buf_str(key), &row);
    kiln_buf_done(key);
    if (r < 0 || l->truncated)
        return r;
    hit.row = row;
    return kiln_fund_table_get(&l->hits, &l->fund, &hit, &at);
}

static int add_name(struct listing *l, uint64_t series, struct kiln_str name)
{
    struct kiln_buf key;

    kiln_buf_init(&key, KEY_MAX);
    add_value(&key, name);
    return add_row(l, series, &key);
}

/* ---- series ---- */

static bool asks_samples(const struct kiln_scan *scan)
{
    return kiln_scan_has_links(scan) || kiln_scan_has_stacks(scan) || scan->q->n_profile_ids;
}

static bool decides(const struct listing *l, const struct kiln_series *series)
{
    struct kiln_str value;

    if (!l->n_names || asks_samples(l->scan))
        return false;
    for (uint32_t i = 0; i < l->n_names; i++) {
        if (!kiln_meaning_of_series(series, l->names[i], &value))
            return false;
    }
    for (uint32_t i = 0; i < l->q->n_matchers; i++) {
        if (!kiln_meaning_of_series(series, l->q->matchers[i].name, &value))
            return false;
    }
    return true;
}

static int add_decided(struct listing *l, const struct kiln_series *series, uint64_t number)
{
    struct kiln_buf key;

    kiln_buf_init(&key, KEY_MAX);
    for (uint32_t i = 0; i < l->n_names; i++) {
        struct kiln_str value = KILN_STR("");

        kiln_meaning_of_series(series, l->names[i], &value);
        add_value(&key, value);
    }
    return add_row(l, number, &key);
}

static int find_series(struct listing *l, struct kiln_str tenant, struct kiln_str key,
                       uint32_t *ret_number)
{
    uint32_t texts[2];
    int r = kiln_fund_texts_get(&l->texts, &l->fund, tenant, &texts[0]);

    if (r == 0)
        r = kiln_fund_texts_get(&l->texts, &l->fund, key, &texts[1]);
    if (r < 0)
        return r;
    return kiln_fund_table_get(&l->series, &l->fund, (uint64_t[]){texts[0], texts[1]}, ret_number);
}

/* One more place that a series is in. */
static int add_series(struct listing *l, const struct kiln_series *series, struct kiln_str tenant,
                      const struct kiln_series_found *found)
{
    uint32_t at, n = l->series.n;
    struct series *s;
    int r = find_series(l, tenant, found->key, &at);

    if (r < 0)
        return r;
    s = (struct series *)l->series.all + at;
    if (at == n) {
        s->min_ns = UINT64_MAX;
        s->decided = decides(l, series);
        l->undecided |= !s->decided;
    }
    s->min_ns = found->min_ns < s->min_ns ? found->min_ns : s->min_ns;
    s->max_ns = found->max_ns > s->max_ns ? found->max_ns : s->max_ns;
    s->n_profiles += found->n_profiles;
    return at == n && s->decided ? add_decided(l, series, at) : 0;
}

/* What the scan's memo says of the series that it has just chosen. */
static int add_chosen(struct listing *l, uint32_t i, const struct kiln_tenant *tenant,
                      const struct kiln_series_found *found)
{
    const struct kiln_scan_series *s = &l->scan->memo.series[i];

    return s->chosen ? add_series(l, &s->series, kiln_str_of(tenant->name), found) : 0;
}

static int list_block(struct listing *l, const struct kiln_tenant *tenant,
                      const struct kiln_block *block)
{
    const struct kiln_footer *f = &block->footer;
    uint64_t now = kiln_clock_unix_ns();
    bool any;
    int r;

    if (!kiln_scan_touches(l->scan, f->info.min_ns, f->info.max_ns))
        return 0;
    kiln_scan_forget(l->scan);
    r = kiln_scan_choose_block(l->scan, block, &any);
    for (uint32_t i = 0; r == 0 && any && i < f->info.n_series; i++) {
        const struct kiln_block_series *s = &f->series[i];
        uint64_t newest = kiln_block_newest(&f->info, s->max_ns, now);
        struct kiln_series_found found = {s->key, s->min_ns, newest, s->n_profiles,
                                          s->n_observations};

        r = add_chosen(l, i, tenant, &found);
    }
    return r;
}

/* Under the lock of one that grows, since `since_ns`; NULL: of one that does not. */
static int list_head(struct listing *l, struct kiln_tenant *tenant, const struct kiln_head *head,
                     uint32_t n, uint64_t *since_ns)
{
    int r = 0;

    kiln_scan_forget(l->scan);
    for (uint32_t i = 0; r == 0 && i < n; i++) {
        const struct kiln_head_series *s = kiln_head_series(head, i);
        struct kiln_series_found found = {s->key, s->min_ns, s->max_ns, s->n_profiles,
                                          s->n_observations};

        r = kiln_scan_add_series(l->scan, s->key,
                                 s->n_profiles && kiln_scan_touches(l->scan, s->min_ns, s->max_ns));
        if (r == 0)
            r = add_chosen(l, i, tenant, &found);
        if (since_ns && i % BREATHE_EVERY == 0)
            kiln_scan_breathe(tenant, since_ns);
    }
    return r;
}

static int list_part(struct listing *l, const struct kiln_scan_part *part)
{
    uint64_t since_ns;
    int r = kiln_leash_check(l->q->leash);

    for (uint32_t i = 0; r == 0 && i < part->blocks.n; i++) {
        if (!part->damaged[i])
            r = list_block(l, part->tenant, part->blocks.blocks[i]);
    }
    if (r == 0 && part->cutting)
        r = list_head(l, part->tenant, part->cutting, kiln_head_info(part->cutting)->n_series,
                      NULL);
    if (r < 0)
        return r;
    kiln_scan_lock(part->tenant, &since_ns);
    r = list_head(l, part->tenant, part->head, part->n_series, &since_ns);
    kiln_scan_unlock(part->tenant);
    return r;
}

static int list_series(struct listing *l)
{
    static const struct kiln_scan_visitor all;
    int r = 0;

    l->scan->visitor = &all;
    for (uint32_t i = 0; r == 0 && i < l->scan->n_parts; i++)
        r = list_part(l, &l->scan->parts[i]);
    return r;
}

/* ---- samples ---- */

static int add_set_names(struct listing *l, uint64_t series, const struct kiln_batch *batch,
                         uint64_t set)
{
    const struct kiln_dict *d = &batch->dict;
    struct kiln_range range = d->sets[set];
    int r = 0;

    for (uint32_t i = 0; r == 0 && i < range.n; i++)
        r = add_name(l, series, d->strings[d->attrs[d->members[range.first + i]].key]);
    return r;
}

static int add_names(struct listing *l, uint64_t series, const struct kiln_scan_profile *p,
                     uint64_t set)
{
    const struct kiln_batch *batch = p->source->batch;
    const uint64_t sets[] = {set, p->origin->attrs, batch->scopes[p->origin->scope - 1].attrs,
                             batch->resources[p->origin->resource - 1].attrs};
    struct kiln_str labels = p->series->labels, name, value;
    int r = 0;

    for (uint32_t i = 0; r == 0 && kiln_pseudo_label(i); i++)
        r = add_name(l, series, kiln_str_of(kiln_pseudo_label(i)));
    while (r == 0 && kiln_series_label(&labels, &name, &value))
        r = add_name(l, series, name);
    for (uint32_t i = 0; r == 0 && i < KILN_ARRAY_LEN(sets); i++)
        r = add_set_names(l, series, batch, sets[i]);
    return r;
}

static int add_values(struct listing *l, uint64_t series, const struct kiln_scan_profile *p,
                      uint64_t set)
{
    struct kiln_buf key;

    kiln_buf_init(&key, KEY_MAX);
    for (uint32_t i = 0; i < l->n_names; i++) {
        char scratch[KILN_MEANING_SCRATCH];

        add_value(&key, kiln_scan_label(p, l->names[i], set, scratch));
    }
    return add_row(l, series, &key);
}

static int add_sample(struct listing *l, const struct kiln_scan_profile *p, uint64_t set)
{
    const struct seen seen = {l->source,        p->series_number, p->origin->resource,
                              p->origin->scope, p->origin->attrs, set};
    uint32_t n = l->seen.n, at;
    int r = kiln_fund_table_get(&l->seen, &l->fund, &seen, &at);

    if (r < 0 || at < n)
        return r;
    r = find_series(l, p->source->tenant_name, p->key, &at);
    if (r < 0)
        return r;
    return l->n_names ? add_values(l, at, p, set) : add_names(l, at, p, set);
}

static int show(void *context, const struct kiln_scan_profile *p, struct kiln_err *err)
{
    struct listing *l = context;
    int r = 0;

    (void)err;
    for (uint32_t k = 0; k < p->n_runs; k++) {
        const struct kiln_scan_run *run = &p->runs[k];
        uint64_t last = UINT64_MAX;

        for (uint32_t i = 0; r == 0 && i < run->n; i++) {
            if (run->attrs[i] != last)
                r = add_sample(l, p, run->attrs[i]);
            last = run->attrs[i];
        }
    }
    return r;
}

static int begin(void *context, const struct kiln_scan_source *source, struct kiln_err *err)
{
    struct listing *l = context;

    (void)source;
    (void)err;
    l->source++;
    return 0;
}

static bool is_undecided(void *context, const struct kiln_series *series)
{
    return !decides(context, series);
}

/* ---- the answer ---- */

static int fill_values(struct listing *l, struct kiln_labels *labels)
{
    uint32_t n = l->n_names ? l->n_names : 1;

    for (uint32_t i = 0; i < labels->n_rows; i++) {
        struct kiln_str *values = kiln_arena_alloc(&labels->arena, n * sizeof(*values));
        struct kiln_str rest = l->rows.all[i];

        if (!values)
            return -ENOMEM;
        for (uint32_t k = 0; k < n; k++) {
            uint32_t len;

            memcpy(&len, rest.ptr, sizeof(len));
            values[k] =
                kiln_arena_copy(&labels->arena, (struct kiln_str){rest.ptr + sizeof(len), len});
            if (!values[k].ptr)
                return -ENOMEM;
            rest = (struct kiln_str){rest.ptr + sizeof(len) + len, rest.len - sizeof(len) - len};
        }
        labels->rows[i] = (struct kiln_label_row){.values = values, .min_ns = UINT64_MAX};
    }
    return 0;
}

static void size_rows(const struct listing *l, struct kiln_labels *labels)
{
    for (uint32_t i = 0; i < l->hits.n; i++) {
        const struct hit *hit = (struct hit *)l->hits.all + i;
        const struct series *s = (struct series *)l->series.all + hit->series;
        struct kiln_label_row *row = &labels->rows[hit->row];

        row->min_ns = s->min_ns < row->min_ns ? s->min_ns : row->min_ns;
        row->max_ns = s->max_ns > row->max_ns ? s->max_ns : row->max_ns;
        row->n_profiles += s->n_profiles;
    }
}

static int by_values(const void *a, const void *b, void *context)
{
    const struct kiln_label_row *x = a, *y = b;
    const struct listing *l = context;
    int order = 0;

    for (uint32_t i = 0; i < (l->n_names ? l->n_names : 1) && order == 0; i++)
        order = kiln_str_cmp(x->values[i], y->values[i]);
    return order;
}

static int finish(struct listing *l, struct kiln_labels **ret_labels)
{
    struct kiln_labels *labels = kiln_calloc(1, sizeof(*labels));
    int r;

    if (!labels)
        return -ENOMEM;
    labels->budget.limit = SIZE_MAX;
    kiln_arena_init(&labels->arena, &labels->budget);
    labels->rows = kiln_calloc((size_t)l->rows.n + 1, sizeof(*labels->rows));
    labels->n_rows = l->rows.n;
    labels->truncated = l->truncated;
    labels->n_damaged = l->scan->n_damaged;
    r = labels->rows ? fill_values(l, labels) : -ENOMEM;
    if (r < 0) {
        kiln_labels_free(labels);
        return r;
    }
    size_rows(l, labels);
    qsort_r(labels->rows, labels->n_rows, sizeof(*labels->rows), by_values, l);
    *ret_labels = labels;
    return 0;
}

/* A block is gone, and what was listed of it. */
static void restart(void *context)
{
    struct listing *l = context;

    l->again = true;
}

static int list(struct listing *l, struct kiln_err *err)
{
    const struct kiln_scan_visitor visitor = {
        .context = l, .begin = begin, .profile = show, .restart = restart, .series = is_undecided};
    int r;

    l->again = l->truncated = l->undecided = false;
    r = list_series(l);
    if (r == 0 && l->undecided)
        r = kiln_scan_run(l->scan, &visitor, NULL, err);
    l->truncated |= l->undecided && kiln_scan_missed(l->scan);
    return r;
}

static int answer(struct listing *l, struct kiln_labels **ret_labels, struct kiln_err *err)
{
    int r = list(l, err);

    while (r == 0 && l->again) {
        done(l);
        init(l);
        r = list(l, err);
    }
    return r < 0 ? r : finish(l, ret_labels);
}

int kiln_store_labels(struct kiln_engine *engine, const struct kiln_question *question,
                      const struct kiln_str *names, uint32_t n, struct kiln_labels **ret_labels,
                      struct kiln_err *err)
{
    struct listing l = {.q = question, .names = names, .n_names = n};
    int r = kiln_scan_open(kiln_store_of(engine), question, KILN_SCAN_ATTRS | KILN_SCAN_PAIRS,
                           &l.scan, err);

    if (r < 0)
        return r;
    init(&l);
    r = kiln_scan_reserve(l.scan,
                          &(struct kiln_scan_needs){.forests = kiln_scan_has_stacks(l.scan)}, err);
    if (r == 0)
        r = answer(&l, ret_labels, err);
    done(&l);
    kiln_scan_close(l.scan);
    return r < 0 ? kiln_err_set(err, r, NULL, "%s", kiln_err_text(r)) : 0;
}
