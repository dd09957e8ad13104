/* SPDX-License-Identifier: Apache-2.0 */
/*
 * statements - lists of OTTL in the settings of `filter` and `transform`.
 *
 * Threads: no state.
 */
#ifndef KILN_COLLECTOR_PROCESSORS_STATEMENTS_H
#define KILN_COLLECTOR_PROCESSORS_STATEMENTS_H

#include "collector/processors/changing.h"
#include "pipeline/processors/statements.h"

/* ignore, silent or propagate; NULL leaves it alone. */
KILN_CHECK int kiln_error_mode_read(const struct kiln_node *node, enum kiln_error_mode *ret_mode,
                                    struct kiln_err *err);

/*
 * Adds a list: of texts, whose paths name their context, or of groups {context, conditions,
 * statements}, in which paths without one are of the group's.  `conditions`: they are conditions by
 * themselves (of a filter), and those of `context`, where that is one.
 */
KILN_CHECK int kiln_statements_read(const struct kiln_node *list, bool conditions,
                                    enum kiln_ottl_context context,
                                    struct kiln_statements *statements, struct kiln_err *err);

/* Reads settings by their table, and whether `read` can make statements of them. */
KILN_CHECK int kiln_statements_settings(
    const struct kiln_node *node, const struct kiln_field *fields, uint32_t n, void *settings,
    int (*read)(const void *settings, struct kiln_statements *statements, struct kiln_err *err),
    struct kiln_err *err);

/*
 * The component of settings that `read` makes statements of: each has its own, as they are written
 * to by running.
 */
KILN_CHECK int kiln_statements_component(
    const struct kiln_component_env *env, const void *settings,
    int (*read)(const void *settings, struct kiln_statements *statements, struct kiln_err *err),
    int (*change)(void *statements, struct kiln_batch **batch, struct kiln_err *err),
    struct kiln_component **ret_component, struct kiln_err *err);

#endif /* KILN_COLLECTOR_PROCESSORS_STATEMENTS_H */
