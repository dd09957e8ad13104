/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as an ELF file with unwind tables: rows of the pages around its code.
 */
#include <elf.h>

#include "rows_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kiln_bytes bytes = kiln_bytes_memory(data, size);
    struct kiln_elf *elf;
    struct kiln_cfi *cfi;

    if (kiln_elf_open(&bytes, &elf) < 0)
        return 0;
    if (kiln_cfi_open(elf, &cfi) == 0) {
        kiln_fuzz_rows(cfi, elf->entry & ~(uint64_t)16383, 16384);
        for (uint32_t i = 0; i < elf->n_segments && i < 8; i++) {
            uint64_t page = elf->segments[i].address & ~(uint64_t)16383;

            if (elf->segments[i].flags & PF_X)
                kiln_fuzz_rows(cfi, page, 16384);
        }
        kiln_cfi_close(cfi);
    }
    kiln_elf_close(elf);
    return 0;
}
