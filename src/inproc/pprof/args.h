/* SPDX-License-Identifier: Apache-2.0 */
/*
 * args - the parameters that profiles take in their query.
 *
 * Threads: no state.
 */
#ifndef KILN_INPROC_PPROF_ARGS_H
#define KILN_INPROC_PPROF_ARGS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

struct kiln_in_args {
    bool has_seconds; /* it was there, right or wrong */
    int64_t seconds;  /* 0 where it is no positive number */
    int64_t debug;    /* 0 where it is no number */
};

/* Never fails: what cannot be read is as if it was not there, and gc and others mean nothing here.
 */
void kiln_in_args_parse(struct kiln_str query, struct kiln_in_args *ret);

#endif /* KILN_INPROC_PPROF_ARGS_H */
