/* SPDX-License-Identifier: Apache-2.0 */
/*
 * texts - source text that compilers embedded in the debug files of a depot, by the name that
 * profiles give to a source file.
 *
 * Files are read by a confined child, which is started when it is first needed and ends when nobody
 * asks for some time.  One is asked at a time.
 *
 * Threads: everything may be called from anywhere at once.
 */
#ifndef KILN_NAMING_TEXTS_H
#define KILN_NAMING_TEXTS_H

#include "base/buf.h"
#include "naming/depot.h"

struct kiln_texts;

struct kiln_texts_opts {
    struct kiln_depot *depot; /* borrowed */
    const char *program;      /* of the child; NULL: this very program */
    struct kiln_log *log;
};

KILN_CHECK int kiln_texts_new(const struct kiln_texts_opts *opts, struct kiln_texts **ret_texts,
                              struct kiln_err *err);
/* Before the depot is closed. */
void kiln_texts_free(struct kiln_texts *texts);

/*
 * Appends the text of a source file of the code with this build id, from the tenant's debug files
 * or those that were fetched for all.  It has no zero byte, and at most 4 MiB.  -ENOENT: no such
 * file has it.
 */
KILN_CHECK int kiln_texts_read(struct kiln_texts *texts, const char *tenant,
                               struct kiln_str build_id, struct kiln_str file,
                               struct kiln_buf *out);

#endif /* KILN_NAMING_TEXTS_H */
