/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What goes on, of all that waited.  Where all of them are sealed their bodies are decoded behind
 * each other into one batch, whose dictionary is then that of all from the beginning; else there is
 * a batch of each first, for which they must have been checked.
 */
#include <errno.h>

#include "base/mem.h"
#include "codec/otlp.h"
#include "core/coalesce.h"
#include "core/concat.h"
#include "pipeline/processors/batcher_int.h"

static bool are_sealed(const struct kiln_crowd *crowd)
{
    for (uint32_t i = 0; i < crowd->n; i++) {
        if (!crowd->all[i]->seal)
            return false;
    }
    return true;
}

bool kiln_crowd_is_checked(const struct kiln_crowd *crowd)
{
    for (uint32_t i = 0; i < crowd->n; i++) {
        if (kiln_delivery_is_unchecked(crowd->all[i]))
            return false;
    }
    return true;
}

/* Whether all of it came into the builder, as if somebody had vouched for it. */
static int check(const struct kiln_otlp_counts *counts, const struct kiln_batch *before,
                 const struct kiln_otlp_info *info, const struct kiln_builder *b)
{
    const struct kiln_batch *after = kiln_builder_peek(b);

    if (info->revision != KILN_OTLP_1_10 ||
        after->n_profiles - before->n_profiles != counts->profiles ||
        after->n_samples - before->n_samples != counts->samples)
        return KILN_E_UNSUPPORTED;
    return 0;
}

static int decode_plain(const struct kiln_delivery *delivery, struct kiln_str content, uint32_t of,
                        struct kiln_builder *b)
{
    bool unchecked = kiln_delivery_is_unchecked(delivery);
    const struct kiln_otlp_opts opts = {.revision = unchecked ? KILN_OTLP_AUTO : KILN_OTLP_1_10,
                                        .copies = true,
                                        .vouched = !unchecked,
                                        .of = of};
    const struct kiln_batch before = *kiln_builder_peek(b);
    struct kiln_otlp_info info;
    int r = kiln_otlp_decode(content, &opts, b, &info, NULL);

    return r < 0 || !unchecked ? r : check(&delivery->seal->counts, &before, &info, b);
}

/* Where somebody vouched for it, only memory can be short. */
static int decode(const struct kiln_delivery *delivery, uint32_t of, struct kiln_builder *b)
{
    struct kiln_str content = delivery->body;
    struct kiln_buf plain;
    int r = 0;

    kiln_buf_init(&plain, delivery->seal->content_bytes + KILN_DECOMPRESS_SLACK);
    if (delivery->body_compression != KILN_PLAIN) {
        r = kiln_decompress(delivery->body_compression, content, &plain, NULL);
        content = kiln_buf_str(&plain);
    }
    if (r == 0)
        r = decode_plain(delivery, content, of, b);
    kiln_buf_done(&plain);
    return r;
}

static int decode_all(const struct kiln_crowd *crowd, struct kiln_batch **ret_batch)
{
    struct kiln_builder *b;
    int r = kiln_builder_new(NULL, &b);

    if (r < 0)
        return r;
    for (uint32_t i = 0; i < crowd->n && r == 0; i++)
        r = decode(crowd->all[i], crowd->n, b);
    if (r < 0) {
        kiln_builder_free(b);
        return r;
    }
    kiln_builder_coalesce(b);
    return kiln_builder_finish(b, ret_batch, NULL);
}

static int concat_all(const struct kiln_crowd *crowd, struct kiln_batch **ret_batch)
{
    struct kiln_batch **batches = kiln_malloc(crowd->n * sizeof(struct kiln_batch *));
    int r = batches ? 0 : -ENOMEM;

    for (uint32_t i = 0; i < crowd->n && r == 0; i++) {
        r = kiln_delivery_open(crowd->all[i], NULL);
        batches[i] = crowd->all[i]->batch;
    }
    if (r == 0)
        r = kiln_concat(batches, crowd->n, NULL, ret_batch, NULL);
    kiln_free(batches);
    return r;
}

static int open_one(const struct kiln_crowd *crowd, struct kiln_batch **ret_batch)
{
    int r = kiln_delivery_open(crowd->all[0], NULL);

    if (r == 0)
        *ret_batch = kiln_batch_ref(crowd->all[0]->batch);
    return r;
}

int kiln_crowd_join(const struct kiln_crowd *crowd, struct kiln_batch **ret_batch)
{
    if (crowd->n > 1 && are_sealed(crowd))
        return decode_all(crowd, ret_batch);
    if (!kiln_crowd_is_checked(crowd))
        return KILN_E_UNSUPPORTED;
    return crowd->n == 1 ? open_one(crowd, ret_batch) : concat_all(crowd, ret_batch);
}
