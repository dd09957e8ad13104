/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a Go program has its table, and where its code begins.
 *
 * The table is a section of its own, but linkers of C fold it into .data.rel.ro, and a file may
 * have lost its section headers: then it is found by its magic number, which stands at a multiple
 * of 8.  The address that functions are counted from is in the table's header up to Go 1.25, and in
 * the module's data from then on (.go.module; else found by its first two words, which point into
 * the table).  In position-independent programs these words may be zero in the file, with the value
 * in a relocation: then the module's data is found by two relocations that follow each other.
 *
 * The module's data also says where the trees of inlined calls are (gofunc).  It has been there
 * since Go 1.18, 16 bytes later since 1.20, and is the same in 1.26, which moved what it points to.
 */
#include <elf.h>
#include <errno.h>

#include "base/err.h"
#include "symbol/cursor.h"
#include "symbol/gopcln_int.h"

enum {
    SCAN_MAX = 64 << 20, /* bytes looked at for what has no name */
    MODULE_TEXT = 176,   /* of runtime.moduledata, Go 1.18 and newer */
    MODULE_TREES_1_18 = 304,
    MODULE_TREES_1_20 = 320,
    RELOCATION = 24, /* bytes */
};

bool kiln_gopcln_is_magic(const uint8_t *head)
{
    uint32_t magic = kiln_get_32(head);

    return (magic == KILN_GO_1_16 || magic == KILN_GO_1_18 || magic == KILN_GO_1_20) &&
           head[4] == 0 && head[5] == 0 && (head[6] == 1 || head[6] == 2 || head[6] == 4) &&
           head[7] == 8;
}

/* Calls back for the words of a range of the file, at multiples of 8, until one is it. */
static bool scan(struct kiln_gopcln *pcln, uint64_t offset, uint64_t size,
                 bool (*is_it)(const struct kiln_gopcln *pcln, const uint8_t *at),
                 uint64_t *ret_offset)
{
    uint64_t skip = -offset & 7;

    if (size > SCAN_MAX)
        size = SCAN_MAX;
    for (uint64_t at = skip; size >= 16 && at <= size - 16;) {
        size_t n, i;
        const uint8_t *seen = kiln_window_see(
            &pcln->window, offset + at, 16,
            size - at < KILN_WINDOW_MAX ? (size_t)(size - at) : KILN_WINDOW_MAX, &n);

        for (i = 0; seen && i + 16 <= n; i += 8) {
            if (is_it(pcln, seen + i)) {
                *ret_offset = offset + at + i;
                return true;
            }
        }
        if (!seen)
            return false;
        at += i;
    }
    return false;
}

static bool is_table(const struct kiln_gopcln *pcln, const uint8_t *at)
{
    (void)pcln;
    return kiln_gopcln_is_magic(at);
}

static bool is_module(const struct kiln_gopcln *pcln, const uint8_t *at)
{
    return kiln_get_64(at) == pcln->address && kiln_get_64(at + 8) == pcln->address + pcln->names;
}

static bool scan_segments(struct kiln_gopcln *pcln,
                          bool (*is_it)(const struct kiln_gopcln *pcln, const uint8_t *at),
                          const struct kiln_elf_segment **ret_segment, uint64_t *ret_offset)
{
    for (uint32_t i = 0; i < pcln->elf->n_segments; i++) {
        const struct kiln_elf_segment *s = &pcln->elf->segments[i];

        if (s->type == PT_LOAD && !(s->flags & PF_X) &&
            scan(pcln, s->offset, s->file_size, is_it, ret_offset)) {
            *ret_segment = s;
            return true;
        }
    }
    return false;
}

int kiln_gopcln_locate(struct kiln_gopcln *pcln)
{
    const struct kiln_elf_section *section = kiln_elf_section(pcln->elf, ".gopclntab");
    const struct kiln_elf_segment *segment;
    char go[8];

    if (!section)
        section = kiln_elf_section(pcln->elf, ".data.rel.ro.gopclntab");
    if (section && section->type != SHT_NOBITS) {
        pcln->address = section->address;
        pcln->offset = section->offset;
        pcln->size = section->size;
        return 0;
    }
    if (kiln_elf_go_build_id(pcln->elf, go, sizeof(go)) < 0 ||
        !scan_segments(pcln, is_table, &segment, &pcln->offset))
        return -ENOENT;
    pcln->address = segment->address + (pcln->offset - segment->offset);
    pcln->size = segment->file_size - (pcln->offset - segment->offset);
    return 0;
}

/* What is looked for among the words that the dynamic linker will write. */
struct sought {
    bool (*is_it)(const struct kiln_gopcln *pcln, struct sought *sought, uint64_t address,
                  uint64_t value);
    uint64_t address;
    uint64_t found; /* 0: nothing */
};

static void seek(struct kiln_gopcln *pcln, const struct kiln_elf_section *s, struct sought *sought)
{
    uint32_t relative = pcln->elf->machine == EM_AARCH64 ? R_AARCH64_RELATIVE : R_X86_64_RELATIVE;
    uint64_t size = s->size < SCAN_MAX ? s->size : SCAN_MAX;

    for (uint64_t at = 0; size >= RELOCATION && at <= size - RELOCATION; at += RELOCATION) {
        size_t n;
        const uint8_t *seen =
            kiln_window_see(&pcln->window, s->offset + at, RELOCATION, RELOCATION, &n);

        if (!seen || (kiln_get_32(seen + 8) == relative &&
                      sought->is_it(pcln, sought, kiln_get_64(seen), kiln_get_64(seen + 16))))
            return;
    }
}

static uint64_t sought_in_relocations(struct kiln_gopcln *pcln, struct sought sought)
{
    for (uint32_t i = 0; i < pcln->elf->n_sections && !sought.found; i++) {
        const struct kiln_elf_section *s = &pcln->elf->sections[i];

        if (s->type == SHT_RELA && s->flags & SHF_ALLOC)
            seek(pcln, s, &sought);
    }
    return sought.found;
}

static bool is_of_address(const struct kiln_gopcln *pcln, struct sought *sought, uint64_t address,
                          uint64_t value)
{
    (void)pcln;
    if (address == sought->address)
        sought->found = value;
    return address == sought->address;
}

/* What the dynamic linker will write to an address; 0: nothing. */
static uint64_t relocated(struct kiln_gopcln *pcln, uint64_t address)
{
    return sought_in_relocations(pcln, (struct sought){.is_it = is_of_address, .address = address});
}

static uint64_t pointer_at(struct kiln_gopcln *pcln, uint64_t address)
{
    uint8_t word[8];

    if (kiln_elf_read(pcln->elf, address, word, sizeof(word)) < 0)
        return 0;
    return kiln_get_64(word) ? kiln_get_64(word) : relocated(pcln, address);
}

/* The second word of the module's data, if that before it was the first one. */
static bool is_in_module(const struct kiln_gopcln *pcln, struct sought *sought, uint64_t address,
                         uint64_t value)
{
    if (value == pcln->address)
        sought->address = address;
    if (value != pcln->address + pcln->names || !sought->address || address != sought->address + 8)
        return false;
    sought->found = sought->address;
    return true;
}

/* The address of runtime.firstmoduledata; 0: not found. */
static uint64_t find_module(struct kiln_gopcln *pcln)
{
    const struct kiln_elf_section *section = kiln_elf_section(pcln->elf, ".go.module");
    const struct kiln_elf_segment *segment;
    uint64_t offset;

    if (section)
        return section->address;
    if (scan_segments(pcln, is_module, &segment, &offset))
        return segment->address + (offset - segment->offset);
    return sought_in_relocations(pcln, (struct sought){.is_it = is_in_module});
}

uint64_t kiln_gopcln_text(struct kiln_gopcln *pcln, uint64_t in_header)
{
    uint64_t text = in_header, module;

    if (!text)
        text = relocated(pcln, pcln->address + KILN_GO_TEXT_START);
    if (!text) {
        module = find_module(pcln);
        text = module ? pointer_at(pcln, module + MODULE_TEXT) : 0;
    }
    return text;
}

void kiln_gopcln_find_trees(struct kiln_gopcln *pcln)
{
    uint64_t module = kiln_gopcln_has_1_18(pcln) ? find_module(pcln) : 0;
    uint64_t trees = 0;

    if (module)
        trees = pointer_at(
            pcln, module + (pcln->magic == KILN_GO_1_18 ? MODULE_TREES_1_18 : MODULE_TREES_1_20));
    for (uint32_t i = 0; trees && i < pcln->elf->n_segments; i++) {
        const struct kiln_elf_segment *s = &pcln->elf->segments[i];

        if (s->type != PT_LOAD || trees < s->address || trees - s->address >= s->file_size)
            continue;
        pcln->trees = s->offset + (trees - s->address);
        pcln->trees_end = s->offset + s->file_size;
        return;
    }
}
