/* SPDX-License-Identifier: Apache-2.0 */
/*
 * actions - the list `attributes` or `actions` of a processor's settings.
 *
 * Threads: no state.
 */
#ifndef KILN_COLLECTOR_PROCESSORS_ACTIONS_H
#define KILN_COLLECTOR_PROCESSORS_ACTIONS_H

#include "base/config.h"
#include "pipeline/processors/actions.h"

/* Texts are those of the node.  To be freed with kiln_actions_done(), also on failure. */
KILN_CHECK int kiln_actions_read(const struct kiln_node *list, struct kiln_actions *ret_actions,
                                 struct kiln_err *err);

/* A scalar by its looks, as YAML has it: true, 42, 4.2, or a text; one in quotes is a text. */
KILN_CHECK int kiln_plain_value_read(const struct kiln_node *node, struct kiln_plain_value *ret,
                                     struct kiln_err *err);

#endif /* KILN_COLLECTOR_PROCESSORS_ACTIONS_H */
