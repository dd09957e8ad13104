/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matching - `include` and `exclude` of the processor `attributes`, as one condition of OTTL:
 *
 *   include: {match_type: regexp, services: [pay, shop.*], attributes: [{key: thread.name}]}
 *   exclude: {match_type: strict, resources: [{key: host.name, value: web-1}]}
 *
 * One of the services, one of the libraries, all resources and all attributes have to match.
 *
 * Threads: no state.
 */
#ifndef KILN_COLLECTOR_PROCESSORS_MATCHING_H
#define KILN_COLLECTOR_PROCESSORS_MATCHING_H

#include "base/config.h"
#include "pipeline/ottl/ottl.h"

/* Both may be NULL; *ret_condition is NULL then, and all samples match. */
KILN_CHECK int kiln_matching_read(const struct kiln_node *include, const struct kiln_node *exclude,
                                  struct kiln_ottl **ret_condition, struct kiln_err *err);

#endif /* KILN_COLLECTOR_PROCESSORS_MATCHING_H */
