/* SPDX-License-Identifier: Apache-2.0 */
/*
 * elf_around - an ELF file with code at 0x1000 and one section of any bytes: for targets that read
 * one section.
 */
#ifndef KILN_FUZZ_ELF_AROUND_H
#define KILN_FUZZ_ELF_AROUND_H

#include <elf.h>
#include <string.h>

#include "base/mem.h"

struct elf_around {
    Elf64_Ehdr header;
    Elf64_Phdr segment;
    Elf64_Shdr sections[4]; /* none, the section, code, names */
    char names[48];
    uint8_t data[];
};

enum { AROUND_TEXT = 0x1000, AROUND_TEXT_SIZE = 0x1000 };

/* NULL without memory; freed with kiln_free(). */
static inline void *elf_around(const char *section, const void *data, size_t n, size_t *ret_n)
{
    struct elf_around *made = kiln_calloc(1, sizeof(*made) + n);

    if (!made)
        return NULL;
    made->header = (Elf64_Ehdr){
        .e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
        .e_type = ET_DYN,
        .e_machine = EM_X86_64,
        .e_version = EV_CURRENT,
        .e_phoff = offsetof(struct elf_around, segment),
        .e_shoff = offsetof(struct elf_around, sections),
        .e_ehsize = sizeof(Elf64_Ehdr),
        .e_phentsize = sizeof(Elf64_Phdr),
        .e_phnum = 1,
        .e_shentsize = sizeof(Elf64_Shdr),
        .e_shnum = 4,
        .e_shstrndx = 3,
    };
    made->segment = (Elf64_Phdr){.p_type = PT_LOAD,
                                 .p_flags = PF_R | PF_X,
                                 .p_vaddr = AROUND_TEXT,
                                 .p_memsz = AROUND_TEXT_SIZE};
    made->sections[1] = (Elf64_Shdr){.sh_name = 1,
                                     .sh_type = SHT_PROGBITS,
                                     .sh_offset = offsetof(struct elf_around, data),
                                     .sh_size = n};
    made->sections[2] = (Elf64_Shdr){.sh_type = SHT_NOBITS,
                                     .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
                                     .sh_addr = AROUND_TEXT,
                                     .sh_size = AROUND_TEXT_SIZE};
    made->sections[3] = (Elf64_Shdr){.sh_type = SHT_STRTAB,
                                     .sh_offset = offsetof(struct elf_around, names),
                                     .sh_size = sizeof(made->names)};
    strncpy(made->names + 1, section, sizeof(made->names) - 2);
    if (n)
        memcpy(made->data, data, n);
    *ret_n = sizeof(*made) + n;
    return made;
}

#endif /* KILN_FUZZ_ELF_AROUND_H */
