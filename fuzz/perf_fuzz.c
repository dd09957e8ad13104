/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/perf.h"
#include "decode_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kiln_str text = {(const char *)data, size};

    kiln_perf_detect(text);
    kiln_batch_unref(kiln_fuzz_decode(kiln_perf_decode, text));
    return 0;
}
