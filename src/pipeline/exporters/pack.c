/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What came as OTLP protobuf goes on as it came, and so do other signals as JSON.  Where only the
 * compression is another one the bytes are compressed anew, and still not decoded.
 */
#include <errno.h>

#include "base/clock.h"
#include "base/mem.h"
#include "core/otlp_size.h"
#include "pipeline/exporters/encode.h"

#define CONTENT_MAX ((size_t)256 << 20) /* of a body that is compressed anew */

/* Whether a receiver will find it no larger than it may be. */
static bool fits(const struct kiln_delivery *delivery, size_t max)
{
    size_t hint;

    if (delivery->body_compression == KILN_PLAIN)
        return delivery->body.len <= max;
    if (delivery->seal)
        return delivery->seal->content_bytes <= max;
    hint = kiln_decompressed_hint(delivery->body_compression, delivery->body);
    return (hint && hint <= max && delivery->body.len <= max) ||
           kiln_otlp_fits(delivery->batch, max);
}

bool kiln_export_passes(const struct kiln_delivery *delivery, const struct kiln_export_shape *shape)
{
    return delivery->body.len && delivery->body_is_current && !shape->json &&
           fits(delivery, shape->request_max);
}

static int recompress(const struct kiln_delivery *delivery, const struct kiln_export_shape *shape,
                      struct kiln_export_item *item, struct kiln_err *err)
{
    struct kiln_buf plain, packed;
    struct kiln_str content = delivery->body;
    int r = 0;

    kiln_buf_init(&plain, CONTENT_MAX);
    kiln_buf_init(&packed, CONTENT_MAX);
    if (delivery->body_compression != KILN_PLAIN) {
        r = kiln_decompress(delivery->body_compression, content, &plain, err);
        content = kiln_buf_str(&plain);
    }
    if (r == 0 && shape->compression != KILN_PLAIN)
        r = kiln_compress(shape->compression, shape->level, content, &packed);
    if (r == 0)
        kiln_buf_take(shape->compression == KILN_PLAIN ? &plain : &packed, &item->body, &item->len);
    kiln_buf_done(&plain);
    kiln_buf_done(&packed);
    return r;
}

static int forward(const struct kiln_delivery *delivery, const struct kiln_export_shape *shape,
                   struct kiln_export_item **ret_item, struct kiln_err *err)
{
    struct kiln_export_item *item = kiln_calloc(1, sizeof(*item));
    int r = item ? 0 : -ENOMEM;

    if (r < 0)
        return kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    item->head = (struct kiln_spooled){.compression = shape->compression,
                                       .json = delivery->body_is_json,
                                       .profiles = kiln_delivery_profiles(delivery),
                                       .samples = kiln_delivery_items(delivery),
                                       .made_ns = kiln_clock_unix_ns()};
    if (delivery->body_compression == shape->compression) {
        item->body = (char *)(uintptr_t)delivery->body.ptr;
        item->len = delivery->body.len;
        item->borrowed = true;
    } else {
        r = recompress(delivery, shape, item, err);
    }
    if (r < 0) {
        kiln_export_item_free(item);
        return kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    }
    *ret_item = item;
    return 0;
}

int kiln_export_pack(const struct kiln_delivery *delivery, const struct kiln_export_shape *shape,
                     struct kiln_export_item **ret_items, struct kiln_err *err)
{
    *ret_items = NULL;
    if (!delivery->batch && !delivery->body.len)
        return 0;
    if (!delivery->batch || kiln_export_passes(delivery, shape))
        return forward(delivery, shape, ret_items, err);
    return kiln_export_encode(delivery->batch, shape, ret_items, err);
}
