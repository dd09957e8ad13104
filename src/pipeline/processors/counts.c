/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/processors/counts.h"

static struct kiln_metric *counter(const struct kiln_processor_opts *opts, const char *name,
                                   const char *help)
{
    return kiln_metric_get(opts->metrics, KILN_COUNTER, name, help,
                           KILN_LABELS("otel_signal", "profiles", "processor", opts->id));
}

struct kiln_processor_counts kiln_processor_counts(const struct kiln_processor_opts *opts)
{
    return (struct kiln_processor_counts){
        .incoming = counter(opts, "otelcol_processor_incoming_items",
                            "Samples that came to the processor."),
        .outgoing = counter(opts, "otelcol_processor_outgoing_items",
                            "Samples that the processor handed on."),
    };
}

void kiln_processor_count(struct kiln_metric *metric, const struct kiln_delivery *delivery)
{
    if (delivery->signal == KILN_SIGNAL_PROFILES)
        kiln_metric_add(metric, (int64_t)kiln_delivery_items(delivery));
}
