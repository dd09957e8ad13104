/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One store on a simulated disk for each batch.  It is read from the head, after a power cut from
 * the log, from a block of its own, sent again, and from a block merged with another.
 */
#include "round_trip.h"

#include <semaphore.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "canon.h"
#include "codec/collapsed.h"
#include "codec/gperftools.h"
#include "codec/jfr.h"
#include "codec/otlp.h"
#include "codec/otlp_json.h"
#include "codec/perf.h"
#include "codec/speedscope.h"
#include "mutate.h"
#include "pipeline/receivers/ingest_tree.h"
#include "pipeline/receivers/recipe.h"
#include "sim_io.h"
#include "store/check.h"
#include "store/store.h"

#define NOW    (UINT64_C(1700000000) * KILN_NS_PER_S)
#define MEMORY ((size_t)1 << 30)
#define FILLER "lone 1\nmain;other 2\n"

/* ---- formats ---- */

const struct round_trip_format round_trip_formats[] = {
    {'o', "otlp", "otlp", MUTATE_PROTOBUF},          {'j', "otlp-json", "otlp_json", MUTATE_JSON},
    {'p', "pprof", "pprof", MUTATE_PROTOBUF},        {'r', "jfr", "jfr", MUTATE_BYTES},
    {'c', "collapsed", "collapsed", MUTATE_LINES},   {'s', "speedscope", "speedscope", MUTATE_JSON},
    {'g', "gperftools", "gperftools", MUTATE_BYTES}, {'e', "perf", "perf", MUTATE_LINES},
    {'l', "lines", "collapsed", MUTATE_LINES},       {'i', "trie", "ingest_tree", MUTATE_BYTES},
    {'t', "tree", "ingest_tree", MUTATE_BYTES},      {0},
};

const struct round_trip_format *round_trip_format_of(char letter)
{
    const struct round_trip_format *f = round_trip_formats;

    while (f->letter && f->letter != letter)
        f++;
    return f->letter ? f : NULL;
}

static int decode(char letter, struct kiln_str body, struct kiln_builder *b)
{
    switch (letter) {
    case 'o':
        return kiln_otlp_decode(body, &(struct kiln_otlp_opts){.drop_bad_profiles = true}, b, NULL,
                                NULL);
    case 'j':
        return kiln_otlp_json_decode(body, b, NULL);
    case 'r':
        return kiln_jfr_decode(body, b, NULL);
    case 'c':
        return kiln_collapsed_decode(body, b, NULL);
    case 's':
        return kiln_speedscope_decode(body, b, NULL);
    case 'g':
        return kiln_gperftools_decode(body, b, NULL);
    case 'e':
        return kiln_perf_decode(body, b, NULL);
    case 'l':
        return kiln_ingest_lines(body, b, NULL);
    case 'i':
        return kiln_ingest_trie(body, b, NULL);
    default:
        return kiln_ingest_tree(body, b, NULL);
    }
}

/* OTLP says itself what it is of; all others come with labels. */
static struct kiln_tags labels(void)
{
    return (struct kiln_tags){
        .service = KILN_STR("shop"), .from_ns = NOW - KILN_NS_PER_S, .until_ns = NOW};
}

static int decode_with_labels(char letter, struct kiln_str body, struct kiln_builder *b)
{
    struct kiln_tags tags = labels();
    struct kiln_recipe recipe = {.tags = &tags};
    int r;

    if (letter == 'p')
        return kiln_recipe_decode(&recipe, body, b, NULL);
    if (letter == 'o' || letter == 'j')
        return decode(letter, body, b);
    kiln_tags_prepare(&tags, b);
    r = decode(letter, body, b);
    return r < 0 ? r : kiln_tags_apply(&tags, b);
}

/* The batch of a body, or NULL: it is refused. */
static struct kiln_batch *batch_of(char letter, struct kiln_str body)
{
    struct kiln_limits limits = kiln_limits_default;
    struct kiln_batch *batch = NULL;
    struct kiln_builder *b;
    char *copy;
    int r;

    limits.memory_bytes = (size_t)256 << 20;
    if (kiln_builder_new(&limits, &b) < 0)
        return NULL;
    copy = kiln_builder_alloc(b, body.len + 1); /* the batch may point into it */
    if (!copy) {
        kiln_builder_free(b);
        return NULL;
    }
    if (body.len)
        memcpy(copy, body.ptr, body.len);
    r = decode_with_labels(letter, (struct kiln_str){copy, body.len}, b);
    if (r < 0 || kiln_builder_error(b) < 0) {
        kiln_builder_free(b);
        return NULL;
    }
    return kiln_builder_finish(b, &batch, NULL) < 0 ? NULL : batch;
}

/* ---- a store ---- */

struct trip {
    struct kiln_io *io;
    struct kiln_engine *engine;
    struct kiln_pool pool;
    struct kiln_batch *sent;
    struct kiln_str body; /* which the log keeps as it is; empty: it makes OTLP of the batch */
    struct kiln_buf recipe;
    struct canon expected;
    struct kiln_buf *why;
};

static bool wrong(struct trip *t, const char *stage, const char *what)
{
    kiln_buf_puts(t->why, stage);
    kiln_buf_puts(t->why, ": ");
    kiln_buf_puts(t->why, what);
    kiln_buf_putc(t->why, '\n');
    return false;
}

static bool open_store(struct trip *t)
{
    struct kiln_store_opts opts = {.io = t->io,
                                   .pool = &t->pool,
                                   .follow = kiln_recipe_follow,
                                   .no_background = true,
                                   .min_free_bytes = 1,
                                   .cut_raw_bytes = UINT64_MAX,
                                   .retention.age_ns = UINT64_MAX};
    struct kiln_err err = {0};

    return kiln_store_open(&opts, &t->engine, &err) == 0 || wrong(t, "open", err.text);
}

static void close_store(struct trip *t)
{
    if (t->engine)
        t->engine->ops->close(t->engine);
    t->engine = NULL;
}

struct waiting {
    sem_t done;
    int code;
};

static void told(struct kiln_append *append, int code)
{
    struct waiting *w = append->context;

    w->code = code;
    sem_post(&w->done);
}

static int append(struct trip *t, struct kiln_batch *batch)
{
    struct waiting w = {.code = 0};
    struct kiln_append a = {
        .batch = batch, .tenant = "anonymous", .received_ns = NOW, .done = told, .context = &w};

    sem_init(&w.done, 0, 0);
    t->engine->ops->append(t->engine, &a);
    sem_wait(&w.done);
    sem_destroy(&w.done);
    return w.code;
}

static void print_pair(struct trip *t, const struct kiln_batch *got, uint32_t sent, uint32_t back)
{
    kiln_buf_puts(t->why, "sent: ");
    if (sent != UINT32_MAX)
        canon_print(t->sent, sent, t->why);
    kiln_buf_puts(t->why, "\nread: ");
    if (back != UINT32_MAX)
        canon_print(got, back, t->why);
    kiln_buf_putc(t->why, '\n');
}

/* Whether the store has exactly what was expected. */
static bool check(struct trip *t, const char *stage)
{
    struct kiln_selection selection = {.tenant = KILN_STR("anonymous")};
    struct kiln_batch *batch = NULL;
    struct kiln_engine_stats stats;
    struct kiln_err err = {0};
    struct canon got;
    uint32_t sent, back;
    bool same;

    if (t->engine->ops->select(t->engine, &selection, MEMORY, &batch, &err) < 0)
        return wrong(t, stage, err.text);
    got = canon_of(batch, 0);
    same = canon_same(&t->expected, &got, &sent, &back);
    if (!same) {
        wrong(t, stage, "what was read is not what was sent");
        print_pair(t, batch, sent, back);
    }
    canon_done(&got);
    kiln_batch_unref(batch);
    t->engine->ops->stats(t->engine, KILN_STR_NONE, &stats);
    return same && (stats.set_aside == 0 || wrong(t, stage, "something was set aside"));
}

static bool check_files(struct trip *t, const char *stage)
{
    struct kiln_store_check checked;
    struct kiln_err err = {0};
    bool sound;

    if (kiln_store_check(t->io, NULL, &checked, &err) < 0)
        return wrong(t, stage, err.text);
    sound = checked.n_damages == 0 || wrong(t, stage, checked.damages[0].err.text);
    kiln_store_check_done(&checked);
    return sound;
}

static bool flush(struct trip *t, const char *stage)
{
    struct kiln_err err = {0};

    return kiln_store_flush(t->engine, &err) == 0 || wrong(t, stage, err.text);
}

static bool cut_power(struct trip *t, uint64_t seed)
{
    kiln_sim_cut_at(t->io, 1);
    close_store(t);
    kiln_sim_cut_at(t->io, 0);
    kiln_sim_cut(t->io, seed);
    return open_store(t);
}

/* Something to merge with, of the same series and of another: expected from now on. */
static bool add_filler(struct trip *t)
{
    struct kiln_batch *filler = batch_of('c', KILN_STR(FILLER));
    struct canon more;
    bool taken = filler && append(t, filler) == 0;

    if (filler) {
        more = canon_of(filler, NOW);
        canon_add(&t->expected, &more);
        canon_done(&more);
    }
    kiln_batch_unref(filler);
    return taken || wrong(t, "filler", "was refused");
}

static bool compact(struct trip *t)
{
    struct kiln_err err = {0};

    return kiln_store_compact(t->engine, true, &err) == 0 || wrong(t, "merge", err.text);
}

static enum round_trip_result travel(struct trip *t, uint64_t seed)
{
    if (!open_store(t))
        return ROUND_TRIP_WRONG;
    if (append(t, t->sent) < 0)
        return ROUND_TRIP_REFUSED;
    if (!check(t, "head"))
        return ROUND_TRIP_WRONG;
    if (seed % 2 == 0 && (!cut_power(t, seed) || !check(t, "log")))
        return ROUND_TRIP_WRONG;
    if (!flush(t, "cut") || !check(t, "block") || !check_files(t, "block"))
        return ROUND_TRIP_WRONG;
    /* A profile without a time of its own cannot be recognised. */
    if (!t->expected.n_arrived && (append(t, t->sent) < 0 || !check(t, "sent again")))
        return ROUND_TRIP_WRONG;
    if (!add_filler(t) || !flush(t, "cut again") || !compact(t) || !check(t, "merged") ||
        !check_files(t, "merged"))
        return ROUND_TRIP_WRONG;
    return ROUND_TRIP_SAME;
}

/* What the log keeps, as receivers do: OTLP and pprof as they came. */
static void keep_body(struct trip *t, char letter, struct kiln_str body)
{
    struct kiln_tags tags = labels();

    if (letter == 'o')
        t->body = body;
    if (letter == 'p' && kiln_recipe_encode(&(struct kiln_recipe){.tags = &tags}, &t->recipe) == 0)
        t->body = body;
}

enum round_trip_result round_trip(const struct round_trip_format *format, struct kiln_str body,
                                  uint64_t seed, struct kiln_buf *why)
{
    struct trip t = {.sent = batch_of(format->letter, body), .why = why};
    enum round_trip_result result = ROUND_TRIP_REFUSED;

    kiln_buf_init(&t.recipe, KILN_RECIPE_MAX);
    if (t.sent && t.sent->n_profiles) {
        t.io = kiln_sim_new();
        kiln_clock_set(NOW);
        kiln_pool_init(&t.pool, "trip", MEMORY, NULL);
        keep_body(&t, format->letter, body);
        t.expected = canon_of(t.sent, NOW);
        result = travel(&t, seed);
        close_store(&t);
        canon_done(&t.expected);
        kiln_sim_free(t.io);
        kiln_clock_set(0);
    }
    kiln_batch_unref(t.sent);
    kiln_buf_done(&t.recipe);
    return result;
}
