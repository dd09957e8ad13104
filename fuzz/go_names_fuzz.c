/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as Go's table of functions. */
#include "elf_around.h"
#include "names_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t n;
    void *elf = elf_around(".gopclntab", data, size, &n);

    if (elf)
        fuzz_names(KILN_SOURCE_ELF, elf, n);
    kiln_free(elf);
    return 0;
}
