/* SPDX-License-Identifier: Apache-2.0 */
#include "store/exporter.h"

#include <errno.h>

#include "base/mem.h"

struct exporter {
    struct kiln_consumer consumer; /* first */
    struct kiln_engine *engine;
    struct kiln_metric *stored, *failed;
};

/* A delivery on its way into the engine. */
struct passage {
    struct kiln_append append;
    struct kiln_delivery *delivery;
    const struct exporter *exporter;
};

/* When it is worth trying again: memory comes back soon, room on a disk does not. */
static uint32_t retry_after_s(int code)
{
    switch (code) {
    case -EAGAIN:
        return 1;
    case -ENOSPC:
        return 30;
    case -EIO:
    case -ESHUTDOWN:
        return 5;
    default:
        return 0;
    }
}

static void end(struct kiln_delivery *delivery, int code, uint32_t rejected,
                const struct kiln_err *err)
{
    struct kiln_outcome outcome = {
        .code = code, .rejected = rejected, .retry_after_s = retry_after_s(code), .err = *err};

    kiln_delivery_end(delivery, &outcome);
}

static void appended(struct kiln_append *append, int code)
{
    struct passage *passage = append->context;
    struct kiln_delivery *delivery = passage->delivery;
    uint32_t rejected = append->rejected;
    struct kiln_err err = append->err;

    kiln_metric_add(code < 0 ? passage->exporter->failed : passage->exporter->stored,
                    (int64_t)kiln_delivery_items(delivery));
    kiln_free(passage);
    end(delivery, code, rejected, &err);
}

static void consume(struct kiln_consumer *consumer, struct kiln_delivery *delivery)
{
    struct exporter *exporter = (struct exporter *)consumer;
    struct passage *passage = kiln_calloc(1, sizeof(*passage));
    struct kiln_err err = {.code = -EAGAIN, .text = "there is no memory for one more append"};

    if (!passage) {
        end(delivery, -EAGAIN, 0, &err);
        return;
    }
    *passage = (struct passage){
        .append = {.batch = delivery->batch,
                   .tenant = delivery->tenant,
                   .received_ns = delivery->received_ns,
                   .body = delivery->body,
                   .recipe = delivery->recipe,
                   .body_compression = delivery->body_compression,
                   .done = appended,
                   .context = passage},
        .delivery = delivery,
        .exporter = exporter,
    };
    exporter->engine->ops->append(exporter->engine, &passage->append);
}

int kiln_store_exporter_new(struct kiln_engine *engine, struct kiln_consumer **ret_exporter)
{
    struct exporter *exporter = kiln_malloc(sizeof(*exporter));

    if (!exporter)
        return -ENOMEM;
    *exporter = (struct exporter){.consumer.consume = consume, .engine = engine};
    *ret_exporter = &exporter->consumer;
    return 0;
}

void kiln_store_exporter_count(struct kiln_consumer *consumer, struct kiln_metric *stored,
                               struct kiln_metric *failed)
{
    struct exporter *exporter = (struct exporter *)consumer;

    exporter->stored = stored;
    exporter->failed = failed;
}

void kiln_store_exporter_free(struct kiln_consumer *exporter)
{
    kiln_free(exporter);
}
