/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A head is rows (store/rows.h) with three indexes: resources and scopes by their content, series
 * by their key, profiles by their hash.  A batch goes in profile by profile; what a profile takes
 * back (it turned out to be there already) is the last thing in the builder.
 *
 * The first failure of the builder sticks, so a head that failed once is full for good.  Rows of
 * the batch at hand are then forgotten; entries that only they used stay behind, unused, and are
 * left out when the head is written.
 */
#include "store/head.h"

#include <errno.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "core/bulk.h"
#include "core/keys.h"
#include "core/profile_time.h"
#include "core/remap.h"
#include "core/type.h"

#define KEY_MAX ((size_t)1 << 20) /* bytes of one series' key */
#define NONE    UINT32_MAX

struct kiln_head {
    struct kiln_head_opts opts;
    _Atomic uint32_t refs;
    struct kiln_rows rows;
    struct kiln_content content;
    struct kiln_content_hash *hashes; /* parallel to rows */
    struct kiln_head_series *series;
    uint32_t cap_hashes, cap_series;
    struct kiln_keys resources, scopes;
    struct kiln_intern series_index, row_index;
    struct kiln_buf key, overflow_key; /* scratch */
    struct kiln_head_info info;
    size_t charged; /* to the pool */
    size_t counted; /* in *opts.bytes */
    bool full;
};

static struct kiln_budget *budget_of(struct kiln_head *head)
{
    return &head->rows.b->box->budget;
}

static _Atomic uint64_t serials;

int kiln_head_new(const struct kiln_head_opts *opts, struct kiln_head **ret_head)
{
    struct kiln_limits limits = kiln_limits_default;
    struct kiln_head *head = kiln_calloc(1, sizeof(*head));
    int r;

    if (!head)
        return -ENOMEM;
    limits.memory_bytes = opts->memory_bytes;
    r = kiln_rows_init(&head->rows, &limits);
    if (r < 0) {
        kiln_free(head);
        return r;
    }
    head->opts = *opts;
    head->info.serial = atomic_fetch_add(&serials, 1) + 1;
    atomic_init(&head->refs, 1);
    kiln_content_init(&head->content, opts->seed);
    kiln_buf_init(&head->key, KEY_MAX);
    kiln_buf_init(&head->overflow_key, KEY_MAX);
    *ret_head = head;
    return 0;
}

struct kiln_head *kiln_head_ref(struct kiln_head *head)
{
    atomic_fetch_add_explicit(&head->refs, 1, memory_order_relaxed);
    return head;
}

void kiln_head_unref(struct kiln_head *head)
{
    if (!head || atomic_fetch_sub_explicit(&head->refs, 1, memory_order_acq_rel) != 1)
        return;
    kiln_keys_done(&head->resources, head->rows.b);
    kiln_keys_done(&head->scopes, head->rows.b);
    kiln_intern_done(&head->series_index, budget_of(head));
    kiln_intern_done(&head->row_index, budget_of(head));
    kiln_array_free(budget_of(head), (void **)&head->hashes, &head->cap_hashes,
                    sizeof(*head->hashes));
    kiln_array_free(budget_of(head), (void **)&head->series, &head->cap_series,
                    sizeof(*head->series));
    kiln_content_done(&head->content);
    kiln_rows_done(&head->rows);
    kiln_buf_done(&head->key);
    kiln_buf_done(&head->overflow_key);
    if (head->opts.pool)
        kiln_pool_give(head->opts.pool, head->charged);
    if (head->opts.bytes)
        atomic_fetch_sub(head->opts.bytes, head->counted);
    kiln_free(head);
}

/* ---- memory ---- */

size_t kiln_head_bytes(const struct kiln_head *head)
{
    return sizeof(*head) + kiln_rows_bytes(&head->rows) + head->content.budget.used;
}

bool kiln_head_is_charged(const struct kiln_head *head)
{
    return !head->opts.pool || head->charged >= kiln_head_bytes(head);
}

/* What was acknowledged goes in even where the pool has no more: the store then stops taking. */
static void charge(struct kiln_head *head)
{
    size_t bytes = kiln_head_bytes(head);

    if (head->opts.bytes && bytes > head->counted) {
        atomic_fetch_add(head->opts.bytes, bytes - head->counted);
        head->counted = bytes;
    }
    if (head->opts.pool && bytes > head->charged &&
        kiln_pool_take(head->opts.pool, bytes - head->charged) == 0)
        head->charged = bytes;
}

/* ---- series ---- */

static uint32_t find_series(struct kiln_head *head, struct kiln_str key, uint64_t hash)
{
    for (struct kiln_probe p = kiln_intern_probe(&head->series_index, hash);
         kiln_intern_next(&head->series_index, &p);) {
        if (kiln_str_eq(head->series[p.entry].key, key))
            return p.entry;
    }
    return NONE;
}

static uint32_t add_series(struct kiln_head *head, struct kiln_str key, uint64_t hash)
{
    struct kiln_builder *b = head->rows.b;
    char *copy = kiln_builder_alloc(b, key.len);
    uint32_t n = head->info.n_series;
    int r;

    if (!copy || !kiln_builder_room(b, (void **)&head->series, &head->cap_series, (uint64_t)n + 1,
                                    sizeof(*head->series)))
        return 0;
    r = kiln_intern_add(&head->series_index, budget_of(head), hash, n);
    if (r < 0) {
        kiln_builder_fail(b, r);
        return 0;
    }
    head->series[n] = (struct kiln_head_series){.key = {memcpy(copy, key.ptr, key.len), key.len},
                                                .min_ns = UINT64_MAX};
    return head->info.n_series++;
}

/* The series of a key, or of the overflow where no more may be opened. */
static uint32_t take_series(struct kiln_head *head, struct kiln_head_batch *in, struct kiln_str key)
{
    uint64_t hash = kiln_hash(key.ptr, key.len);
    uint32_t found = find_series(head, key, hash);

    if (found != NONE)
        return found;
    if (in->may_open && !in->may_open(in->context, key)) {
        kiln_buf_clear(&head->overflow_key);
        kiln_series_overflow_key(key, &head->overflow_key);
        if (!in->may_open(in->context, kiln_buf_str(&head->overflow_key))) {
            kiln_buf_clear(&head->overflow_key);
            kiln_series_last_key(key, &head->overflow_key);
        }
        key = kiln_buf_str(&head->overflow_key);
        hash = kiln_hash(key.ptr, key.len);
        found = find_series(head, key, hash);
        in->n_overflow++;
    }
    return found != NONE ? found : add_series(head, key, hash);
}

/* ---- resources and scopes ---- */

static uint32_t take_resource(struct kiln_head *head, struct kiln_remap *remap,
                              const struct kiln_batch *from, uint32_t resource)
{
    const struct kiln_resource *source = &from->resources[resource];
    struct kiln_resource to = kiln_remap_resource(remap, resource);
    struct kiln_builder *b = head->rows.b;
    struct kiln_keys *keys = &head->resources;
    uint32_t known = keys->n, found;

    kiln_keys_add(keys, b, to.attrs);
    kiln_keys_add(keys, b, to.schema_url);
    kiln_keys_add(keys, b, to.dropped_attrs);
    for (uint32_t i = 0; i < source->n_entities; i++) {
        const struct kiln_entity *e = &from->entities[source->first_entity + i];

        kiln_keys_add(keys, b, kiln_remap_string(remap, e->schema_url));
        kiln_keys_add(keys, b, kiln_remap_string(remap, e->type));
        kiln_keys_add(keys, b, e->n_id_keys);
        kiln_keys_add(keys, b, e->n_description_keys);
        for (uint32_t k = 0; k < e->n_id_keys + e->n_description_keys; k++)
            kiln_keys_add(keys, b, kiln_remap_string(remap, from->entity_keys[e->first_key + k]));
    }
    found = kiln_keys_take(keys, b);
    return found == known ? kiln_remap_add_resource(remap, resource) : found;
}

static uint32_t take_scope(struct kiln_head *head, struct kiln_remap *remap, uint32_t scope)
{
    struct kiln_scope to = kiln_remap_scope(remap, scope);
    struct kiln_builder *b = head->rows.b;
    struct kiln_keys *keys = &head->scopes;
    uint32_t known = keys->n, found;

    kiln_keys_add(keys, b, to.name);
    kiln_keys_add(keys, b, to.version);
    kiln_keys_add(keys, b, to.attrs);
    kiln_keys_add(keys, b, to.schema_url);
    kiln_keys_add(keys, b, to.dropped_attrs);
    found = kiln_keys_take(keys, b);
    return found == known && !kiln_builder_error(b) ? kiln_builder_add_scope(b, &to) : found;
}

/* ---- profiles ---- */

static uint64_t row_hash(uint32_t series, uint64_t time_ns, struct kiln_content_hash hash)
{
    return kiln_hash_mix(hash.lo ^ series, time_ns);
}

static bool has_row(const struct kiln_head *head, uint32_t series, uint64_t time_ns,
                    struct kiln_content_hash hash)
{
    uint64_t wanted = row_hash(series, time_ns, hash);

    for (struct kiln_probe p = kiln_intern_probe(&head->row_index, wanted);
         kiln_intern_next(&head->row_index, &p);) {
        if (p.entry < head->rows.n && head->rows.rows[p.entry].series == series &&
            kiln_content_equal(head->hashes[p.entry], hash) &&
            kiln_rows_batch(&head->rows)->profiles[p.entry].time_ns == time_ns)
            return true;
    }
    return false;
}

bool kiln_head_has(const struct kiln_head *head, struct kiln_str key, uint64_t time_ns,
                   struct kiln_content_hash hash)
{
    uint32_t series =
        find_series((struct kiln_head *)(uintptr_t)head, key, kiln_hash(key.ptr, key.len));

    return series != NONE && has_row(head, series, time_ns, hash);
}

/* A batch on its way in. */
struct applying {
    struct kiln_head *head;
    struct kiln_head_batch *in;
    struct kiln_remap *remap;
    struct kiln_type *types;
    uint32_t resource, scope; /* of the head; NONE until a profile needs it */
    uint32_t series;          /* of the last profile, with its type; NONE: none in this resource */
    const struct kiln_type *last_type;
};

static uint32_t series_of(struct applying *a, uint32_t from_resource, const struct kiln_type *type)
{
    struct kiln_head *head = a->head;

    if (a->series != NONE && kiln_type_equal(a->last_type, type))
        return a->series;
    kiln_buf_clear(&head->key);
    kiln_series_key(head->opts.rule, a->in->batch, from_resource, type, &head->key);
    if (head->key.error) {
        kiln_builder_fail(head->rows.b, head->key.error);
        return 0;
    }
    a->last_type = type;
    a->series = take_series(head, a->in, kiln_buf_str(&head->key));
    return a->series;
}

static void add_samples(struct applying *a, uint32_t from_profile, uint32_t to_profile)
{
    const struct kiln_batch *from = a->in->batch;
    const struct kiln_profile *p = &from->profiles[from_profile];
    struct kiln_builder *b = a->head->rows.b;

    for (uint32_t i = 0; i < p->n_samples; i++) {
        const struct kiln_sample *s = &from->samples[p->first_sample + i];
        struct kiln_sample to = *s;
        uint32_t n = s->n * (s->has_values + s->has_times + 0u);
        int64_t *at;

        to.stack = kiln_remap_stack(a->remap, s->stack);
        to.attrs = kiln_remap_set(a->remap, s->attrs);
        to.link = kiln_remap_link(a->remap, s->link);
        at = kiln_builder_observations(b, n);
        if (!at)
            return;
        memcpy(at, from->observations + s->first, n * sizeof(*at));
        if (s->has_times)
            a->in->n_clamped += kiln_profile_place(
                p, a->in->received_ns, (uint64_t *)at + (s->has_values ? s->n : 0), s->n);
        if (!kiln_builder_new_sample(b, to_profile, to))
            return;
    }
}

/* Adds the row of the last profile, or takes the profile back where it is there already. */
static void keep_or_drop(struct applying *a, struct kiln_row row, uint32_t profile)
{
    struct kiln_head *head = a->head;
    struct kiln_builder *b = head->rows.b;
    const struct kiln_batch *batch = kiln_rows_batch(&head->rows);
    const struct kiln_profile *p = &batch->profiles[profile];
    struct kiln_content_place place = {row.resource, row.scope, batch->n_samples - p->n_samples};
    struct kiln_content_hash hash;
    bool own_time = !(row.flags & KILN_PROFILE_TIME_SET);
    int r = kiln_content_learn(&head->content, batch);

    if (r == 0 && !kiln_builder_room(b, (void **)&head->hashes, &head->cap_hashes,
                                     (uint64_t)head->rows.n + 1, sizeof(*head->hashes)))
        return;
    if (r < 0) {
        kiln_builder_fail(b, r);
        return;
    }
    hash = kiln_content_profile(&head->content, batch, profile, &place);
    if (own_time &&
        (has_row(head, row.series, p->time_ns, hash) ||
         (a->in->is_known &&
          a->in->is_known(a->in->context, head->series[row.series].key, p->time_ns, hash)))) {
        kiln_builder_drop_profile(b);
        a->in->n_duplicates++;
        return;
    }
    head->hashes[head->rows.n] = hash;
    if (own_time)
        r = kiln_intern_add(&head->row_index, budget_of(head),
                            row_hash(row.series, p->time_ns, hash), head->rows.n);
    if (r < 0)
        kiln_builder_fail(b, r);
    else
        kiln_rows_add(&head->rows, row);
}

static void apply_profile(struct applying *a, uint32_t from_resource, uint32_t from_scope,
                          uint32_t profile)
{
    struct kiln_builder *b = a->head->rows.b;
    uint64_t own_ns = a->in->batch->profiles[profile].time_ns;
    uint64_t time_ns = kiln_profile_time(own_ns, a->in->received_ns);
    struct kiln_row row = {.flags = time_ns == own_ns ? 0 : KILN_PROFILE_TIME_SET};
    struct kiln_profile to;
    uint32_t added;

    if (time_ns < a->in->oldest_ns) {
        a->in->n_too_old++;
        return;
    }
    if (a->resource == NONE)
        a->resource = take_resource(a->head, a->remap, a->in->batch, from_resource);
    if (a->scope == NONE)
        a->scope = take_scope(a->head, a->remap, from_scope);
    row.resource = a->resource;
    row.scope = a->scope;
    row.series = series_of(a, from_resource, &a->types[profile]);
    to = kiln_remap_profile(a->remap, profile);
    kiln_remap_payload(a->remap, profile, &to);
    to.time_ns = time_ns;
    if (kiln_builder_error(b))
        return;
    added = kiln_builder_add_profile(b, &to);
    if (!kiln_builder_error(b))
        add_samples(a, profile, added);
    if (!kiln_builder_error(b))
        keep_or_drop(a, row, added);
}

static void apply_profiles(struct applying *a)
{
    const struct kiln_batch *from = a->in->batch;
    const struct kiln_builder *b = a->head->rows.b;

    for (uint32_t r = 0; r < from->n_resources; r++) {
        const struct kiln_resource *resource = &from->resources[r];

        a->resource = a->series = NONE;
        for (uint32_t s = 0; s < resource->n_scopes; s++) {
            const struct kiln_scope *scope = &from->scopes[resource->first_scope + s];

            a->scope = NONE;
            for (uint32_t p = 0; p < scope->n_profiles && !kiln_builder_error(b); p++)
                apply_profile(a, r, resource->first_scope + s, scope->first_profile + p);
        }
    }
}

/* ---- batches ---- */

/* Counts the rows that a batch brought, once it is certain that they stay. */
static void account(struct kiln_head *head, struct kiln_head_batch *in, uint32_t first)
{
    const struct kiln_batch *batch = kiln_rows_batch(&head->rows);

    for (uint32_t i = first; i < head->rows.n; i++) {
        const struct kiln_row *row = &head->rows.rows[i];
        const struct kiln_profile *p = &batch->profiles[i];
        struct kiln_head_series *series = &head->series[row->series];
        uint64_t n_observations = 0;

        for (uint32_t k = 0; k < p->n_samples; k++)
            n_observations += batch->samples[row->first_sample + k].n;
        series->min_ns = row->min_ns < series->min_ns ? row->min_ns : series->min_ns;
        series->max_ns = row->max_ns > series->max_ns ? row->max_ns : series->max_ns;
        series->n_profiles++;
        series->n_samples += p->n_samples;
        series->n_observations += n_observations;
        head->info.min_ns = row->min_ns < head->info.min_ns ? row->min_ns : head->info.min_ns;
        head->info.max_ns = row->max_ns > head->info.max_ns ? row->max_ns : head->info.max_ns;
        head->info.n_samples += p->n_samples;
        head->info.n_observations += n_observations;
        in->n_samples += p->n_samples;
        in->n_time_set += row->flags & KILN_PROFILE_TIME_SET;
        if (in->taken && !(row->flags & KILN_PROFILE_TIME_SET))
            in->taken(in->context, series->key, p->time_ns, head->hashes[i]);
    }
    in->n_profiles = head->rows.n - first;
    head->info.n_profiles = head->rows.n;
    head->info.log_to = in->number;
    if (head->info.n_profiles) /* from the first on, a start replays all: duplicates too */
        head->info.raw_bytes += kiln_batch_bytes(in->batch);
}

static int apply(struct kiln_head *head, struct kiln_head_batch *in)
{
    struct applying a = {.head = head, .in = in};
    int r;

    r = kiln_types_of_batch(in->batch, false, &a.types);
    if (r < 0)
        return r;
    r = kiln_remap_new(head->rows.b, in->batch, NULL, &a.remap);
    if (r == 0) {
        kiln_remap_to_file(a.remap);
        kiln_remap_ahead(a.remap);
        apply_profiles(&a);
        kiln_remap_free(a.remap);
        r = kiln_builder_error(head->rows.b);
    }
    kiln_free(a.types);
    return r;
}

int kiln_head_apply(struct kiln_head *head, struct kiln_head_batch *batch)
{
    uint32_t before = head->rows.n;
    int r;

    batch->n_profiles = batch->n_duplicates = batch->n_too_old = 0;
    batch->n_time_set = batch->n_overflow = 0;
    batch->n_samples = batch->n_clamped = 0;
    if (head->full)
        return -ENOSPC;
    if (before == 0) {
        head->info.log_from = batch->number;
        head->info.since_mono_ns = kiln_clock_mono_ns();
        head->info.min_ns = UINT64_MAX;
        head->info.max_ns = 0;
    }
    r = apply(head, batch);
    if (r < 0) {
        head->rows.n = before;
        head->full = true;
    } else {
        account(head, batch, before);
    }
    charge(head);
    return r;
}

bool kiln_head_is_full(const struct kiln_head *head)
{
    return head->full;
}

const struct kiln_head_info *kiln_head_info(const struct kiln_head *head)
{
    return &head->info;
}

const struct kiln_rows *kiln_head_rows(const struct kiln_head *head)
{
    return &head->rows;
}

const struct kiln_head_series *kiln_head_series(const struct kiln_head *head, uint32_t i)
{
    return &head->series[i];
}

/* ---- out ---- */

int kiln_head_select(const struct kiln_head *head, const struct kiln_head_choice *choice,
                     const struct kiln_limits *limits, struct kiln_batch **ret_batch,
                     struct kiln_err *err)
{
    struct kiln_rows_choice rows = {.start_ns = choice->start_ns, .end_ns = choice->end_ns};
    uint64_t *bits = kiln_calloc(head->info.n_series / 64 + 1, sizeof(*bits));
    int r;

    if (!bits)
        return kiln_err_set(err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));
    for (uint32_t i = 0; i < head->info.n_series; i++) {
        struct kiln_series series;

        if (kiln_series_parse(head->series[i].key, &series) == 0 &&
            kiln_series_match(&series, choice->matchers, choice->n_matchers))
            bits[i / 64] |= UINT64_C(1) << i % 64;
    }
    rows.series = bits;
    r = kiln_rows_select(&head->rows, &rows, limits, ret_batch, err);
    kiln_free(bits);
    return r;
}
