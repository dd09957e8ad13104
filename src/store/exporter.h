/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exporter - the end of a pipeline: deliveries into an engine.
 *
 * Threads: as pipeline.h.
 */
#ifndef KILN_STORE_EXPORTER_H
#define KILN_STORE_EXPORTER_H

#include "pipeline/pipeline.h"
#include "store/engine.h"

/* The engine is borrowed: it is closed before the exporter is freed, or nothing is under way. */
/* Where samples that are in the store are counted, and those that are not; NULL: nowhere. */
void kiln_store_exporter_count(struct kiln_consumer *exporter, struct kiln_metric *stored,
                               struct kiln_metric *failed);
KILN_CHECK int kiln_store_exporter_new(struct kiln_engine *engine,
                                       struct kiln_consumer **ret_exporter);
void kiln_store_exporter_free(struct kiln_consumer *exporter);

#endif /* KILN_STORE_EXPORTER_H */
