/* SPDX-License-Identifier: Apache-2.0 */
#include "core/flame.h"

void kiln_flame_free(struct kiln_flame *flame)
{
    if (!flame)
        return;
    kiln_free(flame->names);
    kiln_free(flame->nodes);
    kiln_free(flame->functions);
    kiln_arena_done(&flame->arena);
    kiln_free(flame);
}
