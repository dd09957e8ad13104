/* SPDX-License-Identifier: Apache-2.0 */
/* The tables below are what readelf -l shows of a small program, linked by each linker, and of the
 * debug files that were split off it. */
#include <elf.h>
#include <errno.h>

#include "elf_maker.h"
#include "naming/debug_file.h"
#include "test.h"

enum { R = PF_R, RX = PF_R | PF_X, RW = PF_R | PF_W };

#define LOAD(offset, address, file_size, memory_size, flags)                                       \
    {                                                                                              \
        PT_LOAD, (flags), (offset), (address), (file_size), (memory_size), 0x1000                  \
    }

/* Where an address of the file is said to be, or 0. */
static uint64_t address_of(const struct kiln_elf_segment *segments, uint32_t n, bool debug,
                           uint64_t place)
{
    const struct kiln_elf_section text = {.name = ".text",
                                          .type = debug ? SHT_NOBITS : SHT_PROGBITS,
                                          .flags = SHF_ALLOC | SHF_EXECINSTR,
                                          .size = 16};
    struct kiln_elf elf = {
        .segments = segments, .n_segments = n, .sections = &text, .n_sections = 1};
    struct kiln_debug_map map;
    uint64_t address = 0;

    CHECK_OK(kiln_debug_map_make(&elf, &map));
    return kiln_debug_map_address(&map, place, &address) ? address : 0;
}

TEST(debug_file, a_place_in_an_executable_has_the_address_of_its_segment)
{
    static const struct kiln_elf_segment s[] = {LOAD(0, 0x400000, 0x4f0, 0x4f0, R),
                                                LOAD(0x1000, 0x401000, 0x181, 0x181, RX),
                                                LOAD(0x2000, 0x402000, 0xf0, 0xf0, R)};

    CHECK_EQ(address_of(s, 3, false, 0x1126), 0x401126);
    CHECK_EQ(address_of(s, 3, false, 0x401126), 0x401126); /* without a mapping: it is one */
    CHECK_EQ(address_of(s, 3, false, 0x2010), 0);          /* no code */
}

TEST(debug_file, what_eu_strip_splits_off_keeps_the_places)
{
    static const struct kiln_elf_segment s[] = {LOAD(0, 0, 0x67c, 0x67c, R),
                                                LOAD(0x680, 0x1680, 0x190, 0x190, RX)};

    CHECK_EQ(address_of(s, 2, true, 0x780), 0x1780);
}

TEST(debug_file, what_objcopy_splits_off_has_its_places_found_again)
{
    static const struct kiln_elf_segment pie[] = {LOAD(0, 0, 0x39c, 0x618, R),
                                                  LOAD(0, 0x1000, 0, 0x195, RX)};
    static const struct kiln_elf_segment fixed[] = {LOAD(0, 0x400000, 0x39c, 0x4f0, R),
                                                    LOAD(0, 0x401000, 0, 0x181, RX)};
    static const struct kiln_elf_segment gold[] = {LOAD(0, 0, 0x2f4, 0x7f8, RX),
                                                   LOAD(0xdc0, 0x1dc0, 0, 0x261, RW)};
    static const struct kiln_elf_segment lld[] = {LOAD(0, 0, 0x2fc, 0x67c, R),
                                                  LOAD(0x680, 0x1680, 0, 0x190, RX)};

    CHECK_EQ(address_of(pie, 2, true, 0x1139), 0x1139);
    CHECK_EQ(address_of(fixed, 2, true, 0x1126), 0x401126);
    CHECK_EQ(address_of(gold, 2, true, 0x600), 0x600);
    CHECK_EQ(address_of(lld, 2, true, 0x780), 0x1780);
}

TEST(debug_file, code_that_was_aligned_to_more_than_a_page_keeps_its_distance)
{
    /* Node.js: its code is aligned to 2 MB, behind a small segment of code of its own. */
    static const struct kiln_elf_segment s[] = {
        LOAD(0, 0x400000, 0x3000, 0x76e5d8, R), LOAD(0, 0xb6f000, 0, 0x1e90, RX),
        LOAD(0, 0xb72000, 0, 0x1a8bca0, RX), LOAD(0, 0x2600000, 0, 0x1f1, RX)};

    CHECK_EQ(address_of(s, 4, true, 0x76f010), 0xb6f010);
    CHECK_EQ(address_of(s, 4, true, 0x772010), 0xb72010);
    CHECK_EQ(address_of(s, 4, true, 0x2200010), 0x2600010);
}

TEST(debug_file, headers_that_lie_are_no_harm)
{
    static const struct kiln_elf_segment s[] = {
        {PT_LOAD, RX, UINT64_MAX, UINT64_MAX - 5, 3, UINT64_MAX, UINT64_MAX},
        {PT_LOAD, RX, 5, 0x1000, 0, 16, 0}};
    struct kiln_elf elf = {.segments = s, .n_segments = 2};
    struct kiln_debug_map map;

    (void)!kiln_debug_map_make(&elf, &map);
    elf.n_segments = 0;
    CHECK_EQ(kiln_debug_map_make(&elf, &map), -ENOENT);
}

/* ---- what a file is ---- */

static const uint8_t note[] = "\4\0\0\0\4\0\0\0\3\0\0\0GNU\0\xab\xcd\xef\x01";

static struct elf_maker maker;

static int inspect(struct kiln_debug_facts *facts, size_t cut)
{
    struct kiln_bytes bytes = elf_maker_bytes(&maker);

    bytes.size -= cut;
    return kiln_debug_inspect(&bytes, facts, NULL);
}

static void begin(uint32_t text_type)
{
    static const uint8_t code[16];

    memset(&maker, 0, sizeof(maker));
    maker.type = ET_DYN;
    elf_maker_add(&maker, (struct elf_part){.name = ".note.gnu.build-id",
                                            .type = SHT_NOTE,
                                            .data = note,
                                            .n = sizeof(note) - 1});
    elf_maker_add(&maker, (struct elf_part){.name = ".text",
                                            .type = text_type,
                                            .flags = SHF_ALLOC | SHF_EXECINSTR,
                                            .address = 0x1000,
                                            .data = code,
                                            .n = sizeof(code)});
}

TEST(debug_file, an_executable_and_its_debug_file_are_told_apart)
{
    struct kiln_debug_facts facts;

    begin(SHT_PROGBITS);
    CHECK_OK(inspect(&facts, 0));
    CHECK_EQ(facts.kind, KILN_DEBUG_EXECUTABLE);
    CHECK_TEXT(facts.gnu, "abcdef01");
    CHECK(!facts.has_lines && !facts.has_symtab);
    begin(SHT_NOBITS);
    CHECK_EQ(inspect(&facts, 0), -ENODATA);
    elf_maker_add(&maker, (struct elf_part){.name = ".debug_info", .data = "x", .n = 1});
    CHECK_OK(inspect(&facts, 0));
    CHECK_EQ(facts.kind, KILN_DEBUG_INFO);
    CHECK(facts.has_lines);
    elf_maker_add(&maker, (struct elf_part){.name = ".debug_cu_index", .data = "x", .n = 1});
    CHECK_OK(inspect(&facts, 0));
    CHECK_EQ(facts.kind, KILN_DEBUG_DWP);
}

TEST(debug_file, it_goes_by_any_of_its_build_ids)
{
    struct kiln_debug_facts facts = {.gnu = "abcdef01", .go = "Xy/z", .hash = "0123"};

    CHECK(kiln_debug_facts_match(&facts, KILN_STR("ABCDEF01")));
    CHECK(kiln_debug_facts_match(&facts, KILN_STR("Xy/z")));
    CHECK(!kiln_debug_facts_match(&facts, KILN_STR("xy/z")));
    CHECK(kiln_debug_facts_match(&facts, KILN_STR("0123")));
    CHECK(!kiln_debug_facts_match(&facts, KILN_STR("")));
}

TEST(debug_file, one_that_was_cut_off_is_no_file)
{
    struct kiln_debug_facts facts;

    begin(SHT_PROGBITS);
    CHECK_EQ(inspect(&facts, 1), KILN_E_TRUNCATED);
    CHECK(inspect(&facts, 300) < 0);
}
