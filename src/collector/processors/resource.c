/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes attributes of resources:
 *
 *   resource:
 *     attributes:
 *       - {key: deployment.environment, value: production, action: upsert}
 */
#include "collector/processors/actions.h"
#include "collector/registry.h"

const struct kiln_component_type kiln_resource_processor_type = {
    .name = "resource",
    .kind = KILN_PROCESSOR,
    .signals = KILN_TAKES_PROFILES,
    .stability = "beta",
    .settings_size = sizeof(struct kiln_actions_settings),
    .read = kiln_actions_read_attributes,
    .make = kiln_actions_make_for_resources,
};
