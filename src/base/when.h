/* SPDX-License-Identifier: Apache-2.0 */
/*
 * when - points in time as people and programs write them.
 *
 *   2026-03-01T12:00:00.5Z, 2026-03-01 12:00:00, 2026-03-01T12:00+01:00, 2026-03-01   (UTC if
 * unsaid) 1772366400, 1772366400.5, 1772366400000, ...   Unix time: seconds, or ms, us, ns by its
 * size now, now-1h, -90m                              from the time at hand
 *
 * Threads: no state.
 */
#ifndef KILN_BASE_WHEN_H
#define KILN_BASE_WHEN_H

#include "base/buf.h"
#include "base/str.h"

/* Unix time in nanoseconds.  Returns 0, KILN_E_MALFORMED or -ERANGE. */
KILN_CHECK int kiln_when_parse(struct kiln_str text, uint64_t now_ns, uint64_t *ret_ns);

/* "2026-03-01T12:00:00Z", with three, six or nine digits of a second where it needs them. */
void kiln_when_format(uint64_t ns, struct kiln_buf *out);

#endif /* KILN_BASE_WHEN_H */
