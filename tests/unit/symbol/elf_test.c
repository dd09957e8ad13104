/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <libdeflate.h>
#include <zstd.h>

#include "base/err.h"
#include "base/mem.h"
#include "elf_maker.h"
#include "test.h"

static struct elf_maker maker;

static struct kiln_elf *open_made(void)
{
    struct kiln_bytes bytes = elf_maker_bytes(&maker);
    struct kiln_elf *elf;

    CHECK_OK(kiln_elf_open(&bytes, &elf));
    return elf;
}

/* A file of code at 0x1000 (16 bytes) and data at 0x4000. */
static void begin_small(void)
{
    maker = (struct elf_maker){.type = ET_DYN, .entry = 0x1004};
    elf_maker_add(&maker, (struct elf_part){.name = ".text",
                                            .flags = SHF_ALLOC | SHF_EXECINSTR,
                                            .address = 0x1000,
                                            .data = "0123456789abcdef",
                                            .n = 16});
    elf_maker_add(&maker, (struct elf_part){.name = ".data",
                                            .flags = SHF_ALLOC | SHF_WRITE,
                                            .address = 0x4000,
                                            .data = "some data",
                                            .n = 9});
}

TEST(elf, headers_and_sections_of_a_small_file_are_read)
{
    struct kiln_elf *elf;

    begin_small();
    elf = open_made();
    CHECK_EQ(elf->type, ET_DYN);
    CHECK_EQ(elf->machine, EM_X86_64);
    CHECK_EQ(elf->entry, 0x1004);
    CHECK_EQ(elf->n_segments, 2);
    CHECK_EQ(elf->n_sections, 4);
    CHECK(kiln_elf_section(elf, ".text"));
    CHECK_EQ(kiln_elf_section(elf, ".text")->address, 0x1000);
    CHECK(!kiln_elf_section(elf, ".tex"));
    CHECK(!kiln_elf_section(elf, ".bss"));
    kiln_elf_close(elf);
}

TEST(elf, bytes_are_read_by_address_within_one_segment)
{
    struct kiln_elf *elf;
    char to[17] = "";

    begin_small();
    elf = open_made();
    CHECK_OK(kiln_elf_read(elf, 0x1000, to, 16));
    CHECK_TEXT(to, "0123456789abcdef");
    CHECK_OK(kiln_elf_read(elf, 0x4005, to, 4));
    CHECK_EQ(memcmp(to, "data", 4), 0);
    CHECK_EQ(kiln_elf_read(elf, 0x100f, to, 2), -ENOENT);
    CHECK_EQ(kiln_elf_read(elf, 0xfff, to, 2), -ENOENT);
    CHECK_EQ(kiln_elf_read(elf, UINT64_MAX, to, 2), -ENOENT);
    CHECK_EQ(kiln_elf_read(elf, 0x1000, to, SIZE_MAX), -ENOENT);
    kiln_elf_close(elf);
}

TEST(elf, an_offset_has_an_address_where_code_is_mapped_by_whole_pages)
{
    struct kiln_elf *elf;
    uint64_t address = 0, offset;

    begin_small();
    elf = open_made();
    offset = elf->segments[0].offset;
    CHECK_OK(kiln_elf_address(elf, offset + 3, &address));
    CHECK_EQ(address, 0x1003);
    CHECK_OK(kiln_elf_address(elf, 0, &address));
    CHECK_EQ(address, 0x1000 - offset);
    CHECK_EQ(kiln_elf_address(elf, offset + 16, &address), -ENOENT);
    CHECK_EQ(kiln_elf_address(elf, UINT64_MAX, &address), -ENOENT);
    kiln_elf_close(elf);
}

static const char gnu_note[] = "\4\0\0\0\20\0\0\0\1\0\0\0GNU\0aaaabbbbccccdddd"
                               "\4\0\0\0\24\0\0\0\3\0\0\0GNU\0ABCDEFGHIJKLMNOPQRST";
static const char go_note[] = "\4\0\0\0\6\0\0\0\4\0\0\0Go\0\0id/of/\0\0";

TEST(elf, build_ids_are_found_by_segment_and_by_section)
{
    uint8_t id[20], len = 0;
    struct kiln_elf *elf;
    char go[84];

    for (int by_segment = 0; by_segment < 2; by_segment++) {
        begin_small();
        elf_maker_add(&maker, (struct elf_part){.name = ".note.gnu.build-id",
                                                .type = SHT_NOTE,
                                                .segment = by_segment ? PT_NOTE : 0,
                                                .data = gnu_note,
                                                .n = sizeof(gnu_note) - 1});
        elf_maker_add(&maker, (struct elf_part){.name = ".note.go.buildid",
                                                .type = SHT_NOTE,
                                                .segment = by_segment ? PT_NOTE : 0,
                                                .data = go_note,
                                                .n = sizeof(go_note) - 1});
        maker.no_sections = by_segment;
        elf = open_made();
        CHECK_OK(kiln_elf_build_id(elf, id, &len));
        CHECK_EQ(len, 20);
        CHECK_EQ(memcmp(id, "ABCDEFGHIJKLMNOPQRST", 20), 0);
        CHECK_OK(kiln_elf_go_build_id(elf, go, sizeof(go)));
        CHECK_TEXT(go, "id/of/");
        CHECK_OK(kiln_elf_go_build_id(elf, go, 3));
        CHECK_TEXT(go, "id");
        kiln_elf_close(elf);
    }
    begin_small();
    elf = open_made();
    CHECK_EQ(kiln_elf_build_id(elf, id, &len), -ENOENT);
    CHECK_EQ(kiln_elf_go_build_id(elf, go, sizeof(go)), -ENOENT);
    kiln_elf_close(elf);
}

TEST(elf, the_build_id_of_notes_in_memory_is_cut_where_it_is_too_long)
{
    static const char longer[] = "\4\0\0\0\30\0\0\0\3\0\0\0GNU\0ABCDEFGHIJKLMNOPQRSTUVWX";
    uint8_t id[KILN_BUILD_ID_MAX], len = 0;

    CHECK_OK(kiln_notes_build_id(gnu_note, sizeof(gnu_note) - 1, id, &len));
    CHECK_EQ(len, KILN_BUILD_ID_MAX);
    CHECK_EQ(memcmp(id, "ABCDEFGHIJKLMNOPQRST", sizeof(id)), 0);
    CHECK_OK(kiln_notes_build_id(longer, sizeof(longer) - 1, id, &len));
    CHECK_EQ(len, KILN_BUILD_ID_MAX);
    CHECK_EQ(kiln_notes_build_id(go_note, sizeof(go_note) - 1, id, &len), -ENOENT);
}

TEST(elf, notes_whose_sizes_lie_are_no_build_id)
{
    char note[sizeof(gnu_note)];
    uint8_t id[20], len;

    for (uint32_t at = 0; at < 8; at += 4) {
        struct kiln_elf *elf;

        memcpy(note, gnu_note, sizeof(note));
        memset(note + at, 0xff, 4);
        begin_small();
        elf_maker_add(&maker,
                      (struct elf_part){
                          .name = ".n", .segment = PT_NOTE, .data = note, .n = sizeof(note) - 1});
        elf = open_made();
        CHECK_EQ(kiln_elf_build_id(elf, id, &len), -ENOENT);
        kiln_elf_close(elf);
    }
}

static size_t pack(uint32_t type, const char *text, uint8_t *to, size_t room)
{
    Elf64_Chdr header = {.ch_type = type, .ch_size = strlen(text), .ch_addralign = 1};
    struct libdeflate_compressor *c = libdeflate_alloc_compressor(6);
    size_t n;

    memcpy(to, &header, sizeof(header));
    to += sizeof(header);
    room -= sizeof(header);
    n = type == 1 ? libdeflate_zlib_compress(c, text, strlen(text), to, room)
                  : ZSTD_compress(to, room, text, strlen(text), 3);
    libdeflate_free_compressor(c);
    return n + sizeof(header);
}

TEST(elf, compressed_sections_are_loaded_as_they_were)
{
    const char *text = "so much text text text text text text text text text";

    for (uint32_t type = 1; type <= 2; type++) {
        uint8_t packed[256];
        size_t n = pack(type, text, packed, sizeof(packed)), size;
        struct kiln_elf *elf;
        void *data;

        begin_small();
        elf_maker_add(&maker,
                      (struct elf_part){
                          .name = ".debug_frame", .flags = SHF_COMPRESSED, .data = packed, .n = n});
        elf = open_made();
        CHECK_OK(kiln_elf_load(elf, kiln_elf_section(elf, ".debug_frame"), 1000, &data, &size));
        CHECK_STR(((struct kiln_str){data, size}), text);
        kiln_free(data);
        CHECK_EQ(kiln_elf_load(elf, kiln_elf_section(elf, ".debug_frame"), size - 1, &data, &size),
                 KILN_E_LIMIT);
        kiln_elf_close(elf);
        packed[n - 5] ^= 0x55;
        packed[n / 2] ^= 0x55;
        elf = open_made();
        CHECK_EQ(kiln_elf_load(elf, kiln_elf_section(elf, ".debug_frame"), 1000, &data, &size),
                 KILN_E_CORRUPT);
        kiln_elf_close(elf);
    }
}

TEST(elf, a_section_outside_of_the_file_is_not_loaded)
{
    struct kiln_elf_section section = {.type = SHT_PROGBITS, .offset = 16, .size = UINT64_MAX - 8};
    struct kiln_elf *elf;
    size_t size;
    void *data;

    begin_small();
    elf = open_made();
    CHECK_EQ(kiln_elf_load(elf, &section, SIZE_MAX, &data, &size), KILN_E_TRUNCATED);
    section = (struct kiln_elf_section){.type = SHT_NOBITS, .size = 5};
    CHECK_EQ(kiln_elf_load(elf, &section, SIZE_MAX, &data, &size), -ENOENT);
    kiln_elf_close(elf);
}

TEST(elf, counts_that_do_not_fit_the_header_are_in_section_0)
{
    struct kiln_bytes bytes;
    struct kiln_elf *elf;
    Elf64_Ehdr header;
    Elf64_Shdr first;

    begin_small();
    bytes = elf_maker_bytes(&maker);
    memcpy(&header, maker.data, sizeof(header));
    memcpy(&first, maker.data + header.e_shoff, sizeof(first));
    first.sh_size = header.e_shnum;
    first.sh_link = header.e_shstrndx;
    first.sh_info = header.e_phnum;
    header.e_shnum = 0;
    header.e_shstrndx = SHN_XINDEX;
    header.e_phnum = PN_XNUM;
    memcpy(maker.data, &header, sizeof(header));
    memcpy(maker.data + header.e_shoff, &first, sizeof(first));
    CHECK_OK(kiln_elf_open(&bytes, &elf));
    CHECK_EQ(elf->n_segments, 2);
    CHECK(kiln_elf_section(elf, ".data"));
    kiln_elf_close(elf);
    first.sh_size = UINT64_MAX / 64 + 1;
    memcpy(maker.data + header.e_shoff, &first, sizeof(first));
    CHECK_OK(kiln_elf_open(&bytes, &elf));
    CHECK_EQ(elf->n_sections, 0);
    kiln_elf_close(elf);
    first.sh_info = 1u << 30;
    memcpy(maker.data + header.e_shoff, &first, sizeof(first));
    CHECK_EQ(kiln_elf_open(&bytes, &elf), KILN_E_LIMIT);
}

TEST(elf, other_files_are_told_apart)
{
    struct kiln_bytes bytes = kiln_bytes_memory("#!/bin/sh\n", 10);
    struct kiln_elf *elf;

    CHECK_EQ(kiln_elf_open(&bytes, &elf), KILN_E_UNKNOWN);
    begin_small();
    bytes = elf_maker_bytes(&maker);
    maker.data[EI_CLASS] = ELFCLASS32;
    CHECK_EQ(kiln_elf_open(&bytes, &elf), KILN_E_UNSUPPORTED);
}

TEST(elf, a_file_cut_anywhere_opens_or_fails_without_a_fault)
{
    size_t whole;

    begin_small();
    whole = elf_maker_bytes(&maker).size;
    for (size_t n = 0; n < whole; n++) {
        uint8_t *copy = malloc(n ? n : 1);
        struct kiln_bytes bytes = kiln_bytes_memory(copy, n);
        struct kiln_elf *elf;

        memcpy(copy, maker.data, n);
        if (kiln_elf_open(&bytes, &elf) == 0) {
            CHECK(!kiln_elf_section(elf, ".text"));
            kiln_elf_close(elf);
        }
        free(copy);
    }
}

TEST(elf, no_memory_is_an_ordinary_error)
{
    int64_t before = kiln_mem_live();
    struct kiln_bytes bytes;

    begin_small();
    bytes = elf_maker_bytes(&maker);
    for (uint64_t n = 1;; n++) {
        struct kiln_elf *elf;
        int r;

        kiln_mem_fail_at(n);
        r = kiln_elf_open(&bytes, &elf);
        if (r == 0) {
            kiln_mem_fail_at(0);
            kiln_elf_close(elf);
            CHECK(n > 3);
            break;
        }
        CHECK_EQ(r, -ENOMEM);
        CHECK_EQ(kiln_mem_live(), before);
    }
}

TEST(elf, the_hash_of_a_file_is_that_of_its_ends_and_its_length)
{
    static char data[10000];
    struct kiln_bytes bytes = kiln_bytes_memory("abc", 3);
    char text[33], again[33];

    /* printf 'abcabc\0\0\0\0\0\0\0\3' | sha256sum */
    CHECK_OK(kiln_elf_hash(&bytes, text));
    CHECK_TEXT(text, "a7e79e8a85da69bad5c3fea209342ac9");
    bytes = kiln_bytes_memory(data, sizeof(data));
    CHECK_OK(kiln_elf_hash(&bytes, text));
    data[5000] = 1;
    CHECK_OK(kiln_elf_hash(&bytes, again));
    CHECK_TEXT(text, again);
    data[5904] = 1;
    CHECK_OK(kiln_elf_hash(&bytes, again));
    CHECK(strcmp(text, again) != 0);
}

TEST(elf, this_very_program_is_read_from_its_file)
{
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    uint8_t id[20], len = 0;
    struct kiln_bytes bytes;
    struct kiln_elf *elf;
    char magic[4];

    CHECK(fd >= 0);
    CHECK_OK(kiln_bytes_file(fd, &bytes));
    CHECK_OK(kiln_elf_open(&bytes, &elf));
    CHECK(kiln_elf_section(elf, ".eh_frame"));
    CHECK_OK(kiln_elf_build_id(elf, id, &len));
    CHECK_EQ(len, 20);
    CHECK_EQ(bytes.read(&bytes, bytes.size - 2, magic, 4), KILN_E_TRUNCATED);
    CHECK_EQ(bytes.read(&bytes, UINT64_MAX - 1, magic, 4), KILN_E_TRUNCATED);
    kiln_elf_close(elf);
    close(fd);
    fd = open("/", O_RDONLY | O_CLOEXEC);
    CHECK_EQ(kiln_bytes_file(fd, &bytes), -EINVAL);
    close(fd);
}
