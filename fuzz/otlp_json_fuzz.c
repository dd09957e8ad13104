/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OTLP profiles in JSON.  What is decoded is encoded, and that must decode to the same batch.
 */
#include "codec/otlp_json.h"
#include "decode_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kiln_str text = {(const char *)data, size};
    struct kiln_batch *batch, *again;
    struct kiln_err err = {0};
    struct kiln_buf out;

    kiln_otlp_json_detect(text);
    batch = kiln_fuzz_decode(kiln_otlp_json_decode, text);
    if (!batch)
        return 0;
    kiln_buf_init(&out, 64u << 20);
    if (kiln_otlp_json_encode(batch, &out, &err) == 0) {
        again = kiln_fuzz_decode(kiln_otlp_json_decode, kiln_buf_str(&out));
        FUZZ_CHECK(again && kiln_batch_equal(batch, again));
        kiln_batch_unref(again);
    }
    kiln_buf_done(&out);
    kiln_batch_unref(batch);
    return 0;
}
