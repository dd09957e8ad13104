/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent - the parts of `kiln agent`, put together and taken apart again.
 *
 *   host profiler ─▶ redaction (where there are rules) ─▶ OTLP exporter ─▶ a receiver
 *                                                             └─ spool
 *
 * Threads: the main thread makes and ends it; pages are served by the server's workers.
 */
#ifndef KILN_CLI_AGENT_H
#define KILN_CLI_AGENT_H

#include "cli/settings.h"

/* Runs until a signal says stop.  `flags` are those the settings were made with.  Returns an exit
 * code. */
int kiln_agent(const struct kiln_server_config *config, const struct kiln_settings *flags);

#endif /* KILN_CLI_AGENT_H */
