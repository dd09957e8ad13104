/* SPDX-License-Identifier: Apache-2.0 */
/*
 * changing - the component around a changer (pipeline/processors/changer.h).
 *
 * Threads: as collector/component.h.
 */
#ifndef KILN_COLLECTOR_PROCESSORS_CHANGING_H
#define KILN_COLLECTOR_PROCESSORS_CHANGING_H

#include "collector/component.h"
#include "pipeline/processors/changer.h"

struct kiln_processor_opts kiln_processor_opts_of(const struct kiln_component_env *env);

/*
 * The end of make(): a component whose consumer could not be made (`r`), or that is NULL, goes;
 * else it is what `ops` say.
 */
KILN_CHECK int kiln_processor_made(struct kiln_component *component, int r,
                                   const struct kiln_component_ops *ops,
                                   struct kiln_component **ret_component, struct kiln_err *err);

/* Takes the change's context over, which `done` frees, also on failure. */
KILN_CHECK int kiln_changing_new(const struct kiln_component_env *env,
                                 const struct kiln_change *change, void (*done)(void *context),
                                 struct kiln_component **ret_component, struct kiln_err *err);

#endif /* KILN_COLLECTOR_PROCESSORS_CHANGING_H */
