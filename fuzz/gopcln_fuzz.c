/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as Go's table of functions: every function is looked up by its entry, and asked for all
 * that the table has of it; and rows are made of it.
 */
#include <elf.h>

#include "rows_fuzz.h"
#include "symbol/gopcln.h"

static void ask(struct kiln_gopcln *pcln, uint32_t index)
{
    struct kiln_go_frame frames[8];
    struct kiln_go_func func;
    uint32_t found, n;

    if (kiln_gopcln_func(pcln, index, &func) < 0)
        return;
    (void)kiln_gopcln_name(pcln, func.name);
    (void)kiln_gopcln_file(pcln, &func, kiln_gopcln_value(pcln, &func, func.pcfile, func.entry));
    (void)kiln_gopcln_value(pcln, &func, func.pcln, func.end);
    n = kiln_gopcln_frames(pcln, &func, func.entry, frames, 8);
    FUZZ_CHECK(n >= 1 && n <= 8);
    for (uint32_t i = 0; i < n; i++)
        (void)kiln_gopcln_file(pcln, &func, frames[i].file);
    if (func.end > func.entry && kiln_gopcln_find(pcln, func.entry, &found) == 0)
        FUZZ_CHECK(found < kiln_gopcln_count(pcln));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kiln_bytes bytes = kiln_bytes_memory(data, size);
    struct kiln_elf_section section = {
        .name = ".gopclntab", .type = SHT_PROGBITS, .address = 0x500000, .size = size};
    /* The module's data is somewhere in the same bytes, too, and so are trees of inlined calls. */
    struct kiln_elf_segment segment = {
        .type = PT_LOAD, .address = 0x500000, .file_size = size, .memory_size = size};
    struct kiln_elf elf = {.bytes = bytes,
                           .machine = EM_X86_64,
                           .sections = &section,
                           .n_sections = 1,
                           .segments = &segment,
                           .n_segments = 1};
    struct kiln_gopcln *pcln;
    struct kiln_cfi *cfi;

    if (kiln_gopcln_open(&elf, &pcln) == 0) {
        for (uint32_t i = 0; i < kiln_gopcln_count(pcln) && i < 64; i++)
            ask(pcln, i);
        kiln_gopcln_close(pcln);
    }
    if (kiln_cfi_open(&elf, &cfi) == 0) {
        kiln_fuzz_rows(cfi, 0x400000, 16384);
        kiln_cfi_close(cfi);
    }
    return 0;
}
