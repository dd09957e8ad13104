/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text - profiles for people (?debug=1, ?debug=2), in the old text formats of pprof, which `go tool
 * pprof` reads as well.
 *
 * Threads: no state.
 */
#ifndef KILN_INPROC_PPROF_TEXT_H
#define KILN_INPROC_PPROF_TEXT_H

#include "inproc/pprof/source.h"

/* The batch is one of `which`, with the columns that shape.h gives it.  0 or a negative code. */
KILN_CHECK int kiln_in_text(enum kiln_in_profile which, const struct kiln_batch *batch,
                            int64_t debug, struct kiln_buf *out);

#endif /* KILN_INPROC_PPROF_TEXT_H */
