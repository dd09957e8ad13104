/* SPDX-License-Identifier: Apache-2.0 */
/*
 * when - points in time as people and programs write them.
 *
 *   2026-03-01T12:00:00.5Z, 2026-03-01 12:00:00, 2026-03-01T12:00+01:00, 2026-03-01
 *       in UTC where nothing else is said;
 *
 *   1772366400, 1772366400.5, 1772366400000
 *       Unix time in seconds, or ms, us, ns by its size;
 *
 *   now, now-1h, -90m
 *       from the time at hand.
 *
 * Threads: no state.
 */
#ifndef KILN_BASE_WHEN_H
#define KILN_BASE_WHEN_H

#include "base/buf.h"
#include "base/str.h"

/* Unix time in nanoseconds.  Returns 0, KILN_E_MALFORMED or -ERANGE. */
KILN_CHECK int kiln_when_parse(struct kiln_str text, uint64_t now_ns, uint64_t *ret_ns);

/*
 * The same in the words of Pyroscope's older endpoints: 20260301 (a day), whole numbers whose count
 * of digits says the unit (13: ms, 16: us, 19: ns, any other: s), and chains such as now-1h30m with
 * s, m or min, h, d, w, M or mon (30 days), y; an unknown unit adds nothing, any other reference
 * than now is now, and "_", "," and blanks are passed over.  Dates with dashes are as above.
 */
KILN_CHECK int kiln_when_parse_legacy(struct kiln_str text, uint64_t now_ns, uint64_t *ret_ns);

/*
 * The time in a file name: "cpu-20260301T120000Z.pb.gz", "heap_2026-03-01_12-00-00.pb",
 * "cpu-1772366400123.pb.gz".  Returns 0 or KILN_E_NOMATCH.
 */
KILN_CHECK int kiln_when_in_name(struct kiln_str name, uint64_t *ret_ns);

/*
 * The date in UTC; months and days count from 1.  It is computed here because gmtime_r() takes the
 * time zone's lock and reads TZ: libkiln runs inside programs that may fork, or change their
 * environment, at that moment.
 */
struct kiln_utc {
    uint32_t year, month, day, hour, minute, second;
};
struct kiln_utc kiln_when_utc(uint64_t ns);

/* "2026-03-01T12:00:00Z", with three, six or nine digits of a second where it needs them. */
void kiln_when_format(uint64_t ns, struct kiln_buf *out);

#endif /* KILN_BASE_WHEN_H */
