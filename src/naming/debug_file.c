/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kinds are told apart by where the code is: an executable has it, in a debug file its sections
 * are there by name alone (SHT_NOBITS).
 *
 * Places.  Profiles speak of places in the executable; symbols and DWARF of its addresses.  The
 * program headers have both, in the executable.  Debug files keep the program headers:
 *
 *   eu-strip -f                 as they were: offset and size are the executable's
 *   objcopy --only-keep-debug   addresses and memory sizes as they were, but offsets and file sizes
 *   (dh_strip)                  of what is left: a segment of code has no bytes
 *
 * Where a segment of code has fewer bytes than memory, its offset is found again by doing what
 * linkers do: segments lie in the file in the order of their addresses, each at the first place
 * behind the one before that is congruent to its address modulo its alignment.  (GNU ld, gold, lld,
 * with and without -z separate-code, and Go's linker.)  A segment that begins at a whole page, and
 * more than a page behind the end of the one before, was moved there by the alignment of its first
 * section: GNU ld moves place and address by the same.  Of the 3,490 segments of code that a Debian
 * with compilers, Java, Node.js and Go has in its files this finds all.
 */
#include "naming/debug_file.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/bytetext.h"

static const char *const kind_names[KILN_DEBUG_KINDS] = {"executable", "debuginfo", "dwp"};

const char *kiln_debug_kind_name(enum kiln_debug_kind kind)
{
    return kind_names[kind];
}

/* ---- what it is ---- */

static bool is_code(const struct kiln_elf_segment *s)
{
    return s->type == PT_LOAD && (s->flags & PF_X) && s->memory_size > 0;
}

static bool has_code(const struct kiln_elf *elf)
{
    for (uint32_t i = 0; i < elf->n_sections; i++) {
        const struct kiln_elf_section *s = &elf->sections[i];

        if ((s->flags & SHF_EXECINSTR) && s->type != SHT_NOBITS && s->size > 0)
            return true;
    }
    for (uint32_t i = 0; elf->n_sections == 0 && i < elf->n_segments; i++)
        if (is_code(&elf->segments[i]) && elf->segments[i].file_size > 0)
            return true;
    return false;
}

static bool has(const struct kiln_elf *elf, const char *name)
{
    const struct kiln_elf_section *s = kiln_elf_section(elf, name);

    return s && s->type != SHT_NOBITS && s->size > 0;
}

/* Where the headers end and sections lie must be inside of the file. */
static bool is_whole(const struct kiln_elf *elf)
{
    uint64_t sections_at, end;

    if (elf->bytes.read(&elf->bytes, offsetof(Elf64_Ehdr, e_shoff), &sections_at,
                        sizeof(sections_at)) < 0 ||
        (sections_at && elf->n_sections == 0))
        return false;
    for (uint32_t i = 1; i < elf->n_sections; i++) {
        const struct kiln_elf_section *s = &elf->sections[i];

        if (s->type != SHT_NOBITS && s->type != SHT_NULL &&
            (__builtin_add_overflow(s->offset, s->size, &end) || end > elf->bytes.size))
            return false;
    }
    return true;
}

static void read_ids(const struct kiln_elf *elf, struct kiln_debug_facts *facts)
{
    uint8_t id[KILN_BUILD_ID_MAX], len;

    if (kiln_elf_build_id(elf, id, &len) == 0)
        kiln_hex_encode(id, len, facts->gnu);
    if (kiln_elf_go_build_id(elf, facts->go, sizeof(facts->go)) < 0)
        facts->go[0] = '\0';
    if (kiln_elf_hash(&elf->bytes, facts->hash) < 0)
        facts->hash[0] = '\0';
}

static int read_facts(const struct kiln_elf *elf, struct kiln_debug_facts *facts,
                      struct kiln_err *err)
{
    if (!is_whole(elf))
        return kiln_err_set(err, KILN_E_TRUNCATED, NULL,
                            "the ELF file ends before its sections do");
    facts->bytes = elf->bytes.size;
    facts->has_symtab = has(elf, ".symtab");
    facts->has_lines = has(elf, ".debug_info") || has(elf, ".zdebug_info");
    read_ids(elf, facts);
    if (has_code(elf))
        facts->kind = KILN_DEBUG_EXECUTABLE;
    else if (has(elf, ".debug_cu_index") || has(elf, ".debug_tu_index"))
        facts->kind = KILN_DEBUG_DWP;
    else if (facts->has_symtab || facts->has_lines)
        facts->kind = KILN_DEBUG_INFO;
    else
        return kiln_err_set(err, -ENODATA, NULL,
                            "there is neither code nor debug information in it");
    return 0;
}

int kiln_debug_inspect(const struct kiln_bytes *bytes, struct kiln_debug_facts *ret_facts,
                       struct kiln_err *err)
{
    struct kiln_debug_facts facts = {.kind = KILN_DEBUG_EXECUTABLE};
    struct kiln_elf *elf;
    int r = kiln_elf_open(bytes, &elf);

    if (r == KILN_E_UNKNOWN)
        return kiln_err_set(err, r, NULL, "this is no ELF file");
    if (r == KILN_E_UNSUPPORTED)
        return kiln_err_set(err, r, NULL, "this ELF file is not of 64 bits and little-endian");
    if (r < 0)
        return kiln_err_set(err, r, NULL, "the ELF file cannot be read: %s", kiln_err_text(r));
    r = read_facts(elf, &facts, err);
    kiln_elf_close(elf);
    if (r == 0)
        *ret_facts = facts;
    return r;
}

static bool is_id(const char *id, struct kiln_str build_id)
{
    return id[0] && strlen(id) == build_id.len && strncasecmp(id, build_id.ptr, build_id.len) == 0;
}

bool kiln_debug_facts_match(const struct kiln_debug_facts *facts, struct kiln_str build_id)
{
    return is_id(facts->gnu, build_id) || is_id(facts->hash, build_id) ||
           (facts->go[0] && kiln_str_eq(kiln_str_of(facts->go), build_id));
}

const char *kiln_debug_build_id(const struct kiln_debug_facts *facts)
{
    return facts->gnu[0] ? facts->gnu : facts->go[0] ? facts->go : facts->hash;
}

/* ---- places and addresses ---- */

/* Where the linker put a segment whose predecessors end at these. */
static uint64_t place_again(const struct kiln_elf_segment *s, uint64_t place_end,
                            uint64_t address_end)
{
    uint64_t align = s->align ? s->align : 1, into = s->address % align;
    uint64_t place = place_end / align * align + into;

    if (place < place_end)
        place += align;
    if (address_end && into == 0 && s->address > address_end && s->address - address_end > align)
        place = place_end + (s->address - address_end);
    return place;
}

static void add_segment(struct kiln_debug_map *map, const struct kiln_elf_segment *s,
                        uint64_t place)
{
    uint64_t end;

    if (map->n == KILN_DEBUG_SEGMENTS || __builtin_add_overflow(place, s->memory_size, &end) ||
        __builtin_add_overflow(s->address, s->memory_size, &end))
        return;
    map->segments[map->n].place = place;
    map->segments[map->n].address = s->address;
    map->segments[map->n++].size = s->memory_size;
}

/* Whether the program headers tell where things are in this file, and not in the executable. */
static bool is_moved(const struct kiln_elf *elf)
{
    for (uint32_t i = 0; i < elf->n_segments; i++)
        if (is_code(&elf->segments[i]) && elf->segments[i].file_size < elf->segments[i].memory_size)
            return !has_code(elf);
    return false;
}

int kiln_debug_map_make(const struct kiln_elf *elf, struct kiln_debug_map *ret_map)
{
    uint64_t place_end = 0, address_end = 0;
    struct kiln_debug_map map = {.n = 0};
    bool moved = is_moved(elf);

    for (uint32_t i = 0; i < elf->n_segments; i++) {
        const struct kiln_elf_segment *s = &elf->segments[i];
        uint64_t place = s->offset;

        if (s->type != PT_LOAD)
            continue;
        if (moved)
            place = place_again(s, place_end, address_end);
        if (is_code(s))
            add_segment(&map, s, place);
        if (__builtin_add_overflow(place, s->memory_size, &place_end) ||
            __builtin_add_overflow(s->address, s->memory_size, &address_end))
            break;
    }
    if (map.n == 0)
        return -ENOENT;
    *ret_map = map;
    return 0;
}

int kiln_debug_map_load(int fd, struct kiln_debug_map *ret_map)
{
    struct kiln_bytes bytes;
    struct kiln_elf *elf;
    int r = kiln_bytes_file(fd, &bytes);

    if (r == 0)
        r = kiln_elf_open(&bytes, &elf);
    if (r < 0)
        return r;
    r = kiln_debug_map_make(elf, ret_map);
    kiln_elf_close(elf);
    return r;
}

bool kiln_debug_map_address(const struct kiln_debug_map *map, uint64_t place, uint64_t *ret_address)
{
    for (uint32_t i = 0; i < map->n; i++) {
        if (place >= map->segments[i].place &&
            place - map->segments[i].place < map->segments[i].size) {
            *ret_address = place - map->segments[i].place + map->segments[i].address;
            return true;
        }
    }
    for (uint32_t i = 0; i < map->n; i++) {
        if (place >= map->segments[i].address &&
            place - map->segments[i].address < map->segments[i].size) {
            *ret_address = place;
            return true;
        }
    }
    return false;
}
