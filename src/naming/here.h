/* SPDX-License-Identifier: Apache-2.0 */
/*
 * here - names, lines and inlined functions for a batch from the programs and libraries of this
 * host, and their debug files.
 *
 * A file counts where it has the build id that the batch tells of it: what was built anew since
 * stays as it is.  Files are read by the confined child of symbol/resolver.h.
 *
 * Threads: one owner at a time.
 */
#ifndef KILN_NAMING_HERE_H
#define KILN_NAMING_HERE_H

#include "base/err.h"
#include "core/batch.h"
#include "symbol/resolver.h"

struct kiln_here;

KILN_CHECK int kiln_here_new(const struct kiln_resolver_opts *opts, struct kiln_here **ret_here,
                             struct kiln_err *err);
void kiln_here_free(struct kiln_here *here);

/*
 * Puts a batch with better names in the place of *batch, unrefs the old one, and returns 1; one
 * that lacks nothing, or of which nothing is known here, stays: 0.  After `timeout_ns` what is not
 * known yet is left out.
 */
KILN_CHECK int kiln_here_name(struct kiln_here *here, struct kiln_batch **batch,
                              uint64_t timeout_ns, struct kiln_err *err);

/* The same once, for who can wait.  Returns 0. */
KILN_CHECK int kiln_name_here(struct kiln_batch **batch, uint64_t timeout_ns, struct kiln_err *err);

#endif /* KILN_NAMING_HERE_H */
