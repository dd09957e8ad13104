/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A head in the order of a block: series by key, their profiles by time.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"
#include "store/head.h"

/* Sorted by a number; ties keep the order of `index`. */
struct ordered {
    uint64_t major, minor;
    uint32_t index;
};

static int by_order(const void *a, const void *b)
{
    const struct ordered *x = a, *y = b;

    if (x->major != y->major)
        return x->major < y->major ? -1 : 1;
    if (x->minor != y->minor)
        return x->minor < y->minor ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

static int by_key(const void *a, const void *b)
{
    const struct kiln_head_series *const *x = a, *const *y = b;

    return kiln_str_cmp((*x)->key, (*y)->key);
}

/* What a head is in the order of a block. */
struct sorted {
    const struct kiln_head_series **series; /* those with profiles, by key */
    struct kiln_str *keys;
    uint32_t *rank; /* by series of the head */
    struct ordered *rows;
    uint32_t n_series, n_rows;
};

static void sorted_done(struct sorted *s)
{
    kiln_free(s->series);
    kiln_free(s->keys);
    kiln_free(s->rank);
    kiln_free(s->rows);
}

static bool is_in(const struct kiln_head *head, const struct kiln_head_write_opts *opts, uint32_t i)
{
    return kiln_head_series(head, i)->n_profiles && !(opts->leave_out && opts->leave_out[i]);
}

static int sort_head(const struct kiln_head *head, const struct kiln_head_write_opts *opts,
                     struct sorted *s)
{
    const struct kiln_rows *rows = kiln_head_rows(head);
    const struct kiln_batch *batch = kiln_rows_batch(rows);
    uint32_t n_series = kiln_head_info(head)->n_series;
    size_t n = (size_t)n_series + 1;

    s->series = kiln_malloc(n * sizeof(*s->series));
    s->keys = kiln_malloc(n * sizeof(*s->keys));
    s->rank = kiln_malloc(n * sizeof(*s->rank));
    s->rows = kiln_malloc(((size_t)rows->n + 1) * sizeof(*s->rows));
    if (!s->series || !s->keys || !s->rank || !s->rows)
        return -ENOMEM;
    for (uint32_t i = 0; i < n_series; i++) {
        if (is_in(head, opts, i))
            s->series[s->n_series++] = kiln_head_series(head, i);
    }
    qsort(s->series, s->n_series, sizeof(*s->series), by_key);
    for (uint32_t i = 0; i < s->n_series; i++) {
        s->keys[i] = s->series[i]->key;
        s->rank[s->series[i] - kiln_head_series(head, 0)] = i;
    }
    for (uint32_t i = 0; i < rows->n; i++) {
        uint32_t series = rows->rows[i].series;

        if (is_in(head, opts, series))
            s->rows[s->n_rows++] = (struct ordered){s->rank[series], batch->profiles[i].time_ns, i};
    }
    qsort(s->rows, s->n_rows, sizeof(*s->rows), by_order);
    return 0;
}

static int begin(const struct kiln_head *head, const struct sorted *s,
                 const struct kiln_head_write_opts *opts, struct kiln_block_writer **ret_writer,
                 struct kiln_err *err)
{
    const struct kiln_block_write_opts block = {.tenant = opts->tenant,
                                                .log_from = kiln_head_info(head)->log_from,
                                                .log_to = kiln_head_info(head)->log_to,
                                                .memory_bytes = opts->memory_bytes,
                                                .verify = opts->verify};

    return kiln_block_create(opts->io, &block, kiln_rows_batch(kiln_head_rows(head)), s->keys,
                             s->n_series, ret_writer, err);
}

static void add_rows(const struct kiln_head *head, const struct sorted *s,
                     struct kiln_block_writer *writer)
{
    for (uint32_t i = 0; i < s->n_rows; i++) {
        struct kiln_block_profile profile =
            kiln_rows_profile(kiln_head_rows(head), s->rows[i].index);

        profile.series = (uint32_t)s->rows[i].major;
        kiln_block_add(writer, &profile);
    }
}

/* A writer that has all of it. */
static int fill(const struct kiln_head *head, const struct kiln_head_write_opts *opts,
                struct kiln_block_writer **ret_writer, struct kiln_err *err)
{
    struct sorted sorted = {0};
    int r = sort_head(head, opts, &sorted);

    if (r < 0) {
        kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    } else {
        r = begin(head, &sorted, opts, ret_writer, err);
        if (r == 0)
            add_rows(head, &sorted, *ret_writer);
    }
    if (r == 0)
        r = kiln_block_finish(*ret_writer, err); /* after it, neither keys nor rows are used */
    sorted_done(&sorted);
    return r;
}

int kiln_head_write(const struct kiln_head *head, const struct kiln_head_write_opts *opts,
                    struct kiln_block_id *ret_id, struct kiln_err *err)
{
    struct kiln_block_writer *writer = NULL;
    int r = fill(head, opts, &writer, err);

    if (r == 0)
        r = kiln_block_commit(writer, ret_id, err);
    if (r < 0)
        kiln_block_abort(writer);
    return r;
}

int kiln_head_try_write(const struct kiln_head *head, const struct kiln_head_write_opts *opts,
                        struct kiln_err *err)
{
    struct kiln_block_writer *writer = NULL;
    int r = fill(head, opts, &writer, err);

    if (r == 0)
        r = kiln_block_read_back(writer, err);
    kiln_block_abort(writer);
    return r;
}
