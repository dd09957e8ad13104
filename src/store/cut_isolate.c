/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The series are halved until single ones fail; each try writes a block, reads it back and removes
 * it.  The tries are limited: series that were not tried separately by then are all set aside,
 * which loses nothing.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "codec/otlp.h"
#include "store/cut_isolate.h"

#define TRIES_MAX 256u
#define OTLP_MAX  ((size_t)1 << 30)

struct search {
    const struct kiln_head *head;
    struct kiln_head_write_opts opts;
    bool *bad, *left_out; /* by series; what this try leaves out */
    uint32_t n_series, n_tries;
};

/* 0 if this range can be written, 1 if it is damaged then, or an error. */
static int try_range(struct search *s, uint32_t from, uint32_t to)
{
    int r;

    if (s->n_tries == TRIES_MAX)
        return 1;
    s->n_tries++;
    memset(s->left_out, true, s->n_series);
    memset(s->left_out + from, false, to - from);
    r = kiln_head_try_write(s->head, &s->opts, NULL);
    return kiln_block_is_damage(r) ? 1 : r;
}

static int search(struct search *s)
{
    uint32_t *open = kiln_calloc(s->n_series, 2 * sizeof(*open)); /* ranges, ends first */
    uint32_t n = 0;
    int r = open ? 0 : -ENOMEM;

    if (open) {
        open[n++] = s->n_series;
        open[n++] = 0;
    }
    while (r == 0 && n) {
        uint32_t from = open[--n], to = open[--n];

        r = try_range(s, from, to);
        if (r == 1 && (to - from == 1 || s->n_tries == TRIES_MAX)) {
            memset(s->bad + from, true, to - from);
            r = 0;
        } else if (r == 1) {
            uint32_t middle = from + (to - from) / 2;

            open[n++] = to;
            open[n++] = middle;
            open[n++] = middle;
            open[n++] = from;
            r = 0;
        }
    }
    kiln_free(open);
    return r;
}

/* ---- what is set aside ---- */

static int select_bad(const struct search *s, struct kiln_batch **ret_batch, struct kiln_err *err)
{
    struct kiln_limits limits = kiln_limits_default;
    uint64_t *bits = kiln_calloc(s->n_series / 64 + 1, sizeof(*bits));
    int r;

    if (!bits)
        return -ENOMEM;
    for (uint32_t i = 0; i < s->n_series; i++)
        bits[i / 64] |= (uint64_t)s->bad[i] << i % 64;
    limits.memory_bytes = s->opts.memory_bytes;
    r = kiln_rows_select(kiln_head_rows(s->head), &(struct kiln_rows_choice){.series = bits},
                         &limits, ret_batch, err);
    kiln_free(bits);
    return r;
}

static int put_aside(struct kiln_store *store, const char *path, const struct kiln_batch *batch,
                     struct kiln_err *err)
{
    struct kiln_io *io = store->io;
    struct kiln_buf body;
    int r;

    kiln_buf_init(&body, OTLP_MAX);
    r = kiln_otlp_encode(batch, NULL, &body, err);
    r = r < 0 ? r : io->mkdir(io, "aside");
    r = r < 0 ? r : io->sync_dir(io, ".");
    r = r < 0 ? r : kiln_io_put(io, path, body.ptr, body.len);
    kiln_buf_done(&body);
    return r;
}

/* The name is of the first record, so that a start after a crash writes the same file again. */
static void aside_path(const struct search *s, const struct kiln_tenant *tenant,
                       char ret_path[KILN_PATH_MAX])
{
    snprintf(ret_path, KILN_PATH_MAX, "aside/%s-%llu.otlp", tenant->name,
             (unsigned long long)kiln_head_info(s->head)->log_from);
}

static int set_aside(struct kiln_store *store, struct kiln_tenant *tenant, const struct search *s,
                     struct kiln_err *err)
{
    struct kiln_batch *batch = NULL;
    char path[KILN_PATH_MAX];
    int r = select_bad(s, &batch, err);

    if (r < 0 || !batch)
        return r;
    aside_path(s, tenant, path);
    r = put_aside(store, path, batch, err);
    kiln_batch_unref(batch);
    return r;
}

static void note_series(struct kiln_aside_note *note, const struct kiln_head_series *series)
{
    struct kiln_aside_entry *e = &note->entry;
    struct kiln_series parsed;

    e->min_ns = series->min_ns < e->min_ns ? series->min_ns : e->min_ns;
    e->max_ns = series->max_ns > e->max_ns ? series->max_ns : e->max_ns;
    if (kiln_series_parse(series->key, &parsed) == 0)
        kiln_aside_note_service(note, parsed.service);
}

static void note_aside(struct kiln_store *store, struct kiln_tenant *tenant, const struct search *s,
                       const struct kiln_err *why)
{
    struct kiln_aside_note note = {.entry.min_ns = UINT64_MAX, .all_lost = true};
    char path[KILN_PATH_MAX];
    uint64_t n = 0;

    for (uint32_t i = 0; i < s->n_series; i++) {
        const struct kiln_head_series *series = kiln_head_series(s->head, i);

        if (!s->bad[i] || !series->n_profiles)
            continue;
        note_series(&note, series);
        n += series->n_profiles;
    }
    if (!n)
        return;
    aside_path(s, tenant, path);
    note.why = why->text;
    note.entry.profiles = n;
    kiln_aside_name(path + strlen("aside/"), note.entry.name);
    snprintf(note.entry.tenant, sizeof(note.entry.tenant), "%s", tenant->name);
    (void)!kiln_aside_put(store, &note); /* without it all times are noted */
    kiln_store_count_aside(store);
    kiln_log(store->opts.log, KILN_LOG_ERROR,
             "profiles that cannot be written as a block are set aside", "tenant", "%s",
             tenant->name, "profiles", "%llu", (unsigned long long)n, "path", "%s", path, "where",
             "%s", why->where, "why", "%s", why->text, NULL);
}

static int write_rest(struct search *s, struct kiln_block_id *ret_id, struct kiln_err *err)
{
    bool any = false;
    int r;

    for (uint32_t i = 0; i < s->n_series; i++)
        any |= !s->bad[i] && kiln_head_series(s->head, i)->n_profiles;
    if (!any)
        return 0;
    s->opts.leave_out = s->bad;
    r = kiln_head_write(s->head, &s->opts, ret_id, err);
    return r < 0 ? r : 1;
}

/* No block says that the records of this head are dealt with: so that a start does not replay them.
 */
static int cover(struct kiln_store *store, struct kiln_tenant *tenant)
{
    char folder[KILN_PATH_MAX];
    struct kiln_io *io = store->io;
    int r;

    snprintf(folder, sizeof(folder), "blocks/%s", tenant->name);
    r = io->mkdir(io, "blocks");
    r = r < 0 ? r : io->sync_dir(io, ".");
    r = r < 0 ? r : io->mkdir(io, folder);
    r = r < 0 ? r : io->sync_dir(io, "blocks");
    if (r < 0)
        return r;
    pthread_mutex_lock(&tenant->lock);
    tenant->covered = kiln_head_info(tenant->cutting)->log_to;
    pthread_mutex_unlock(&tenant->lock);
    return kiln_catalog_cover(store, tenant);
}

static int isolate(struct kiln_store *store, struct kiln_tenant *tenant, struct search *s,
                   struct kiln_block_id *ret_id, struct kiln_err *err)
{
    int r = search(s);

    if (r == 0)
        r = set_aside(store, tenant, s, err);
    if (r == 0)
        r = write_rest(s, ret_id, err);
    if (kiln_block_is_damage(r)) { /* each of them can be written, but not all together */
        memset(s->bad, true, s->n_series);
        r = set_aside(store, tenant, s, err);
    }
    return r == 0 ? cover(store, tenant) : r;
}

int kiln_cut_isolate(struct kiln_store *store, struct kiln_tenant *tenant,
                     const struct kiln_head_write_opts *opts, struct kiln_block_id *ret_id,
                     struct kiln_err *err)
{
    const struct kiln_err why = *err;
    struct search s = {.head = tenant->cutting,
                       .opts = *opts,
                       .n_series = kiln_head_info(tenant->cutting)->n_series};
    int r = -ENOMEM;

    s.bad = kiln_calloc(s.n_series, sizeof(*s.bad));
    s.left_out = kiln_calloc(s.n_series, sizeof(*s.left_out));
    s.opts.leave_out = s.left_out;
    *err = (struct kiln_err){0};
    if (s.bad && s.left_out)
        r = isolate(store, tenant, &s, ret_id, err);
    if (r >= 0)
        note_aside(store, tenant, &s, &why);
    else if (!err->code)
        kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    kiln_free(s.bad);
    kiln_free(s.left_out);
    return r;
}
