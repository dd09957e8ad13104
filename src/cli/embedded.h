/* SPDX-License-Identifier: Apache-2.0 */
/*
 * embedded - source text that a compiler put into a program or its debug file, where these are on
 * this machine: they are read by the resolver's confined child, and only if their build id is the
 * one that the profile tells.
 *
 * Threads: only the main thread.
 */
#ifndef KILN_CLI_EMBEDDED_H
#define KILN_CLI_EMBEDDED_H

#include "base/buf.h"
#include "core/batch.h"

struct kiln_embedded {
    const struct kiln_batch *batch; /* borrowed: which files its code is of */
    const char *debug;              /* a file that is asked whatever its build id is; NULL: none */
    struct kiln_resolver *resolver; /* made when first needed */
};

/* Appends the text of a source file.  False: none of the files has it. */
bool kiln_embedded_find(struct kiln_embedded *embedded, struct kiln_str file,
                        struct kiln_buf *text);
void kiln_embedded_done(struct kiln_embedded *embedded);

#endif /* KILN_CLI_EMBEDDED_H */
