/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/gperftools.h"
#include "decode_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kiln_str content = {(const char *)data, size};

    kiln_gperftools_detect(content);
    kiln_batch_unref(kiln_fuzz_decode(kiln_gperftools_decode, content));
    return 0;
}
