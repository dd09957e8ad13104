/* SPDX-License-Identifier: Apache-2.0 */
/*
 * own - profiles of the collector itself.
 *
 * libkiln takes them, as of any program, where it was put in front of this one: `kiln collector`
 * does that itself, before anything starts, where a component says that it wants them
 * (kiln_graph_want_own()).  It serves them as /debug/pprof on the address in KILN_PPROF_LISTEN.
 *
 * Threads: no state.
 */
#ifndef KILN_COLLECTOR_OWN_H
#define KILN_COLLECTOR_OWN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "base/err.h"

/* The server that has them, for net/client.h and scrapers; fails with what to do about it. */
KILN_CHECK int kiln_own_server(char ret_server[], size_t size, struct kiln_err *err);
/* Whether libkiln is in this process. */
bool kiln_own_is_there(void);

#endif /* KILN_COLLECTOR_OWN_H */
