/* SPDX-License-Identifier: Apache-2.0 */
#include "inproc/out/queue.h"

#include <errno.h>

#include "base/gzip.h"
#include "base/mem.h"
#include "codec/otlp.h"
#include "core/otlp_size.h"
#include "core/split.h"
#include "inproc/out/prepare.h"

void kiln_in_queue_init(struct kiln_in_queue *queue, size_t bytes_max)
{
    *queue = (struct kiln_in_queue){.bytes_max = bytes_max};
    queue->last = &queue->first;
}

void kiln_in_queue_drop(struct kiln_in_queue *queue)
{
    struct kiln_in_request *first = queue->first;

    if (!first)
        return;
    queue->first = first->next;
    if (!queue->first)
        queue->last = &queue->first;
    queue->bytes -= first->len;
    kiln_free(first->body);
    kiln_free(first);
}

void kiln_in_queue_done(struct kiln_in_queue *queue)
{
    while (queue->first)
        kiln_in_queue_drop(queue);
}

/* What is larger than all of the room goes through alone. */
static void append(struct kiln_in_queue *queue, struct kiln_in_request *request)
{
    while (queue->first && queue->bytes + request->len > queue->bytes_max) {
        kiln_in_queue_drop(queue);
        queue->dropped++;
    }
    *queue->last = request;
    queue->last = &request->next;
    queue->bytes += request->len;
}

static int encode(const struct kiln_batch *batch, size_t request_max, bool gzip,
                  struct kiln_in_request *request, struct kiln_err *err)
{
    struct kiln_buf plain, packed;
    int r;

    kiln_buf_init(&plain, request_max);
    kiln_buf_init(&packed, request_max + (1u << 16));
    r = kiln_otlp_encode(batch, NULL, &plain, err);
    if (r == 0 && gzip)
        r = kiln_gzip(KILN_IN_GZIP_LEVEL, kiln_buf_str(&plain), &packed);
    if (r == 0)
        kiln_buf_take(gzip ? &packed : &plain, &request->body, &request->len);
    request->profiles = batch->n_profiles;
    kiln_buf_done(&plain);
    kiln_buf_done(&packed);
    return r;
}

static int put_one(struct kiln_in_queue *queue, const struct kiln_batch *batch, size_t request_max,
                   bool gzip, struct kiln_err *err)
{
    struct kiln_in_request *request = kiln_calloc(1, sizeof(*request));
    int r = request ? encode(batch, request_max, gzip, request, err) : -ENOMEM;

    if (r < 0) {
        kiln_free(request);
        return kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    }
    append(queue, request);
    return 0;
}

int kiln_in_queue_put(struct kiln_in_queue *queue, const struct kiln_batch *batch,
                      size_t request_max, bool gzip, struct kiln_err *err)
{
    const struct kiln_split_opts opts = {.bytes_max = request_max};
    struct kiln_batch **parts;
    uint32_t n;
    int r;

    if (kiln_otlp_fits(batch, request_max))
        return put_one(queue, batch, request_max, gzip, err);
    r = kiln_split(batch, &opts, &parts, &n, err);
    if (r < 0)
        return r;
    for (uint32_t i = 0; i < n; i++) {
        if (r == 0)
            r = put_one(queue, parts[i], request_max, gzip, err);
        kiln_batch_unref(parts[i]);
    }
    kiln_free(parts);
    return r;
}
