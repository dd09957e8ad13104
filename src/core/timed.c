/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of all observations first, sorted by time and thinned; then the tree of the stacks that are
 * left, where a node is found by its parent and its name.
 */
#include "core/timed.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/sat.h"
#include "core/view_int.h"

#define STEPS_MAX (UINT64_C(1) << 30) /* frames that are walked over */

const struct kiln_str kiln_thread_id_keys[KILN_THREAD_KEYS] = {
    {"thread.id", 9}, {"thread_id", 9}, {"tid", 3}};
const struct kiln_str kiln_thread_name_keys[KILN_THREAD_KEYS] = {
    {"thread.name", 11}, {"thread_name", 11}, {"thread", 6}};

struct thread {
    struct kiln_timed_thread texts;
    uint32_t resource;
    uint32_t number; /* of those that are left, and one */
};

/* What is made; the box has frames and memory. */
struct timed {
    struct kiln_timed timed; /* first: the two have one address */
    struct kiln_view_box box;
};

struct making {
    struct timed *all;
    const struct kiln_batch *batch;
    struct kiln_budget *budget;
    struct kiln_type *types; /* parallel to the batch's profiles */
    struct kiln_framer framer;
    struct thread *threads;
    struct kiln_intern by_thread, by_node;
    uint32_t *ends; /* parallel to dict.stacks: a node and one */
    /* Parallel to dict.sets: the thread of samples with these attributes in a profile. */
    struct {
        uint32_t profile, thread; /* the first counts from 1 */
    } * known;
    uint64_t n_steps;
    bool made; /* the type is made of others */
    uint32_t n_threads, threads_cap, rows_cap, nodes_cap, names_cap, kept_cap, ends_cap, known_cap;
};

/* A profile and where it is. */
struct place {
    const struct kiln_profile *profile;
    uint32_t sets[3]; /* attributes of the profile, the scope, the resource */
    uint32_t resource;
    uint32_t index;
    int64_t scale;
};

/* ---- threads ---- */

static struct kiln_str text_of(const struct kiln_batch *batch, const struct kiln_attr *attr,
                               char scratch[32])
{
    if (attr->value.kind == KILN_VALUE_STRING)
        return batch->dict.strings[attr->value.str];
    if (attr->value.kind != KILN_VALUE_INT)
        return KILN_STR("");
    return (struct kiln_str){scratch,
                             (size_t)snprintf(scratch, 32, "%lld", (long long)attr->value.i)};
}

static struct kiln_str find_text(const struct making *m, const struct place *at, uint32_t attrs,
                                 const struct kiln_str *keys, char scratch[32])
{
    const uint32_t sets[] = {attrs, at->sets[0], at->sets[1], at->sets[2]};

    for (uint32_t k = 0; k < KILN_THREAD_KEYS; k++) {
        for (uint32_t i = 0; i < KILN_ARRAY_LEN(sets); i++) {
            const struct kiln_attr *attr = kiln_set_find(m->batch, sets[i], keys[k]);

            if (attr)
                return text_of(m->batch, attr, scratch);
        }
    }
    return KILN_STR("");
}

static int add_thread(struct making *m, struct thread thread, uint64_t hash, uint32_t *ret)
{
    int r = kiln_grow(m->budget, (void **)&m->threads, &m->threads_cap, (uint64_t)m->n_threads + 1,
                      sizeof(*m->threads), UINT32_MAX - 1);

    if (r == 0)
        r = kiln_intern_add(&m->by_thread, m->budget, hash, m->n_threads);
    if (r < 0)
        return r;
    thread.texts.id = kiln_arena_copy(&m->all->box.arena, thread.texts.id);
    if (!thread.texts.id.ptr)
        return KILN_E_LIMIT;
    m->threads[m->n_threads] = thread;
    *ret = m->n_threads++;
    return 0;
}

static int find_thread(struct making *m, const struct place *at, uint32_t attrs, uint32_t *ret)
{
    char id_text[32], name_text[32];
    struct thread thread = {
        .texts = {find_text(m, at, attrs, kiln_thread_id_keys, id_text),
                  find_text(m, at, attrs, kiln_thread_name_keys, name_text)},
        .resource = at->resource,
    };
    uint64_t hash = kiln_hash(thread.texts.id.ptr, thread.texts.id.len) +
                    3 * kiln_hash(thread.texts.name.ptr, thread.texts.name.len) + at->resource;

    for (struct kiln_probe p = kiln_intern_probe(&m->by_thread, hash);
         kiln_intern_next(&m->by_thread, &p);) {
        const struct thread *known = &m->threads[p.entry];

        if (known->resource == thread.resource && kiln_str_eq(known->texts.id, thread.texts.id) &&
            kiln_str_eq(known->texts.name, thread.texts.name)) {
            *ret = p.entry;
            return 0;
        }
    }
    if (thread.texts.name.ptr == name_text)
        thread.texts.name = kiln_arena_copy(&m->all->box.arena, thread.texts.name);
    return thread.texts.name.ptr ? add_thread(m, thread, hash, ret) : KILN_E_LIMIT;
}

static int know_thread(struct making *m, const struct place *at, uint32_t attrs, uint32_t *ret)
{
    int r = 0;

    if (m->known[attrs].profile != at->index + 1)
        r = find_thread(m, at, attrs, &m->known[attrs].thread);
    if (r < 0)
        return r;
    m->known[attrs].profile = at->index + 1;
    *ret = m->known[attrs].thread;
    return 0;
}

/* ---- rows ---- */

static int add_sample(struct making *m, const struct place *at, const struct kiln_sample *sample)
{
    struct kiln_timed *timed = &m->all->timed;
    const int64_t *values = kiln_sample_values(m->batch, sample);
    const uint64_t *times = kiln_sample_times(m->batch, sample);
    uint32_t thread;
    int r;

    timed->n_all += sample->n;
    if (!times)
        return 0;
    timed->n_timed += sample->n;
    r = know_thread(m, at, sample->attrs, &thread);
    if (r == 0)
        r = kiln_grow(m->budget, (void **)&timed->rows, &m->rows_cap,
                      (uint64_t)timed->n_rows + sample->n, sizeof(*timed->rows), UINT32_MAX);
    for (uint32_t i = 0; r == 0 && i < sample->n; i++)
        timed->rows[timed->n_rows++] = (struct kiln_timed_row){
            .time_ns = times[i],
            .value = kiln_sat_mul(values ? values[i] : 1, at->scale),
            .node = sample->stack, /* the stack, until make_nodes() */
            .thread = thread,
        };
    return r;
}

static int add_profile(struct making *m, const struct place *at)
{
    int r = 0;

    for (uint32_t i = 0; r == 0 && i < at->profile->n_samples; i++)
        r = add_sample(m, at, &m->batch->samples[at->profile->first_sample + i]);
    return r;
}

static int add_scope(struct making *m, uint32_t resource, const struct kiln_scope *scope,
                     const struct kiln_type *type)
{
    const struct kiln_batch *batch = m->batch;
    int r = 0;

    for (uint32_t i = 0; r == 0 && i < scope->n_profiles; i++) {
        uint32_t index = scope->first_profile + i;
        const struct kiln_profile *profile = &batch->profiles[index];
        const struct place at = {
            .profile = profile,
            .sets = {profile->attrs, scope->attrs, batch->resources[resource].attrs},
            .resource = resource,
            .index = index,
            .scale = m->types[index].scale,
        };

        if (kiln_type_counts(type, m->made, &m->types[index]))
            r = add_profile(m, &at);
    }
    return r;
}

static int add_rows(struct making *m, const struct kiln_type *type)
{
    const struct kiln_batch *batch = m->batch;
    int r = kiln_reserve(m->budget, (void **)&m->known, &m->known_cap, batch->dict.n_sets,
                         sizeof(*m->known), UINT32_MAX);

    if (r == 0)
        memset(m->known, 0, batch->dict.n_sets * sizeof(*m->known));
    for (uint32_t i = 0; r == 0 && i < batch->n_resources; i++) {
        const struct kiln_resource *resource = &batch->resources[i];

        for (uint32_t k = 0; r == 0 && k < resource->n_scopes; k++)
            r = add_scope(m, i, &batch->scopes[resource->first_scope + k], type);
    }
    return r;
}

static int compare_rows(const void *a, const void *b)
{
    const struct kiln_timed_row *x = a, *y = b;

    if (x->time_ns != y->time_ns)
        return x->time_ns < y->time_ns ? -1 : 1;
    if (x->thread != y->thread)
        return x->thread < y->thread ? -1 : 1;
    if (x->node != y->node)
        return x->node < y->node ? -1 : 1;
    return (x->value > y->value) - (x->value < y->value);
}

static void thin(struct kiln_timed *timed, uint32_t limit)
{
    if (timed->n_rows)
        qsort(timed->rows, timed->n_rows, sizeof(*timed->rows), compare_rows);
    if (limit == 0 || timed->n_rows <= limit)
        return;
    for (uint32_t i = 0; i < limit; i++)
        timed->rows[i] = timed->rows[(uint64_t)i * timed->n_rows / limit];
    timed->n_rows = limit;
}

/* Numbers those threads that rows are left of, as they appear. */
static int keep_threads(struct making *m)
{
    struct kiln_timed *timed = &m->all->timed;
    int r = kiln_reserve(m->budget, (void **)&timed->threads, &m->kept_cap, m->n_threads,
                         sizeof(*timed->threads), UINT32_MAX);

    for (uint32_t i = 0; r == 0 && i < timed->n_rows; i++) {
        struct thread *thread = &m->threads[timed->rows[i].thread];

        if (thread->number == 0) {
            timed->threads[timed->n_threads++] = thread->texts;
            thread->number = timed->n_threads;
        }
        timed->rows[i].thread = thread->number - 1;
    }
    return r;
}

/* ---- stacks ---- */

static int find_node(struct making *m, uint32_t parent, uint32_t name, uint32_t *ret)
{
    struct kiln_timed *timed = &m->all->timed;
    const struct kiln_timed_node node = {name, parent};
    uint64_t hash = kiln_hash(&node, sizeof(node));
    int r;

    for (struct kiln_probe p = kiln_intern_probe(&m->by_node, hash);
         kiln_intern_next(&m->by_node, &p);) {
        if (timed->nodes[p.entry].name == name && timed->nodes[p.entry].parent == parent) {
            *ret = p.entry;
            return 0;
        }
    }
    r = kiln_grow(m->budget, (void **)&timed->nodes, &m->nodes_cap, (uint64_t)timed->n_nodes + 1,
                  sizeof(*timed->nodes), UINT32_MAX - 1);
    if (r == 0)
        r = kiln_intern_add(&m->by_node, m->budget, hash, timed->n_nodes);
    if (r < 0)
        return r;
    timed->nodes[timed->n_nodes] = node;
    *ret = timed->n_nodes++;
    return 0;
}

static int walk_location(struct making *m, uint32_t index, uint32_t *node)
{
    const struct kiln_view_location *location = &m->framer.locations[index];
    int r = location->done ? 0 : kiln_framer_make(&m->framer, index);

    for (uint32_t i = 0; r == 0 && i < location->n; i++)
        r = find_node(m, *node, m->framer.pool[location->first + i] + 1, node);
    m->n_steps += 1 + location->n;
    return r == 0 && m->n_steps > STEPS_MAX ? KILN_E_LIMIT : r;
}

static int find_end(struct making *m, uint32_t stack, uint32_t *ret)
{
    struct kiln_range range = m->batch->dict.stacks[stack];
    uint32_t node = 0;
    int r = 0;

    if (m->ends[stack] == 0) {
        for (uint32_t i = range.n; r == 0 && i > 0; i--)
            r = walk_location(m, m->batch->dict.frames[range.first + i - 1], &node);
        m->ends[stack] = node + 1;
    }
    *ret = m->ends[stack] - 1;
    return r;
}

static int make_nodes(struct making *m)
{
    struct kiln_timed *timed = &m->all->timed;
    uint32_t n = m->batch->dict.n_stacks;
    int r =
        kiln_reserve(m->budget, (void **)&m->ends, &m->ends_cap, n, sizeof(*m->ends), UINT32_MAX);

    if (r == 0)
        r = kiln_grow(m->budget, (void **)&timed->nodes, &m->nodes_cap, 1, sizeof(*timed->nodes),
                      UINT32_MAX);
    if (r < 0)
        return r;
    memset(m->ends, 0, n * sizeof(*m->ends));
    timed->nodes[timed->n_nodes++] = (struct kiln_timed_node){0, 0};
    for (uint32_t i = 0; r == 0 && i < timed->n_rows; i++)
        r = find_end(m, timed->rows[i].node, &timed->rows[i].node);
    return r;
}

static int make_names(struct making *m)
{
    struct kiln_timed *timed = &m->all->timed;
    const struct kiln_view *view = &m->all->box.view;
    int r = kiln_reserve(m->budget, (void **)&timed->names, &m->names_cap,
                         (uint64_t)view->n_frames + 1, sizeof(*timed->names), UINT32_MAX);

    if (r < 0)
        return r;
    timed->names[timed->n_names++] = (struct kiln_flame_name){KILN_STR("total"), KILN_STR(""),
                                                              KILN_STR(""), KILN_STR(""), false};
    for (uint32_t i = 0; i < view->n_frames; i++) {
        const struct kiln_frame *frame = &view->frames[i];

        timed->names[timed->n_names++] = (struct kiln_flame_name){
            frame->name, frame->file, frame->module, frame->kind, frame->inlined};
    }
    return 0;
}

/* ---- making ---- */

/* Types as they are; or, where nobody has the wanted one, with counts that stay counts. */
static int find_types(struct making *m, const struct kiln_type **type)
{
    const struct kiln_batch *batch = m->batch;
    int r = kiln_types_of_batch(batch, false, &m->types);

    if (r < 0 || batch->n_profiles == 0)
        return r;
    if (!*type)
        *type = &m->types[0];
    for (uint32_t i = 0; i < batch->n_profiles; i++) {
        if (kiln_type_equal(&m->types[i], *type))
            return 0;
    }
    m->made = kiln_type_is_made(*type, m->types, batch->n_profiles);
    if (m->made)
        return 0;
    kiln_free(m->types);
    m->types = NULL;
    return kiln_types_of_batch(batch, true, &m->types);
}

static int make(struct making *m, const struct kiln_timed_opts *opts, struct kiln_err *err)
{
    const struct kiln_view_opts view_opts = {0};
    const struct kiln_type *type = opts->type;
    int r = kiln_framer_init(&m->framer, &m->all->box, &view_opts, err);

    if (r == 0)
        r = find_types(m, &type);
    if (r == 0 && m->batch->n_profiles)
        r = add_rows(m, type);
    if (r < 0)
        return r;
    thin(&m->all->timed, opts->limit);
    r = keep_threads(m);
    if (r == 0)
        r = make_nodes(m);
    return r < 0 ? r : make_names(m);
}

static void done(struct making *m)
{
    kiln_framer_done(&m->framer);
    kiln_free(m->types);
    kiln_intern_done(&m->by_thread, m->budget);
    kiln_intern_done(&m->by_node, m->budget);
    kiln_array_free(m->budget, (void **)&m->threads, &m->threads_cap, sizeof(*m->threads));
    kiln_array_free(m->budget, (void **)&m->known, &m->known_cap, sizeof(*m->known));
    kiln_array_free(m->budget, (void **)&m->ends, &m->ends_cap, sizeof(*m->ends));
}

int kiln_timed_new(struct kiln_batch *batch, const struct kiln_timed_opts *opts,
                   struct kiln_timed **ret_timed, struct kiln_err *err)
{
    struct timed *all = kiln_calloc(1, sizeof(*all));
    struct making m = {.all = all, .batch = batch};
    int r;

    if (!all)
        return kiln_err_set(err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));
    m.budget = &all->box.budget;
    m.budget->limit = opts->memory_bytes ? opts->memory_bytes : KILN_VIEW_MEMORY_BYTES;
    kiln_arena_init(&all->box.arena, m.budget);
    all->box.view.batch = kiln_batch_ref(batch);
    r = make(&m, opts, err);
    done(&m);
    if (r < 0) {
        kiln_timed_free(&all->timed);
        return kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    }
    *ret_timed = &all->timed;
    return 0;
}

void kiln_timed_free(struct kiln_timed *timed)
{
    struct timed *all = (struct timed *)timed;

    if (!timed)
        return;
    kiln_batch_unref(all->box.view.batch);
    kiln_arena_done(&all->box.arena);
    kiln_free(all->box.view.frames);
    kiln_free(timed->rows);
    kiln_free(timed->threads);
    kiln_free(timed->nodes);
    kiln_free(timed->names);
    kiln_free(all);
}
