/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OTLP profiles of any revision.  What could be read is written, read and written again: the two
 * writings must be the same bytes, and no sample may be lost.  What is vouched for can be read.
 */
#include "codec/otlp.h"
#include "decode_fuzz.h"

#define BYTES_MAX (64u << 20)

static int decode(struct kiln_str bytes, struct kiln_builder *b, struct kiln_err *err)
{
    return kiln_otlp_decode(bytes, NULL, b, NULL, err);
}

static struct kiln_otlp_counts promised;

static int decode_promised(struct kiln_str bytes, struct kiln_builder *b, struct kiln_err *err)
{
    const struct kiln_otlp_opts opts = {.revision = KILN_OTLP_1_10, .promised = &promised};

    return kiln_otlp_decode(bytes, &opts, b, NULL, err);
}

/* Vouched for in two steps: first for its profiles, then by decoding its dictionary with them. */
static bool is_kept(struct kiln_str bytes)
{
    struct kiln_batch *batch = kiln_otlp_vouch_for_profiles(bytes, &promised)
                                   ? kiln_fuzz_decode(decode_promised, bytes)
                                   : NULL;
    bool kept = batch != NULL;

    kiln_batch_unref(batch);
    return kept;
}

/* Whatever is vouched for is decoded, and nothing of it is lost. */
static void check_vouched(struct kiln_str bytes, const struct kiln_batch *batch)
{
    struct kiln_otlp_counts counts;
    bool good = kiln_otlp_vouch(bytes, &counts), kept = is_kept(bytes);

    FUZZ_CHECK(kept || !good || !batch); /* no batch: there was no memory for it */
    if (!good && !kept)
        return;
    counts = good ? counts : promised;
    FUZZ_CHECK(batch);
    FUZZ_CHECK(!batch || batch->n_samples == counts.samples);
    FUZZ_CHECK(!batch || batch->n_profiles == counts.profiles);
}

static bool encode(const struct kiln_batch *batch, struct kiln_buf *out)
{
    kiln_buf_init(out, BYTES_MAX);
    return kiln_otlp_encode(batch, NULL, out, NULL) == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kiln_str bytes = {(const char *)data, size};
    struct kiln_batch *batch = kiln_fuzz_decode(decode, bytes), *again = NULL;
    struct kiln_buf first = {0}, second = {0};
    volatile bool looks_like_it = kiln_otlp_detect(bytes);

    (void)looks_like_it;
    check_vouched(bytes, batch);
    if (!batch)
        return 0;
    if (encode(batch, &first))
        again = kiln_fuzz_decode(decode, kiln_buf_str(&first));
    if (again && encode(again, &second)) {
        FUZZ_CHECK(kiln_str_eq(kiln_buf_str(&first), kiln_buf_str(&second)));
        FUZZ_CHECK(again->n_samples == batch->n_samples);
    }
    kiln_batch_unref(again);
    kiln_batch_unref(batch);
    kiln_buf_done(&first);
    kiln_buf_done(&second);
    return 0;
}
