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

/* Whatever is vouched for is decoded, and nothing of it is lost. */
static void check_vouched(struct kiln_str bytes, const struct kiln_batch *batch)
{
    struct kiln_otlp_counts counts, counted;

    if (!kiln_otlp_vouch(bytes, &counts))
        return;
    FUZZ_CHECK(batch);
    FUZZ_CHECK(!batch || batch->n_samples == counts.samples);
    FUZZ_CHECK(!batch || batch->n_profiles == counts.profiles);
    FUZZ_CHECK(kiln_otlp_count(bytes, &counted));
    FUZZ_CHECK(counted.samples == counts.samples && counted.profiles == counts.profiles);
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
