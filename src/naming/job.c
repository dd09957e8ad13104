/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread sleeps until somebody wakes it (an upload), or until the clock says that it is time
 * and the store says that something came.  What was uploaded meanwhile is asked again first: the
 * names that were there are forgotten, and what wants names is asked for as ever.
 */
#include "naming/job.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/thread.h"
#include "naming/job_int.h"
#include "naming/local.h"

#define AGE_DEFAULT (UINT64_C(14) * 86400 * KILN_NS_PER_S)
#define RETIRE_NS   (UINT64_C(600) * KILN_NS_PER_S)
#define LOOK_NS     (UINT64_C(600) * KILN_NS_PER_S) /* at the latest: files of the server may come */
#define SECOND_NS   KILN_NS_PER_S

/* Debug files of gigabytes are read here, and nobody waits for them. */
enum { CACHE_BYTES = 8 << 20, TICK_MS = 10000, CHILD_CPU_MS = 10000, DEEP_CPU_MS = 300000 };

/* ---- what was uploaded ---- */

/* From any thread. */
static void uploaded(void *context, const struct kiln_depot_file *file)
{
    struct kiln_naming *naming = context;

    pthread_mutex_lock(&naming->lock);
    if (kiln_grow(&naming->budget, (void **)&naming->uploads, &naming->cap_uploads,
                  naming->n_uploads + UINT64_C(1), sizeof(*naming->uploads),
                  KILN_UPLOADS_QUEUED) == 0)
        naming->uploads[naming->n_uploads++] = *file;
    naming->woken = true;
    pthread_cond_signal(&naming->wake);
    pthread_mutex_unlock(&naming->lock);
}

static void ask_again(struct kiln_naming *naming, const char *tenant, const char *build_id)
{
    struct kiln_engine *engine = naming->opts.engine;
    struct kiln_err err = {0};
    struct kiln_note *note;

    if (!build_id[0])
        return;
    if (engine->ops->drop_symbols(engine, kiln_str_of(tenant), kiln_str_of(build_id), &err) < 0)
        kiln_log(naming->opts.log, KILN_LOG_WARN, "old names cannot be removed", "build_id", "%s",
                 build_id, "reason", "%s", err.text, NULL);
    pthread_mutex_lock(&naming->lock);
    note = kiln_note_find(&naming->notes, tenant, kiln_str_of(build_id));
    if (note)
        note->again_ns = note->shallow = 0;
    pthread_mutex_unlock(&naming->lock);
}

/* Those that lacked this file beside their own; one at a time, as notes may change meanwhile. */
static void ask_dependents(struct kiln_naming *naming, const struct kiln_depot_file *file)
{
    for (uint32_t i = 0; i < KILN_NOTES; i++) {
        char build_id[KILN_DEBUG_ID_MAX + 1] = "";

        pthread_mutex_lock(&naming->lock);
        if (naming->notes.items[i].lacks[0] &&
            strcmp(naming->notes.items[i].lacks, file->facts.gnu) == 0 &&
            strcmp(naming->notes.items[i].tenant, file->tenant) == 0) {
            memcpy(build_id, naming->notes.items[i].build_id, sizeof(build_id));
            naming->notes.items[i].lacks[0] = '\0';
        }
        pthread_mutex_unlock(&naming->lock);
        ask_again(naming, file->tenant, build_id);
    }
}

static bool next_upload(struct kiln_naming *naming, struct kiln_depot_file *ret_file)
{
    bool found;

    pthread_mutex_lock(&naming->lock);
    found = naming->n_uploads > 0;
    if (found)
        *ret_file = naming->uploads[--naming->n_uploads];
    pthread_mutex_unlock(&naming->lock);
    return found;
}

static void take_uploads(struct kiln_naming *naming)
{
    struct kiln_depot_file file;

    while (next_upload(naming, &file)) {
        naming->generation++;
        if (file.of[0]) {
            ask_again(naming, file.tenant, file.of);
            continue;
        }
        ask_again(naming, file.tenant, file.facts.gnu);
        ask_again(naming, file.tenant, file.facts.go);
        ask_again(naming, file.tenant, file.facts.hash);
        ask_dependents(naming, &file);
    }
}

/* ---- a round ---- */

struct round {
    struct kiln_naming *naming;
    char tenant[KILN_TENANT_MAX + 1];
};

/* Who fetches may take long: an upload goes before the rest of the round. */
static bool is_called_away(struct kiln_naming *naming)
{
    bool away;

    pthread_mutex_lock(&naming->lock);
    away = naming->stop || (naming->fetch && naming->n_uploads);
    pthread_mutex_unlock(&naming->lock);
    return away;
}

static int name_one(void *context, const struct kiln_unnamed *unnamed)
{
    struct round *round = context;
    struct kiln_err err = {0};

    if (is_called_away(round->naming))
        return -ECANCELED;
    kiln_depot_use(round->naming->opts.depot, round->tenant, unnamed->build_id,
                   kiln_clock_unix_ns());
    return kiln_naming_name(round->naming, round->tenant, unnamed, &err);
}

static int name_tenant(void *context, struct kiln_str tenant)
{
    struct round *round = context;
    struct kiln_naming *naming = round->naming;
    struct kiln_engine *engine = naming->opts.engine;
    struct kiln_err err = {0};
    int r;

    snprintf(round->tenant, sizeof(round->tenant), "%.*s", KILN_STR_ARG(tenant));
    r = engine->ops->unnamed(engine, tenant, name_one, round, &err);
    if (r < 0 && r != -ECANCELED)
        kiln_log(naming->opts.log, KILN_LOG_WARN, "what lacks names cannot be found", "tenant",
                 "%s", round->tenant, "reason", "%s", err.text[0] ? err.text : kiln_err_text(r),
                 NULL);
    return r == -ECANCELED ? r : 0;
}

static int use_one(void *context, struct kiln_str build_id)
{
    struct round *round = context;

    kiln_depot_use(round->naming->opts.depot, round->tenant, build_id, kiln_clock_unix_ns());
    return atomic_load(&round->naming->stopping) ? -ECANCELED : 0;
}

static int use_tenant(void *context, struct kiln_str tenant)
{
    struct round *round = context;
    struct kiln_engine *engine = round->naming->opts.engine;
    struct kiln_err err = {0};

    snprintf(round->tenant, sizeof(round->tenant), "%.*s", KILN_STR_ARG(tenant));
    return engine->ops->build_ids(engine, tenant, use_one, round, &err);
}

/* What is used is known of all profiles, or nothing goes. */
static void keep_house(struct kiln_naming *naming)
{
    struct round round = {.naming = naming};
    struct kiln_engine *engine = naming->opts.engine;
    struct kiln_depot_stats stats;
    uint64_t now = kiln_clock_mono_ns();

    if (naming->retired_ns && now - naming->retired_ns < RETIRE_NS)
        return;
    naming->retired_ns = now;
    kiln_depot_stats(naming->opts.depot, NULL, &stats);
    if (stats.files + stats.uploads == 0 || engine->ops->tenants(engine, use_tenant, &round) < 0)
        return;
    if (naming->seen.clock_ahead_ns == 0)
        kiln_depot_retire(naming->opts.depot, kiln_clock_unix_ns(), naming->opts.age_ns);
}

static void go_round(struct kiln_naming *naming)
{
    struct kiln_engine *engine = naming->opts.engine;
    struct round round = {.naming = naming};

    naming->unfinished = false;
    naming->began_ns = kiln_clock_mono_ns();
    take_uploads(naming);
    if (naming->opts.local)
        naming->seen_local = kiln_local_files_kept(naming->opts.local);
    engine->ops->stats(engine, KILN_STR_NONE, &naming->seen);
    (void)engine->ops->tenants(engine, name_tenant, &round);
    keep_house(naming);
    kiln_metric_add(naming->metrics.rounds, 1);
}

/* ---- the thread ---- */

static bool has_come(struct kiln_naming *naming)
{
    struct kiln_engine_stats now;

    naming->opts.engine->ops->stats(naming->opts.engine, KILN_STR_NONE, &now);
    return now.profiles != naming->seen.profiles || now.observations != naming->seen.observations ||
           now.newest_ns != naming->seen.newest_ns;
}

/* A process of this host sends profiles for the first time: whoever started it looks at them. */
static bool has_news(struct kiln_naming *naming)
{
    return naming->opts.local && kiln_local_files_kept(naming->opts.local) != naming->seen_local;
}

/* Whether another round makes sense; without the lock. */
static bool is_time(struct kiln_naming *naming, uint64_t since_ns)
{
    uint64_t rested_ns = kiln_clock_mono_ns() - since_ns;

    if (rested_ns < naming->opts.tick_ms * KILN_NS_PER_MS)
        return has_news(naming) && has_come(naming);
    return naming->unfinished || rested_ns > LOOK_NS || has_come(naming);
}

/* Until there may be something to do; with the lock. */
static void rest(struct kiln_naming *naming)
{
    uint64_t since_ns = naming->began_ns;

    while (!naming->stop && !naming->woken) {
        uint64_t until = kiln_clock_mono_ns() + SECOND_NS;
        struct timespec at = {(time_t)(until / KILN_NS_PER_S), (long)(until % KILN_NS_PER_S)};
        bool time;

        if (pthread_cond_timedwait(&naming->wake, &naming->lock, &at) != ETIMEDOUT)
            continue;
        pthread_mutex_unlock(&naming->lock);
        time = is_time(naming, since_ns);
        pthread_mutex_lock(&naming->lock);
        if (time)
            return;
    }
}

static void *run(void *context)
{
    struct kiln_naming *naming = context;

    pthread_mutex_lock(&naming->lock);
    while (!naming->stop) {
        naming->woken = false;
        naming->rounds_begun++;
        pthread_mutex_unlock(&naming->lock);
        go_round(naming);
        pthread_mutex_lock(&naming->lock);
        naming->rounds_ended++;
        pthread_cond_broadcast(&naming->done);
        rest(naming);
    }
    pthread_mutex_unlock(&naming->lock);
    return NULL;
}

void kiln_naming_wake(struct kiln_naming *naming)
{
    pthread_mutex_lock(&naming->lock);
    naming->woken = true;
    pthread_cond_signal(&naming->wake);
    pthread_mutex_unlock(&naming->lock);
}

void kiln_naming_settle(struct kiln_naming *naming)
{
    uint64_t wanted;

    pthread_mutex_lock(&naming->lock);
    wanted = naming->rounds_begun + 1;
    naming->woken = true;
    pthread_cond_signal(&naming->wake);
    while (naming->rounds_ended < wanted)
        pthread_cond_wait(&naming->done, &naming->lock);
    pthread_mutex_unlock(&naming->lock);
}

/* ---- making and ending ---- */

static void measure(struct kiln_naming *naming)
{
    struct kiln_metrics *m = naming->opts.metrics;
    const char *name = "kiln_naming_addresses_total",
               *help = "Addresses that came without names, and were looked up in their file.";

    naming->metrics = (struct kiln_naming_metrics){
        .named = kiln_metric_get(m, KILN_COUNTER, name, help, KILN_LABELS("outcome", "named")),
        .nothing = kiln_metric_get(m, KILN_COUNTER, name, help, KILN_LABELS("outcome", "nothing")),
        .files = kiln_metric_counter(m, "kiln_naming_files_total",
                                     "Times that a file was read for names."),
        .failed = kiln_metric_counter(m, "kiln_naming_failed_total",
                                      "Times that a file was there but could not be read."),
        .rounds = kiln_metric_counter(m, "kiln_naming_rounds_total",
                                      "Times that the store was asked what lacks names."),
    };
}

static int make_parts(struct kiln_naming *naming, struct kiln_err *err)
{
    const struct kiln_naming_opts *opts = &naming->opts;
    const struct kiln_resolver_opts resolver = {.program = opts->program,
                                                .cache_bytes = CACHE_BYTES,
                                                .file_cpu_ms = CHILD_CPU_MS,
                                                .deep_cpu_ms = DEEP_CPU_MS,
                                                .patient = true,
                                                .log = opts->log};
    const struct kiln_fetch_opts fetch = {.depot = opts->depot,
                                          .urls = opts->debuginfod,
                                          .n_urls = opts->n_debuginfod,
                                          .program = opts->program,
                                          .stop = &naming->stopping,
                                          .metrics = opts->metrics,
                                          .log = opts->log};
    int r;

    naming->notes.items = kiln_calloc(KILN_NOTES, sizeof(*naming->notes.items));
    if (!naming->notes.items)
        return kiln_err_set(err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));
    r = kiln_resolver_new(&resolver, &naming->resolver, err);
    if (r == 0 && opts->n_debuginfod)
        r = kiln_fetch_new(&fetch, &naming->fetch, err);
    return r;
}

static void free_all(struct kiln_naming *naming)
{
    kiln_fetch_free(naming->fetch);
    kiln_resolver_free(naming->resolver);
    kiln_free(naming->notes.items);
    kiln_free(naming->uploads);
    pthread_cond_destroy(&naming->wake);
    pthread_cond_destroy(&naming->done);
    pthread_mutex_destroy(&naming->lock);
    kiln_free(naming);
}

int kiln_naming_start(const struct kiln_naming_opts *opts, struct kiln_naming **ret_naming,
                      struct kiln_err *err)
{
    struct kiln_naming *naming = kiln_calloc(1, sizeof(*naming));
    int r;

    if (!naming)
        return kiln_err_set(err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));
    naming->opts = *opts;
    naming->budget.limit = SIZE_MAX;
    naming->opts.tick_ms = opts->tick_ms ? opts->tick_ms : TICK_MS;
    naming->opts.age_ns = opts->age_ns ? opts->age_ns : AGE_DEFAULT;
    pthread_mutex_init(&naming->lock, NULL);
    kiln_cond_init(&naming->wake);
    kiln_cond_init(&naming->done);
    r = make_parts(naming, err);
    if (r == 0) {
        measure(naming);
        kiln_depot_on_upload(opts->depot, uploaded, naming);
        r = kiln_thread_start("kiln-naming", run, naming, &naming->thread);
        if (r < 0)
            kiln_err_set(err, r, NULL, "no thread for names: %s", kiln_err_text(r));
    }
    if (r < 0) {
        kiln_depot_on_upload(opts->depot, NULL, NULL);
        free_all(naming);
        return r;
    }
    *ret_naming = naming;
    return 0;
}

void kiln_naming_stop(struct kiln_naming *naming)
{
    if (!naming)
        return;
    atomic_store(&naming->stopping, true);
    pthread_mutex_lock(&naming->lock);
    naming->stop = true;
    pthread_cond_signal(&naming->wake);
    pthread_mutex_unlock(&naming->lock);
    pthread_join(naming->thread, NULL);
    kiln_depot_on_upload(naming->opts.depot, NULL, NULL);
    free_all(naming);
}

/* ---- what is missing ---- */

struct asking {
    struct kiln_naming *naming;
    char tenant[KILN_TENANT_MAX + 1];
    int (*each)(void *context, const struct kiln_naming_missing *missing);
    void *context;
};

static int tell_missing(void *context, const struct kiln_unnamed *unnamed)
{
    struct asking *asking = context;
    struct kiln_naming_missing missing = {.build_id = unnamed->build_id,
                                          .file = unnamed->file,
                                          .addresses = unnamed->n,
                                          .samples = unnamed->samples,
                                          .newest_ns = unnamed->newest_ns,
                                          .more = unnamed->more};
    const struct kiln_note *note;
    char why[KILN_NOTE_WHY] = "";

    pthread_mutex_lock(&asking->naming->lock);
    note = kiln_note_find(&asking->naming->notes, asking->tenant, unnamed->build_id);
    if (note)
        memcpy(why, note->why, sizeof(why));
    pthread_mutex_unlock(&asking->naming->lock);
    missing.why = kiln_str_of(why);
    return asking->each(asking->context, &missing);
}

int kiln_naming_missing(struct kiln_naming *naming, struct kiln_str tenant,
                        int (*each)(void *context, const struct kiln_naming_missing *missing),
                        void *context, struct kiln_err *err)
{
    struct asking asking = {.naming = naming, .each = each, .context = context};
    struct kiln_engine *engine = naming->opts.engine;

    snprintf(asking.tenant, sizeof(asking.tenant), "%.*s", KILN_STR_ARG(tenant));
    return engine->ops->unnamed(engine, tenant, tell_missing, &asking, err);
}
