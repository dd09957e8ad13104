/* SPDX-License-Identifier: Apache-2.0 */
/*
 * otlp_target - where an exporter sends, out of its options (codec/otlp_target.h).
 *
 * Threads: no state.
 */
#ifndef KILN_PIPELINE_EXPORTERS_OTLP_TARGET_H
#define KILN_PIPELINE_EXPORTERS_OTLP_TARGET_H

#include "codec/otlp_target.h"
#include "pipeline/exporters.h"

/* As kiln_otlp_target_find(). */
KILN_CHECK int kiln_otlp_target_read(const struct kiln_otlp_export_opts *opts,
                                     char *(*variable)(const char *name),
                                     struct kiln_otlp_target *target, struct kiln_err *err);

#endif /* KILN_PIPELINE_EXPORTERS_OTLP_TARGET_H */
