/* SPDX-License-Identifier: Apache-2.0 */
/*
 * telemetry - what `service::telemetry` of a configuration says about the collector's own log and
 * metrics.
 *
 * Threads: constant once read; texts live as long as the configuration.
 */
#ifndef KILN_COLLECTOR_TELEMETRY_H
#define KILN_COLLECTOR_TELEMETRY_H

#include "base/config.h"
#include "base/log.h"

enum { KILN_TELEMETRY_ADDRESS_BYTES = 280 };

struct kiln_telemetry {
    enum kiln_log_level log_level;
    enum kiln_log_form log_form;
    bool details;      /* metrics::level is detailed */
    bool metrics_said; /* the address was said, so that it has to be free */
    char metrics_address[KILN_TELEMETRY_ADDRESS_BYTES]; /* empty: no metrics */
    /* The first thing that was said and is not done; NULL: none. */
    const struct kiln_node *left_out;
};

/* `root` is the whole configuration. */
KILN_CHECK int kiln_telemetry_read(const struct kiln_node *root, struct kiln_telemetry *ret,
                                   struct kiln_err *err);

#endif /* KILN_COLLECTOR_TELEMETRY_H */
