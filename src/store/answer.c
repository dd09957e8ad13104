/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers as their askers get rid of them: arrays are their own, everything else is in the arena;
 * and what of a question is the same for every engine.
 */
#include "store/engine.h"

#include <stdlib.h>

#include "core/type.h"

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

static int by_text(const void *a, const void *b)
{
    return kiln_str_cmp(*(const struct kiln_str *)a, *(const struct kiln_str *)b);
}

bool kiln_question_has(const struct kiln_question *question, const struct kiln_series *series)
{
    if (!question->type.len)
        return true;
    if (!question->n_parts ||
        (question->n_whole && bsearch(&series->service, question->whole, question->n_whole,
                                      sizeof(*question->whole), by_text)))
        return kiln_str_eq(series->type, question->type);
    for (uint32_t i = 0; i < question->n_parts; i++) {
        if (kiln_type_id_is(series->type, question->parts[i]))
            return true;
    }
    return false;
}
