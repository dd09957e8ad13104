/* SPDX-License-Identifier: Apache-2.0 */
/*
 * encode - a delivery as requests that are ready to be sent.
 *
 * Bytes that came as OTLP protobuf and need not change go on as they came; they are compressed
 * anew only where the exporter's compression is another one.  All else is encoded from the batch,
 * and split first (core/split.h) where it would be larger than a request may be.
 *
 * Threads: no state; an item has one owner at a time.
 */
#ifndef KILN_PIPELINE_EXPORTERS_ENCODE_H
#define KILN_PIPELINE_EXPORTERS_ENCODE_H

#include "core/split.h"
#include "pipeline/exporters/spool.h"
#include "pipeline/pipeline.h"

/* An encoded request. */
struct kiln_export_item {
    struct kiln_export_item *next;
    struct kiln_spooled head;
    char *body;
    size_t len;
    bool borrowed; /* the body is the delivery's */
};
void kiln_export_item_free(struct kiln_export_item *item);
void kiln_export_items_free(struct kiln_export_item *first);
/* Copies what is borrowed: the delivery may end.  Returns 0 or -ENOMEM. */
KILN_CHECK int kiln_export_item_own(struct kiln_export_item *item);

static inline struct kiln_str kiln_export_item_body(const struct kiln_export_item *item)
{
    return (struct kiln_str){item->body, item->len};
}

struct kiln_export_shape {
    enum kiln_compression compression;
    int level;  /* of it; 0: a sensible one */
    bool dense; /* in the order that compresses best */
    bool json;
    size_t request_max; /* before compression */
};

/*
 * Splits a batch and packs the parts, in a list.  What cannot be packed is left out: the first such
 * error is returned beside all the rest, but for -ENOMEM, which is the end.
 */
KILN_CHECK int
kiln_export_parts(const struct kiln_batch *batch, const struct kiln_split_opts *limits,
                  int (*pack_part)(void *context, struct kiln_batch *part,
                                   struct kiln_export_item **ret_items, struct kiln_err *err),
                  void *context, struct kiln_export_item **ret_items, struct kiln_err *err);
/* A batch as requests under the size limit; as kiln_export_parts(). */
KILN_CHECK int kiln_export_encode(const struct kiln_batch *batch,
                                  const struct kiln_export_shape *shape,
                                  struct kiln_export_item **ret_items, struct kiln_err *err);

/* Whether bytes of profiles may go on as they came, but for their compression. */
bool kiln_export_passes(const struct kiln_delivery *delivery,
                        const struct kiln_export_shape *shape);

/*
 * The same of a delivery of any signal, sealed only where it passes; items may borrow its body.
 */
KILN_CHECK int kiln_export_pack(const struct kiln_delivery *delivery,
                                const struct kiln_export_shape *shape,
                                struct kiln_export_item **ret_items, struct kiln_err *err);

/*
 * A request of profiles that was made as JSON, by a sender that was configured otherwise, as
 * protobuf: appended to `out`, compressed as it was.
 */
KILN_CHECK int kiln_export_from_json(const struct kiln_spooled *head, struct kiln_str body,
                                     struct kiln_buf *out, struct kiln_err *err);

#endif /* KILN_PIPELINE_EXPORTERS_ENCODE_H */
