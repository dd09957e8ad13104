/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several deliveries become one (pipeline/processors/batcher.h):
 *
 *   batch: {send_batch_size: 8192, timeout: 200ms, send_batch_max_size: 0,
 *           metadata_keys: [x-team], metadata_cardinality_limit: 1000}
 *
 * Other signals pass as they come.
 */
#include <errno.h>
#include <stddef.h>

#include "base/clock.h"
#include "base/mem.h"
#include "collector/processors/changing.h"
#include "collector/registry.h"
#include "collector/settings.h"
#include "pipeline/processors/batcher.h"

struct settings {
    uint32_t send_batch_size, send_batch_max_size, metadata_cardinality_limit;
    uint64_t timeout_ns;
    const struct kiln_node *metadata_keys;
    struct kiln_metadata_keys keys;
};

struct batch {
    struct kiln_component component; /* first */
    struct kiln_batcher *batcher;
};

static int read(const struct kiln_node *node, void *into, struct kiln_err *err)
{
    static const struct kiln_field fields[] = {
        {"send_batch_size", KILN_FIELD_COUNT, offsetof(struct settings, send_batch_size)},
        {"send_batch_max_size", KILN_FIELD_COUNT, offsetof(struct settings, send_batch_max_size)},
        {"timeout", KILN_FIELD_DURATION, offsetof(struct settings, timeout_ns)},
        {"metadata_keys", KILN_FIELD_LIST, offsetof(struct settings, metadata_keys)},
        {"metadata_cardinality_limit", KILN_FIELD_COUNT,
         offsetof(struct settings, metadata_cardinality_limit)},
    };
    struct settings *settings = into;
    int r;

    *settings = (struct settings){.send_batch_size = 8192,
                                  .timeout_ns = 200 * KILN_NS_PER_MS,
                                  .metadata_cardinality_limit = 1000};
    r = kiln_node_read(node, fields, KILN_ARRAY_LEN(fields), settings, err);
    if (r == 0)
        r = kiln_settings_metadata_keys(settings->metadata_keys, &settings->keys, err);
    if (r < 0)
        return r;
    if (settings->send_batch_max_size && settings->send_batch_max_size < settings->send_batch_size)
        return kiln_node_fail(node, KILN_E_MALFORMED, err,
                              "send_batch_max_size must be greater or equal to send_batch_size");
    return 0;
}

static int start(struct kiln_component *component, struct kiln_err *err)
{
    int r = kiln_batcher_start(((struct batch *)component)->batcher);

    return r < 0 ? kiln_err_set(err, r, NULL, "%s", kiln_err_text(r)) : 0;
}

static void stop(struct kiln_component *component, uint64_t deadline_ns)
{
    (void)deadline_ns; /* handing on takes no time worth a limit */
    kiln_batcher_stop(((struct batch *)component)->batcher);
}

static void destroy(struct kiln_component *component)
{
    kiln_batcher_free(((struct batch *)component)->batcher);
    kiln_free(component);
}

static int make(const struct kiln_component_env *env, const void *from,
                struct kiln_component **ret_component, struct kiln_err *err)
{
    static const struct kiln_component_ops ops = {.start = start, .stop = stop, .free = destroy};
    const struct settings *settings = from;
    const struct kiln_batcher_opts opts = {
        .processor = kiln_processor_opts_of(env),
        .samples = settings->send_batch_size,
        .samples_max = settings->send_batch_max_size,
        .timeout_ns = settings->timeout_ns,
        .pool = env->pool,
        .keys = settings->keys,
        .keys_max = settings->metadata_cardinality_limit,
    };
    struct batch *batch = kiln_calloc(1, sizeof(*batch));
    int r = batch ? kiln_batcher_new(&opts, &batch->batcher) : -ENOMEM;

    if (r == 0)
        batch->component.in = kiln_batcher_consumer(batch->batcher);
    return kiln_processor_made((struct kiln_component *)batch, r, &ops, ret_component, err);
}

const struct kiln_component_type kiln_batch_processor_type = {
    .name = "batch",
    .kind = KILN_PROCESSOR,
    .signals = KILN_TAKES_ALL,
    .stability = "beta",
    .settings_size = sizeof(struct settings),
    .read = read,
    .make = make,
};
