/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <libdeflate.h>
#include <zstd.h>

#include "base/err.h"
#include "base/mem.h"
#include "elf_maker.h"
#include "symbol/section.h"
#include "test.h"

enum { ZLIB = 1, ZSTD = 2, OLD = 3, LARGE = 9 << 20 };

static struct elf_maker maker;
static struct kiln_budget budget;
static struct kiln_scratch scratch;
static uint64_t deadline_ns;
static struct kiln_section_room room;
static struct kiln_elf *elf;
static FILE *scratch_file;

/* The content of all sections here: every 4 KiB have a byte of their own. */
static uint8_t content(uint64_t at)
{
    return (uint8_t)((at >> 12) * 7 + (at & 1));
}

static uint8_t *make_content(size_t n)
{
    uint8_t *made = malloc(n);

    for (size_t i = 0; i < n; i++)
        made[i] = content(i);
    return made;
}

/* A compressed section that claims to become `claim` bytes; freed by the caller. */
static uint8_t *pack(int form, size_t n, uint64_t claim, size_t *ret_n)
{
    struct libdeflate_compressor *c = libdeflate_alloc_compressor(6);
    Elf64_Chdr header = {.ch_type = (uint32_t)form, .ch_size = claim, .ch_addralign = 1};
    size_t head = form == OLD ? 12 : sizeof(header), bound = n / 2 + 4096;
    uint8_t *plain = make_content(n), *packed = malloc(head + bound);

    memcpy(packed, "ZLIB", 4);
    for (int i = 0; i < 8; i++)
        packed[4 + i] = (uint8_t)(claim >> (56 - 8 * i));
    if (form != OLD)
        memcpy(packed, &header, sizeof(header));
    *ret_n = head + (form == ZSTD ? ZSTD_compress(packed + head, bound, plain, n, 3)
                                  : libdeflate_zlib_compress(c, plain, n, packed + head, bound));
    libdeflate_free_compressor(c);
    free(plain);
    return packed;
}

static void open_elf(const char *name, uint64_t flags, const void *data, size_t n)
{
    struct kiln_bytes bytes;

    maker = (struct elf_maker){.type = ET_DYN};
    elf_maker_add(&maker, (struct elf_part){.name = name, .flags = flags, .data = data, .n = n});
    elf_maker_add(
        &maker,
        (struct elf_part){.name = ".debug_str", .type = SHT_NOBITS, .data = "0123456789", .n = 10});
    bytes = elf_maker_bytes(&maker);
    CHECK_OK(kiln_elf_open(&bytes, &elf));
    budget = (struct kiln_budget){.limit = 32 << 20};
    deadline_ns = 0;
    room = (struct kiln_section_room){.budget = &budget, .deadline_ns = &deadline_ns};
}

static void open_packed(int form, size_t n, uint64_t claim)
{
    size_t n_packed;
    uint8_t *packed = pack(form, n, claim, &n_packed);

    open_elf(form == OLD ? ".zdebug_info" : ".debug_info", form == OLD ? 0 : SHF_COMPRESSED, packed,
             n_packed);
    free(packed);
}

static void add_scratch(uint64_t max)
{
    scratch_file = tmpfile();
    CHECK(scratch_file);
    scratch = (struct kiln_scratch){.fd = fileno(scratch_file), .max = max};
    room.scratch = &scratch;
}

static void close_all(void)
{
    kiln_elf_close(elf);
    CHECK_EQ(budget.used, 0);
    CHECK_EQ(scratch.n, 0);
    if (scratch_file)
        fclose(scratch_file);
    scratch_file = NULL;
}

static void check_at(const struct kiln_section *section, uint64_t at)
{
    uint8_t seen[2];

    CHECK_OK(kiln_section_read(section, at, seen, 2));
    CHECK_EQ(seen[0], content(at));
    CHECK_EQ(seen[1], content(at + 1));
}

TEST(section, a_plain_one_is_read_from_its_file)
{
    struct kiln_section section;
    char to[8] = "";

    open_elf(".debug_info", 0, "some bytes", 10);
    CHECK_OK(kiln_section_open(elf, ".debug_info", &room, &section));
    CHECK_EQ(section.size, 10);
    CHECK_OK(kiln_section_read(&section, 5, to, 5));
    CHECK_TEXT(to, "bytes");
    CHECK_EQ(kiln_section_read(&section, 6, to, 5), KILN_E_TRUNCATED);
    CHECK_EQ(kiln_section_read(&section, UINT64_MAX, to, 2), KILN_E_TRUNCATED);
    kiln_section_done(&section);
    close_all();
}

TEST(section, one_that_is_not_there_is_empty)
{
    struct kiln_section section;
    char to[1];

    open_elf(".debug_info", 0, "some bytes", 10);
    CHECK_EQ(kiln_section_open(elf, ".debug_line", &room, &section), -ENOENT);
    CHECK_EQ(section.size, 0);
    CHECK_EQ(kiln_section_read(&section, 0, to, 1), KILN_E_TRUNCATED);
    kiln_section_done(&section);
    CHECK_EQ(kiln_section_open(elf, ".debug_str", &room, &section), -ENOENT);
    close_all();
}

TEST(section, small_compressed_ones_are_inflated_in_memory)
{
    for (int form = ZLIB; form <= OLD; form++) {
        struct kiln_section section;

        open_packed(form, 20000, 20000);
        CHECK_OK(kiln_section_open(elf, ".debug_info", &room, &section));
        CHECK_EQ(section.size, 20000);
        CHECK_EQ(budget.used, 0);
        check_at(&section, 19998);
        check_at(&section, 0);
        CHECK_EQ(budget.used, 20000);
        CHECK_EQ(kiln_section_memory(&section)[5000], content(5000));
        kiln_section_done(&section);
        close_all();
    }
}

TEST(section, large_ones_are_inflated_into_the_scratch_file_as_far_as_they_are_read)
{
    for (int form = ZLIB; form <= OLD; form++) {
        struct kiln_section section;

        open_packed(form, LARGE, LARGE);
        add_scratch(16 << 20);
        CHECK_OK(kiln_section_open(elf, ".debug_info", &room, &section));
        check_at(&section, 5000);
        fseek(scratch_file, 0, SEEK_END);
        CHECK(ftell(scratch_file) < 1 << 20);
        for (uint64_t at = 0; at < LARGE; at += 99998)
            check_at(&section, at);
        check_at(&section, LARGE - 2);
        CHECK(!kiln_section_memory(&section));
        CHECK(budget.peak < 10 << 20);
        CHECK_EQ(budget.used, 0);
        kiln_section_done(&section);
        fseek(scratch_file, 0, SEEK_END);
        CHECK_EQ(ftell(scratch_file), 0);
        close_all();
    }
}

TEST(section, without_a_scratch_file_large_ones_are_inflated_in_memory)
{
    struct kiln_section section;

    open_packed(ZLIB, LARGE, LARGE);
    CHECK_OK(kiln_section_open(elf, ".debug_info", &room, &section));
    check_at(&section, LARGE - 2);
    check_at(&section, 77777);
    CHECK_EQ(budget.used, LARGE);
    kiln_section_done(&section);
    budget.limit = LARGE;
    CHECK_EQ(kiln_section_open(elf, ".debug_info", &room, &section), KILN_E_LIMIT);
    close_all();
}

TEST(section, past_the_deadline_inflating_goes_on_when_asked_again)
{
    struct kiln_section section;
    uint8_t to[2];
    int asked = 1;

    open_packed(ZLIB, LARGE, LARGE);
    add_scratch(16 << 20);
    CHECK_OK(kiln_section_open(elf, ".debug_info", &room, &section));
    deadline_ns = 1;
    for (int r = -EAGAIN; r == -EAGAIN && asked < 1000; asked++)
        r = kiln_section_read(&section, LARGE - 2, to, 2);
    CHECK(asked > 10 && asked < 1000);
    CHECK_EQ(to[1], content(LARGE - 1));
    check_at(&section, 123456);
    kiln_section_done(&section);
    close_all();
}

TEST(section, several_share_the_scratch_file_and_leave_their_place_to_others)
{
    struct kiln_section a, b, c;

    open_packed(ZLIB, LARGE, LARGE);
    add_scratch(2 * LARGE + 1);
    CHECK_OK(kiln_section_open(elf, ".debug_info", &room, &a));
    CHECK_OK(kiln_section_open(elf, ".debug_info", &room, &b));
    CHECK_EQ(kiln_section_open(elf, ".debug_info", &room, &c), KILN_E_LIMIT);
    check_at(&b, LARGE - 2);
    kiln_section_done(&a);
    CHECK_OK(kiln_section_open(elf, ".debug_info", &room, &c));
    check_at(&c, LARGE - 2);
    check_at(&b, 4096);
    kiln_section_done(&b);
    check_at(&c, 4096);
    kiln_section_done(&c);
    close_all();
}

TEST(section, a_claim_that_cannot_be_true_or_is_too_large_is_refused)
{
    struct kiln_section section;

    open_packed(ZLIB, 20000, UINT64_C(1) << 40);
    CHECK_EQ(kiln_section_open(elf, ".debug_info", &room, &section), KILN_E_CORRUPT);
    close_all();
    open_packed(ZSTD, 20000, UINT64_MAX);
    CHECK_EQ(kiln_section_open(elf, ".debug_info", &room, &section), KILN_E_LIMIT);
    add_scratch(1 << 30);
    CHECK_EQ(kiln_section_open(elf, ".debug_info", &room, &section), KILN_E_LIMIT);
    close_all();
}

TEST(section, less_than_was_claimed_is_an_error_where_it_ends)
{
    for (int form = ZLIB; form <= ZSTD; form++) {
        struct kiln_section section;
        uint8_t to[2];

        open_packed(form, LARGE, LARGE + 500);
        add_scratch(16 << 20);
        CHECK_OK(kiln_section_open(elf, ".debug_info", &room, &section));
        check_at(&section, 1 << 20);
        CHECK(kiln_section_read(&section, LARGE + 100, to, 2) < 0);
        CHECK(kiln_section_read(&section, LARGE + 100, to, 2) < 0);
        check_at(&section, 1 << 20);
        kiln_section_done(&section);
        close_all();
    }
}

TEST(section, damaged_data_is_an_error_and_not_what_it_would_become)
{
    for (int form = ZLIB; form <= ZSTD; form++) {
        struct kiln_section section;
        uint8_t to[2];

        open_packed(form, 20000, 20000);
        maker.data[kiln_elf_section(elf, ".debug_info")->offset + 24 + 30] ^= 0x55;
        CHECK_OK(kiln_section_open(elf, ".debug_info", &room, &section));
        CHECK_EQ(kiln_section_read(&section, 10, to, 2), KILN_E_CORRUPT);
        CHECK_EQ(kiln_section_read(&section, 10, to, 2), KILN_E_CORRUPT);
        kiln_section_done(&section);
        close_all();
    }
}

TEST(section, no_memory_at_any_point_is_an_error_and_leaks_nothing)
{
    for (uint64_t fail = 1; fail < 20; fail++) {
        struct kiln_section section;
        int64_t live;
        uint8_t to[2];

        open_packed(ZLIB, LARGE, LARGE);
        live = kiln_mem_live();
        kiln_mem_fail_at(fail);
        if (kiln_section_open(elf, ".debug_info", &room, &section) == 0)
            (void)!kiln_section_read(&section, LARGE - 2, to, 2);
        kiln_section_done(&section);
        kiln_mem_fail_at(0);
        CHECK_EQ(kiln_mem_live(), live);
        close_all();
    }
}
