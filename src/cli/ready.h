/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ready - the file that tells tests and scripts that a program is ready, and on which ports: JSON
 * that begins with its process id.
 *
 * Threads: one owner.
 */
#ifndef KILN_CLI_READY_H
#define KILN_CLI_READY_H

#include "base/json.h"

struct kiln_ready {
    struct kiln_json_out w; /* where members are added */
    struct kiln_buf text;
};

void kiln_ready_begin(struct kiln_ready *ready);
/* Writes it, all at once; `path` NULL: nobody wants it. */
KILN_CHECK int kiln_ready_end(struct kiln_ready *ready, const char *path, struct kiln_err *err);

#endif /* KILN_CLI_READY_H */
