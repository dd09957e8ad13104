/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes attributes of samples:
 *
 *   attributes:
 *     actions:
 *       - {key: thread.name, action: hash}
 */
#include "collector/processors/actions.h"
#include "collector/registry.h"

const struct kiln_component_type kiln_attributes_processor_type = {
    .name = "attributes",
    .kind = KILN_PROCESSOR,
    .signals = KILN_TAKES_PROFILES,
    .stability = "beta",
    .settings_size = sizeof(struct kiln_actions_settings),
    .read = kiln_actions_read_actions,
    .make = kiln_actions_make_for_samples,
};
