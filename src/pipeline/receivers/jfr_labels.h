/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jfr_labels - the labels that Pyroscope's Java agent sends beside a recording.
 *
 * In a recording a sample only has the number of its labels (the attribute jfr.context_id).
 *
 * Threads: no state.
 */
#ifndef KILN_PIPELINE_RECEIVERS_JFR_LABELS_H
#define KILN_PIPELINE_RECEIVERS_JFR_LABELS_H

#include "core/builder.h"

/*
 * Puts the labels of a LabelsSnapshot in the place of the numbers.  Numbers it does not know, and
 * labels that are not UTF-8, are left.
 */
KILN_CHECK int kiln_jfr_labels_apply(struct kiln_str snapshot, struct kiln_builder *b,
                                     struct kiln_err *err);

#endif /* KILN_PIPELINE_RECEIVERS_JFR_LABELS_H */
