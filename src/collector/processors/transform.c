/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes what statements say:
 *
 *   transform:
 *     error_mode: ignore
 *     profile_statements:
 *       - set(resource.attributes["team"], "payments")
 *       - context: sample
 *         conditions: ['attributes["thread.name"] != nil']
 *         statements: ['replace_pattern(attributes["thread.name"], "-[0-9]+$", "")']
 */
#include <stddef.h>

#include "collector/processors/statements.h"
#include "collector/registry.h"

struct settings {
    const struct kiln_node *error_mode, *profile_statements;
};

static int read_statements(const void *from, struct kiln_statements *statements,
                           struct kiln_err *err)
{
    const struct settings *settings = from;
    int r = kiln_error_mode_read(settings->error_mode, &statements->mode, err);

    return r < 0 ? r
                 : kiln_statements_read(settings->profile_statements, false, KILN_OTTL_CONTEXTS,
                                        statements, err);
}

static int read(const struct kiln_node *node, void *into, struct kiln_err *err)
{
    static const struct kiln_field fields[] = {
        {"error_mode", KILN_FIELD_NODE, offsetof(struct settings, error_mode)},
        {"profile_statements", KILN_FIELD_LIST, offsetof(struct settings, profile_statements)},
    };

    return kiln_statements_settings(node, fields, KILN_ARRAY_LEN(fields), into, read_statements,
                                    err);
}

static int make(const struct kiln_component_env *env, const void *settings,
                struct kiln_component **ret_component, struct kiln_err *err)
{
    return kiln_statements_component(env, settings, read_statements, kiln_statements_transform,
                                     ret_component, err);
}

const struct kiln_component_type kiln_transform_processor_type = {
    .name = "transform",
    .kind = KILN_PROCESSOR,
    .signals = KILN_TAKES_PROFILES,
    .stability = "alpha",
    .settings_size = sizeof(struct settings),
    .read = read,
    .make = make,
};
