/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader of Java Flight Recorder.  Whatever it accepts has only texts that are UTF-8, and
 * samples that add up to no less than nothing.
 */
#include <stdlib.h>

#include "codec/jfr.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct kiln_batch *batch)
{
    for (uint32_t i = 0; i < batch->dict.n_strings; i++) {
        if (!kiln_utf8_valid(kiln_batch_str(batch, i)))
            abort();
    }
    for (uint32_t i = 0; i < batch->n_samples; i++) {
        if (kiln_sample_total(batch, &batch->samples[i]) < 0)
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kiln_limits limits = kiln_limits_default;
    struct kiln_err err = {0};
    struct kiln_batch *batch;
    struct kiln_builder *b;

    limits.memory_bytes = 64u << 20;
    if (kiln_builder_new(&limits, &b) < 0)
        return 0;
    if (kiln_jfr_decode((struct kiln_str){(const char *)data, size}, b, &err) < 0) {
        if (!err.code || !err.text[0])
            abort();
        kiln_builder_free(b);
        return 0;
    }
    if (kiln_builder_finish(b, &batch, &err) == 0) {
        check(batch);
        kiln_batch_unref(batch);
    }
    return 0;
}
