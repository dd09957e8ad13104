/* SPDX-License-Identifier: Apache-2.0 */
/*
 * usage: power_cut [CUTS [SEED [MISFORTUNE]]]
 *
 * The whole store on a simulated disk (tests/support/sim_io.h).  A world is a disk with several
 * lives: threads append, resend, cut heads into blocks, compact and delete, until the power fails
 * at a random operation, also while the store is being opened; then what is left is opened and
 * compared with what was acknowledged.  After the cuts come worlds with other misfortunes: a full
 * disk, failing syncs, failing calls, missing memory, flipped bits.
 *
 * Every profile that was acknowledged must be there once, as it was given; nothing may be there
 * twice, or after it was deleted; and nothing may be reported as damage that a cut explains.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "ledger.h"
#include "sim_io.h"
#include "store/store.h"

enum {
    CUTS = 300,
    LIVES = 6,        /* of a world */
    APPENDERS = 3,    /* threads */
    APPENDS = 25,     /* of a thread in a life, at most */
    OPERATIONS = 160, /* of a life, until the cut at most */
    WORLD_SECONDS = 120,
};

struct world {
    uint64_t seed, random;
    struct kiln_io *io;
    struct kiln_engine *engine;
    struct kiln_pool pool;
    struct kiln_metrics *metrics;
    struct kiln_ledger ledger;
    const char *what; /* happens in it */
};

struct totals {
    uint32_t cuts, openings, refused, set_aside;
    uint64_t acknowledged, present;
    uint64_t slowest_ns;
};

static struct totals totals;

static uint64_t roll(struct world *w, uint64_t sides)
{
    return kiln_sim_random(&w->random) % sides;
}

static void fail(const struct world *w, const char *text, const struct kiln_err *err)
{
    const char *failure = kiln_sim_last_failure(w->io);

    fprintf(stderr, "%s, seed %llu: %s", w->what, (unsigned long long)w->seed, text);
    if (err && err->code)
        fprintf(stderr, ": %s %s", err->where, err->text);
    fprintf(stderr, "%s%s\n", failure[0] ? "; a call that failed: " : "", failure);
    exit(1);
}

/* ---- a world ---- */

static void begin_world(struct world *w, const char *what, uint64_t seed)
{
    memset(w, 0, sizeof(*w));
    w->what = what;
    w->seed = seed;
    w->random = seed * 0x9e3779b97f4a7c15u;
    w->io = kiln_sim_new();
    if (kiln_metrics_new(&w->metrics) < 0)
        fail(w, "no metrics", NULL);
    kiln_ledger_init(&w->ledger, kiln_clock_unix_ns());
    alarm(WORLD_SECONDS);
}

static void close_store(struct world *w)
{
    if (w->engine)
        w->engine->ops->close(w->engine);
    w->engine = NULL;
}

static void end_world(struct world *w)
{
    close_store(w);
    for (uint32_t id = 0; id < w->ledger.n; id++)
        totals.acknowledged += w->ledger.states[id] == LEDGER_ACKNOWLEDGED;
    kiln_ledger_done(&w->ledger);
    kiln_metrics_free(w->metrics);
    kiln_sim_free(w->io);
}

static int open_store(struct world *w, struct kiln_err *err)
{
    /* The disk may be filled to the last byte. */
    struct kiln_store_opts opts = {
        .io = w->io,
        .no_background = true,
        .pool = &w->pool,
        .min_free_bytes = 1,
        .metrics = w->metrics,
    };
    uint64_t start = kiln_clock_mono_ns();
    uint64_t taken;
    int r;

    kiln_pool_init(&w->pool, "torture", (size_t)256 << 20, NULL);
    r = kiln_store_open(&opts, &w->engine, err);
    taken = kiln_clock_mono_ns() - start;
    if (taken > totals.slowest_ns)
        totals.slowest_ns = taken;
    totals.openings++;
    if (r < 0)
        w->engine = NULL;
    return r;
}

static int count_name(void *context, const char *name)
{
    (void)name;
    (*(uint32_t *)context)++;
    return 0;
}

/* Files that were set aside, and damaged places of the log that were told of when it was opened. */
static uint32_t set_aside(struct world *w)
{
    struct kiln_engine_stats stats = {0};
    uint32_t n = 0;

    w->engine->ops->stats(w->engine, KILN_STR_NONE, &stats);
    if (w->io->list(w->io, "aside", count_name, &n) < 0)
        n = 0;
    return n + (uint32_t)stats.set_aside;
}

/* Profiles that came again while the block with the first of them could not be read: rather twice
 * than not at all, and counted. */
static uint32_t unchecked(struct world *w)
{
    return (uint32_t)kiln_metric_value(
        kiln_metric_get(w->metrics, KILN_COUNTER, "kiln_store_unchecked_total", "", NULL));
}

/* Compares; what must be there is. */
static void check(struct world *w, struct kiln_ledger_sum *ret_sum)
{
    struct kiln_err err = {0};
    char text[200];

    if (kiln_ledger_check(&w->ledger, w->engine, ret_sum, &err) < 0) {
        if (!kiln_sim_is_dead(w->io))
            fail(w, "reading back", &err);
        memset(ret_sum, 0, sizeof(*ret_sum));
        return;
    }
    totals.present += ret_sum->present;
    snprintf(text, sizeof(text),
             "of %u acknowledged %u lost (first %u), %u twice, %u wrong, %u deleted ones, %u files "
             "set aside",
             ret_sum->acknowledged, ret_sum->lost, ret_sum->first_lost, ret_sum->twice,
             ret_sum->wrong, ret_sum->undead, set_aside(w));
    if (ret_sum->lost || ret_sum->twice > unchecked(w) || ret_sum->wrong || ret_sum->undead)
        fail(w, text, NULL);
}

/* Opens what is left and checks it.  False: the power failed again meanwhile. */
static bool open_and_check(struct world *w)
{
    struct kiln_err err = {0};
    struct kiln_ledger_sum sum;

    if (open_store(w, &err) < 0) {
        if (!kiln_sim_is_dead(w->io))
            fail(w, "the store does not open", &err);
        return false;
    }
    check(w, &sum);
    if (set_aside(w) && !kiln_sim_is_dead(w->io))
        fail(w, "something was set aside that a cut explains", NULL);
    return !kiln_sim_is_dead(w->io);
}

/* ---- a life ---- */

static void *append_some(void *argument)
{
    struct world *w = argument;

    for (uint32_t i = 0; i < APPENDS && !kiln_sim_is_dead(w->io); i++)
        (void)kiln_ledger_append(&w->ledger, w->engine, 1 + i % 4);
    return NULL;
}

/* Sends again what failed in an earlier life. */
static void resend_some(struct world *w)
{
    for (uint32_t i = 0; i < 12 && w->ledger.n; i++) {
        uint32_t id = (uint32_t)roll(w, w->ledger.n);

        if (w->ledger.states[id] == LEDGER_FAILED)
            (void)kiln_ledger_resend(&w->ledger, w->engine, id);
    }
}

/* Cuts heads into blocks and merges those, while others append. */
static void keep_house(struct world *w)
{
    for (uint32_t i = (uint32_t)roll(w, 7); i && !kiln_sim_is_dead(w->io); i--) {
        int r = roll(w, 3) ? kiln_store_flush(w->engine, NULL)
                           : kiln_store_compact(w->engine, roll(w, 2), NULL);

        if (r < 0)
            totals.refused++;
    }
}

static void live(struct world *w)
{
    pthread_t threads[APPENDERS];
    uint32_t n = 1 + (uint32_t)roll(w, APPENDERS);

    resend_some(w);
    for (uint32_t i = 0; i < n; i++)
        if (pthread_create(&threads[i], NULL, append_some, w) != 0)
            fail(w, "no thread", NULL);
    keep_house(w);
    for (uint32_t i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    if (roll(w, 6) == 0 &&
        kiln_ledger_delete(&w->ledger, w->engine, (uint32_t)roll(w, LEDGER_TENANTS),
                           (uint32_t)roll(w, LEDGER_SERVICES)) < 0)
        totals.refused++;
    if (roll(w, 2))
        keep_house(w);
}

/* The power fails, wherever the store is. */
static void cut(struct world *w)
{
    close_store(w);
    kiln_sim_cut(w->io, kiln_sim_random(&w->random));
    totals.cuts++;
}

static void power_cuts(uint64_t seed)
{
    struct world w;

    begin_world(&w, "power cut", seed);
    for (int i = 0; i < LIVES; i++) {
        /* One in three early enough to hit the opening itself. */
        kiln_sim_cut_at(w.io, 1 + roll(&w, roll(&w, 3) ? OPERATIONS : 12));
        if (open_and_check(&w))
            live(&w);
        cut(&w);
    }
    open_and_check(&w);
    end_world(&w);
}

/* On a disk that syncs nothing the same life must lose something: else this test has no teeth. */
static bool notices_a_lie(uint64_t seed)
{
    struct world w;
    struct kiln_ledger_sum sum = {0};
    bool noticed;

    begin_world(&w, "a disk that lies", seed);
    open_and_check(&w);
    kiln_sim_lie(w.io, true);
    live(&w);
    cut(&w);
    totals.cuts--; /* it is not one of those that were asked for */
    kiln_sim_lie(w.io, false);
    noticed = open_store(&w, NULL) < 0 || kiln_ledger_check(&w.ledger, w.engine, &sum, NULL) < 0 ||
              sum.lost || sum.wrong;
    kiln_ledger_forgive(&w.ledger);
    end_world(&w);
    return noticed;
}

static void show_teeth(uint64_t seed)
{
    uint32_t noticed = 0;

    for (uint64_t i = 0; i < 10; i++)
        noticed += notices_a_lie(seed + i);
    printf("a disk that syncs nothing is noticed in %u of 10 worlds\n", noticed);
    if (noticed < 3)
        exit(1);
}

/* ---- other misfortunes ---- */

static void full_disk(uint64_t seed)
{
    struct world w;

    begin_world(&w, "full disk", seed);
    open_and_check(&w);
    for (int i = 0; i < LIVES; i++) {
        kiln_sim_limit(w.io, kiln_sim_used(w.io) + roll(&w, 60000));
        live(&w);
        kiln_sim_limit(w.io, UINT64_MAX);
        /* It goes on by itself. */
        if (kiln_ledger_append(&w.ledger, w.engine, 1) < 0)
            fail(&w, "there is room again, and appending still fails", NULL);
        if (kiln_store_flush(w.engine, NULL) < 0)
            fail(&w, "there is room again, and flushing still fails", NULL);
        if (roll(&w, 2))
            cut(&w);
        else
            close_store(&w);
        open_and_check(&w);
    }
    end_world(&w);
}

static void failing_syncs(uint64_t seed)
{
    struct world w;

    begin_world(&w, "failing syncs", seed);
    open_and_check(&w);
    for (int i = 0; i < LIVES; i++) {
        live(&w);
        kiln_sim_fail_syncs(w.io, (uint32_t)(1 + roll(&w, 10)), roll(&w, 2) ? -EIO : -ENOSPC);
        live(&w);
        kiln_sim_fail_syncs(w.io, 0, 0);
        if (kiln_ledger_append(&w.ledger, w.engine, 1) < 0)
            fail(&w, "syncing works again, and appending still fails", NULL);
        cut(&w);
        open_and_check(&w);
    }
    end_world(&w);
}

static void failing_calls(uint64_t seed)
{
    static const int codes[] = {-EIO, -ENOSPC, -EMFILE, -ENOMEM};
    struct world w;

    begin_world(&w, "failing calls", seed);
    for (int i = 0; i < LIVES; i++) {
        struct kiln_err err = {0};

        bool opening = roll(&w, 4) == 0;

        kiln_sim_fail_at(w.io, 1 + roll(&w, opening ? 40 : 400), codes[roll(&w, 4)]);
        if (open_store(&w, &err) < 0)
            totals.refused++;
        else
            live(&w);
        kiln_sim_fail_at(w.io, 0, 0);
        if (roll(&w, 2))
            cut(&w);
        close_store(&w);
        if (open_store(&w, &err) < 0)
            fail(&w, "nothing fails any more, and the store does not open", &err);
        check(&w, &(struct kiln_ledger_sum){0});
        close_store(&w);
    }
    end_world(&w);
}

static void missing_memory(uint64_t seed)
{
    struct world w;

    begin_world(&w, "missing memory", seed);
    open_and_check(&w);
    for (int i = 0; i < 4 * LIVES; i++) {
        kiln_mem_fail_at(1 + roll(&w, 4000));
        live(&w);
        kiln_mem_fail_at(0);
        check(&w, &(struct kiln_ledger_sum){0});
        if (i % 4 == 3) {
            cut(&w);
            open_and_check(&w);
        }
    }
    end_world(&w);
}

/* ---- flipped bits ---- */

/* A file of the store, drawn at random. */
struct draw {
    struct world *w;
    const char *folder;
    char path[256];
    uint32_t n;
};

static int draw_name(void *context, const char *name)
{
    struct draw *draw = context;
    char path[256];
    struct draw below = {.w = draw->w, .folder = path};

    snprintf(path, sizeof(path), "%s%s%s", draw->folder, draw->folder[0] ? "/" : "", name);
    if (draw->w->io->list(draw->w->io, path, draw_name, &below) == 0) {
        if (below.n && roll(draw->w, (draw->n += below.n)) < below.n)
            memcpy(draw->path, below.path, sizeof(draw->path));
    } else if (strcmp(draw->folder, "aside") != 0 && roll(draw->w, ++draw->n) == 0) {
        memcpy(draw->path, path, sizeof(draw->path));
    }
    return 0;
}

/* Flips a bit of some file; what it is. */
static const char *flip(struct world *w, struct draw *draw)
{
    uint64_t size = 0;
    int fd;

    *draw = (struct draw){.w = w, .folder = ""};
    if (w->io->list(w->io, ".", draw_name, draw) < 0 || draw->n == 0)
        return "";
    fd = w->io->open(w->io, draw->path, 0);
    if (fd >= 0 && w->io->size(w->io, fd, &size) == 0 && size)
        kiln_sim_flip(w->io, draw->path, roll(w, size), (int)roll(w, 8));
    w->io->close(w->io, fd);
    return draw->path;
}

/* Nothing crashes, nothing false is shown; what is lost was in the file, and is reported, unless
 * it is the end of the log, where damage looks like a torn write. */
static void flipped_bits(uint64_t seed)
{
    struct world w;

    begin_world(&w, "flipped bits", seed);
    open_and_check(&w);
    for (int i = 0; i < LIVES; i++) {
        struct kiln_ledger_sum sum = {0};
        struct kiln_err err = {0};
        struct draw draw;
        const char *path;

        live(&w);
        close_store(&w);
        path = flip(&w, &draw);
        if (open_store(&w, &err) < 0) {
            /* The one file without which there is no store says so. */
            if (strcmp(path, "store.json") != 0)
                fail(&w, path, &err);
            break;
        }
        if (kiln_ledger_check(&w.ledger, w.engine, &sum, &err) < 0)
            fail(&w, "a flipped bit stops an answer", &err);
        if (sum.twice || sum.wrong)
            fail(&w, "a flipped bit shows", NULL);
        if (sum.lost && !set_aside(&w) && strncmp(path, "wal/", 4) != 0)
            fail(&w, path, NULL);
        totals.set_aside += set_aside(&w) > 0;
        kiln_ledger_forgive(&w.ledger);
    }
    end_world(&w);
}

/* ---- all of it ---- */

static const struct misfortune {
    const char *name;
    void (*run)(uint64_t seed);
} misfortunes[] = {
    {"full disk", full_disk},         {"failing syncs", failing_syncs},
    {"failing calls", failing_calls}, {"missing memory", missing_memory},
    {"flipped bits", flipped_bits},
};

/* A world of each for fifty cuts, or as many as cuts of the one that is named. */
static void run_misfortunes(uint64_t first_seed, uint32_t cuts, const char *name)
{
    uint32_t n = name ? cuts : cuts / 50 + 1;

    for (size_t i = 0; i < KILN_ARRAY_LEN(misfortunes); i++) {
        if (name && strcmp(name, misfortunes[i].name) != 0)
            continue;
        totals = (struct totals){0};
        for (uint64_t seed = first_seed; seed < first_seed + n; seed++)
            misfortunes[i].run(seed);
        printf("%s: %u worlds, %llu profiles acknowledged, %u refusals, %u times something was set "
               "aside\n",
               misfortunes[i].name, n, (unsigned long long)totals.acknowledged, totals.refused,
               totals.set_aside);
    }
}

static void run_cuts(uint64_t seed, uint32_t cuts)
{
    show_teeth(seed);
    totals = (struct totals){0};
    while (totals.cuts < cuts)
        power_cuts(seed++);
    printf("%u power cuts, %u openings (slowest %.1f ms): %llu profiles acknowledged, none lost, "
           "none there twice\n",
           totals.cuts, totals.openings, (double)totals.slowest_ns / 1e6,
           (unsigned long long)totals.acknowledged);
}

int main(int argc, char **argv)
{
    uint32_t cuts = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : CUTS;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;

    if (argc <= 3)
        run_cuts(seed, cuts);
    run_misfortunes(seed, cuts, argc > 3 ? argv[3] : NULL);
    return 0;
}
