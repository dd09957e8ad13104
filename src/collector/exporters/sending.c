/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/exporters/sending.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "collector/extensions/file_storage.h"
#include "collector/settings.h"

/* ---- retry_on_failure ---- */

struct retry_block {
    bool enabled;
    struct kiln_retry_opts retry;
    const struct kiln_node *randomization, *multiplier;
};

static int read_number(const struct kiln_node *node, double least, double most, double *ret,
                       struct kiln_err *err)
{
    const char *text = NULL;
    char *end;
    double number;
    int r;

    if (!node)
        return 0;
    r = kiln_node_text(node, &text, err);
    if (r < 0)
        return r;
    number = strtod(text, &end);
    if (end == text || *end || !(number >= least && number <= most))
        return kiln_node_fail(node, KILN_E_MALFORMED, err, "'%s' must be a number from %g to %g",
                              node->key, least, most);
    *ret = number;
    return 0;
}

static int read_retry(const struct kiln_node *node, struct kiln_retry_opts *ret,
                      struct kiln_err *err)
{
    static const struct kiln_field fields[] = {
        {"enabled", KILN_FIELD_BOOL, offsetof(struct retry_block, enabled)},
        {"initial_interval", KILN_FIELD_DURATION, offsetof(struct retry_block, retry.initial_ns)},
        {"randomization_factor", KILN_FIELD_NODE, offsetof(struct retry_block, randomization)},
        {"multiplier", KILN_FIELD_NODE, offsetof(struct retry_block, multiplier)},
        {"max_interval", KILN_FIELD_DURATION, offsetof(struct retry_block, retry.max_ns)},
        {"max_elapsed_time", KILN_FIELD_DURATION,
         offsetof(struct retry_block, retry.elapsed_max_ns)},
    };
    struct retry_block block = {.enabled = true,
                                .retry = {.initial_ns = 5 * KILN_NS_PER_S,
                                          .max_ns = 30 * KILN_NS_PER_S,
                                          .elapsed_max_ns = 300 * KILN_NS_PER_S,
                                          .randomization = 0.5,
                                          .multiplier = 1.5}};
    int r = kiln_node_read(node, fields, KILN_ARRAY_LEN(fields), &block, err);

    if (r == 0)
        r = read_number(block.randomization, 0, 1, &block.retry.randomization, err);
    if (r == 0)
        r = read_number(block.multiplier, 1, 1000, &block.retry.multiplier, err);
    if (r == 0 && block.retry.elapsed_max_ns && block.retry.elapsed_max_ns < block.retry.initial_ns)
        return kiln_node_fail(node, KILN_E_MALFORMED, err,
                              "'max_elapsed_time' must not be less than 'initial_interval'");
    block.retry.off = !block.enabled;
    *ret = block.retry;
    return r;
}

/* ---- sending_queue ---- */

struct batch_block {
    uint64_t flush_ns, min, max;
    const struct kiln_node *sizer, *partition;
};

struct queue_block {
    bool enabled, wait_for_result, block_on_overflow;
    uint32_t consumers;
    uint64_t size;
    const struct kiln_node *sizer, *batch;
    const char *storage;
};

static int read_sizer(const struct kiln_node *node, enum kiln_sizer least, enum kiln_sizer *ret,
                      struct kiln_err *err)
{
    static const char *const names[] = {"requests", "items", "bytes"};
    const char *text = NULL;
    int r = node ? kiln_node_text(node, &text, err) : 0;

    if (r < 0 || !node)
        return r;
    for (enum kiln_sizer i = least; i <= KILN_SIZE_BYTES; i++) {
        if (strcmp(text, names[i]) == 0) {
            *ret = i;
            return 0;
        }
    }
    return kiln_node_fail(node, KILN_E_MALFORMED, err,
                          "invalid sizer \"%s\" (say %sitems or bytes)", text,
                          least == KILN_SIZE_REQUESTS ? "requests, " : "");
}

/* Without a word about it, what the queue is measured in, where that was said. */
static int read_batch_sizer(const struct kiln_node *batch, const struct kiln_node *said,
                            const struct kiln_node *of_queue, enum kiln_sizer *ret,
                            struct kiln_err *err)
{
    struct kiln_err why = {0};
    int r;

    *ret = KILN_SIZE_ITEMS;
    r = read_sizer(said ? said : of_queue, KILN_SIZE_ITEMS, ret, &why);
    if (r < 0 && !said)
        return kiln_node_fail(batch, KILN_E_MALFORMED, err,
                              "batch has the sizer of the queue where it has none of its own, and "
                              "that can only be items or bytes: say batch::sizer: items");
    if (r < 0)
        *err = why;
    return r;
}

/* partition: {metadata_keys: [x-team]} */
static int read_partition(const struct kiln_node *node, struct kiln_metadata_keys *ret,
                          struct kiln_err *err)
{
    static const struct kiln_field fields[] = {{"metadata_keys", KILN_FIELD_LIST, 0}};
    const struct kiln_node *keys = NULL;
    int r = node ? kiln_node_read(node, fields, KILN_ARRAY_LEN(fields), &keys, err) : 0;

    return r < 0 || !keys ? r : kiln_settings_metadata_keys(keys, ret, err);
}

static int read_batch(const struct kiln_node *node, const struct kiln_node *queue_sizer,
                      struct kiln_batching_opts *ret, struct kiln_err *err)
{
    static const struct kiln_field fields[] = {
        {"flush_timeout", KILN_FIELD_DURATION, offsetof(struct batch_block, flush_ns)},
        {"min_size", KILN_FIELD_SIZE, offsetof(struct batch_block, min)},
        {"max_size", KILN_FIELD_SIZE, offsetof(struct batch_block, max)},
        {"sizer", KILN_FIELD_NODE, offsetof(struct batch_block, sizer)},
        {"partition", KILN_FIELD_MAP, offsetof(struct batch_block, partition)},
    };
    struct batch_block block = {.flush_ns = 200 * KILN_NS_PER_MS, .min = 8192};
    int r;

    if (!node)
        return 0;
    r = kiln_node_read(node, fields, KILN_ARRAY_LEN(fields), &block, err);
    if (r == 0)
        r = read_batch_sizer(node, block.sizer, queue_sizer, &ret->sizer, err);
    if (r < 0)
        return r;
    r = read_partition(block.partition, &ret->apart, err);
    if (r < 0)
        return r;
    if (block.max && block.max < block.min)
        return kiln_node_fail(node, KILN_E_MALFORMED, err,
                              "'max_size' must be greater than or equal to 'min_size'");
    ret->on = true;
    ret->flush_ns = block.flush_ns;
    ret->min = block.min;
    ret->max = block.max;
    return 0;
}

static int check_queue(const struct kiln_node *node, const struct queue_block *block,
                       struct kiln_err *err)
{
    if (!block->enabled)
        return 0;
    if (!block->size)
        return kiln_node_fail(node, KILN_E_MALFORMED, err, "'queue_size' must be positive");
    if (!block->consumers)
        return kiln_node_fail(node, KILN_E_MALFORMED, err, "'num_consumers' must be positive");
    if (block->storage && block->wait_for_result)
        return kiln_node_fail(node, KILN_E_MALFORMED, err,
                              "'wait_for_result' is not supported with 'storage'");
    return 0;
}

static int read_queue(const struct kiln_node *node, struct kiln_sending_settings *settings,
                      struct kiln_err *err)
{
    static const struct kiln_field fields[] = {
        {"enabled", KILN_FIELD_BOOL, offsetof(struct queue_block, enabled)},
        {"num_consumers", KILN_FIELD_COUNT, offsetof(struct queue_block, consumers)},
        {"queue_size", KILN_FIELD_SIZE, offsetof(struct queue_block, size)},
        {"sizer", KILN_FIELD_NODE, offsetof(struct queue_block, sizer)},
        {"wait_for_result", KILN_FIELD_BOOL, offsetof(struct queue_block, wait_for_result)},
        {"block_on_overflow", KILN_FIELD_BOOL, offsetof(struct queue_block, block_on_overflow)},
        {"storage", KILN_FIELD_TEXT, offsetof(struct queue_block, storage)},
        {"batch", KILN_FIELD_MAP, offsetof(struct queue_block, batch)},
    };
    struct queue_block block = {
        .enabled = true, .block_on_overflow = true, .consumers = 10, .size = 1000};
    struct kiln_sendq_opts *queue = &settings->queue;
    int r = kiln_node_read(node, fields, KILN_ARRAY_LEN(fields), &block, err);

    if (r == 0)
        r = read_sizer(block.sizer, KILN_SIZE_REQUESTS, &queue->sizer, err);
    if (r == 0)
        r = read_batch(block.batch, block.sizer, &queue->batching, err);
    if (r == 0)
        r = check_queue(node, &block, err);
    if (r < 0)
        return r;
    queue->consumers = block.enabled ? block.consumers : UINT32_MAX;
    queue->size = block.enabled ? block.size : UINT64_MAX;
    queue->wait_for_result = block.wait_for_result || !block.enabled;
    queue->refuse_when_full = !block.block_on_overflow;
    settings->storage = block.enabled ? block.storage : NULL;
    return 0;
}

int kiln_sending_read(struct kiln_sending_settings *settings, struct kiln_err *err)
{
    int r = read_queue(settings->queue_node, settings, err);

    return r < 0 ? r : read_retry(settings->retry_node, &settings->queue.retry, err);
}

/* ---- the component ---- */

struct sending {
    struct kiln_component component; /* first */
    struct kiln_sendq *queue;
    struct kiln_pool pool; /* of what waits in memory: half of all that there is for deliveries */
};

static int start(struct kiln_component *component, struct kiln_err *err)
{
    return kiln_sendq_start(((struct sending *)component)->queue, err);
}

static void release(struct kiln_component *component, uint64_t when_ns)
{
    kiln_sendq_release(((struct sending *)component)->queue, when_ns);
}

static void stop(struct kiln_component *component, uint64_t deadline_ns)
{
    kiln_sendq_stop(((struct sending *)component)->queue, deadline_ns);
}

static void let_go(struct kiln_component *component)
{
    kiln_sendq_let_go(((struct sending *)component)->queue);
}

static void go_on(struct kiln_component *component)
{
    kiln_sendq_go_on(((struct sending *)component)->queue);
}

static void destroy(struct kiln_component *component)
{
    kiln_sendq_free(((struct sending *)component)->queue);
    kiln_free(component);
}

static int find_storage(const struct kiln_component_env *env, const char *id,
                        char folder[KILN_STORAGE_PLACE_BYTES], struct kiln_sendq_opts *opts,
                        struct kiln_err *err)
{
    static const char *const signals[KILN_SIGNALS] = {"profiles", "traces", "metrics", "logs"};
    const struct kiln_file_storage *storage =
        kiln_file_storage_find(env, "sending_queue::storage", id, err);

    if (!storage)
        return KILN_E_MALFORMED;
    kiln_file_storage_place(storage, "exporter", env->id, signals[env->signal], folder);
    opts->storage = folder;
    opts->room = &storage->shared->room;
    opts->no_sync = !storage->sync;
    return 0;
}

int kiln_sending_make(const struct kiln_component_env *env,
                      const struct kiln_sending_settings *settings, struct kiln_sender *sender,
                      struct kiln_component **ret_component, struct kiln_err *err)
{
    static const struct kiln_component_ops ops = {
        .start = start,
        .release = release,
        .stop = stop,
        .let_go = let_go,
        .go_on = go_on,
        .free = destroy,
    };
    /* Where deliveries stay open until they are sent, there is nothing to go on with. */
    static const struct kiln_component_ops open_ops = {
        .start = start, .release = release, .stop = stop, .free = destroy};
    struct sending *sending = kiln_calloc(1, sizeof(*sending));
    struct kiln_sendq_opts opts = settings->queue;
    char folder[KILN_STORAGE_PLACE_BYTES];
    int r = sending ? 0 : kiln_err_set(err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));

    opts.name = env->id;
    opts.signal = env->signal;
    opts.metrics = env->metrics;
    opts.log = env->log;
    if (r == 0 && env->pool) {
        kiln_pool_init(&sending->pool, "queue", env->pool->limit / 2, env->pool);
        opts.pool = &sending->pool;
    }
    if (r == 0 && settings->storage)
        r = find_storage(env, settings->storage, folder, &opts, err);
    if (r == 0)
        r = kiln_sendq_new(&opts, sender, &sending->queue, err);
    else
        sender->ops->free(sender);
    if (r < 0) {
        kiln_free(sending);
        return r;
    }
    sending->component.ops = opts.wait_for_result ? &open_ops : &ops;
    sending->component.in = kiln_sendq_consumer(sending->queue);
    *ret_component = &sending->component;
    return 0;
}
