/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Symbol tables of ELF files, 24 bytes an entry:
 *
 *   u32 name (in the linked string table), u8 type | binding << 4, u8 visibility, u16 section,
 *   u64 address, u64 size
 *
 * Functions are taken, and untyped symbols (labels of assembly), where their address is in a
 * section with code.  That says whether they are of use; the section they name only where it is not
 * loaded: link-time optimization leaves labels in debug information, whose "addresses" are offsets.
 */
#include <elf.h>
#include <errno.h>

#include "base/err.h"
#include "symbol/names_int.h"

enum {
    CHUNK = 1024,             /* entries read at once */
    REACH_EXPORTED = 1 << 12, /* of a symbol without a size, where others may be in between */
};

static const struct kiln_elf_section *of_type(const struct kiln_elf *elf, uint32_t type)
{
    for (uint32_t i = 0; i < elf->n_sections; i++) {
        if (elf->sections[i].type == type)
            return elf->sections + i;
    }
    return NULL;
}

static bool is_code(const struct kiln_symtab *table, uint64_t address)
{
    for (uint32_t i = 0; i < table->n_code; i++) {
        if (address >= table->code[i].begin && address < table->code[i].end)
            return true;
    }
    return false;
}

static bool is_loaded(const struct kiln_elf *elf, uint16_t section)
{
    return section >= elf->n_sections || elf->sections[section].flags & SHF_ALLOC;
}

static int add_symbol(struct kiln_symtab *table, const struct kiln_elf *elf, const Elf64_Sym *s,
                      uint32_t first, uint32_t text_size)
{
    unsigned type = ELF64_ST_TYPE(s->st_info);
    bool label = type == STT_NOTYPE;
    struct kiln_symtab_entry symbol;

    if (type != STT_FUNC && type != STT_GNU_IFUNC && !label)
        return 0;
    if (s->st_shndx == SHN_UNDEF || s->st_shndx == SHN_ABS || s->st_name == 0 ||
        s->st_name >= text_size || !is_loaded(elf, s->st_shndx))
        return 0;
    symbol = (struct kiln_symtab_entry){
        .address = s->st_value,
        .name = first + s->st_name,
        .info = kiln_symtab_info(s->st_size, ELF64_ST_BIND(s->st_info) == STB_LOCAL,
                                 label ? KILN_SYMTAB_LABEL : KILN_SYMTAB_FUNCTION)};
    if (!kiln_symtab_wants(table, &symbol) || !is_code(table, s->st_value))
        return 0;
    return kiln_symtab_add(table, symbol);
}

static int read_symbols(struct kiln_symtab *table, const struct kiln_elf *elf,
                        const struct kiln_elf_section *section, uint32_t first, uint32_t text_size)
{
    const struct kiln_symtab_wish wish = kiln_symtab_wish(table);
    uint64_t left = section->size / sizeof(Elf64_Sym);
    uint64_t offset = section->offset;
    Elf64_Sym chunk[CHUNK];

    while (left > 0) {
        uint32_t n = left < CHUNK ? (uint32_t)left : CHUNK;
        int r = elf->bytes.read(&elf->bytes, offset, chunk, n * sizeof(*chunk));

        for (const Elf64_Sym *s = chunk; r == 0 && s < chunk + n; s++)
            if (!kiln_symtab_is_far(wish, s->st_value, s->st_size))
                r = add_symbol(table, elf, s, first, text_size);
        if (r < 0)
            return r;
        offset += n * sizeof(*chunk);
        left -= n;
    }
    return 0;
}

static int read_section(struct kiln_symtab *table, const struct kiln_elf *elf,
                        const struct kiln_elf_section *section)
{
    const struct kiln_elf_section *text;
    uint32_t first;
    int r;

    if (section->entry_size != sizeof(Elf64_Sym) || section->link >= elf->n_sections)
        return KILN_E_MALFORMED;
    text = elf->sections + section->link;
    if (text->type != SHT_STRTAB || (section->flags | text->flags) & SHF_COMPRESSED)
        return KILN_E_UNSUPPORTED;
    /* Many entries are of no use, but a file that has so many more is not one of symbols. */
    if (section->size / sizeof(Elf64_Sym) > (uint64_t)table->max * 4)
        return KILN_E_LIMIT;
    r = kiln_symtab_add_text(table, &elf->bytes, text->offset, text->size, &first);
    return r < 0 ? r : read_symbols(table, elf, section, first, (uint32_t)text->size);
}

static int read_code(struct kiln_symtab *table, const struct kiln_elf *elf)
{
    for (uint32_t i = 0; i < elf->n_sections; i++) {
        const struct kiln_elf_section *s = elf->sections + i;
        uint64_t end;
        int r;

        if (!(s->flags & SHF_ALLOC) || !(s->flags & SHF_EXECINSTR) ||
            __builtin_add_overflow(s->address, s->size, &end))
            continue;
        r = kiln_symtab_add_code(table, s->address, end);
        if (r < 0)
            return r;
    }
    return 0;
}

int kiln_names_read_elf(struct kiln_symtab *table, const struct kiln_elf *elf)
{
    static const uint32_t types[] = {SHT_SYMTAB, SHT_DYNSYM};
    int r;

    if (elf->type != ET_EXEC && elf->type != ET_DYN)
        return KILN_E_UNSUPPORTED;
    if (table->n_code == 0) {
        r = read_code(table, elf);
        if (r < 0)
            return r;
    }
    if (of_type(elf, SHT_SYMTAB))
        table->reach = KILN_SYMTAB_REACH_MAX;
    else if (table->reach == 0)
        table->reach = REACH_EXPORTED;
    r = 0;
    for (uint32_t i = 0; i < KILN_ARRAY_LEN(types); i++) {
        const struct kiln_elf_section *section = of_type(elf, types[i]);
        int failed = section ? read_section(table, elf, section) : 0;

        if (failed == -ENOMEM)
            return failed;
        if (failed < 0)
            r = failed;
    }
    return r;
}
