/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent_confine - what `kiln agent` gives up: before it reads anything, all privileges but those
 * that profiling needs (host/grants.h); when it runs, all system calls but those that it makes, so
 * that whoever gets hold of it can load nothing into the kernel, trace nobody and mount nothing.
 *
 * A server that root started has the same filter, without the calls that profile (server_user.h).
 *
 * Threads: give_up before there are others; confine holds for all.
 */
#ifndef KILN_CLI_AGENT_CONFINE_H
#define KILN_CLI_AGENT_CONFINE_H

#include "base/err.h"
#include "base/log.h"

/* Says what is missing of what it could use, once each. */
KILN_CHECK int kiln_agent_give_up(struct kiln_log *log, struct kiln_err *err);
/* Where the kernel has no such filter, that is said, and it runs without. */
void kiln_agent_confine(struct kiln_log *log);
void kiln_server_confine(struct kiln_log *log);

#endif /* KILN_CLI_AGENT_CONFINE_H */
