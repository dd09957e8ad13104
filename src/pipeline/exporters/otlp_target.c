/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/exporters/otlp_target.h"

int kiln_otlp_target_read(const struct kiln_otlp_export_opts *opts,
                          char *(*variable)(const char *name), struct kiln_otlp_target *target,
                          struct kiln_err *err)
{
    const struct kiln_otlp_target_opts stated = {
        .endpoint = opts->endpoint,
        .protocol = opts->protocol,
        .compression = opts->compression,
        .headers = opts->headers,
        .ca_file = opts->ca_file,
        .cert_file = opts->cert_file,
        .key_file = opts->key_file,
        .insecure = opts->insecure,
        .checks_peer = opts->checks_peer,
        .timeout_ns = opts->timeout_ns,
    };

    return kiln_otlp_target_find(&stated, variable, target, err);
}
