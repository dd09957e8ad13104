/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From samples to rows in two passes.  First the samples of the chosen profiles are added up by
 * their stack, a table lookup each; then every stack that got a value is turned into frames, once,
 * and stacks that read the same become one row.  A stack whose sum is zero makes no row.
 *
 * The time covered is the union of the profiles' intervals: consecutive profiles of a process add
 * up, profiles of many processes over the same minute cover one minute.  Profiles without a time
 * cannot be placed; their durations are added up by resource, and the longest counts.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/sat.h"
#include "core/view_int.h"

/*
 * The most frames that are written, also of stacks that are dropped again: inlined lines that a few
 * bytes repeat must not keep anybody busy for ever.
 */
#define FRAMES_WRITTEN_MAX (UINT64_C(1) << 31)

/* What the samples of one stack add up to. */
struct sum {
    int64_t value;
    double count;
};

struct interval {
    uint64_t start, end;
};

struct making {
    struct kiln_view_box *box;
    struct kiln_batch *batch;
    struct kiln_err *err;
    struct kiln_type *types; /* parallel to batch->profiles */
    struct kiln_labels labels;
    struct kiln_framer framer;
    struct kiln_intern by_path;
    struct sum *sums; /* parallel to dict.stacks */
    /* Whether a set of sample attributes passes: 2 * (1 + profile) + yes, 0 if not known. */
    uint32_t *passes;
    struct interval *intervals;
    uint64_t n_written;  /* frames */
    uint64_t untimed_ns; /* of the resource at hand */
    uint64_t untimed_max_ns;
    uint32_t sums_cap, passes_cap, intervals_cap, n_intervals;
    bool made; /* the type is made of others */
};

/* A profile and where it is. */
struct place {
    const struct kiln_profile *profile;
    const struct kiln_scope *scope;
    const struct kiln_resource *resource;
    uint32_t index;
};

static bool holds(const struct making *m, uint32_t profile)
{
    return kiln_type_counts(&m->box->view.type, m->made, &m->types[profile]);
}

/* ---- samples to sums ---- */

static int sample_passes(struct making *m, const struct place *at, const struct kiln_sample *sample)
{
    const uint32_t sets[KILN_LABEL_SETS] = {sample->attrs, at->profile->attrs, at->scope->attrs,
                                            at->resource->attrs};
    uint32_t *known;
    int r;

    if (m->labels.n == 0)
        return 1;
    known = &m->passes[sample->attrs];
    if (*known >> 1 == at->index + 1)
        return *known & 1;
    r = kiln_labels_hold(&m->labels, m->batch, sets, false);
    if (r >= 0)
        *known = (at->index + 1) << 1 | (uint32_t)r;
    return r;
}

static int add_samples(struct making *m, const struct place *at, bool *ret_any)
{
    struct kiln_view *view = &m->box->view;
    const struct kiln_type *type = &m->types[at->index];
    struct kiln_counter counter = kiln_counter_of(m->batch, at->scope, at->index, type);

    for (uint32_t i = 0; i < at->profile->n_samples; i++) {
        const struct kiln_sample *sample = &m->batch->samples[at->profile->first_sample + i];
        int64_t raw = kiln_sample_total(m->batch, sample);
        int64_t value = kiln_sat_mul(raw, type->scale);
        int pass = sample_passes(m, at, sample);

        if (pass < 0)
            return pass;
        view->total_unfiltered = kiln_sat_add(view->total_unfiltered, value);
        if (!pass)
            continue;
        *ret_any = true;
        m->sums[sample->stack].value = kiln_sat_add(m->sums[sample->stack].value, value);
        m->sums[sample->stack].count += kiln_counter_count(&counter, i, raw);
    }
    return 0;
}

/* ---- time ---- */

static void cover(struct making *m, const struct kiln_profile *profile)
{
    struct kiln_view *view = &m->box->view;
    uint64_t end = profile->time_ns + profile->duration_ns;

    view->n_profiles++;
    if (profile->time_ns && (!view->time_ns || profile->time_ns < view->time_ns))
        view->time_ns = profile->time_ns;
    if (profile->time_ns && profile->duration_ns)
        m->intervals[m->n_intervals++] =
            (struct interval){profile->time_ns, end < profile->time_ns ? UINT64_MAX : end};
    else if (__builtin_add_overflow(m->untimed_ns, profile->duration_ns, &m->untimed_ns))
        m->untimed_ns = UINT64_MAX;
}

static int compare_intervals(const void *a, const void *b)
{
    const struct interval *x = a, *y = b;

    return (x->start > y->start) - (x->start < y->start);
}

static uint64_t covered_ns(struct making *m)
{
    uint64_t sum = 0, end = 0;

    if (m->n_intervals)
        qsort(m->intervals, m->n_intervals, sizeof(*m->intervals), compare_intervals);
    for (uint32_t i = 0; i < m->n_intervals; i++) {
        uint64_t from = m->intervals[i].start > end ? m->intervals[i].start : end;

        if (m->intervals[i].end <= from)
            continue;
        sum += m->intervals[i].end - from;
        end = m->intervals[i].end;
    }
    return sum > m->untimed_max_ns ? sum : m->untimed_max_ns;
}

/* ---- profiles ---- */

static int add_profile(struct making *m, const struct place *at)
{
    /* No sample, no attributes: set 0 is empty. */
    const uint32_t sets[KILN_LABEL_SETS] = {0, at->profile->attrs, at->scope->attrs,
                                            at->resource->attrs};
    bool any = false;
    int r;

    r = add_samples(m, at, &any);
    if (r == 0 && !any)
        r = kiln_labels_hold(&m->labels, m->batch, sets, true);
    if (r < 0)
        return r;
    /* A process that the labels rule out covers no time; one that idled does. */
    if (any || r > 0)
        cover(m, at->profile);
    return 0;
}

static int add_scope(struct making *m, const struct kiln_resource *resource,
                     const struct kiln_scope *scope)
{
    int r = 0;

    for (uint32_t i = 0; i < scope->n_profiles && r == 0; i++) {
        uint32_t index = scope->first_profile + i;

        if (holds(m, index))
            r = add_profile(m, &(struct place){&m->batch->profiles[index], scope, resource, index});
    }
    return r;
}

static int add_resources(struct making *m)
{
    int r = 0;

    for (uint32_t i = 0; i < m->batch->n_resources && r == 0; i++) {
        const struct kiln_resource *resource = &m->batch->resources[i];

        m->untimed_ns = 0;
        for (uint32_t s = 0; s < resource->n_scopes && r == 0; s++)
            r = add_scope(m, resource, &m->batch->scopes[resource->first_scope + s]);
        if (m->untimed_ns > m->untimed_max_ns)
            m->untimed_max_ns = m->untimed_ns;
    }
    m->box->view.duration_ns = covered_ns(m);
    return r;
}

/* ---- sums to rows ---- */

/* Writes the frames of a stack behind the paths there are; *ret_keep tells whether it is wanted. */
static int write_path(struct making *m, struct kiln_range stack, uint32_t *ret_n, bool *ret_keep)
{
    struct kiln_view_box *box = m->box;
    struct kiln_view *view = &box->view;
    uint8_t focus = 0, ignore = 0;
    uint32_t end = view->n_path;

    for (uint32_t i = stack.n; i > 0; i--) {
        uint32_t index = m->batch->dict.frames[stack.first + i - 1];
        const struct kiln_view_location *location = &m->framer.locations[index];
        int r = location->done ? 0 : kiln_framer_make(&m->framer, index);

        if (r == 0)
            r = kiln_grow(&box->budget, (void **)&view->path, &box->path_cap,
                          (uint64_t)end + location->n, sizeof(*view->path), UINT32_MAX);
        if (r < 0)
            return r;
        focus |= location->focus;
        ignore |= location->ignore;
        for (uint32_t k = 0; k < location->n; k++)
            view->path[end++] = m->framer.pool[location->first + k];
    }
    *ret_n = end - view->n_path;
    m->n_written += *ret_n;
    *ret_keep = (focus || !m->framer.filters[FOCUS]) && !ignore && (*ret_n || !stack.n);
    return 0;
}

/* Adds to the row that has the `n` frames at the end of path, or makes one that keeps them. */
static int add_row(struct making *m, uint32_t n, const struct sum *sum)
{
    struct kiln_view_box *box = m->box;
    struct kiln_view *view = &box->view;
    const uint32_t *path = view->path + view->n_path;
    uint64_t hash = kiln_hash(path, n * sizeof(*path));
    int r;

    for (struct kiln_probe p = kiln_intern_probe(&m->by_path, hash);
         kiln_intern_next(&m->by_path, &p);) {
        struct kiln_view_row *row = &view->rows[p.entry];

        if (row->n == n && memcmp(view->path + row->first, path, n * sizeof(*path)) == 0) {
            row->value = kiln_sat_add(row->value, sum->value);
            row->count += sum->count;
            return 0;
        }
    }
    r = kiln_grow(&box->budget, (void **)&view->rows, &box->rows_cap, (uint64_t)view->n_rows + 1,
                  sizeof(*view->rows), UINT32_MAX - 1);
    if (r == 0)
        r = kiln_intern_add(&m->by_path, &box->budget, hash, view->n_rows);
    if (r < 0)
        return r;
    view->rows[view->n_rows++] = (struct kiln_view_row){view->n_path, n, sum->value, sum->count};
    view->n_path += n;
    return 0;
}

static int make_rows(struct making *m)
{
    struct kiln_view *view = &m->box->view;

    for (uint32_t i = 0; i < m->batch->dict.n_stacks; i++) {
        uint32_t n;
        bool keep;
        int r;

        if (m->sums[i].value == 0)
            continue;
        r = write_path(m, m->batch->dict.stacks[i], &n, &keep);
        if (r == 0 && m->n_written > FRAMES_WRITTEN_MAX)
            r = KILN_E_LIMIT;
        if (r == 0 && keep)
            r = add_row(m, n, &m->sums[i]);
        if (r < 0)
            return r;
        if (keep) {
            view->total = kiln_sat_add(view->total, m->sums[i].value);
            view->count += m->sums[i].count;
        }
    }
    return 0;
}

/* Forgets the frames of stacks that focus and ignore left out. */
static int drop_unused_frames(struct making *m)
{
    struct kiln_view *view = &m->box->view;
    uint32_t *place = NULL, cap = 0, n = 0;
    int r;

    if (!m->framer.filters[FOCUS] && !m->framer.filters[IGNORE])
        return 0;
    r = kiln_reserve(&m->box->budget, (void **)&place, &cap, view->n_frames, sizeof(*place),
                     UINT32_MAX);
    if (r < 0)
        return r;
    for (uint32_t i = 0; i < view->n_frames; i++)
        place[i] = 0;
    for (uint32_t i = 0; i < view->n_path; i++)
        place[view->path[i]] = 1;
    for (uint32_t i = 0; i < view->n_frames; i++) {
        bool used = place[i];

        place[i] = n;
        if (used)
            view->frames[n++] = view->frames[i];
    }
    for (uint32_t i = 0; i < view->n_path; i++)
        view->path[i] = place[view->path[i]];
    view->n_frames = n;
    kiln_array_free(&m->box->budget, (void **)&place, &cap, sizeof(*place));
    return 0;
}

/* ---- the sample type ---- */

#define LISTED_MAX 8

/* Lists the types there are: what a person could have asked for. */
static int no_match(struct making *m, struct kiln_str wanted)
{
    uint32_t listed[LISTED_MAX], n = 0;
    struct kiln_buf text;

    kiln_buf_init(&text, 160);
    for (uint32_t p = 0; p < m->batch->n_profiles && n < LISTED_MAX; p++) {
        uint32_t i = 0;

        while (i < n && !kiln_type_equal(&m->types[p], &m->types[listed[i]]))
            i++;
        if (i < n)
            continue;
        listed[n++] = p;
        kiln_buf_puts(&text, i ? ", " : "; there is ");
        kiln_buf_add_str(&text, m->types[p].type);
        kiln_buf_putc(&text, ':');
        kiln_buf_add_str(&text, m->types[p].unit);
    }
    kiln_err_set(m->err, KILN_E_NOMATCH, NULL, "no profile has the sample type \"%.*s\"%.*s",
                 (int)(wanted.len < 60 ? wanted.len : 60), wanted.ptr ? wanted.ptr : "",
                 KILN_STR_ARG(kiln_buf_str(&text)));
    kiln_buf_done(&text);
    return KILN_E_NOMATCH;
}

static int ambiguous(struct making *m, const struct kiln_type *a, const struct kiln_type *b,
                     struct kiln_str wanted)
{
    struct kiln_buf text;

    kiln_buf_init(&text, 180);
    kiln_type_id(a, &text);
    kiln_buf_puts(&text, " or ");
    kiln_type_id(b, &text);
    kiln_err_set(m->err, KILN_E_AMBIGUOUS, NULL, "the sample type \"%.*s\" may be %.*s",
                 (int)(wanted.len < 50 ? wanted.len : 50), wanted.ptr,
                 KILN_STR_ARG(kiln_buf_str(&text)));
    kiln_buf_done(&text);
    return KILN_E_AMBIGUOUS;
}

/* Finds the one type that is wanted; 1 if there is none. */
static int find_type(struct making *m, struct kiln_str wanted)
{
    const struct kiln_type *found = NULL;

    for (uint32_t p = 0; p < m->batch->n_profiles; p++) {
        if (!kiln_type_matches(&m->types[p], wanted))
            continue;
        if (found && !kiln_type_equal(found, &m->types[p]))
            return ambiguous(m, found, &m->types[p], wanted);
        if (!found)
            found = &m->types[p];
    }
    if (!found)
        return 1;
    m->box->view.type = *found;
    return 0;
}

/* Who asks for "samples" of a profile that is taken as CPU time wants the counts. */
static int prefer_counts(struct making *m, struct kiln_str wanted)
{
    struct kiln_type *raw;
    int r = kiln_types_of_batch(m->batch, true, &raw);

    if (r < 0)
        return r;
    for (uint32_t p = 0; p < m->batch->n_profiles; p++) {
        if (kiln_type_matches(&raw[p], wanted))
            m->types[p] = raw[p];
    }
    kiln_free(raw);
    return 0;
}

/* Whether others that are there add up to it. */
static bool make_type(struct making *m, struct kiln_str wanted)
{
    const struct kiln_type *type = &kiln_type_wall.type;

    m->made =
        kiln_type_matches(type, wanted) && kiln_type_is_made(type, m->types, m->batch->n_profiles);
    if (m->made)
        m->box->view.type = *type;
    return m->made;
}

static int choose_type(struct making *m, struct kiln_str wanted)
{
    int r;

    if (m->batch->n_profiles == 0)
        return kiln_err_set(m->err, -ENODATA, NULL, "there are no profiles in it");
    if (!wanted.len) {
        m->box->view.type = m->types[kiln_type_default(m->batch, m->types)];
        return 0;
    }
    r = find_type(m, wanted);
    if (r <= 0)
        return r;
    if (make_type(m, wanted))
        return 0;
    r = prefer_counts(m, wanted);
    if (r == 0)
        r = find_type(m, wanted);
    return r > 0 ? no_match(m, wanted) : r;
}

/* ---- making ---- */

static int reserve(struct making *m)
{
    struct kiln_budget *budget = &m->box->budget;
    const struct kiln_dict *d = &m->batch->dict;
    int r;

    r = kiln_reserve(budget, (void **)&m->sums, &m->sums_cap, d->n_stacks, sizeof(*m->sums),
                     UINT32_MAX);
    if (r == 0 && m->labels.n)
        r = kiln_reserve(budget, (void **)&m->passes, &m->passes_cap, d->n_sets, sizeof(*m->passes),
                         UINT32_MAX);
    if (r == 0) /* also a view without frames has somewhere to point to */
        r = kiln_grow(budget, (void **)&m->box->view.path, &m->box->path_cap, 1,
                      sizeof(*m->box->view.path), UINT32_MAX);
    if (r == 0)
        r = kiln_reserve(budget, (void **)&m->intervals, &m->intervals_cap, m->batch->n_profiles,
                         sizeof(*m->intervals), UINT32_MAX);
    if (r < 0)
        return r;
    memset(m->sums, 0, d->n_stacks * sizeof(*m->sums));
    if (m->passes)
        memset(m->passes, 0, d->n_sets * sizeof(*m->passes));
    return 0;
}

static void done(struct making *m)
{
    struct kiln_budget *budget = &m->box->budget;

    kiln_array_free(budget, (void **)&m->sums, &m->sums_cap, sizeof(*m->sums));
    kiln_array_free(budget, (void **)&m->passes, &m->passes_cap, sizeof(*m->passes));
    kiln_array_free(budget, (void **)&m->intervals, &m->intervals_cap, sizeof(*m->intervals));
    kiln_intern_done(&m->by_path, budget);
    kiln_framer_done(&m->framer);
    kiln_labels_done(&m->labels);
    kiln_free(m->types);
}

static int make(struct making *m, const struct kiln_view_opts *opts)
{
    int r;

    r = kiln_framer_init(&m->framer, m->box, opts, m->err);
    if (r == 0)
        r = kiln_labels_init(&m->labels, opts->labels, opts->n_labels, m->err);
    if (r == 0)
        r = kiln_types_of_batch(m->batch, false, &m->types);
    if (r == 0)
        r = choose_type(m, opts->sample_type);
    if (r == 0)
        r = reserve(m);
    if (r == 0)
        r = add_resources(m);
    if (r == 0)
        r = make_rows(m);
    if (r == 0)
        r = drop_unused_frames(m);
    return r;
}

int kiln_view_new(struct kiln_batch *batch, const struct kiln_view_opts *opts,
                  struct kiln_view **ret_view, struct kiln_err *err)
{
    struct kiln_view_box *box = kiln_calloc(1, sizeof(*box));
    struct making m = {.box = box, .batch = batch, .err = err};
    int r;

    if (!box)
        return kiln_err_set(err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));
    box->budget.limit = opts->memory_bytes ? opts->memory_bytes : KILN_VIEW_MEMORY_BYTES;
    kiln_arena_init(&box->arena, &box->budget);
    box->view.batch = kiln_batch_ref(batch);
    r = make(&m, opts);
    done(&m);
    if (r == KILN_E_LIMIT)
        kiln_err_set(err, r, NULL, "its stacks take more than %zu MiB", box->budget.limit >> 20);
    if (r < 0) {
        kiln_view_free(&box->view);
        return kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    }
    *ret_view = &box->view;
    return 0;
}

void kiln_view_free(struct kiln_view *view)
{
    struct kiln_view_box *box = (struct kiln_view_box *)view;

    if (!view)
        return;
    kiln_batch_unref(view->batch);
    kiln_arena_done(&box->arena);
    kiln_free(view->frames);
    kiln_free(view->path);
    kiln_free(view->rows);
    kiln_free(box);
}
