/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as an ELF file: symbol tables, stubs, packed symbols, Go's table. */
#include "names_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_names(KILN_SOURCE_ELF, data, size);
    return 0;
}
