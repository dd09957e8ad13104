/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stubs of procedure linkage tables (x86-64).  Whatever linker made it, a stub jumps through a slot
 * of the global offset table,
 *
 *   [f3 0f 1e fa  endbr64]  [f2  bnd]  ff 25 DISPLACEMENT  jmp *DISPLACEMENT(%rip)
 *
 * and a relocation (24 bytes: u64 slot, u32 type, u32 symbol, i64 addend) says whose address that
 * slot gets: that of a symbol, or what the function at the addend chooses (IRELATIVE).  So the
 * stubs are decoded and looked up by slot.
 */
#include <elf.h>
#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "symbol/names_int.h"

enum {
    PLT_MAX = 4 << 20,
    RELOCATIONS_MAX = 8 << 20, /* bytes of .rela.dyn, which is only of use for .plt.got */
    SLOTS_MAX = 1 << 18,
    CHUNK = 512,
    STUB_LEAST = 8,
};

/* Slots, as symbols at the address of the slot. */
struct slots {
    struct kiln_symtab *table;
    const struct kiln_elf *elf;
    const struct kiln_elf_section *symbols; /* .dynsym */
    uint32_t first, text_size;              /* of its names */
    struct kiln_symtab_entry *slots;
    uint32_t n, cap;
    bool can_find; /* what the table has so far */
};

/* .dynsym, and where its names are in the table's texts.  A program that is static has none. */
static void find_names(struct slots *slots)
{
    const struct kiln_elf *elf = slots->elf;
    const struct kiln_elf_section *symbols = kiln_elf_section(elf, ".dynsym");
    const struct kiln_elf_section *text;

    if (!symbols || symbols->link >= elf->n_sections)
        return;
    text = elf->sections + symbols->link;
    for (uint32_t i = 0; i < slots->table->n_texts; i++) {
        const struct kiln_symtab_text *known = slots->table->texts + i;

        if (known->bytes.fd != elf->bytes.fd || known->bytes.data != elf->bytes.data ||
            known->offset != text->offset)
            continue;
        slots->first = known->first;
        slots->text_size = known->size;
        slots->symbols = symbols;
    }
}

static int add_slot(struct slots *slots, uint64_t address, uint32_t name)
{
    int r = kiln_grow(&slots->table->budget, (void **)&slots->slots, &slots->cap,
                      (uint64_t)slots->n + 1, sizeof(*slots->slots), SLOTS_MAX);

    if (r == 0)
        slots->slots[slots->n++] = (struct kiln_symtab_entry){.address = address, .name = name};
    return r;
}

/* The slot of a function that is chosen when the program starts: it has the name of what chooses.
 */
static int add_chosen(struct slots *slots, const Elf64_Rela *relocation)
{
    const struct kiln_symtab_entry *symbol;
    struct kiln_str name;
    int r = slots->can_find ? 0 : kiln_symtab_finish(slots->table);

    if (r < 0)
        return r;
    slots->can_find = true;
    if (!kiln_symtab_find(slots->table, (uint64_t)relocation->r_addend, &symbol, &name))
        return 0;
    return add_slot(slots, relocation->r_offset, symbol->name);
}

static int add_relocation(struct slots *slots, const Elf64_Rela *relocation)
{
    uint64_t number = ELF64_R_SYM(relocation->r_info);
    uint32_t type = (uint32_t)ELF64_R_TYPE(relocation->r_info);
    Elf64_Sym symbol;
    int r;

    if (type == R_X86_64_IRELATIVE)
        return add_chosen(slots, relocation);
    if ((type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT) || number == 0 ||
        !slots->symbols || number >= slots->symbols->size / sizeof(symbol))
        return 0;
    r = slots->elf->bytes.read(&slots->elf->bytes, slots->symbols->offset + number * sizeof(symbol),
                               &symbol, sizeof(symbol));
    if (r < 0 || symbol.st_name == 0 || symbol.st_name >= slots->text_size)
        return r;
    return add_slot(slots, relocation->r_offset, slots->first + symbol.st_name);
}

static int read_slots(struct slots *slots, const char *name)
{
    const struct kiln_elf_section *section = kiln_elf_section(slots->elf, name);
    Elf64_Rela chunk[CHUNK];
    uint64_t left = section ? section->size / sizeof(*chunk) : 0;
    uint64_t offset = section ? section->offset : 0;

    if (section && (section->type != SHT_RELA || section->size > RELOCATIONS_MAX))
        return 0;
    while (left > 0) {
        uint32_t n = left < CHUNK ? (uint32_t)left : CHUNK;
        int r = slots->elf->bytes.read(&slots->elf->bytes, offset, chunk, n * sizeof(*chunk));

        for (uint32_t i = 0; r == 0 && i < n; i++)
            r = add_relocation(slots, chunk + i);
        if (r < 0)
            return r;
        offset += n * sizeof(*chunk);
        left -= n;
    }
    return 0;
}

static const struct kiln_symtab_entry *slot_at(const struct slots *slots, uint64_t address)
{
    uint32_t low = 0;
    uint32_t high = slots->n;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (slots->slots[middle].address < address)
            low = middle + 1;
        else
            high = middle;
    }
    return low < slots->n && slots->slots[low].address == address ? slots->slots + low : NULL;
}

/* The slot that the stub at `address` jumps through; 0: it is none. */
static uint64_t decode_stub(const uint8_t *code, size_t n, uint64_t address)
{
    static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
    size_t at = n >= 4 && memcmp(code, endbr64, 4) == 0 ? 4 : 0;
    int32_t displacement;

    if (at < n && code[at] == 0xf2)
        at++;
    if (n - at < 6 || code[at] != 0xff || code[at + 1] != 0x25)
        return 0;
    memcpy(&displacement, code + at + 2, sizeof(displacement));
    return address + at + 6 + (uint64_t)(int64_t)displacement;
}

/* Stubs have 16 bytes, or 8 where nothing is ever bound late. */
static int add_stubs(const struct slots *slots, const struct kiln_elf_section *section,
                     const uint8_t *code, size_t n)
{
    const struct kiln_symtab_entry *slot = NULL;

    for (size_t at = 0; at < n; at += STUB_LEAST) {
        uint64_t address = section->address + at;
        const struct kiln_symtab_entry *next =
            slot_at(slots, decode_stub(code + at, n - at, address));
        int r = 0;

        if (next)
            r = kiln_symtab_add(slots->table,
                                (struct kiln_symtab_entry){
                                    .address = address,
                                    .name = next->name,
                                    .info = kiln_symtab_info(STUB_LEAST, false, KILN_SYMTAB_PLT)});
        else if (slot)
            slots->table->symbols[slots->table->n - 1].info =
                kiln_symtab_info(2 * STUB_LEAST, false, KILN_SYMTAB_PLT);
        if (r < 0)
            return r;
        slot = next;
    }
    return 0;
}

static int read_stubs(const struct slots *slots, const char *name)
{
    const struct kiln_elf_section *section = kiln_elf_section(slots->elf, name);
    void *code;
    size_t n;
    int r;

    if (!section || !(section->flags & SHF_EXECINSTR))
        return 0;
    r = kiln_elf_load(slots->elf, section, PLT_MAX, &code, &n);
    if (r < 0)
        return r;
    r = add_stubs(slots, section, code, n);
    kiln_free(code);
    return r;
}

int kiln_names_read_plt(struct kiln_symtab *table, const struct kiln_elf *elf)
{
    struct slots slots = {.table = table, .elf = elf};
    int r;

    if (elf->machine != EM_X86_64)
        return 0;
    find_names(&slots);
    r = read_slots(&slots, ".rela.plt");
    if (r == 0 && kiln_elf_section(elf, ".plt.got"))
        r = read_slots(&slots, ".rela.dyn");
    kiln_symtab_sort(slots.slots, slots.n);
    if (r == 0)
        r = read_stubs(&slots, ".plt");
    if (r == 0)
        r = read_stubs(&slots, ".plt.sec");
    if (r == 0)
        r = read_stubs(&slots, ".plt.got");
    kiln_array_free(&table->budget, (void **)&slots.slots, &slots.cap, sizeof(*slots.slots));
    return r;
}
