/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The roll-ups of a service: its runs are put together by group and hour, and each hour and day is
 * added up, first by stack, then by function.
 *
 * The stacks that have something in a span, in their sorted order, are a tree without nodes: the
 * sum of what is below a frame is the difference of two running sums.  A function's total is that
 * of its outermost frame on each path.
 */
#include <errno.h>
#include <stdlib.h>

#include "core/series.h"
#include "store/rollup_group.h"

#define AHEAD 8u /* stacks */

#define ROOM(k, array, need)                                                                       \
    kiln_grow((k)->budget, (void **)&(k)->array, &(k)->cap_##array, (need), sizeof(*(k)->array),   \
              UINT32_MAX)

/* ---- by stack ---- */

/* Adds a run to the sums by rank; false where they grow too large. */
static bool add_run(struct kiln_rollup_work *k, const struct kiln_rollup_run *run)
{
    const unsigned char *at = run->n ? (const unsigned char *)k->m->bytes.ptr + run->at : NULL;
    uint64_t number = 0;
    bool fits = true;

    for (uint32_t i = 0; i < run->n && fits; i++) {
        int64_t value, *sum;

        number = kiln_zigzag_add(number, kiln_rollup_get_varint(&at));
        sum = &k->sums[k->w->keyed[number].more];
        fits = !__builtin_mul_overflow((int64_t)kiln_rollup_get_varint(&at), run->scale, &value) &&
               !__builtin_add_overflow(*sum, value, sum);
    }
    return fits;
}

/* Gathers what is not zero, and makes it zero. */
static bool gather(struct kiln_rollup_work *k)
{
    struct kiln_rollup_active *a = &k->active;
    uint32_t shared = UINT32_MAX;
    bool fits = true;

    a->n = 0;
    a->before[0] = 0;
    for (uint32_t rank = 0; rank < k->n_stacks; rank++) {
        shared = k->w->shared[rank] < shared ? k->w->shared[rank] : shared;
        if (k->sums[rank] == 0)
            continue;
        a->stacks[a->n] = k->stacks[k->w->keyed[rank].at];
        a->shared[a->n] = a->n ? shared : 0;
        fits =
            fits && !__builtin_add_overflow(a->before[a->n], k->sums[rank], &a->before[a->n + 1]);
        a->n++;
        k->sums[rank] = 0;
        shared = UINT32_MAX;
    }
    return fits;
}

/* The sums of a span; false where they are too large. */
static bool add_up(struct kiln_rollup_work *k, const struct kiln_rollup_summed *span)
{
    bool fits = true;

    for (uint32_t i = 0; i < span->n; i++)
        fits = fits && add_run(k, &k->m->runs[k->order[span->first + i]]);
    return gather(k) && fits;
}

/* ---- by function ---- */

static int enter(struct kiln_rollup_work *k, uint32_t location, int64_t before)
{
    uint32_t at = k->naming.first[location] - 1;
    uint32_t name;

    do {
        int r = ROOM(k, path, (uint64_t)k->n_path + 1);

        if (r < 0)
            return r;
        name = k->naming.pool[at++];
        k->path[k->n_path++] = name & ~KILN_ROLLUP_LAST;
        if (k->on_path[name & ~KILN_ROLLUP_LAST]++ == 0)
            k->total[name & ~KILN_ROLLUP_LAST] -= before;
    } while (!(name & KILN_ROLLUP_LAST));
    return 0;
}

/* Leaves frames until `n` locations are left. */
static void leave(struct kiln_rollup_work *k, uint32_t n, int64_t before)
{
    while (k->depth > n) {
        uint32_t from = k->ends[--k->depth];

        while (k->n_path > from) {
            uint32_t name = k->path[--k->n_path];

            if (--k->on_path[name] == 0)
                k->total[name] += before;
        }
    }
}

/* Asks for what is looked at of a stack that comes soon. */
static void fetch(const struct kiln_rollup_work *k, uint32_t i)
{
    const struct kiln_rollup_active *a = &k->active;
    const struct kiln_dict *d = &k->w->dict->dict;
    struct kiln_range range;

    if (a->n - i <= 2 * AHEAD)
        return;
    __builtin_prefetch(&d->stacks[a->stacks[i + 2 * AHEAD]]);
    range = d->stacks[a->stacks[i + AHEAD]];
    for (uint32_t n = 0; n < range.n - a->shared[i + AHEAD]; n += 64 / sizeof(*d->frames))
        __builtin_prefetch(d->frames + range.first + n);
}

static int walk_stack(struct kiln_rollup_work *k, uint32_t i)
{
    const struct kiln_dict *d = &k->w->dict->dict;
    struct kiln_range range = d->stacks[k->active.stacks[i]];
    int64_t before = k->active.before[i];
    int r = ROOM(k, ends, (uint64_t)range.n + 1);

    fetch(k, i);
    leave(k, k->active.shared[i], before);
    while (r == 0 && k->depth < range.n) {
        k->ends[k->depth] = k->n_path;
        r = enter(k, d->frames[range.first + range.n - 1 - k->depth], before);
        k->depth++;
    }
    if (r == 0 && k->n_path)
        k->self[k->path[k->n_path - 1]] += k->active.before[i + 1] - before;
    return r;
}

/* Packs the functions of a span: name (difference to the one before), self, rest of the total. */
static void pack_functions(struct kiln_rollup_work *k, enum kiln_rollup_level level,
                           struct kiln_rollup_summed *span, const int64_t *self,
                           const int64_t *total)
{
    struct kiln_buf *packed = &k->packed[level];
    uint32_t before = 0;

    span->at = packed->len;
    span->n_functions = 0;
    for (uint32_t i = 0; i < k->naming.n; i++) {
        if (total[i] == 0)
            continue;
        kiln_rollup_put_varint(packed, i - before);
        kiln_rollup_put_varint(packed, (uint64_t)self[i] / k->divisor);
        kiln_rollup_put_varint(packed, (uint64_t)(total[i] - self[i]) / k->divisor);
        before = i;
        span->n_functions++;
    }
    k->n_functions[level] += span->n_functions;
}

/* Leaves the functions of a span in k->self and k->total. */
static int add_functions(struct kiln_rollup_work *k, struct kiln_rollup_summed *span)
{
    int r = 0;

    if (!add_up(k, span))
        return -ERANGE;
    span->total = k->active.before[k->active.n];
    memset(k->self, 0, k->naming.n * sizeof(*k->self));
    memset(k->total, 0, k->naming.n * sizeof(*k->total));
    k->n_path = k->depth = 0;
    for (uint32_t i = 0; r == 0 && i < k->active.n; i++)
        r = walk_stack(k, i);
    leave(k, 0, k->active.before[k->active.n]);
    return r;
}

/* Adds an hour to its day; false where that becomes too large. */
static bool add_to_day(struct kiln_rollup_work *k, struct kiln_rollup_summed *day, int64_t total)
{
    if (__builtin_add_overflow(day->total, total, &day->total)) /* the largest of all sums */
        return false;
    for (uint32_t i = 0; i < k->naming.n; i++) {
        k->day_self[i] += k->self[i];
        k->day_total[i] += k->total[i];
    }
    return true;
}

static void end_day(struct kiln_rollup_work *k, struct kiln_rollup_summed *day)
{
    pack_functions(k, KILN_ROLLUP_DAYS, day, k->day_self, k->day_total);
    memset(k->day_self, 0, k->naming.n * sizeof(*k->day_self));
    memset(k->day_total, 0, k->naming.n * sizeof(*k->day_total));
}

int kiln_rollup_span_tree(struct kiln_rollup_work *k, const struct kiln_rollup_summed *span,
                          uint32_t nodes_max)
{
    if (!add_up(k, span))
        return -ERANGE;
    return kiln_rollup_draw(&k->w->dict->dict, &k->naming, &k->active, nodes_max, &k->drawn);
}

/* ---- spans ---- */

static void add_basis(struct kiln_rollup_basis *to, const struct kiln_rollup_basis *more)
{
    to->first_ns = more->first_ns < to->first_ns ? more->first_ns : to->first_ns;
    to->last_ns = more->last_ns > to->last_ns ? more->last_ns : to->last_ns;
    to->n_profiles += more->n_profiles;
    to->n_continued += more->n_continued;
    to->n_rows += more->n_rows;
    to->n_time_set += more->n_time_set;
    to->count += more->count;
}

/* What is covered in an hour is what its best series covers: they mostly cover the same. */
static uint64_t covered(const struct kiln_rollup_work *k, uint32_t i, uint32_t end)
{
    uint64_t hour = k->m->runs[k->order[i]].hour, most = 0, sum = 0;
    uint32_t series = UINT32_MAX;

    for (; i < end && k->m->runs[k->order[i]].hour == hour; i++) {
        const struct kiln_rollup_run *run = &k->m->runs[k->order[i]];

        sum = run->series == series ? sum + run->basis.covered_ns : run->basis.covered_ns;
        series = run->series;
        most = sum > most ? sum : most;
    }
    return most;
}

/* Runs [first, end) of the order, cut by hour or day.  Returns how many spans; 0: too many. */
static uint32_t cut_spans(struct kiln_rollup_work *k, uint32_t first, uint32_t end, uint64_t hours,
                          struct kiln_rollup_summed *spans)
{
    uint32_t n = 0;

    for (uint32_t i = first; i < end; i++) {
        const struct kiln_rollup_run *run = &k->m->runs[k->order[i]];

        if (n == 0 || spans[n - 1].number != run->hour / hours) {
            if (n == KILN_ROLLUP_SPANS_MAX)
                return 0;
            spans[n++] = (struct kiln_rollup_summed){.number = run->hour / hours, .first = i};
            spans[n - 1].basis.first_ns = UINT64_MAX;
        }
        spans[n - 1].n++;
        if (i == first || k->m->runs[k->order[i - 1]].hour != run->hour)
            spans[n - 1].basis.covered_ns += covered(k, i, end);
        add_basis(&spans[n - 1].basis, &run->basis);
    }
    return n;
}

/* ---- groups ---- */

static bool is_worth(const struct kiln_rollup_work *k, enum kiln_rollup_level level)
{
    return k->n_rows >= kiln_rollup_limits.rows_each * k->n_functions[level];
}

/* Rows and divisor of a group; false where nothing is made of it. */
static bool survey(struct kiln_rollup_work *k, uint32_t first, uint32_t end)
{
    k->n_rows = 0;
    k->divisor = 0;
    for (uint32_t i = first; i < end; i++) {
        const struct kiln_rollup_run *run = &k->m->runs[k->order[i]];
        uint64_t divisor;

        if (run->bad || __builtin_mul_overflow(run->divisor, (uint64_t)run->scale, &divisor))
            return false;
        k->divisor = kiln_rollup_gcd(divisor, k->divisor);
        k->n_rows += run->basis.n_rows;
    }
    if (k->divisor == 0)
        k->divisor = 1;
    return k->n_rows >= kiln_rollup_limits.rows_min &&
           k->n_rows >= kiln_rollup_limits.rows_name * k->naming.n;
}

/* Functions of hours, and of days as what their hours are together. */
static int add_hours(struct kiln_rollup_work *k)
{
    struct kiln_rollup_summed *hours = k->spans[KILN_ROLLUP_HOURS];
    struct kiln_rollup_summed *day = k->spans[KILN_ROLLUP_DAYS];
    int r = 0;

    memset(k->day_self, 0, k->naming.n * sizeof(*k->day_self));
    memset(k->day_total, 0, k->naming.n * sizeof(*k->day_total));
    for (uint32_t i = 0; r == 0 && i < k->n_spans[KILN_ROLLUP_HOURS]; i++) {
        r = add_functions(k, &hours[i]);
        if (r == 0 && hours[i].number / 24 != day->number)
            end_day(k, day++);
        if (r == 0 && !add_to_day(k, day, hours[i].total))
            r = -ERANGE;
        if (r == 0)
            pack_functions(k, KILN_ROLLUP_HOURS, &hours[i], k->self, k->total);
    }
    if (r == 0)
        end_day(k, day);
    return r;
}

static int add_days(struct kiln_rollup_work *k)
{
    int r = 0;

    for (uint32_t i = 0; r == 0 && i < k->n_spans[KILN_ROLLUP_DAYS]; i++) {
        struct kiln_rollup_summed *day = &k->spans[KILN_ROLLUP_DAYS][i];

        r = add_functions(k, day);
        if (r == 0)
            pack_functions(k, KILN_ROLLUP_DAYS, day, k->self, k->total);
    }
    return r;
}

static int add_levels(struct kiln_rollup_work *k)
{
    int r;

    for (uint32_t level = 0; level < KILN_N_ROLLUP_LEVELS; level++) {
        kiln_buf_clear(&k->packed[level]);
        k->n_functions[level] = 0;
    }
    r = k->n_spans[KILN_ROLLUP_HOURS] ? add_hours(k) : add_days(k);
    if (r == 0)
        r = k->packed[KILN_ROLLUP_DAYS].error;
    if (k->packed[KILN_ROLLUP_HOURS].error || !is_worth(k, KILN_ROLLUP_HOURS))
        k->n_spans[KILN_ROLLUP_HOURS] = 0;
    return r;
}

/* Whether two runs have the same stacks with the same values, but for the unit. */
static bool is_like_run(const struct kiln_rollup_work *k, const struct kiln_rollup_run *a,
                        const struct kiln_rollup_run *b)
{
    const unsigned char *bytes = (const unsigned char *)k->m->bytes.ptr;
    const unsigned char *x = a->n ? bytes + a->at : NULL, *y = b->n ? bytes + b->at : NULL;

    if (a->hour != b->hour || a->n != b->n || a->basis.n_rows != b->basis.n_rows ||
        a->divisor * (uint64_t)a->scale / k->last_divisor !=
            b->divisor * (uint64_t)b->scale / k->divisor)
        return false;
    for (uint32_t i = 0; i < a->n; i++) {
        if (kiln_rollup_get_varint(&x) != kiln_rollup_get_varint(&y) ||
            kiln_rollup_get_varint(&x) / a->divisor != kiln_rollup_get_varint(&y) / b->divisor)
            return false;
    }
    return true;
}

/* Whether the group at hand has the sums of the last one in another unit: CPU time and the number
 * of its samples do. */
static bool is_like_last(const struct kiln_rollup_work *k)
{
    uint32_t n = k->end_run - k->first_run;

    if (k->n_written == 0 || k->last_end_run - k->last_first_run != n)
        return false;
    for (uint32_t i = 0; i < n; i++) {
        if (!is_like_run(k, &k->m->runs[k->order[k->last_first_run + i]],
                         &k->m->runs[k->order[k->first_run + i]]))
            return false;
    }
    return true;
}

/* Totals are all that is not written for a group like the last. */
static bool add_totals(struct kiln_rollup_work *k)
{
    bool fits = true;

    memcpy(k->n_spans, k->last_n_spans, sizeof(k->n_spans));
    for (uint32_t level = 0; level < KILN_N_ROLLUP_LEVELS; level++) {
        for (uint32_t i = 0; fits && i < k->n_spans[level]; i++) {
            fits = add_up(k, &k->spans[level][i]);
            k->spans[level][i].total = k->active.before[k->active.n];
        }
    }
    return fits;
}

/* -ERANGE, KILN_E_LIMIT and -ENOMEM: there is none of this group. */
static int make_group(struct kiln_rollup_work *k, uint32_t first, uint32_t end)
{
    int r;

    if (!survey(k, first, end))
        return 0;
    k->first_run = first;
    k->end_run = end;
    k->n_spans[KILN_ROLLUP_DAYS] = cut_spans(k, first, end, 24, k->spans[KILN_ROLLUP_DAYS]);
    k->n_spans[KILN_ROLLUP_HOURS] = cut_spans(k, first, end, 1, k->spans[KILN_ROLLUP_HOURS]);
    if (k->n_spans[KILN_ROLLUP_DAYS] == 0)
        return 0;
    if (k->n_spans[KILN_ROLLUP_HOURS] == k->n_spans[KILN_ROLLUP_DAYS])
        k->n_spans[KILN_ROLLUP_HOURS] = 0; /* they would say the same */
    if (is_like_last(k)) {
        if (!add_totals(k))
            return -ERANGE;
        kiln_rollup_write_group(k, true);
        return 0;
    }
    r = add_levels(k);
    if (r == 0 && is_worth(k, KILN_ROLLUP_DAYS))
        kiln_rollup_write_group(k, false);
    return r;
}

/* ---- a service ---- */

struct label {
    struct kiln_str type, version;
    uint32_t series, group;
};

static int by_group(const void *a, const void *b)
{
    const struct label *x = a, *y = b;
    int order = kiln_str_cmp(x->type, y->type);

    order = order ? order : kiln_str_cmp(x->version, y->version);
    return order ? order : (x->series > y->series) - (x->series < y->series);
}

static int by_series(const void *a, const void *b)
{
    const struct label *x = a, *y = b;

    return (x->series > y->series) - (x->series < y->series);
}

static struct label label_of(const struct kiln_block_writer *w, uint32_t series)
{
    struct label label = {.series = series};
    struct kiln_series parsed;

    if (kiln_series_parse(w->footer.series[series].key, &parsed) < 0)
        return label;
    label.type = parsed.type;
    label.version = kiln_series_get(&parsed, KILN_STR("service.version"));
    if (label.version.len == 0)
        label.version = kiln_series_get(&parsed, KILN_STR("version"));
    return label;
}

static void number_groups(struct label *labels, uint32_t n)
{
    qsort(labels, n, sizeof(*labels), by_group);
    for (uint32_t i = 1; i < n; i++)
        labels[i].group =
            labels[i - 1].group + !(kiln_str_eq(labels[i].type, labels[i - 1].type) &&
                                    kiln_str_eq(labels[i].version, labels[i - 1].version));
    qsort(labels, n, sizeof(*labels), by_series);
}

/* Puts the runs in the order of group and hour: keys are left in k->keyed. */
static int order_runs(struct kiln_rollup_work *k, uint32_t first, uint32_t n)
{
    struct label *labels = NULL;
    struct kiln_keyed *scratch = NULL;
    uint32_t n_labels = 0, at = 0;
    int r = ROOM(k, keyed, n);

    if (r == 0)
        r = ROOM(k, order, n);
    if (r == 0 && (!(labels = kiln_malloc(n * sizeof(*labels))) ||
                   !(scratch = kiln_malloc(n * sizeof(*scratch)))))
        r = -ENOMEM;
    for (uint32_t i = 0; r == 0 && i < n; i++) {
        uint32_t series = k->m->runs[first + i].series;

        if (n_labels == 0 || labels[n_labels - 1].series != series)
            labels[n_labels++] = label_of(k->w, series);
    }
    if (r == 0)
        number_groups(labels, n_labels);
    for (uint32_t i = 0; r == 0 && i < n; i++) {
        const struct kiln_rollup_run *run = &k->m->runs[first + i];

        while (labels[at].series != run->series)
            at++;
        k->keyed[i] = (struct kiln_keyed){
            .key = (uint64_t)labels[at].group << 32 | (uint32_t)run->hour, .at = first + i};
    }
    if (r == 0)
        kiln_sort_keyed(k->keyed, scratch, n);
    for (uint32_t i = 0; r == 0 && i < n; i++)
        k->order[i] = k->keyed[i].at;
    kiln_free(labels);
    kiln_free(scratch);
    return r;
}

static int make_room(struct kiln_rollup_work *k)
{
    uint64_t n = k->n_stacks;
    int r = ROOM(k, sums, n + 1);

#define ACTIVE(array)                                                                              \
    (r = r < 0 ? r                                                                                 \
               : kiln_grow(k->budget, (void **)&k->active.array, &k->active.cap_##array, n + 1,    \
                           sizeof(*k->active.array), UINT32_MAX))
    ACTIVE(stacks);
    ACTIVE(shared);
    ACTIVE(before);
#undef ACTIVE
    if (r == 0)
        r = kiln_rollup_name_all(k);
    if (r == 0)
        r = ROOM(k, self, (uint64_t)k->naming.n + 1);
    if (r == 0)
        r = ROOM(k, total, (uint64_t)k->naming.n + 1);
    if (r == 0)
        r = ROOM(k, day_self, (uint64_t)k->naming.n + 1);
    if (r == 0)
        r = ROOM(k, day_total, (uint64_t)k->naming.n + 1);
    if (r == 0)
        r = ROOM(k, on_path, (uint64_t)k->naming.n + 1);
    if (r < 0)
        return r;
    memset(k->sums, 0, n * sizeof(*k->sums));
    memset(k->on_path, 0, k->naming.n * sizeof(*k->on_path));
    return 0;
}

static void work_done(struct kiln_rollup_work *k)
{
#define FREE(array)                                                                                \
    kiln_array_free(k->budget, (void **)&k->array, &k->cap_##array, sizeof(*k->array))
    FREE(sums);
    FREE(self);
    FREE(total);
    FREE(day_self);
    FREE(day_total);
    FREE(on_path);
    FREE(path);
    FREE(ends);
    FREE(keyed);
    FREE(order);
#undef FREE
#define FREE(array)                                                                                \
    kiln_array_free(k->budget, (void **)&k->active.array, &k->active.cap_##array,                  \
                    sizeof(*k->active.array))
    FREE(stacks);
    FREE(shared);
    FREE(before);
#undef FREE
    kiln_rollup_drawn_done(&k->drawn, k->budget);
    kiln_rollup_naming_done(&k->naming);
    kiln_buf_done(&k->packed[KILN_ROLLUP_HOURS]);
    kiln_buf_done(&k->packed[KILN_ROLLUP_DAYS]);
    kiln_free(k);
}

static void make_groups(struct kiln_rollup_work *k, uint32_t n_runs)
{
    for (uint32_t i = 0, end; i < n_runs && k->w->error == 0; i = end) {
        for (end = i + 1; end < n_runs && k->keyed[end].key >> 32 == k->keyed[i].key >> 32;)
            end++;
        if (make_group(k, i, end) < 0) /* sums by rank may be half done */
            memset(k->sums, 0, k->n_stacks * sizeof(*k->sums));
    }
    if (k->n_written && k->w->error == 0)
        kiln_rollup_write_names(k);
}

/* Its runs; false if it has none, or nothing will be made. */
static bool runs_of(const struct kiln_block_writer *w, uint32_t service, uint32_t *first,
                    uint32_t *n)
{
    const struct kiln_rollup_maker *m = w->rollup;

    if (!m || w->error || m->n_starts <= service + 1)
        return false;
    *first = m->starts[service];
    *n = m->starts[service + 1] - *first;
    return *n != 0;
}

uint8_t *kiln_rollup_expect(struct kiln_block_writer *w, uint32_t service)
{
    uint32_t first, n, n_locations = w->dict->dict.n_locations;
    struct kiln_rollup_maker *m = w->rollup;

    if (!runs_of(w, service, &first, &n))
        return NULL;
    if (kiln_grow(&m->budget, (void **)&m->used, &m->cap_used, n_locations, sizeof(*m->used),
                  UINT32_MAX) < 0) {
        kiln_rollup_maker_free(m);
        w->rollup = NULL;
        return NULL;
    }
    memset(m->used, 0, n_locations);
    return m->used;
}

void kiln_rollup_make(struct kiln_block_writer *w, uint32_t service)
{
    struct kiln_rollup_maker *m = w->rollup;
    struct kiln_rollup_work *k;
    uint32_t first, n;

    if (!runs_of(w, service, &first, &n))
        return;
    k = kiln_calloc(1, sizeof(*k));
    if (!k)
        return;
    k->w = w;
    k->m = m;
    k->budget = &m->budget;
    k->naming.budget = &m->budget;
    kiln_arena_init(&k->naming.arena, &m->budget);
    kiln_buf_init(&k->packed[KILN_ROLLUP_HOURS], m->budget.limit / 4);
    kiln_buf_init(&k->packed[KILN_ROLLUP_DAYS], m->budget.limit / 4);
    k->stacks = w->stack_order + w->stack_starts[service];
    k->n_stacks = w->stack_starts[service + 1] - w->stack_starts[service];
    k->service = service;
    for (uint32_t i = first; i < first + n; i++)
        k->service_rows += m->runs[i].basis.n_rows;
    if (order_runs(k, first, n) == 0 && make_room(k) == 0)
        make_groups(k, n);
    work_done(k);
}
