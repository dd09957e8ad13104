/* SPDX-License-Identifier: Apache-2.0 */
/*
 * redact - takes out of a batch what must not leave the process, by prefixes and globs.
 *
 * Rules come one after another, with commas or line ends between them (KILN_REDACT):
 *
 *   PATTERN                   any text: paths, names of functions, keys and values of attributes,
 *                             names of threads
 *   path:PATTERN              files of mappings and sources, and attributes that hold paths or
 *                             command lines
 *   name:PATTERN              functions
 *   thread:PATTERN            threads
 *   attribute:KEY             the attribute goes, key and value; KEY may have * and ? in it
 *   attribute:KEY=PATTERN     where its value fits, that
 *
 * A pattern with * (any text) or ? (any character) has to fit the whole text, which then becomes
 * "[redacted]"; one without is a prefix, and only that part of the text does.  Rules apply in
 * order, each to what the one before left.
 *
 * Threads: rules are constant once read.
 */
#ifndef KILN_INPROC_OUT_REDACT_H
#define KILN_INPROC_OUT_REDACT_H

#include "base/buf.h"
#include "base/err.h"
#include "core/batch.h"

struct kiln_in_redact;

/* KILN_E_LIMIT (16 KiB, 256 rules), KILN_E_PATTERN or -ENOMEM; the error names the rule. */
KILN_CHECK int kiln_in_redact_parse(struct kiln_str text, struct kiln_in_redact **ret_rules,
                                    struct kiln_err *err);
void kiln_in_redact_free(struct kiln_in_redact *rules);

/* `rules` NULL: there are none, and the same batch is given, with one more reference. */
KILN_CHECK int kiln_in_redact_batch(const struct kiln_in_redact *rules, struct kiln_batch *batch,
                                    struct kiln_batch **ret_batch, struct kiln_err *err);

/* Appends a path, or a word of a command line. */
KILN_CHECK int kiln_in_redact_word(const struct kiln_in_redact *rules, struct kiln_str word,
                                   struct kiln_buf *out);

/* Appends the value of an attribute.  False: the attribute goes, or there is no memory for it. */
bool kiln_in_redact_value(const struct kiln_in_redact *rules, struct kiln_str key,
                          struct kiln_str value, struct kiln_buf *out);

#endif /* KILN_INPROC_OUT_REDACT_H */
