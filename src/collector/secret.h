/* SPDX-License-Identifier: Apache-2.0 */
/*
 * secret - a text that stands in the configuration, or in a file that is read again when it
 * changes: tokens, passwords.
 *
 * A file that cannot be read any more leaves the text as it was.
 *
 * Threads: safe from anywhere once it is set up.
 */
#ifndef KILN_COLLECTOR_SECRET_H
#define KILN_COLLECTOR_SECRET_H

#include <pthread.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/err.h"

struct kiln_secret {
    pthread_mutex_t lock; /* of all below */
    const char *path;     /* NULL: the text never changes */
    struct timespec changed;
    off_t size;
    struct kiln_buf text;
};

/* Of a file where `path` is not NULL, else `text` (borrowed; NULL: empty). */
KILN_CHECK int kiln_secret_init(struct kiln_secret *secret, const char *path, const char *text,
                                struct kiln_err *err);
void kiln_secret_done(struct kiln_secret *secret);
/* Appends the text as it is now, without white space around it. */
KILN_CHECK int kiln_secret_add(struct kiln_secret *secret, struct kiln_buf *out);

/* Whether two texts are the same; how long that takes tells nothing of what they have in common. */
bool kiln_secret_same(struct kiln_str a, struct kiln_str b);

#endif /* KILN_COLLECTOR_SECRET_H */
