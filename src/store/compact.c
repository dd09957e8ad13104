/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All inputs are read into one builder, so that equal entries of their dictionaries get equal
 * indexes, and their profiles can be written as they are.  The series of the result are the union
 * of those of the inputs; each input has a table from its series to those.  The next profile is the
 * first, in the order of (series, time, input), of the profiles that the inputs stand at.
 *
 * Names that came later (store/book.h) are given on the way: what was merged has them for good.
 */
#include <errno.h>

#include "base/mem.h"
#include "core/profile_time.h"
#include "core/series.h"
#include "store/compact.h"

#define STOP_EVERY     (UINT64_C(1) << 17) /* samples between two looks at opts->stop */
/*
 * What a merge takes, as measured: the common dictionary and those of the inputs, which overlap,
 * and the writer's tables are some one and a half times what the footers say, and roll-ups a
 * quarter; a little for each input, and the buffers of the writer.
 */
#define MEMORY_FLOOR   (UINT64_C(12) << 20)
#define PAGES_OF_INPUT (UINT64_C(128) << 10)
#define DICT_TIMES     7u / 4

struct input {
    struct kiln_block *block;
    struct kiln_block_reader *reader;
    struct kiln_finder *finder; /* NULL: there are no names that came later */
    struct kiln_remap_edit edit;
    uint64_t *wanted;    /* a bit for each series */
    uint32_t *series;    /* series -> series of the result */
    uint64_t *cutoffs;   /* by series */
    uint32_t *resources; /* number of the block -> 1 + index of the builder; 0: not brought yet */
    uint32_t *scopes;
    uint32_t cap_resources, cap_scopes;
    uint32_t n_series;
    bool at_end;
    struct kiln_block_profile profile; /* where it stands */
};

struct merge {
    const struct kiln_compact_opts *opts;
    struct input *inputs;
    struct kiln_str *keys; /* of the result */
    uint32_t n_keys;
    struct kiln_budget budget; /* of everything but builder, readers and writer */
    struct kiln_builder *b;
    struct kiln_block_writer *writer;
    struct kiln_compact_result result;
    uint64_t stop_at; /* samples */
    uint64_t samples;
    uint32_t bad;
    struct kiln_err *err;
};

size_t kiln_compact_memory(uint64_t dict_bytes, uint32_t n)
{
    return MEMORY_FLOOR + dict_bytes * DICT_TIMES + n * PAGES_OF_INPUT;
}

uint64_t kiln_compact_dict_bytes(size_t memory_bytes)
{
    return memory_bytes > MEMORY_FLOOR ? (memory_bytes - MEMORY_FLOOR) / 7 * 4 : 1;
}

static int no_memory(struct merge *m, int code)
{
    return kiln_err_set(m->err, code, NULL, "%s", kiln_err_text(code));
}

/* ---- series ---- */

static void *take_zeroed(struct merge *m, size_t count, size_t size)
{
    void *p = NULL;

    if (count > SIZE_MAX / size - 1 || kiln_budget_take(&m->budget, count * size + 1) < 0)
        return NULL;
    p = kiln_calloc(count + 1, size);
    return p;
}

static int open_series(struct merge *m, uint32_t number)
{
    struct input *in = &m->inputs[number];

    in->n_series = (uint32_t)kiln_block_info(in->block)->n_series;
    in->series = take_zeroed(m, in->n_series, sizeof(*in->series));
    in->cutoffs = take_zeroed(m, in->n_series, sizeof(*in->cutoffs));
    in->wanted = take_zeroed(m, in->n_series / 64 + 1, sizeof(*in->wanted));
    return in->series && in->cutoffs && in->wanted ? 0 : no_memory(m, -ENOMEM);
}

/* Whether something of a series stays; its cutoff is noted. */
static bool wants(struct merge *m, struct input *in, uint32_t i,
                  const struct kiln_block_series *series)
{
    struct kiln_series parsed;

    in->cutoffs[i] = 0;
    if (m->opts->cutoff && kiln_series_parse(series->key, &parsed) == 0)
        in->cutoffs[i] = m->opts->cutoff(m->opts->context, parsed.service);
    return in->cutoffs[i] <= series->max_ns;
}

/* Where each input stands while the union of series is made. */
struct cursor {
    uint32_t at;
    struct kiln_block_series series;
};

static int advance(struct merge *m, uint32_t number, struct cursor *c)
{
    struct input *in = &m->inputs[number];

    for (; c->at < in->n_series; c->at++) {
        int r = kiln_block_series(in->block, c->at, &c->series);

        if (r < 0) {
            m->bad = number;
            return kiln_err_set(m->err, r, NULL, "series %u cannot be read", c->at);
        }
        if (wants(m, in, c->at, &c->series)) {
            in->wanted[c->at / 64] |= UINT64_C(1) << c->at % 64;
            return 0;
        }
        m->result.left_out += c->series.n_profiles;
    }
    return 0;
}

/* The smallest key any input stands at; false at the end. */
static bool smallest(const struct merge *m, const struct cursor *cursors, struct kiln_str *ret)
{
    bool any = false;

    for (uint32_t i = 0; i < m->opts->n; i++) {
        if (cursors[i].at < m->inputs[i].n_series &&
            (!any || kiln_str_cmp(cursors[i].series.key, *ret) < 0)) {
            *ret = cursors[i].series.key;
            any = true;
        }
    }
    return any;
}

static int add_key(struct merge *m, uint32_t *cap, struct kiln_str key)
{
    int r = kiln_grow(&m->budget, (void **)&m->keys, cap, (uint64_t)m->n_keys + 1, sizeof(*m->keys),
                      UINT32_MAX);

    if (r < 0)
        return no_memory(m, r);
    m->keys[m->n_keys++] = key;
    return 0;
}

static int unite_series(struct merge *m, struct cursor *cursors)
{
    struct kiln_str key;
    uint32_t cap = 0;
    int r = 0;

    for (uint32_t i = 0; r == 0 && i < m->opts->n; i++)
        r = advance(m, i, &cursors[i]);
    while (r == 0 && smallest(m, cursors, &key)) {
        r = add_key(m, &cap, key);
        for (uint32_t i = 0; r == 0 && i < m->opts->n; i++) {
            if (cursors[i].at >= m->inputs[i].n_series || !kiln_str_eq(cursors[i].series.key, key))
                continue;
            m->inputs[i].series[cursors[i].at++] = m->n_keys - 1;
            r = advance(m, i, &cursors[i]);
        }
    }
    return r;
}

static int open_all_series(struct merge *m)
{
    struct cursor *cursors = take_zeroed(m, m->opts->n, sizeof(*cursors));
    int r = cursors ? 0 : no_memory(m, -ENOMEM);

    for (uint32_t i = 0; r == 0 && i < m->opts->n; i++)
        r = open_series(m, i);
    if (r == 0)
        r = unite_series(m, cursors);
    kiln_free(cursors);
    return r;
}

/* ---- reading ---- */

static int open_reader(struct merge *m, uint32_t number)
{
    struct input *in = &m->inputs[number];
    struct kiln_block_read_opts opts = {
        .series = in->wanted,
        .memory_bytes = m->opts->memory_bytes / 4,
        .lost = m->opts->lost,
        .lost_context = m->opts->context,
    };
    int r = kiln_finder_new(m->opts->book, &in->finder);

    if (r < 0)
        return no_memory(m, r);
    if (in->finder) {
        in->edit = kiln_finder_edit(in->finder);
        opts.edit = &in->edit;
    }
    r = kiln_block_read(in->block, &opts, m->b, &in->reader, m->err);
    if (r < 0)
        m->bad = number;
    return r;
}

/* When the last thing of a profile was seen.  Blocks of Kiln 0.1 may have timestamps outside the
 * range of their profile. */
static uint64_t end_of(const struct kiln_block_profile *p, uint64_t made_ns)
{
    uint64_t end = p->head.time_ns;
    uint64_t last = kiln_profile_end(p->head.time_ns, p->head.duration_ns, made_ns);

    for (uint32_t i = 0; i < p->head.n_samples; i++) {
        const struct kiln_sample *s = &p->samples[i];
        const int64_t *times = p->observations + s->first + (s->has_values ? s->n : 0);

        for (uint32_t t = 0; s->has_times && t < s->n; t++)
            end = (uint64_t)times[t] > end ? (uint64_t)times[t] : end;
    }
    return end < last ? end : last;
}

/* Goes on to the next profile of an input that stays. */
static int step(struct merge *m, uint32_t number)
{
    struct input *in = &m->inputs[number];

    for (;;) {
        int r = kiln_block_next(in->reader, &in->profile, m->err);

        if (r < 0)
            m->bad = number;
        if (r <= 0) {
            in->at_end = true;
            return r;
        }
        if (in->profile.series >= in->n_series) {
            m->bad = number;
            return kiln_err_set(m->err, KILN_E_CORRUPT, NULL, "a profile of no series");
        }
        if (in->cutoffs[in->profile.series] == 0 ||
            end_of(&in->profile, kiln_block_info(in->block)->made_ns) >=
                in->cutoffs[in->profile.series])
            return 0;
        m->result.left_out++;
    }
}

/* ---- resources and scopes ---- */

/* Room for one more number in a table; what is new in it is 0. */
static int grow_table(struct merge *m, uint32_t **table, uint32_t *cap, uint32_t number)
{
    uint32_t old = *cap;
    int r = kiln_grow(&m->budget, (void **)table, cap, (uint64_t)number + 1, sizeof(**table),
                      UINT32_MAX);

    if (r < 0)
        return no_memory(m, r);
    memset(*table + old, 0, (*cap - old) * sizeof(**table));
    return 0;
}

static int bring_resource(struct merge *m, struct input *in, uint32_t number, uint32_t *ret)
{
    int r = grow_table(m, &in->resources, &in->cap_resources, number);
    uint32_t index;

    if (r == 0 && in->resources[number] == 0) {
        r = kiln_block_add_resource(in->reader, number, &index);
        if (r < 0)
            return no_memory(m, r);
        in->resources[number] = index + 1;
    }
    if (r == 0)
        *ret = in->resources[number] - 1;
    return r;
}

static int bring_scope(struct merge *m, struct input *in, uint32_t number, uint32_t *ret)
{
    int r = grow_table(m, &in->scopes, &in->cap_scopes, number);

    if (r == 0 && in->scopes[number] == 0) {
        struct kiln_scope scope = kiln_block_scope(in->reader, number);

        in->scopes[number] = kiln_builder_add_scope(m->b, &scope) + 1;
    }
    if (r == 0)
        *ret = in->scopes[number] - 1;
    return r;
}

/* ---- writing ---- */

/* The input whose profile comes next; n at the end. */
static uint32_t first_input(const struct merge *m)
{
    uint32_t best = m->opts->n;

    for (uint32_t i = 0; i < m->opts->n; i++) {
        const struct input *in = &m->inputs[i], *other = &m->inputs[best];
        uint32_t a, b;

        if (in->at_end)
            continue;
        if (best == m->opts->n) {
            best = i;
            continue;
        }
        a = in->series[in->profile.series];
        b = other->series[other->profile.series];
        if (a < b || (a == b && in->profile.head.time_ns < other->profile.head.time_ns))
            best = i;
    }
    return best;
}

static int begin_block(struct merge *m, struct kiln_block_id *replaces)
{
    struct kiln_block_write_opts opts = {
        .tenant = m->opts->tenant,
        .level = m->opts->level,
        .log_from = UINT64_MAX,
        .replaces = replaces,
        .n_replaces = m->opts->n,
        .memory_bytes = m->opts->memory_bytes,
        .verify = m->opts->verify,
    };

    for (uint32_t i = 0; i < m->opts->n; i++) {
        const struct kiln_block_info *info = kiln_block_info(m->opts->blocks[i]);

        replaces[i] = info->id;
        opts.log_from = info->log_from < opts.log_from ? info->log_from : opts.log_from;
        opts.log_to = info->log_to > opts.log_to ? info->log_to : opts.log_to;
    }
    return kiln_block_create(m->opts->io, &opts, kiln_builder_peek(m->b), m->keys, m->n_keys,
                             &m->writer, m->err);
}

static int write_profile(struct merge *m, uint32_t number)
{
    struct input *in = &m->inputs[number];
    struct kiln_block_profile p = in->profile;
    int r = bring_resource(m, in, in->profile.resource, &p.resource);

    if (r == 0)
        r = bring_scope(m, in, in->profile.scope, &p.scope);
    if (r == 0 && kiln_builder_error(m->b) < 0)
        r = no_memory(m, kiln_builder_error(m->b));
    if (r < 0)
        return r;
    p.series = in->series[p.series];
    kiln_block_add(m->writer, &p);
    m->result.profiles++;
    m->samples += p.head.n_samples + 1;
    return step(m, number);
}

static int write_all(struct merge *m)
{
    uint32_t number;
    int r = 0;

    while (r == 0 && (number = first_input(m)) < m->opts->n) {
        if (m->opts->stop && m->samples >= m->stop_at) {
            if (m->opts->stop(m->opts->context))
                return kiln_err_set(m->err, -ECANCELED, NULL, "stopped");
            m->stop_at = m->samples + STOP_EVERY;
        }
        r = write_profile(m, number);
    }
    return r;
}

static int write_block(struct merge *m)
{
    struct kiln_block_id *replaces = kiln_calloc(m->opts->n, sizeof(*replaces));
    int r = replaces ? begin_block(m, replaces) : no_memory(m, -ENOMEM);

    if (r == 0)
        r = write_all(m);
    if (r == 0)
        r = kiln_block_finish(m->writer, m->err);
    kiln_free(replaces);
    return r;
}

/* ---- all of it ---- */

static int run(struct merge *m)
{
    struct kiln_limits limits = kiln_limits_default;
    int r = open_all_series(m);

    limits.memory_bytes = m->opts->memory_bytes;
    if (r == 0)
        r = kiln_builder_new(&limits, &m->b);
    for (uint32_t i = 0; r == 0 && i < m->opts->n; i++)
        r = open_reader(m, i);
    for (uint32_t i = 0; r == 0 && i < m->opts->n; i++)
        r = step(m, i);
    if (r < 0)
        return r;
    m->result.empty = first_input(m) == m->opts->n;
    return m->result.empty ? 0 : write_block(m);
}

static void close_input(struct input *in)
{
    kiln_block_reader_free(in->reader);
    kiln_finder_free(in->finder);
    kiln_free(in->wanted);
    kiln_free(in->series);
    kiln_free(in->cutoffs);
    kiln_free(in->resources);
    kiln_free(in->scopes);
}

int kiln_compact_blocks(const struct kiln_compact_opts *opts,
                        struct kiln_compact_result *ret_result, uint32_t *ret_bad,
                        struct kiln_err *err)
{
    struct merge m = {.opts = opts, .bad = UINT32_MAX, .err = err};
    int r;

    m.budget.limit = opts->memory_bytes;
    m.inputs = kiln_calloc(opts->n, sizeof(*m.inputs));
    r = m.inputs ? 0 : no_memory(&m, -ENOMEM);
    for (uint32_t i = 0; r == 0 && i < opts->n; i++)
        m.inputs[i].block = opts->blocks[i];
    if (r == 0)
        r = run(&m);
    for (uint32_t i = 0; m.inputs && i < opts->n; i++)
        close_input(&m.inputs[i]);
    kiln_builder_free(m.b);
    kiln_free(m.inputs);
    kiln_free(m.keys);
    m.result.unchanged = opts->only_smaller && m.result.left_out == 0;
    if (r == 0 && m.writer && !m.result.unchanged)
        r = kiln_block_commit(m.writer, &m.result.id, err); /* in the memory that was just freed */
    if (r < 0 || m.result.unchanged)
        kiln_block_abort(m.writer);
    if (r < 0)
        *ret_bad = m.bad;
    else
        *ret_result = m.result;
    return r;
}
