/* SPDX-License-Identifier: Apache-2.0 */
#include "store_kit.h"

#include <semaphore.h>

#include "base/clock.h"
#include "drawn.h"
#include "test.h"

void kit_init(struct store_kit *kit, uint64_t now_ns)
{
    *kit = (struct store_kit){.io = kiln_sim_new(), .now_ns = now_ns};
    kit->opts.no_background = true;
    kit->opts.min_free_bytes = 1;
    kiln_clock_set(now_ns);
    kit_open(kit);
}

void kit_open(struct store_kit *kit)
{
    struct kiln_err err = {0};

    kit->opts.io = kit->io;
    if (kiln_store_open(&kit->opts, &kit->engine, &err) < 0)
        fail_msg("open: %s: %s", err.where, err.text);
}

void kit_close(struct store_kit *kit)
{
    if (kit->engine)
        kit->engine->ops->close(kit->engine);
    kit->engine = NULL;
}

void kit_reopen(struct store_kit *kit)
{
    kit_close(kit);
    kit_open(kit);
}

void kit_cut_power(struct store_kit *kit, uint64_t seed)
{
    if (!kiln_sim_is_dead(kit->io))
        kiln_sim_cut_at(kit->io, 1);
    kit_close(kit);
    kiln_sim_cut_at(kit->io, 0);
    kiln_sim_cut(kit->io, seed);
}

void kit_done(struct store_kit *kit)
{
    kit_close(kit);
    kiln_sim_free(kit->io);
    kiln_clock_set(0);
}

/* ---- in ---- */

struct waiting {
    struct kiln_append append;
    sem_t done;
    int code;
};

static void told(struct kiln_append *append, int code)
{
    struct waiting *w = append->context;

    w->code = code;
    sem_post(&w->done);
}

struct kit_outcome kit_append(struct store_kit *kit, const struct kiln_append *append)
{
    struct waiting w = {.append = *append};
    struct kit_outcome outcome;

    w.append.received_ns = kit->now_ns;
    w.append.done = told;
    w.append.context = &w;
    sem_init(&w.done, 0, 0);
    kit->engine->ops->append(kit->engine, &w.append);
    sem_wait(&w.done);
    sem_destroy(&w.done);
    outcome = (struct kit_outcome){w.code, w.append.rejected, w.append.err};
    return outcome;
}

struct kit_outcome kit_append_to(struct store_kit *kit, const char *tenant,
                                 struct kiln_batch *batch)
{
    return kit_append(kit, &(struct kiln_append){.batch = batch, .tenant = tenant});
}

void kit_put(struct store_kit *kit, struct kiln_batch *batch)
{
    struct kit_outcome outcome = kit_append_to(kit, "anonymous", batch);

    if (outcome.code < 0)
        fail_msg("append: %s", outcome.err.text);
    kiln_batch_unref(batch);
}

/* ---- out ---- */

struct kiln_batch *kit_select(struct store_kit *kit, uint64_t start_ns, uint64_t end_ns)
{
    struct kiln_selection selection = {
        .tenant = KILN_STR("anonymous"), .start_ns = start_ns, .end_ns = end_ns};
    struct kiln_batch *batch = NULL;
    struct kiln_err err = {0};

    if (kit->engine->ops->select(kit->engine, &selection, 0, &batch, &err) < 0)
        fail_msg("select: %s: %s", err.where, err.text);
    return batch;
}

struct kiln_engine_stats kit_stats(struct store_kit *kit)
{
    struct kiln_engine_stats stats;

    kiln_store_settle(kit->engine);
    kit->engine->ops->stats(kit->engine, KILN_STR_NONE, &stats);
    return stats;
}

const char *kit_drawing(struct store_kit *kit, uint64_t start_ns, uint64_t end_ns)
{
    struct kiln_batch *batch = kit_select(kit, start_ns, end_ns);
    struct kiln_view *view;
    const char *text;

    if (batch->n_profiles == 0) {
        kiln_batch_unref(batch);
        return "";
    }
    view = kiln_test_view(batch, NULL);
    text = kiln_test_view_text(view);
    kiln_view_free(view);
    return text;
}
