/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gperftools - binary CPU profiles as gperftools writes them (CPUPROFILE=file), and the variant of
 * its Java agent; in only.
 *
 * What comes out is what `go tool pprof` makes of such a file: samples/count and cpu/nanoseconds,
 * return addresses moved back into their call, the frames of the signal handler taken away, and the
 * mappings of the process with pprof's corrections.
 *
 * Threads: no state.
 */
#ifndef KILN_CODEC_GPERFTOOLS_H
#define KILN_CODEC_GPERFTOOLS_H

#include "base/err.h"
#include "core/builder.h"

/* By the five words of the header, in any size and order of bytes. */
bool kiln_gperftools_detect(struct kiln_str content);

/*
 * Adds one resource with the two profiles.  The batch points into `raw`, which has to live as long.
 */
KILN_CHECK int kiln_gperftools_decode(struct kiln_str raw, struct kiln_builder *b,
                                      struct kiln_err *err);

#endif /* KILN_CODEC_GPERFTOOLS_H */
