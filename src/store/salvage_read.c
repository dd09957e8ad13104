/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A block is read without what is damaged, some series at a time, so that memory holds a part of
 * it; a part that does not fit is halved.  A segment of the log is searched for whole records.
 */
#include <errno.h>
#include <stdio.h>

#include "base/mem.h"
#include "codec/otlp.h"
#include "store/block.h"
#include "store/salvage_int.h"
#include "store/store_int.h"
#include "store/wal_int.h"

#define OTLP_MAX  ((size_t)1 << 30)
#define PART_ROWS (UINT64_C(1) << 20) /* observations of some series together */
#define TOO_LARGE "it takes more memory than there is (--memory-limit)"

struct reading {
    const struct kiln_salvage_source *source;
    struct kiln_salvage_file *file;
    struct kiln_err *err;
    int failure; /* not of the file: it ends everything */
};

static void note_damage(struct reading *r, const struct kiln_err *why, uint64_t n_profiles)
{
    struct kiln_salvage_file *file = r->file;

    file->unreadable += n_profiles;
    if (!file->why.code)
        file->why = *why;
    if (file->state == KILN_SALVAGE_WHOLE)
        file->state = KILN_SALVAGE_PARTLY;
}

static int give(struct reading *r, const char *tenant, uint64_t received_ns,
                struct kiln_batch *batch)
{
    struct kiln_salvaged one = {r->file->name, tenant, received_ns, batch};

    r->failure = r->source->each(r->source->context, &one, r->err);
    if (r->failure != KILN_E_LIMIT)
        return r->failure;
    r->failure = 0; /* it may fit in smaller parts */
    return KILN_E_LIMIT;
}

/* What cannot be given in smaller parts. */
static int give_whole(struct reading *r, const char *tenant, uint64_t received_ns,
                      struct kiln_batch *batch)
{
    int result = give(r, tenant, received_ns, batch);
    struct kiln_err why = {0};

    if (result == KILN_E_LIMIT) {
        kiln_err_set(&why, result, NULL, TOO_LARGE);
        note_damage(r, &why, batch->n_profiles);
        result = 0;
    }
    kiln_batch_unref(batch);
    return result;
}

/* ---- blocks ---- */

static void lost_page(void *context, const struct kiln_block_lost *lost)
{
    struct kiln_err why = *lost->why;

    kiln_err_within(&why, "%s[%u]", lost->section, lost->page);
    note_damage(context, &why, lost->n_profiles);
}

static int select_rows(struct reading *r, struct kiln_block *block, const uint64_t *series,
                       struct kiln_batch **ret_batch, struct kiln_err *err)
{
    struct kiln_limits limits = kiln_limits_default;
    struct kiln_block_read_opts opts = {.series = series,
                                        .memory_bytes = r->source->memory_bytes / 4,
                                        .lost = lost_page,
                                        .lost_context = r};
    struct kiln_block_reader *reader;
    struct kiln_rows rows;
    int result;

    if (kiln_block_info(block)->dict_bytes > r->source->memory_bytes / 4)
        return KILN_E_LIMIT;
    limits.memory_bytes = r->source->memory_bytes / 4;
    result = kiln_rows_init(&rows, &limits);
    if (result < 0)
        return result;
    result = kiln_block_read(block, &opts, rows.b, &reader, err);
    if (result == 0) {
        result = kiln_rows_read(&rows, reader, r->source->window, err);
        kiln_block_reader_free(reader);
    }
    if (result == 0)
        result = kiln_rows_select(&rows, &(struct kiln_rows_choice){0}, &limits, ret_batch, err);
    kiln_rows_done(&rows);
    return result;
}

static uint64_t profiles_of(const struct kiln_block *block, uint32_t from, uint32_t to)
{
    uint64_t n = 0;

    for (uint32_t i = from; i < to; i++) {
        struct kiln_block_series s;

        n += kiln_block_series(block, i, &s) == 0 ? s.n_profiles : 0;
    }
    return n;
}

/* The series from..to - 1.  KILN_E_LIMIT: they are too many at once. */
static int read_series(struct reading *r, struct kiln_block *block, uint32_t from, uint32_t to)
{
    const struct kiln_salvage_file before = *r->file;
    uint64_t *bits = kiln_calloc(to / 64 + 1, sizeof(*bits));
    struct kiln_batch *batch = NULL;
    struct kiln_err why = {0};
    int result = bits ? 0 : -ENOMEM;

    for (uint32_t i = from; result == 0 && i < to; i++)
        bits[i / 64] |= UINT64_C(1) << i % 64;
    if (result == 0)
        result = select_rows(r, block, bits, &batch, &why);
    kiln_free(bits);
    if (result == 0 && batch)
        result = give(r, r->file->tenant, 0, batch);
    kiln_batch_unref(batch);
    if (result == 0 || r->failure || result == -ENOMEM)
        return result;
    *r->file = before; /* what was counted is counted again, or all lost */
    if (result == KILN_E_LIMIT && to - from > 1)
        return result;
    kiln_err_set(&why, result, NULL, "%s",
                 result == KILN_E_LIMIT ? TOO_LARGE : kiln_err_text(result));
    note_damage(r, &why, profiles_of(block, from, to));
    return 0;
}

static int read_halves(struct reading *r, struct kiln_block *block, uint32_t from, uint32_t to)
{
    int result = read_series(r, block, from, to);
    uint32_t middle = from + (to - from) / 2;

    if (result != KILN_E_LIMIT || to - from < 2)
        return result;
    result = read_halves(r, block, from, middle);
    return result < 0 ? result : read_halves(r, block, middle, to);
}

static int read_parts(struct reading *r, struct kiln_block *block)
{
    uint32_t n = (uint32_t)kiln_block_info(block)->n_series;
    int result = 0;

    for (uint32_t from = 0, to; result == 0 && from < n; from = to) {
        struct kiln_block_series s;
        uint64_t rows = 0;

        for (to = from; to < n && (to == from || rows < PART_ROWS); to++) {
            if (kiln_block_series(block, to, &s) == 0)
                rows += s.n_observations;
        }
        result = read_halves(r, block, from, to);
    }
    return result;
}

static int read_block(struct reading *r, const char *path)
{
    struct kiln_err why = {0};
    struct kiln_block *block;
    int result = kiln_block_open_damaged(r->source->io, path, &block, &why);

    if (result < 0) {
        r->file->why = why;
        r->file->state = KILN_SALVAGE_FAILED;
        return result == -ENOMEM ? result : 0;
    }
    snprintf(r->file->tenant, sizeof(r->file->tenant), "%.*s",
             KILN_STR_ARG(kiln_block_info(block)->tenant));
    result = read_parts(r, block);
    kiln_block_unref(block);
    return result;
}

/* ---- OTLP ---- */

static int read_otlp(struct reading *r, const char *path)
{
    struct kiln_otlp_opts opts = {.copies = true};
    struct kiln_err why = {0};
    struct kiln_builder *b = NULL;
    struct kiln_batch *batch = NULL;
    void *data = NULL;
    size_t n = 0;
    int result = kiln_io_get(r->source->io, path, OTLP_MAX, &data, &n);

    if (result == 0)
        result = kiln_builder_new(NULL, &b);
    if (result == 0)
        result = kiln_otlp_decode((struct kiln_str){data, n}, &opts, b, NULL, &why);
    if (result == 0)
        result = kiln_builder_finish(b, &batch, &why);
    else
        kiln_builder_free(b);
    kiln_free(data);
    if (result < 0) {
        kiln_err_set(&why, result, NULL, "%s", kiln_err_text(result));
        r->file->why = why;
        r->file->state = KILN_SALVAGE_FAILED;
        return result == -ENOMEM ? result : 0;
    }
    return give_whole(r, r->file->tenant, 0, batch);
}

/* ---- segments of the log ---- */

static int read_record(void *context, const struct kiln_wal_record *record)
{
    struct reading *r = context;
    char tenant[KILN_TENANT_MAX + 1];
    struct kiln_err why = {0};
    struct kiln_batch *batch;
    int result;

    if (!kiln_tenant_valid(record->tenant))
        return 0;
    snprintf(tenant, sizeof(tenant), "%.*s", KILN_STR_ARG(record->tenant));
    result = kiln_replay_decode(r->source->follow, record, true, &batch, &why);
    if (result < 0) {
        kiln_err_within(&why, "record %llu", (unsigned long long)record->number);
        note_damage(r, &why, 0);
        return result == -ENOMEM ? result : 0;
    }
    return give_whole(r, tenant, record->received_ns, batch);
}

static int read_segment(struct reading *r, const char *path)
{
    struct kiln_err why = {0};
    bool damaged = false;
    int result = kiln_wal_read_file(r->source->io, path, read_record, r, &damaged, &why);

    if (r->failure || result == -ENOMEM)
        return result;
    if (result < 0 && !why.code)
        kiln_err_set(&why, result, NULL, "%s", kiln_err_text(result));
    if (result < 0) {
        r->file->why = why;
        r->file->state = KILN_SALVAGE_FAILED;
    } else if (damaged) {
        kiln_err_set(&why, KILN_E_CORRUPT, NULL, "records are damaged");
        note_damage(r, &why, 0);
    }
    return 0;
}

int kiln_salvage_read(const struct kiln_salvage_source *source, struct kiln_salvage_file *file,
                      struct kiln_err *err)
{
    struct reading r = {.source = source, .file = file, .err = err};
    struct kiln_str name = kiln_str_of(file->name);
    char path[KILN_ASIDE_PATH_MAX + 8];
    int result;

    snprintf(path, sizeof(path), "aside/%s", file->name);
    if (kiln_str_ends(name, KILN_STR(KILN_BLOCK_ENDING)))
        result = read_block(&r, path);
    else if (kiln_str_ends(name, KILN_STR(".log")))
        result = read_segment(&r, path);
    else
        result = read_otlp(&r, path);
    return result < 0 ? kiln_err_set(err, result, path, "%s", kiln_err_text(result)) : 0;
}
