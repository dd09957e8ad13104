/* SPDX-License-Identifier: Apache-2.0 */
/*
 * actions - the processors `resource` and `attributes`: a list of actions, on the attributes of
 * resources or of samples.
 *
 * Threads: no state.
 */
#ifndef KILN_COLLECTOR_PROCESSORS_ACTIONS_H
#define KILN_COLLECTOR_PROCESSORS_ACTIONS_H

#include "collector/component.h"
#include "pipeline/processors/actions.h"

/* Texts are those of the node.  To be freed with kiln_actions_done(), also on failure. */
KILN_CHECK int kiln_actions_read(const struct kiln_node *list, struct kiln_actions *ret_actions,
                                 struct kiln_err *err);

/* A scalar by its looks, as YAML has it: true, 42, 4.2, or a text; one in quotes is a text. */
KILN_CHECK int kiln_plain_value_read(const struct kiln_node *node, struct kiln_plain_value *ret,
                                     struct kiln_err *err);

struct kiln_actions_settings {
    const struct kiln_node *list;
    const struct kiln_node *include, *exclude; /* of `attributes`: which samples; NULL: all */
};

/* `read` and `make` of struct kiln_component_type; the list stands under `attributes`, or under
 * `actions`. */
int kiln_actions_read_attributes(const struct kiln_node *node, void *settings,
                                 struct kiln_err *err);
int kiln_actions_read_actions(const struct kiln_node *node, void *settings, struct kiln_err *err);
int kiln_actions_make_for_resources(const struct kiln_component_env *env, const void *settings,
                                    struct kiln_component **ret_component, struct kiln_err *err);
int kiln_actions_make_for_samples(const struct kiln_component_env *env, const void *settings,
                                  struct kiln_component **ret_component, struct kiln_err *err);

#endif /* KILN_COLLECTOR_PROCESSORS_ACTIONS_H */
