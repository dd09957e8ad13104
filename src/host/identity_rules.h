/* SPDX-License-Identifier: Apache-2.0 */
/*
 * identity_rules - what the operator says of processes: which attributes of theirs are to be set.
 *
 *   - match: {process.executable.path: "/srv/STAR/bin/STAR"}        with * for STAR
 *     set: {service.name: "{1}", deployment.environment: production}
 *   - match: {container.name: "shop-*", env:TIER: "?*"}
 *     set: {service.name: "shop-{env:TIER}", process.command: ""}
 *
 * All that a rule names must match: whole values, * for any number of bytes, ? for one; what is not
 * there is matched by "" alone.  A text may hold {NAME} for another attribute, {env:NAME} for a
 * variable of the process, {1} for what the first * of the rule stands for, {{ for a brace; where
 * one of them is empty, nothing is set.  An empty text takes the attribute away.  Rules apply in
 * order, each to what the one before left.
 *
 * Naming a variable allows reading it, not publishing it.
 * Limits: 256 rules, 16 names to match and 32 to set each, nine stars.
 *
 * Threads: constant once read.
 */
#ifndef KILN_HOST_IDENTITY_RULES_H
#define KILN_HOST_IDENTITY_RULES_H

#include "base/config.h"
#include "base/err.h"

struct kiln_identity_rules;

/* `list` is borrowed until the rules are freed; NULL: no rules.  The error names the place. */
KILN_CHECK int kiln_identity_rules_read(const struct kiln_node *list,
                                        struct kiln_identity_rules **ret_rules,
                                        struct kiln_err *err);
void kiln_identity_rules_free(struct kiln_identity_rules *rules); /* may be NULL */

/* The variables that they name, each once; NULL: no more. */
const char *kiln_identity_rules_env(const struct kiln_identity_rules *rules, uint32_t i);

#endif /* KILN_HOST_IDENTITY_RULES_H */
