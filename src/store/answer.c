/* SPDX-License-Identifier: Apache-2.0 */
/* Answers as their askers get rid of them: arrays are their own, everything else is in the arena.
 */
#include "store/engine.h"

void kiln_merged_free(struct kiln_merged *merged)
{
    if (!merged)
        return;
    kiln_flame_free(merged->flame);
    kiln_batch_unref(merged->profile);
    kiln_free(merged);
}

void kiln_timeline_free(struct kiln_timeline *timeline)
{
    if (!timeline)
        return;
    kiln_free(timeline->series);
    kiln_free(timeline->points);
    kiln_free(timeline->exemplars);
    kiln_arena_done(&timeline->arena);
    kiln_free(timeline);
}

void kiln_labels_free(struct kiln_labels *labels)
{
    if (!labels)
        return;
    kiln_free(labels->rows);
    kiln_arena_done(&labels->arena);
    kiln_free(labels);
}

void kiln_moments_free(struct kiln_moments *moments)
{
    if (!moments)
        return;
    kiln_batch_unref(moments->batch);
    kiln_free(moments);
}

void kiln_found_free(struct kiln_found *found)
{
    if (!found)
        return;
    kiln_free(found->rows);
    kiln_arena_done(&found->arena);
    kiln_free(found);
}
