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

/* Takes the change's context over, which `done` frees, also on failure. */
KILN_CHECK int kiln_changing_new(const struct kiln_component_env *env,
                                 const struct kiln_change *change, void (*done)(void *context),
                                 struct kiln_component **ret_component, struct kiln_err *err);

#endif /* KILN_COLLECTOR_PROCESSORS_CHANGING_H */
