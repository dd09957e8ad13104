/* SPDX-License-Identifier: Apache-2.0 */
/*
 * when - points in time as people and files write them.
 *
 * Threads: no state.
 */
#ifndef KILN_CLI_WHEN_H
#define KILN_CLI_WHEN_H

#include "base/buf.h"

/*
 * "now", "-1h30m" (so long before `now_ns`), "2026-03-01T12:00:00Z" (also with a fraction, an
 * offset or a space for the T; without an offset: UTC), "2026-03-01", or Unix time in seconds,
 * milliseconds, microseconds or nanoseconds, whichever lies in this century.
 * Returns 0 or KILN_E_MALFORMED.
 */
KILN_CHECK int kiln_when_parse(struct kiln_str text, uint64_t now_ns, uint64_t *ret_ns);

/*
 * The time in a file name: "cpu-20260301T120000Z.pb.gz", "heap_2026-03-01_12-00-00.pb",
 * "cpu-1772366400123.pb.gz".  Returns 0 or KILN_E_NOMATCH.
 */
KILN_CHECK int kiln_when_in_name(struct kiln_str name, uint64_t *ret_ns);

/* A number as Unix time, in whatever unit lies in this century; 0 where none does. */
uint64_t kiln_when_of_number(uint64_t number);

/* "2026-03-01T12:00:00Z", with milliseconds where there are any. */
void kiln_when_format(uint64_t ns, struct kiln_buf *out);

#endif /* KILN_CLI_WHEN_H */
