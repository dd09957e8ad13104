/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles into a store of Kiln's on this disk, which `kiln server --data-dir` can serve later. */
#include <errno.h>

#include "base/mem.h"
#include "collector/registry.h"
#include "pipeline/exporters/queue.h"
#include "pipeline/receivers/recipe.h"
#include "store/exporter.h"
#include "store/io.h"
#include "store/store.h"

struct store_settings {
    const char *directory;
    uint64_t retention_ns, retention_size;
};

struct store {
    struct kiln_component component; /* first */
    struct kiln_consumer in;
    const struct store_settings *settings;
    struct kiln_metrics *metrics;
    struct kiln_metric *sent, *failed;
    struct kiln_log *log;
    struct kiln_io *io;
    struct kiln_engine *engine; /* NULL: not started, or stopped */
    struct kiln_consumer *exporter;
};

static void take(struct kiln_consumer *consumer, struct kiln_delivery *delivery)
{
    struct store *store = (struct store *)((char *)consumer - offsetof(struct store, in));
    struct kiln_outcome outcome = {.code = -ESHUTDOWN, .retry_after_s = 1};

    if (!store->engine) {
        (void)!kiln_err_set(&outcome.err, -ESHUTDOWN, NULL, "the exporter is stopping");
        kiln_delivery_end(delivery, &outcome);
        return;
    }
    store->exporter->consume(store->exporter, delivery);
}

static int start(struct kiln_component *component, struct kiln_err *err)
{
    struct store *store = (struct store *)component;
    struct kiln_store_opts opts = {
        .retention = {store->settings->retention_ns, store->settings->retention_size, 0},
        .follow = kiln_recipe_follow,
        .metrics = store->metrics,
        .log = store->log,
    };
    int r = kiln_io_open(store->settings->directory, false, &store->io);

    if (r < 0)
        return kiln_err_set(err, r, store->settings->directory, "the folder cannot be used: %s",
                            kiln_err_text(r));
    opts.io = store->io;
    r = kiln_store_open(&opts, &store->engine, err);
    if (r < 0)
        return r;
    if (kiln_store_exporter_new(store->engine, &store->exporter) < 0)
        return kiln_err_set(err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));
    kiln_store_exporter_count(store->exporter, store->sent, store->failed);
    return 0;
}

/* What is in the log on its way to the disk ends its delivery before that is freed. */
static void stop(struct kiln_component *component, uint64_t deadline_ns)
{
    struct store *store = (struct store *)component;

    (void)deadline_ns; /* it takes as long as the disk does */
    if (store->engine)
        store->engine->ops->close(store->engine);
    store->engine = NULL;
}

static void destroy(struct kiln_component *component)
{
    struct store *store = (struct store *)component;

    stop(component, 0); /* of one that could not be started all the way */
    kiln_store_exporter_free(store->exporter);
    if (store->io)
        kiln_io_close(store->io);
    kiln_free(store);
}

static int make(const struct kiln_component_env *env, const void *settings,
                struct kiln_component **ret_component, struct kiln_err *err)
{
    static const struct kiln_component_ops ops = {.start = start, .stop = stop, .free = destroy};
    struct store *store = kiln_calloc(1, sizeof(*store));

    if (!store)
        return kiln_err_set(err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));
    store->component = (struct kiln_component){.ops = &ops, .in = &store->in};
    store->in.consume = take;
    store->settings = settings;
    store->metrics = env->metrics;
    store->sent = kiln_exporter_sent(env->metrics, env->signal, env->id);
    store->failed = kiln_exporter_send_failed(env->metrics, env->signal, env->id);
    store->log = env->log;
    *ret_component = &store->component;
    return 0;
}

static int read(const struct kiln_node *node, void *settings, struct kiln_err *err)
{
    static const struct kiln_field fields[] = {
        {"directory", KILN_FIELD_TEXT, offsetof(struct store_settings, directory)},
        {"retention", KILN_FIELD_DURATION, offsetof(struct store_settings, retention_ns)},
        {"retention_size", KILN_FIELD_SIZE, offsetof(struct store_settings, retention_size)},
    };
    struct store_settings *s = settings;
    int r = kiln_node_read(node, fields, KILN_ARRAY_LEN(fields), s, err);

    if (r == 0 && (!s->directory || !*s->directory))
        return kiln_err_set(err, KILN_E_MALFORMED, NULL,
                            "directory: say where the store's files are");
    return r;
}

const struct kiln_component_type kiln_store_exporter_type = {
    .name = "store",
    .kind = KILN_EXPORTER,
    .signals = KILN_TAKES_PROFILES,
    .stability = "beta",
    .settings_size = sizeof(struct store_settings),
    .read = read,
    .make = make,
};
