/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OTLP profiles in JSON.  What is decoded is encoded as JSON and as protobuf, and both must decode
 * to the same batch again.
 */
#include "codec/otlp.h"
#include "codec/otlp_json.h"
#include "decode_fuzz.h"

/* The newest revision is what we write; a message of few fields does not show its revision. */
static int decode_protobuf(struct kiln_str bytes, struct kiln_builder *b, struct kiln_err *err)
{
    struct kiln_otlp_opts opts = {.revision = KILN_OTLP_1_10};

    return kiln_otlp_decode(bytes, &opts, b, NULL, err);
}

static void check_same(const struct kiln_batch *batch, struct kiln_batch *again)
{
    FUZZ_CHECK(again && kiln_batch_equal(batch, again));
    kiln_batch_unref(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kiln_str text = {(const char *)data, size};
    struct kiln_err err = {0};
    struct kiln_batch *batch;
    struct kiln_buf out;

    kiln_otlp_json_detect(text);
    batch = kiln_fuzz_decode(kiln_otlp_json_decode, text);
    if (!batch)
        return 0;
    kiln_buf_init(&out, 64u << 20);
    FUZZ_CHECK(kiln_otlp_json_encode(batch, &out, &err) == 0);
    check_same(batch, kiln_fuzz_decode(kiln_otlp_json_decode, kiln_buf_str(&out)));
    kiln_buf_clear(&out);
    FUZZ_CHECK(kiln_otlp_encode(batch, NULL, &out, &err) == 0);
    check_same(batch, kiln_fuzz_decode(decode_protobuf, kiln_buf_str(&out)));
    kiln_buf_done(&out);
    kiln_batch_unref(batch);
    return 0;
}
