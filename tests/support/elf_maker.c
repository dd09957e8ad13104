/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <string.h>

#include "elf_maker.h"

void elf_maker_add(struct elf_maker *maker, struct elf_part part)
{
    assert(maker->n_parts < ELF_PARTS_MAX);
    if (!part.type)
        part.type = SHT_PROGBITS;
    maker->parts[maker->n_parts++] = part;
}

static uint64_t put(struct elf_maker *maker, const void *data, size_t n)
{
    uint64_t at = (maker->n + 7) & ~(size_t)7;

    assert(at + n <= ELF_MADE_MAX);
    memset(maker->data + maker->n, 0, at - maker->n);
    if (n)
        memcpy(maker->data + at, data, n);
    maker->n = at + n;
    return at;
}

static Elf64_Phdr segment_of(const struct elf_part *part, uint32_t type, uint64_t offset)
{
    return (Elf64_Phdr){
        .p_type = type,
        .p_flags = PF_R | (part->flags & SHF_EXECINSTR ? PF_X : 0),
        .p_offset = offset,
        .p_vaddr = part->address,
        .p_filesz = part->n,
        .p_memsz = part->n,
    };
}

static void put_sections(struct elf_maker *maker, const uint64_t *offsets, Elf64_Ehdr *header)
{
    Elf64_Shdr sections[ELF_PARTS_MAX + 2] = {0};
    uint32_t n = maker->n_parts + 2;
    char names[1024] = "";
    size_t n_names = 1;

    for (uint32_t i = 0; i < maker->n_parts; i++) {
        const struct elf_part *part = &maker->parts[i];
        size_t len = strlen(part->name) + 1;

        assert(n_names + len + 10 <= sizeof(names));
        sections[i + 1] = (Elf64_Shdr){
            .sh_name = (uint32_t)n_names,
            .sh_type = part->type,
            .sh_flags = part->flags,
            .sh_addr = part->address,
            .sh_offset = offsets[i],
            .sh_size = part->n,
            .sh_link = part->link,
            .sh_entsize = part->entry_size,
        };
        memcpy(names + n_names, part->name, len);
        n_names += len;
    }
    memcpy(names + n_names, ".shstrtab", 10);
    sections[n - 1] = (Elf64_Shdr){.sh_name = (uint32_t)n_names, .sh_type = SHT_STRTAB};
    n_names += 10;
    sections[n - 1].sh_size = n_names;
    sections[n - 1].sh_offset = put(maker, names, n_names);
    header->e_shoff = put(maker, sections, n * sizeof(*sections));
    header->e_shentsize = sizeof(*sections);
    header->e_shnum = (uint16_t)n;
    header->e_shstrndx = (uint16_t)(n - 1);
}

struct kiln_bytes elf_maker_bytes(struct elf_maker *maker)
{
    Elf64_Phdr segments[2 * ELF_PARTS_MAX];
    uint64_t offsets[ELF_PARTS_MAX];
    Elf64_Ehdr header = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT}};
    uint16_t n = 0;

    maker->n = sizeof(header);
    for (uint32_t i = 0; i < maker->n_parts; i++) {
        const struct elf_part *part = &maker->parts[i];

        offsets[i] = put(maker, part->data, part->n);
        if (part->flags & SHF_ALLOC)
            segments[n++] = segment_of(part, PT_LOAD, offsets[i]);
        if (part->segment)
            segments[n++] = segment_of(part, part->segment, offsets[i]);
    }
    header.e_type = maker->type;
    header.e_machine = maker->machine ? maker->machine : EM_X86_64;
    header.e_version = EV_CURRENT;
    header.e_entry = maker->entry;
    header.e_ehsize = sizeof(header);
    header.e_phentsize = sizeof(*segments);
    header.e_phnum = n;
    header.e_phoff = put(maker, segments, n * sizeof(*segments));
    if (!maker->no_sections)
        put_sections(maker, offsets, &header);
    memcpy(maker->data, &header, sizeof(header));
    return kiln_bytes_memory(maker->data, maker->n);
}
