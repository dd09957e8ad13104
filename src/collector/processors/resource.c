/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes attributes of resources:
 *
 *   resource:
 *     attributes:
 *       - {key: deployment.environment, value: production, action: upsert}
 */
#include <errno.h>
#include <stddef.h>

#include "base/mem.h"
#include "collector/processors/actions.h"
#include "collector/processors/changing.h"
#include "collector/registry.h"

struct settings {
    const struct kiln_node *attributes;
};

static void done(void *context)
{
    kiln_actions_done(context);
    kiln_free(context);
}

/* Each processor has expressions of its own: they are written to by matching. */
static int read_actions(const struct settings *settings, struct kiln_actions **ret_actions,
                        struct kiln_err *err)
{
    struct kiln_actions *actions = kiln_calloc(1, sizeof(*actions));
    int r;

    if (!actions)
        return kiln_err_set(err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));
    r = kiln_actions_read(settings->attributes, actions, err);
    if (r < 0)
        done(actions);
    else
        *ret_actions = actions;
    return r;
}

static int read(const struct kiln_node *node, void *into, struct kiln_err *err)
{
    static const struct kiln_field fields[] = {
        {"attributes", KILN_FIELD_LIST, offsetof(struct settings, attributes)},
    };
    struct settings *settings = into;
    struct kiln_actions *actions;
    int r = kiln_node_read(node, fields, KILN_ARRAY_LEN(fields), settings, err);

    if (r == 0 && !settings->attributes)
        return kiln_err_set(err, KILN_E_MALFORMED, NULL,
                            "attributes: a list of actions belongs here");
    if (r == 0)
        r = read_actions(settings, &actions, err);
    if (r == 0)
        done(actions);
    return r;
}

static int make(const struct kiln_component_env *env, const void *settings,
                struct kiln_component **ret_component, struct kiln_err *err)
{
    struct kiln_change change = {.change = kiln_actions_on_resources};
    struct kiln_actions *actions;
    int r = read_actions(settings, &actions, err);

    if (r < 0)
        return r;
    change.context = actions;
    return kiln_changing_new(env, &change, done, ret_component, err);
}

const struct kiln_component_type kiln_resource_processor_type = {
    .name = "resource",
    .kind = KILN_PROCESSOR,
    .signals = KILN_TAKES_PROFILES,
    .stability = "beta",
    .settings_size = sizeof(struct settings),
    .read = read,
    .make = make,
};
