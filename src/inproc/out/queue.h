/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue - encoded requests that wait to be sent, oldest first, no more than so many bytes.
 *
 * Threads: one owner at a time.
 */
#ifndef KILN_INPROC_OUT_QUEUE_H
#define KILN_INPROC_OUT_QUEUE_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "core/batch.h"

struct kiln_in_request {
    struct kiln_in_request *next;
    char *body; /* an ExportProfilesServiceRequest */
    size_t len;
    uint32_t profiles;
};

struct kiln_in_queue {
    struct kiln_in_request *first, **last;
    size_t bytes, bytes_max;
    uint64_t dropped; /* requests, to make room */
};

void kiln_in_queue_init(struct kiln_in_queue *queue, size_t bytes_max);
void kiln_in_queue_done(struct kiln_in_queue *queue);

/* Encodes a batch, in several requests where it is larger than `request_max` before gzip. */
KILN_CHECK int kiln_in_queue_put(struct kiln_in_queue *queue, const struct kiln_batch *batch,
                                 size_t request_max, bool gzip, struct kiln_err *err);
/* Removes the first. */
void kiln_in_queue_drop(struct kiln_in_queue *queue);

#endif /* KILN_INPROC_OUT_QUEUE_H */
