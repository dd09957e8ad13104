/* SPDX-License-Identifier: Apache-2.0 */
/*
 * elf_maker - small ELF files for tests, part by part, in memory.
 *
 *   struct elf_maker maker = {.type = ET_DYN, .entry = 0x1000};
 *   elf_maker_add(&maker, (struct elf_part){.name = ".text", .flags = SHF_ALLOC | SHF_EXECINSTR,
 *                                           .address = 0x1000, .data = code, .n = sizeof(code)});
 *   bytes = elf_maker_bytes(&maker);
 *
 * Every part is a section; one with SHF_ALLOC is a PT_LOAD segment too, and one with `segment` set
 * a segment of that type.
 */
#ifndef KILN_TESTS_ELF_MAKER_H
#define KILN_TESTS_ELF_MAKER_H

#include <elf.h>

#include "symbol/elf.h"

struct elf_part {
    const char *name;
    uint32_t type; /* 0: SHT_PROGBITS */
    uint32_t segment;
    uint64_t flags, address;
    const void *data; /* borrowed */
    size_t n;
    uint32_t link; /* section: the first part is 1 */
    uint64_t entry_size;
};

enum { ELF_PARTS_MAX = 16, ELF_MADE_MAX = 256 << 10 };

struct elf_maker {
    uint16_t type, machine; /* machine 0: EM_X86_64 */
    uint64_t entry;
    bool no_sections; /* as sstrip leaves a file */
    struct elf_part parts[ELF_PARTS_MAX];
    uint32_t n_parts;
    size_t n;
    uint8_t data[ELF_MADE_MAX];
};

void elf_maker_add(struct elf_maker *maker, struct elf_part part);
/* Lays the file out in `data`; it lives in the maker.  The section headers are at its end. */
struct kiln_bytes elf_maker_bytes(struct elf_maker *maker);

#endif /* KILN_TESTS_ELF_MAKER_H */
