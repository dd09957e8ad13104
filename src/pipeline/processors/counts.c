/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/processors/counts.h"

#include "base/clock.h"

static struct kiln_metric *metric(const struct kiln_processor_opts *opts,
                                  enum kiln_metric_kind kind, const char *name, const char *help)
{
    return kiln_metric_get(opts->metrics, kind, name, help,
                           KILN_LABELS("otel_signal", "profiles", "processor", opts->id));
}

struct kiln_processor_counts kiln_processor_counts(const struct kiln_processor_opts *opts)
{
    return (struct kiln_processor_counts){
        .incoming = metric(opts, KILN_COUNTER, "otelcol_processor_incoming_items",
                           "Samples that came to the processor."),
        .outgoing = metric(opts, KILN_COUNTER, "otelcol_processor_outgoing_items",
                           "Samples that the processor handed on."),
    };
}

struct kiln_metric *kiln_processor_duration(const struct kiln_processor_opts *opts)
{
    return metric(opts, KILN_HISTOGRAM, "otelcol_processor_internal_duration",
                  "How long the processor worked on one batch, in seconds.");
}

void kiln_processor_took(struct kiln_metric *duration, uint64_t since_ns)
{
    if (kiln_metric_is_kept(duration))
        kiln_metric_observe(duration, (double)(kiln_clock_mono_ns() - since_ns) / 1e9);
}

void kiln_processor_count(struct kiln_metric *metric, const struct kiln_delivery *delivery)
{
    if (delivery->signal == KILN_SIGNAL_PROFILES)
        kiln_metric_add(metric, (int64_t)kiln_delivery_items(delivery));
}
