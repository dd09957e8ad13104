/* SPDX-License-Identifier: Apache-2.0 */
/* An exporter that takes everything, counts it as sent, and keeps nothing. */
#include <errno.h>
#include <stddef.h>

#include "base/mem.h"
#include "collector/registry.h"
#include "pipeline/exporters/queue.h"

struct nop {
    struct kiln_component component; /* first */
    struct kiln_consumer in;
    struct kiln_metric *sent;
};

static void take(struct kiln_consumer *consumer, struct kiln_delivery *delivery)
{
    struct nop *nop = (struct nop *)(void *)((char *)consumer - offsetof(struct nop, in));

    kiln_metric_add(nop->sent, (int64_t)kiln_delivery_items(delivery));
    kiln_delivery_end(delivery, &(struct kiln_outcome){0});
}

static bool is_light(struct kiln_consumer *consumer, const struct kiln_delivery *delivery)
{
    (void)consumer, (void)delivery;
    return true;
}

static void destroy(struct kiln_component *component)
{
    kiln_free(component);
}

static int make(const struct kiln_component_env *env, const void *settings,
                struct kiln_component **ret_component, struct kiln_err *err)
{
    static const struct kiln_component_ops ops = {.free = destroy};
    struct nop *nop = kiln_calloc(1, sizeof(*nop));

    (void)settings;
    if (!nop)
        return kiln_err_set(err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));
    nop->in = (struct kiln_consumer){take, .takes_sealed = true, is_light, .takes_json = true};
    nop->sent = kiln_exporter_sent(env->metrics, env->signal, env->id);
    nop->component = (struct kiln_component){&ops, &nop->in};
    *ret_component = &nop->component;
    return 0;
}

static int read(const struct kiln_node *node, void *settings, struct kiln_err *err)
{
    return kiln_node_read(node, NULL, 0, settings, err);
}

const struct kiln_component_type kiln_nop_exporter_type = {
    .name = "nop",
    .kind = KILN_EXPORTER,
    .signals = KILN_TAKES_ALL,
    .stability = "stable",
    .read = read,
    .make = make,
};
