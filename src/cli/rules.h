/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules - the rules of redaction that settings name: the file of --redact, or else the key
 * `redaction` of the configuration.
 *
 * Threads: only the main thread.
 */
#ifndef KILN_CLI_RULES_H
#define KILN_CLI_RULES_H

#include "cli/settings.h"
#include "core/redact.h"

/* Reads them anew; NULL: there are none. */
KILN_CHECK int kiln_rules_read(const struct kiln_server_config *config,
                               struct kiln_redact **ret_rules, struct kiln_err *err);

#endif /* KILN_CLI_RULES_H */
