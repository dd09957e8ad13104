/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fanout - one delivery to several consumers, which share its batch and its body.
 *
 * It ends when all of them have ended: well, where all did; else as the one that went worst, and
 * one that may be tried again counts as worse than one that may not, so that nothing is lost where
 * something may come twice.
 *
 * Threads: consume() from anywhere.
 */
#ifndef KILN_PIPELINE_FANOUT_H
#define KILN_PIPELINE_FANOUT_H

#include "pipeline/pipeline.h"

/* The consumers are borrowed. */
KILN_CHECK int kiln_fanout_new(struct kiln_consumer *const *next, uint32_t n,
                               struct kiln_consumer **ret_fanout);
void kiln_fanout_free(struct kiln_consumer *fanout);

#endif /* KILN_PIPELINE_FANOUT_H */
