/* SPDX-License-Identifier: Apache-2.0 */
/*
 * name_here - names, lines and inlined functions for a batch from the programs and libraries of
 * this host, and their debug files.
 *
 * A file counts where it has the build id that the batch tells of it: what was built anew since
 * stays as it is.  Files are read by the confined child of symbol/resolver.h.
 *
 * Threads: only the main thread.
 */
#ifndef KILN_CLI_NAME_HERE_H
#define KILN_CLI_NAME_HERE_H

#include "base/err.h"
#include "core/batch.h"

/*
 * Puts a batch with better names in the place of *batch, and unrefs the old one; one that lacks
 * nothing, or of which nothing is known here, stays.  After `timeout_ns` what is not known yet is
 * left out.
 */
KILN_CHECK int kiln_name_here(struct kiln_batch **batch, uint64_t timeout_ns, struct kiln_err *err);

#endif /* KILN_CLI_NAME_HERE_H */
