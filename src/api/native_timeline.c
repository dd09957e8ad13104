/* SPDX-License-Identifier: Apache-2.0 */
/*
 * format=timeline: what ran when, sample by sample.  The store gives the samples as a batch,
 * thinned where there are too many; a file has them all.  core/timed.h makes rows and a tree of
 * both.
 */
#include "api/native_int.h"
#include "base/sat.h"

enum { ROWS_DEFAULT = 20000, ROWS_MAX = 200000 };

int kiln_native_rows(struct kiln_native_call *call, uint32_t *ret_limit)
{
    const struct kiln_native_args *args = &call->args;

    *ret_limit = ROWS_DEFAULT;
    if (args->said & KILN_NATIVE_BIT(LIMIT)) {
        if (args->limit > ROWS_MAX)
            return kiln_native_refuse(call, "limit", "a timeline has at most %d samples", ROWS_MAX);
        *ret_limit = args->limit ? args->limit : ROWS_MAX;
    }
    return 0;
}

size_t kiln_native_timed_bytes(const struct kiln_timed *timed)
{
    size_t bytes = 4096 + (size_t)timed->n_rows * 48 + (size_t)timed->n_nodes * 16;

    for (uint32_t i = 0; i < timed->n_names; i++) {
        const struct kiln_flame_name *name = &timed->names[i];

        bytes += name->name.len + name->file.len + name->module.len + name->kind.len + 16;
    }
    for (uint32_t i = 0; i < timed->n_threads; i++)
        bytes += timed->threads[i].id.len + timed->threads[i].name.len + 32;
    return bytes;
}

/* ---- JSON ---- */

static void put_threads(struct kiln_native_call *call, const struct kiln_timed *timed)
{
    kiln_json_put_name(&call->w, "threads");
    kiln_json_put_array(&call->w);
    for (uint32_t i = 0; i < timed->n_threads; i++) {
        kiln_json_put_object(&call->w);
        kiln_native_put_text(call, "id", timed->threads[i].id);
        kiln_native_put_text(call, "name", timed->threads[i].name);
        kiln_json_end_object(&call->w);
    }
    kiln_json_end_array(&call->w);
}

static int put_nodes(struct kiln_native_call *call, const struct kiln_timed *timed)
{
    struct kiln_native_names names;
    int r = kiln_native_names_init(&names, timed->n_names);

    if (r < 0)
        return kiln_err_set(&call->err, r, NULL, "out of memory");
    kiln_json_put_name(&call->w, "name");
    kiln_json_put_array(&call->w);
    for (uint32_t i = 0; i < timed->n_nodes; i++)
        kiln_json_put_u64(&call->w, kiln_native_names_use(&names, timed->nodes[i].name));
    kiln_json_end_array(&call->w);
    kiln_json_put_name(&call->w, "parent");
    kiln_json_put_array(&call->w);
    for (uint32_t i = 0; i < timed->n_nodes; i++)
        kiln_json_put_i64(&call->w, i ? (int64_t)timed->nodes[i].parent : -1);
    kiln_json_end_array(&call->w);
    kiln_native_put_names(call, &names, timed->names);
    kiln_native_names_done(&names);
    return 0;
}

enum column { THREAD, AT_NS, NODE, VALUE };

static int64_t column_of(const struct kiln_timed *timed, uint32_t i, enum column column)
{
    const struct kiln_timed_row *row = &timed->rows[i];

    switch (column) {
    case THREAD:
        return row->thread;
    case AT_NS:
        return (int64_t)(row->time_ns - timed->rows[0].time_ns);
    case NODE:
        return row->node;
    default:
        return row->value;
    }
}

/* Number by number without the writer's bookkeeping, as trees are. */
static void put_rows(struct kiln_native_call *call, const struct kiln_timed *timed)
{
    static const char *const keys[] = {"thread", "at_ns", "node", "value"};

    for (uint32_t k = 0; k < KILN_ARRAY_LEN(keys); k++) {
        kiln_json_put_name(&call->w, keys[k]);
        kiln_json_put_array(&call->w);
        for (uint32_t i = 0; i < timed->n_rows; i++) {
            if (i)
                kiln_buf_putc(&call->body, ',');
            kiln_buf_add_i64(&call->body, column_of(timed, i, (enum column)k));
        }
        kiln_json_end_array(&call->w);
    }
}

static void note_rows(struct kiln_native_call *call, const struct kiln_timed *timed)
{
    if (timed->n_rows < timed->n_timed)
        kiln_native_note(call, "rows_cut",
                         "%u of %llu samples are shown, from all over the time (limit=N shows "
                         "more, up to %d)",
                         timed->n_rows, (unsigned long long)timed->n_timed, ROWS_MAX);
    if (timed->n_timed == 0 && timed->n_all)
        kiln_native_note(call, "no_times",
                         "no sample says when it was taken: there is no timeline of them");
}

int kiln_native_put_timed(struct kiln_native_call *call, const struct kiln_timed *timed)
{
    int64_t total = 0;
    int r;

    for (uint32_t i = 0; i < timed->n_rows; i++)
        total = kiln_sat_add(total, timed->rows[i].value);
    note_rows(call, timed);
    kiln_native_put_i64(call, "total", total);
    kiln_json_put_name(&call->w, "timeline");
    kiln_json_put_object(&call->w);
    kiln_native_put_time(call, "start", timed->n_rows ? timed->rows[0].time_ns : 0);
    kiln_native_put_u64(call, "all", timed->n_all);
    kiln_native_put_u64(call, "timed", timed->n_timed);
    put_threads(call, timed);
    r = put_nodes(call, timed);
    put_rows(call, timed);
    kiln_json_end_object(&call->w);
    return r;
}

/* ---- of the store ---- */

static int put_answer(struct kiln_native_call *call, struct kiln_ask *ask,
                      const struct kiln_moments *moments, const struct kiln_timed *timed)
{
    int r = kiln_native_room(call, ask, kiln_native_timed_bytes(timed));

    if (r < 0)
        return r;
    kiln_native_begin_question(call, ask, &moments->basis);
    r = kiln_native_put_timed(call, timed);
    kiln_native_end_answer(call);
    return r;
}

int kiln_native_answer_timeline(struct kiln_native_call *call, struct kiln_ask *ask)
{
    const struct kiln_timed_opts all = {.memory_bytes = ask->question.leash->memory_max / 4};
    struct kiln_moments_opts opts;
    struct kiln_moments *moments;
    struct kiln_timed *timed;
    int r = kiln_native_rows(call, &opts.limit);

    if (r == 0)
        r = kiln_ask_moments(ask, &opts, &moments, &call->err);
    if (r < 0)
        return r;
    /* The samples, and about as much for what is made of them. */
    r = kiln_native_room(call, ask, 2 * kiln_batch_bytes(moments->batch));
    if (r == 0)
        r = kiln_timed_new(moments->batch, &all, &timed, &call->err);
    if (r == 0) {
        timed->n_all = moments->n_all;
        timed->n_timed = moments->n_timed;
        r = put_answer(call, ask, moments, timed);
        kiln_timed_free(timed);
    }
    kiln_moments_free(moments);
    return r;
}
