/* SPDX-License-Identifier: Apache-2.0 */
#include "names_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_names(KILN_SOURCE_PERF_MAP, data, size);
    return 0;
}
