/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ingest_name - the parameters of Pyroscope's /ingest: application names and times.
 *
 * Threads: no state.
 */
#ifndef KILN_PIPELINE_RECEIVERS_INGEST_NAME_H
#define KILN_PIPELINE_RECEIVERS_INGEST_NAME_H

#include "pipeline/receivers/tags.h"

/*
 * Reads "shop.cart{region=eu,pod=a}": an application of letters, digits and "_.-/", and labels,
 * whose names are letters, digits, "_" and ".", and whose values run to the next "," or "}" without
 * any quoting.  White space around all of them is cut off.  *ret_app and the tags borrow.
 */
KILN_CHECK int kiln_ingest_name_parse(struct kiln_str text, struct kiln_str *ret_app,
                                      struct kiln_tags *tags, struct kiln_err *err);

/*
 * A time as Pyroscope's clients write it, in Unix nanoseconds: YYYYMMDD, or a number of seconds,
 * of milliseconds (13 digits), microseconds (16) or nanoseconds (19), or "now-1h30m" with the units
 * s, m, min, h, d, w, M, mon, y.  Anything else is `now_ns`.
 */
uint64_t kiln_ingest_time(struct kiln_str text, uint64_t now_ns);

#endif /* KILN_PIPELINE_RECEIVERS_INGEST_NAME_H */
