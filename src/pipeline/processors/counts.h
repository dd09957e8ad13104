/* SPDX-License-Identifier: Apache-2.0 */
/*
 * counts - what went into a processor and what came out of it, under the Collector's names:
 * otelcol_processor_{incoming,outgoing}_items, where items are samples; and how long it took,
 * otelcol_processor_internal_duration.
 *
 * Threads: safe from anywhere.
 */
#ifndef KILN_PIPELINE_PROCESSORS_COUNTS_H
#define KILN_PIPELINE_PROCESSORS_COUNTS_H

#include "pipeline/pipeline.h"

/* Who a processor is, and what all of them are made with; borrowed. */
struct kiln_processor_opts {
    const char *id; /* "batch/second" */
    struct kiln_consumer *next;
    struct kiln_metrics *metrics; /* NULL: not measured */
    struct kiln_log *log;
};

struct kiln_processor_counts {
    struct kiln_metric *incoming, *outgoing;
};

struct kiln_processor_counts kiln_processor_counts(const struct kiln_processor_opts *opts);

/* Of a delivery of profiles; the others are not counted, as nobody looks into them. */
void kiln_processor_count(struct kiln_metric *metric, const struct kiln_delivery *delivery);

/* Of those that work on each by itself: since then (CLOCK_MONOTONIC). */
struct kiln_metric *kiln_processor_duration(const struct kiln_processor_opts *opts);
void kiln_processor_took(struct kiln_metric *duration, uint64_t since_ns);

#endif /* KILN_PIPELINE_PROCESSORS_COUNTS_H */
