/* SPDX-License-Identifier: Apache-2.0 */
/*
 * aside - calls on files that may never return: a file system whose server is another program or
 * another machine answers when it likes (host/mounts.h says which these are).
 *
 * A thread aside makes the call, and whoever wants it waits with patience: a quarter of a second,
 * and of all time no more than a tenth.  A call that takes longer is left to its thread, and what
 * it brings is thrown away.  There are few such threads; where all of them are stuck nobody waits
 * at all.  They are there again as soon as the server is.
 *
 * Threads: from anywhere.
 */
#ifndef KILN_HOST_ASIDE_H
#define KILN_HOST_ASIDE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/attr.h"

struct kiln_aside;
struct kiln_metrics;

KILN_CHECK int kiln_aside_new(struct kiln_metrics *metrics, struct kiln_aside **ret_aside);
/* Waits for nobody: a thread that is stuck cleans up behind itself. */
void kiln_aside_free(struct kiln_aside *aside); /* may be NULL */

/* Waits for so long, and with no other limit: where the machine is known to be slow. */
void kiln_aside_be_patient(struct kiln_aside *aside, uint64_t patience_ns);

/* As kiln_open_beneath(); -ETIMEDOUT: it took too long; -EBUSY: nobody is there to do it. */
KILN_CHECK int kiln_aside_open(struct kiln_aside *aside, int dir, const char *path,
                               uint64_t resolve, struct stat *ret_st);
/* Reads from a place in a file on, as pread(); how much, or the same errors. */
KILN_CHECK int64_t kiln_aside_read(struct kiln_aside *aside, int fd, uint64_t offset, void *to,
                                   size_t n);
/* Closes such a file some time: also that may ask the server. */
void kiln_aside_close(struct kiln_aside *aside, int fd);

/* Calls that were given up so far, for the reader of an answer that may lack them. */
uint64_t kiln_aside_given_up(struct kiln_aside *aside);

#endif /* KILN_HOST_ASIDE_H */
