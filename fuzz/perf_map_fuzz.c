/* SPDX-License-Identifier: Apache-2.0 */
/* A perf-map; and the same read bit by bit, which must come to the same. */
#include "names_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_names(KILN_SOURCE_PERF_MAP, data, size);
    if (size > 1)
        fuzz_names_grow(KILN_SOURCE_PERF_MAP, data, size);
    return 0;
}
