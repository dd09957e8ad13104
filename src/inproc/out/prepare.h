/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prepare - what happens to every batch before it leaves the process, whoever it leaves to: names,
 * the attributes of the process, and redaction, in this order, so that nothing comes behind
 * redaction.
 *
 * Threads: from any of our own, between begin and end.
 */
#ifndef KILN_INPROC_OUT_PREPARE_H
#define KILN_INPROC_OUT_PREPARE_H

#include <kiln.h>

#include "base/buf.h"
#include "base/err.h"
#include "core/batch.h"

enum { KILN_IN_GZIP_LEVEL = 1 }; /* what leaves is packed at the program's expense */

/*
 * Who this process is (inproc/out/resource.h) and what must not leave it (KILN_REDACT); before any
 * other thread of ours runs.  Rules that cannot be read are an error, and then nothing leaves:
 * every batch is refused.
 */
KILN_CHECK int kiln_in_prepare_begin(const struct kiln_attribute *stated, uint32_t n_stated,
                                     const char *redact, struct kiln_err *err);
void kiln_in_prepare_end(void);

enum kiln_in_prepare_how {
    KILN_IN_BARE,  /* addresses alone, for a receiver who has the same files; with rules: named */
    KILN_IN_NAMED, /* with names */
};

KILN_CHECK int kiln_in_prepare(struct kiln_batch *batch, enum kiln_in_prepare_how how,
                               struct kiln_batch **ret_batch, struct kiln_err *err);

/* Redaction alone, for who has done the rest; before begin there are no rules. */
KILN_CHECK int kiln_in_prepare_redact(struct kiln_batch *batch, struct kiln_batch **ret_batch,
                                      struct kiln_err *err);
/* Appends a text that is a path, or a word of a command line. */
KILN_CHECK int kiln_in_prepare_word(struct kiln_str word, struct kiln_buf *out);

#endif /* KILN_INPROC_OUT_PREPARE_H */
