/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log - one line per event: time, level, message and fields, as logfmt, JSON or plain text.
 *
 *   kiln_log(log, KILN_LOG_WARN, "block set aside", "path", "%s", path, "bytes", "%zu", n, NULL);
 *
 *   time=2026-03-01T12:00:00.123Z level=warn msg="block set aside" path=blocks/x.kb bytes=42
 *   {"time":"2026-03-01T12:00:00.123Z","level":"warn","msg":"block set aside",...}
 *   12:00:00 warning: block set aside; path: blocks/x.kb; bytes: 42
 *
 * Plain text is for terminals and may change; its time is local. Programs read the other two.
 *
 * Texts may come from strangers: control characters, line ends and what would turn the direction of
 * writing are escaped, a text is cut after 1,024 bytes.
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

/* "debug", "info", "warn", "error"; KILN_E_UNKNOWN for any other word. */
KILN_CHECK int kiln_log_level_parse(const char *word, enum kiln_log_level *ret_level);

enum kiln_log_form { KILN_LOG_LOGFMT, KILN_LOG_JSON, KILN_LOG_PLAIN };

/* "logfmt", "json", "plain"; KILN_E_UNKNOWN for any other word. */
KILN_CHECK int kiln_log_form_parse(const char *word, enum kiln_log_form *ret_form);

struct kiln_log;

/* Writes to a descriptor, which stays the caller's. */
KILN_CHECK int kiln_log_new(int fd, enum kiln_log_level level, enum kiln_log_form form,
                            struct kiln_log **ret_log);
void kiln_log_free(struct kiln_log *log);
/* From the next line on. */
void kiln_log_change(struct kiln_log *log, enum kiln_log_level level, enum kiln_log_form form);

/*
 * The fields are triples of key, printf format and ONE argument for it, ended by a NULL key.
 * A format is one conversion, "%s" (char *), "%d", "%u" (int), "%zu", "%ld", "%lu", "%lld", "%llu",
 * "%g", "%.3f"..., and nothing beside it; "%.*s" is not allowed.
 */
void kiln_log(struct kiln_log *log, enum kiln_log_level level, const char *msg, ...);

/* True at most once in `seconds` for this `state` (zero at first): for lines that would repeat. */
bool kiln_log_every(_Atomic uint64_t *state, uint32_t seconds);

#endif /* KILN_BASE_LOG_H */
