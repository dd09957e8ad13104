/* SPDX-License-Identifier: Apache-2.0 */
/* An exporter that takes everything and keeps nothing. */
#include "collector/registry.h"

static void take(struct kiln_consumer *consumer, struct kiln_delivery *delivery)
{
    (void)consumer;
    kiln_delivery_end(delivery, &(struct kiln_outcome){0});
}

static bool is_light(struct kiln_consumer *consumer, const struct kiln_delivery *delivery)
{
    (void)consumer, (void)delivery;
    return true;
}

static void do_nothing(struct kiln_component *component)
{
    (void)component;
}

static int make(const struct kiln_component_env *env, const void *settings,
                struct kiln_component **ret_component, struct kiln_err *err)
{
    static const struct kiln_component_ops ops = {.free = do_nothing};
    static struct kiln_consumer in = {take, .takes_sealed = true, is_light, .takes_json = true};
    static struct kiln_component nop = {.ops = &ops, .in = &in};

    (void)env, (void)settings, (void)err;
    *ret_component = &nop;
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
