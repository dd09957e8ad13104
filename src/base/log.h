/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log - one line a happening: time, level, what, and fields (key=value, or JSON).
 *
 *   kiln_log(log, KILN_LOG_WARN, "block set aside", "path", "%s", path, "bytes", "%zu", n, NULL);
 *
 *   time=2026-03-01T12:00:00.123Z level=warn msg="block set aside" path=blocks/anonymous/x.kb
 * bytes=42
 *
 * Only programs and the parts that a program hands a log to write here; a log may be NULL, and
 * then nothing is written.  A repeated line can be held back: kiln_log_every().
 * Threads: safe from anywhere; a line is one write.
 */
#ifndef KILN_BASE_LOG_H
#define KILN_BASE_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"

enum kiln_log_level { KILN_LOG_DEBUG, KILN_LOG_INFO, KILN_LOG_WARN, KILN_LOG_ERROR };

struct kiln_log;

/* Writes to a descriptor, which stays the caller's. */
KILN_CHECK int kiln_log_new(int fd, enum kiln_log_level level, bool json,
                            struct kiln_log **ret_log);
void kiln_log_free(struct kiln_log *log);

/*
 * The fields are triples of key, printf format and ONE argument for it, ended by a NULL key.
 * Formats may be "%s" (char *), "%.*s" is not allowed; "%d", "%u" (int), "%zu", "%ld", "%lu",
 * "%lld", "%llu" and "%g".
 */
void kiln_log(struct kiln_log *log, enum kiln_log_level level, const char *msg, ...);

/* True at most once in `seconds` for this `state` (zero at first): for lines that would repeat. */
bool kiln_log_every(_Atomic uint64_t *state, uint32_t seconds);

#endif /* KILN_BASE_LOG_H */
