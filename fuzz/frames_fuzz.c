/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a section of frames, once as .eh_frame at 0x1000 and once as .debug_frame: rows of
 * the first pages, by an index that is made of the whole section.
 */
#include <elf.h>

#include "rows_fuzz.h"

static void run(const struct kiln_bytes *bytes, const char *name)
{
    struct kiln_elf_section section = {
        .name = name, .type = SHT_PROGBITS, .address = 0x1000, .size = bytes->size};
    struct kiln_elf elf = {
        .bytes = *bytes, .machine = EM_X86_64, .sections = &section, .n_sections = 1};
    struct kiln_cfi *cfi;

    if (kiln_cfi_open(&elf, &cfi) < 0)
        return;
    for (uint64_t page = 0; page < 4; page++)
        kiln_fuzz_rows(cfi, page * 16384, 16384);
    kiln_cfi_close(cfi);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kiln_bytes bytes = kiln_bytes_memory(data, size);

    run(&bytes, ".eh_frame");
    run(&bytes, ".debug_frame");
    return 0;
}
