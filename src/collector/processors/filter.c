/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Drops what a condition holds for:
 *
 *   filter:
 *     error_mode: ignore
 *     profile_conditions:
 *       - resource.attributes["service.name"] == "noise"
 *       - IsMatch(sample.attributes["thread.name"], "^idle")
 *
 * and as it was written before: profiles: {profile: ['attributes["x"] == "y"']}.
 */
#include <stddef.h>

#include "collector/processors/statements.h"
#include "collector/registry.h"

struct settings {
    const struct kiln_node *error_mode, *profile_conditions, *profiles;
};

/* The older form: a list for each context. */
static int read_older(const struct kiln_node *map, struct kiln_statements *statements,
                      struct kiln_err *err)
{
    int r = 0;

    for (const struct kiln_node *list = map ? map->first : NULL; list && r == 0;
         list = list->next) {
        enum kiln_ottl_context context = kiln_ottl_context_named(kiln_str_of(list->key));

        if (context == KILN_OTTL_CONTEXTS || list->kind != KILN_NODE_LIST)
            return kiln_node_fail(list, KILN_E_MALFORMED, err,
                                  "profiles has lists for resource, scope, profile and sample");
        r = kiln_statements_read(list, true, context, statements, err);
    }
    return r;
}

static int read_statements(const void *from, struct kiln_statements *statements,
                           struct kiln_err *err)
{
    const struct settings *settings = from;
    int r = kiln_error_mode_read(settings->error_mode, &statements->mode, err);

    if (r == 0)
        r = kiln_statements_read(settings->profile_conditions, true, KILN_OTTL_CONTEXTS, statements,
                                 err);
    return r < 0 ? r : read_older(settings->profiles, statements, err);
}

static int read(const struct kiln_node *node, void *into, struct kiln_err *err)
{
    static const struct kiln_field fields[] = {
        {"error_mode", KILN_FIELD_NODE, offsetof(struct settings, error_mode)},
        {"profile_conditions", KILN_FIELD_LIST, offsetof(struct settings, profile_conditions)},
        {"profiles", KILN_FIELD_MAP, offsetof(struct settings, profiles)},
    };

    return kiln_statements_settings(node, fields, KILN_ARRAY_LEN(fields), into, read_statements,
                                    err);
}

static int make(const struct kiln_component_env *env, const void *settings,
                struct kiln_component **ret_component, struct kiln_err *err)
{
    return kiln_statements_component(env, settings, read_statements, kiln_statements_filter,
                                     ret_component, err);
}

const struct kiln_component_type kiln_filter_processor_type = {
    .name = "filter",
    .kind = KILN_PROCESSOR,
    .signals = KILN_TAKES_PROFILES,
    .stability = "alpha",
    .settings_size = sizeof(struct settings),
    .read = read,
    .make = make,
};
