/* SPDX-License-Identifier: Apache-2.0 */
/* The end of one pipeline is the beginning of others. */
#include <errno.h>

#include "base/mem.h"
#include "collector/registry.h"

struct forward {
    struct kiln_component component; /* first */
};

static void destroy(struct kiln_component *component)
{
    kiln_free(component);
}

static int make(const struct kiln_component_env *env, const void *settings,
                struct kiln_component **ret_component, struct kiln_err *err)
{
    static const struct kiln_component_ops ops = {.free = destroy};
    struct forward *forward = kiln_calloc(1, sizeof(*forward));

    (void)settings;
    if (!forward)
        return kiln_err_set(err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));
    forward->component = (struct kiln_component){.ops = &ops, .in = env->next[env->signal]};
    *ret_component = &forward->component;
    return 0;
}

static int read(const struct kiln_node *node, void *settings, struct kiln_err *err)
{
    return kiln_node_read(node, NULL, 0, settings, err);
}

const struct kiln_component_type kiln_forward_connector_type = {
    .name = "forward",
    .kind = KILN_CONNECTOR,
    .signals = KILN_TAKES_ALL,
    .stability = "stable",
    .read = read,
    .make = make,
};
