/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A batch whose size is bounded by the limit is encoded as it is; else it is split first
 * (core/split.h).
 */
#include <errno.h>

#include "base/clock.h"
#include "base/mem.h"
#include "codec/otlp.h"
#include "codec/otlp_json.h"
#include "core/otlp_size.h"
#include "pipeline/exporters/encode.h"

#define JSON_FACTOR 16u /* what JSON may take, in sizes of protobuf */

void kiln_export_item_free(struct kiln_export_item *item)
{
    if (item && !item->borrowed)
        kiln_free(item->body);
    kiln_free(item);
}

void kiln_export_items_free(struct kiln_export_item *first)
{
    while (first) {
        struct kiln_export_item *item = first;

        first = item->next;
        kiln_export_item_free(item);
    }
}

int kiln_export_item_own(struct kiln_export_item *item)
{
    char *copy;

    if (!item->borrowed)
        return 0;
    copy = kiln_malloc(item->len ? item->len : 1);
    if (!copy)
        return -ENOMEM;
    memcpy(copy, item->body, item->len);
    item->body = copy;
    item->borrowed = false;
    return 0;
}

/* Moves what `plain` holds, compressed, into an item. */
static int pack(struct kiln_buf *plain, const struct kiln_joints *joints,
                const struct kiln_export_shape *shape, struct kiln_export_item *item)
{
    struct kiln_buf packed;
    int r = 0;

    kiln_buf_init(&packed, plain->max + (1u << 16));
    if (shape->compression != KILN_PLAIN)
        r = kiln_compress_joined(shape->compression, shape->level, kiln_buf_str(plain), joints,
                                 &packed);
    if (r == 0)
        kiln_buf_take(shape->compression == KILN_PLAIN ? plain : &packed, &item->body, &item->len);
    kiln_buf_done(&packed);
    return r;
}

/* The order that compresses best may give larger numbers to what is often referred to: then the
 * order that the limit was reckoned for has to do. */
static int write_plain(const struct kiln_batch *batch, const struct kiln_export_shape *shape,
                       struct kiln_buf *plain, struct kiln_joints *joints, struct kiln_err *err)
{
    const struct kiln_otlp_encode_opts dense = {.dense = true, .ret_joints = joints};
    int r = KILN_E_LIMIT;

    if (shape->json)
        return kiln_otlp_json_encode(batch, plain, err);
    if (shape->dense)
        r = kiln_otlp_encode(batch, &dense, plain, NULL);
    if (r != KILN_E_LIMIT)
        return r;
    kiln_buf_clear(plain);
    return kiln_otlp_encode(batch, NULL, plain, err);
}

static int encode(const struct kiln_batch *batch, const struct kiln_export_shape *shape,
                  struct kiln_export_item **ret_item, struct kiln_err *err)
{
    struct kiln_export_item *item = kiln_calloc(1, sizeof(*item));
    struct kiln_joints joints = {.n = 0};
    struct kiln_buf plain;
    int r;

    if (!item)
        return kiln_err_set(err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));
    item->head = (struct kiln_spooled){.compression = shape->compression,
                                       .json = shape->json,
                                       .profiles = batch->n_profiles,
                                       .samples = batch->n_samples,
                                       .made_ns = kiln_clock_unix_ns()};
    kiln_buf_init(&plain, shape->json ? JSON_FACTOR * shape->request_max : shape->request_max);
    r = write_plain(batch, shape, &plain, &joints, err);
    if (r == 0)
        r = pack(&plain, &joints, shape, item);
    kiln_buf_done(&plain);
    if (r < 0) {
        kiln_export_item_free(item);
        return kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    }
    *ret_item = item;
    return 0;
}

int kiln_export_parts(const struct kiln_batch *batch, const struct kiln_split_opts *limits,
                      int (*pack_part)(void *context, struct kiln_batch *part,
                                       struct kiln_export_item **ret_items, struct kiln_err *err),
                      void *context, struct kiln_export_item **ret_items, struct kiln_err *err)
{
    struct kiln_split_opts opts = *limits;
    struct kiln_export_item **last = ret_items;
    struct kiln_batch **parts;
    uint32_t left_out = 0, n;
    int r, code;

    *ret_items = NULL;
    opts.left_out = &left_out;
    r = kiln_split(batch, &opts, &parts, &n, err);
    if (r < 0)
        return r;
    code = left_out ? KILN_E_LIMIT : 0;
    for (uint32_t i = 0; i < n; i++) {
        if (code != -ENOMEM && (parts[i]->n_samples || !left_out))
            r = pack_part(context, parts[i], last, err);
        if (code == 0 || r == -ENOMEM)
            code = r;
        while (*last)
            last = &(*last)->next;
        kiln_batch_unref(parts[i]);
    }
    kiln_free(parts);
    return code;
}

static int encode_part(void *shape, struct kiln_batch *part, struct kiln_export_item **ret_items,
                       struct kiln_err *err)
{
    return encode(part, shape, ret_items, err);
}

int kiln_export_encode(const struct kiln_batch *batch, const struct kiln_export_shape *shape,
                       struct kiln_export_item **ret_items, struct kiln_err *err)
{
    const struct kiln_split_opts limits = {.bytes_max = shape->request_max};

    *ret_items = NULL;
    if (kiln_otlp_fits(batch, shape->request_max))
        return encode(batch, shape, ret_items, err);
    return kiln_export_parts(batch, &limits, encode_part, (void *)(uintptr_t)shape, ret_items, err);
}
