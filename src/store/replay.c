/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the log holds and blocks do not is decoded again, exactly as when it was received, and
 * applied: OTLP here, anything else by whoever wrote its recipe.  How much that is is bounded by
 * cuts (cut_raw_bytes), so that a start is quick.
 */
#include <errno.h>

#include "codec/otlp.h"
#include "store/store_int.h"

struct replaying {
    struct kiln_store *store;
    struct kiln_err *err; /* why the store cannot be opened */
};

/* The content of a body; what had to be decompressed for it is the builder's. */
static int open_body(const struct kiln_wal_record *record, struct kiln_builder *b,
                     struct kiln_str *ret_content, struct kiln_err *err)
{
    struct kiln_buf plain;
    size_t len;
    char *ptr;
    int r;

    if (record->compression == KILN_PLAIN) {
        *ret_content = record->body;
        return 0;
    }
    /* Whatever was taken fitted into as much, together with its batch. */
    kiln_buf_init(&plain, kiln_builder_limits(b)->memory_bytes);
    r = kiln_decompress(record->compression, record->body, &plain, err);
    if (r < 0) {
        kiln_buf_done(&plain);
        return r;
    }
    kiln_buf_take(&plain, &ptr, &len);
    *ret_content = (struct kiln_str){ptr, len};
    kiln_builder_adopt(b, ptr, len);
    return kiln_builder_error(b);
}

/* The same, for a batch that outlives the record. */
static int copy_body(struct kiln_builder *b, struct kiln_str *content)
{
    char *copy = kiln_builder_alloc(b, content->len + 1);

    if (!copy)
        return kiln_builder_error(b);
    if (content->len)
        memcpy(copy, content->ptr, content->len);
    content->ptr = copy;
    return 0;
}

int kiln_replay_decode(kiln_follow *follow, const struct kiln_wal_record *record, bool copies,
                       struct kiln_batch **ret_batch, struct kiln_err *err)
{
    struct kiln_otlp_opts opts = {.drop_bad_profiles = true};
    struct kiln_str content;
    struct kiln_builder *b;
    int r;

    r = kiln_builder_new(NULL, &b);
    if (r < 0)
        return r;
    r = open_body(record, b, &content, err);
    if (r == 0 && copies && record->compression == KILN_PLAIN)
        r = copy_body(b, &content);
    if (r == 0 && record->recipe.len && !follow)
        r = kiln_err_set(err, KILN_E_UNSUPPORTED, NULL, "nothing here can follow its recipe");
    else if (r == 0 && record->recipe.len)
        r = follow(record->recipe, content, b, err);
    else if (r == 0)
        r = kiln_otlp_decode(content, &opts, b, NULL, err);
    if (r < 0) {
        kiln_builder_free(b);
        return r;
    }
    return kiln_builder_finish(b, ret_batch, err);
}

static void say_bad(struct kiln_store *store, const struct kiln_wal_record *record,
                    const struct kiln_err *err)
{
    kiln_metric_add(store->metrics.undecodable, 1);
    kiln_log(store->opts.log, KILN_LOG_ERROR, "record of the log could not be read", "number",
             "%llu", (unsigned long long)record->number, "why", "%s", err->text, "where", "%s",
             err->where, NULL);
}

static bool is_covered(struct kiln_tenant *tenant, uint64_t number)
{
    bool covered;

    pthread_mutex_lock(&tenant->lock);
    covered = number <= tenant->covered;
    pthread_mutex_unlock(&tenant->lock);
    return covered;
}

bool kiln_store_is_cancelled(const struct kiln_store *store)
{
    const struct kiln_store_opening *opening = store->opts.opening;

    return opening && opening->is_cancelled && opening->is_cancelled(opening->context);
}

static int replay(void *context, const struct kiln_wal_record *record)
{
    struct replaying *replaying = context;
    struct kiln_store *store = replaying->store;
    struct kiln_apply apply = {.number = record->number,
                               .received_ns = record->received_ns,
                               .oldest_ns = record->oldest_ns};
    struct kiln_err err = {0};
    struct kiln_batch *batch;
    int r;

    if (kiln_store_is_cancelled(store))
        return -ECANCELED;
    r = kiln_tenant_get(store, record->tenant, &apply.tenant);
    if (r < 0)
        return r;
    if (is_covered(apply.tenant, record->number)) {
        atomic_store(&store->last_number, record->number);
        return 0;
    }
    if (record->recipe.len && !store->opts.follow)
        return kiln_err_set(replaying->err, KILN_E_UNSUPPORTED, "wal",
                            "record %llu has a recipe, and there is nothing here to follow it",
                            (unsigned long long)record->number);
    r = kiln_replay_decode(store->opts.follow, record, false, &batch, &err);
    if (r == -ENOMEM)
        return r;
    if (r < 0) {
        say_bad(store, record, &err);
        return 0;
    }
    apply.batch = batch;
    kiln_store_apply(store, &apply);
    kiln_batch_unref(batch);
    /* What can wait is cut when the store is open: a start should be quick. */
    if (!store->opts.read_only && atomic_load(&store->head_bytes) > 2 * store->head_max)
        r = kiln_store_cut(store, apply.tenant, &err);
    return r == -ENOMEM ? r : 0;
}

static void damaged(void *context, const struct kiln_wal_damage *damage)
{
    struct kiln_store *store = ((struct replaying *)context)->store;

    kiln_store_count_aside(store);
    kiln_log(store->opts.log, KILN_LOG_ERROR, "the log is damaged", "path", "%s", damage->path,
             "offset", "%llu", (unsigned long long)damage->offset, "lost", "%llu",
             (unsigned long long)(damage->up_to - damage->after), "why", "%s", damage->text, NULL);
}

int kiln_store_replay(struct kiln_store *store, struct kiln_err *err)
{
    struct kiln_wal_opts opts = {.read_only = store->opts.read_only,
                                 .metrics = store->opts.metrics,
                                 .damaged = damaged,
                                 .progress =
                                     store->opts.opening ? &store->opts.opening->log : NULL};
    struct replaying replaying = {store, err};
    uint64_t floor = 0;

    for (struct kiln_tenant *t = kiln_tenant_next(store, NULL); t; t = kiln_tenant_next(store, t)) {
        if (t->covered > floor)
            floor = t->covered;
    }
    return kiln_wal_open(store->io, &opts, floor, replay, &replaying, &store->wal, err);
}
