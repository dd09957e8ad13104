/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>

#include "base/err.h"
#include "base/mem.h"
#include "elf_maker.h"
#include "go_maker.h"
#include "symbol/gopcln.h"
#include "test.h"

static struct elf_maker maker;
static uint8_t table[4096];
static uint64_t module[48];
static uint8_t trees[64];

static const char *const files[] = {"/src/main.go", "/src/other.go"};

/*
 *   main.main  0x401000-0x401040  frame 0 for 4 bytes, 8 for 1, 40 for 58, 0 for 1
 *   main.leaf  0x401040-0x401060  frame 0
 *   main.deep  0x401060-0x401080  begins with main.leaf, inlined, into which main.main was, too
 */
static const struct go_made_func funcs[] = {
    {"main.main", 0x40, 0, 12, "\2\4\20\1\100\72\117\1", "\2\x20\2\x20", "\x1a\x10\2\x30", NULL, 0},
    {"main.leaf", 0x20, KILN_GO_ASSEMBLY, 30, "\2\x20", "\4\x20", "\x3e\x20", NULL, 0},
    {"main.deep", 0x20, 0, 50, "\2\x20", "\4\x08\1\x18", "\x40\x08\x23\x08\x4c\x10",
     "\2\x08\2\x08\3\x10", 16},
};

enum { LEAF_NAME = 10, TREE = 16, CALL = 16 };

/* The tree of main.deep: id, name, address of the call, first line. */
static const uint32_t tree[][4] = {{0, LEAF_NAME, 0x18, 30}, {0, 0, 0x04, 12}};

enum where { IN_SECTION, BY_MAGIC };

static struct kiln_elf *open_made(enum where where, uint64_t text)
{
    size_t n = go_maker_make(table, text, funcs, KILN_ARRAY_LEN(funcs), files, 2);
    struct kiln_bytes bytes;
    struct kiln_elf *elf;

    maker = (struct elf_maker){.type = ET_EXEC, .no_sections = where == BY_MAGIC};
    elf_maker_add(&maker,
                  (struct elf_part){.name = where == BY_MAGIC ? ".data.rel.ro" : ".gopclntab",
                                    .flags = SHF_ALLOC,
                                    .address = 0x500000,
                                    .data = table,
                                    .n = n});
    elf_maker_add(&maker, (struct elf_part){.name = ".note.go.buildid",
                                            .type = SHT_NOTE,
                                            .segment = PT_NOTE,
                                            .data = "\4\0\0\0\4\0\0\0\4\0\0\0Go\0\0abcd",
                                            .n = 20});
    module[0] = 0x500000;
    module[1] = 0x500000 + 72;
    module[22] = 0x401000;
    module[40] = 0x700000;
    memcpy(trees + TREE, tree, sizeof(tree));
    elf_maker_add(&maker, (struct elf_part){.name = ".noptrdata",
                                            .flags = SHF_ALLOC | SHF_WRITE,
                                            .address = 0x600000,
                                            .data = module,
                                            .n = sizeof(module)});
    elf_maker_add(&maker, (struct elf_part){.name = ".rodata",
                                            .flags = SHF_ALLOC,
                                            .address = 0x700000,
                                            .data = trees,
                                            .n = sizeof(trees)});
    bytes = elf_maker_bytes(&maker);
    CHECK_OK(kiln_elf_open(&bytes, &elf));
    return elf;
}

static void check_functions(struct kiln_gopcln *pcln)
{
    struct kiln_go_func func;
    uint32_t index;

    CHECK_EQ(kiln_gopcln_count(pcln), 3);
    CHECK_OK(kiln_gopcln_find(pcln, 0x401044, &index));
    CHECK_EQ(index, 1);
    CHECK_OK(kiln_gopcln_func(pcln, index, &func));
    CHECK_EQ(func.entry, 0x401040);
    CHECK_EQ(func.end, 0x401060);
    CHECK_EQ(func.flags, KILN_GO_ASSEMBLY);
    CHECK_EQ(func.start_line, 30);
    CHECK_STR(kiln_gopcln_name(pcln, func.name), "main.leaf");
    CHECK_STR(kiln_gopcln_file(pcln, &func, kiln_gopcln_value(pcln, &func, func.pcfile, 0x401050)),
              "/src/other.go");
    CHECK_EQ(kiln_gopcln_value(pcln, &func, func.pcln, 0x401050), 30);
    CHECK_EQ(kiln_gopcln_find(pcln, 0x400fff, &index), -ENOENT);
    CHECK_EQ(kiln_gopcln_find(pcln, 0x401080, &index), -ENOENT);
    CHECK_EQ(kiln_gopcln_func(pcln, 3, &func), KILN_E_RANGE);
}

TEST(gopcln, functions_are_found_with_names_files_and_lines)
{
    for (int where = IN_SECTION; where <= BY_MAGIC; where++) {
        struct kiln_elf *elf = open_made(where, 0x401000);
        struct kiln_gopcln *pcln;

        CHECK_OK(kiln_gopcln_open(elf, &pcln));
        check_functions(pcln);
        kiln_gopcln_close(pcln);
        kiln_elf_close(elf);
    }
}

TEST(gopcln, the_beginning_of_code_is_in_the_modules_data_where_the_header_has_none)
{
    struct kiln_elf *elf = open_made(IN_SECTION, 0);
    struct kiln_gopcln *pcln;

    CHECK_OK(kiln_gopcln_open(elf, &pcln));
    check_functions(pcln);
    kiln_gopcln_close(pcln);
    kiln_elf_close(elf);
}

TEST(gopcln, the_frame_at_each_address_is_told)
{
    static const struct {
        uint32_t at;
        int32_t frame;
    } expected[] = {{0, 0}, {3, 0}, {4, 8}, {5, 40}, {62, 40}, {63, 0}};
    struct kiln_elf *elf = open_made(IN_SECTION, 0x401000);
    struct kiln_go_func func;
    struct kiln_gopcln *pcln;

    CHECK_OK(kiln_gopcln_open(elf, &pcln));
    CHECK_OK(kiln_gopcln_func(pcln, 0, &func));
    for (size_t i = 0; i < KILN_ARRAY_LEN(expected); i++)
        CHECK_EQ(kiln_gopcln_value(pcln, &func, func.pcsp, 0x401000 + expected[i].at),
                 expected[i].frame);
    CHECK_EQ(kiln_gopcln_value(pcln, &func, 0, 0x401000), -1);
    kiln_gopcln_close(pcln);
    kiln_elf_close(elf);
}

TEST(gopcln, other_versions_and_wrong_counts_are_refused)
{
    struct kiln_elf *elf = open_made(IN_SECTION, 0x401000);
    struct kiln_gopcln *pcln;
    uint64_t at = elf->segments[0].offset;

    memset(maker.data + at + 8, 0xff, 8);
    CHECK_EQ(kiln_gopcln_open(elf, &pcln), KILN_E_MALFORMED);
    maker.data[at] = 0xfb;
    CHECK_EQ(kiln_gopcln_open(elf, &pcln), KILN_E_UNSUPPORTED);
    kiln_elf_close(elf);
}

/* "name file:line start; ..." of the functions that an address of main.deep is in. */
static const char *frames_at(struct kiln_gopcln *pcln, uint64_t address, uint32_t max)
{
    static char text[1024];
    struct kiln_go_frame frames[64];
    struct kiln_go_func func;
    int at = 0;

    CHECK_OK(kiln_gopcln_func(pcln, 2, &func));
    for (uint32_t i = 0, n = kiln_gopcln_frames(pcln, &func, address, frames, max); i < n; i++) {
        at += snprintf(text + at, sizeof(text) - (size_t)at, "%s%.*s ", i ? "; " : "",
                       KILN_STR_ARG(kiln_gopcln_name(pcln, frames[i].name)));
        at += snprintf(text + at, sizeof(text) - (size_t)at, "%.*s:%u %u",
                       KILN_STR_ARG(kiln_gopcln_file(pcln, &func, frames[i].file)), frames[i].line,
                       frames[i].start_line);
    }
    return text;
}

TEST(gopcln, inlined_functions_have_the_places_of_their_calls)
{
    for (int where = IN_SECTION; where <= BY_MAGIC; where++) {
        struct kiln_elf *elf = open_made(where, 0x401000);
        struct kiln_gopcln *pcln;

        CHECK_OK(kiln_gopcln_open(elf, &pcln));
        CHECK_STR(kiln_str_of(frames_at(pcln, 0x401062, 64)),
                  "main.leaf /src/other.go:31 30; main.deep /src/main.go:51 50");
        CHECK_STR(kiln_str_of(frames_at(pcln, 0x40106f, 64)),
                  "main.main /src/main.go:13 12; main.leaf /src/other.go:31 30; "
                  "main.deep /src/main.go:51 50");
        CHECK_STR(kiln_str_of(frames_at(pcln, 0x401070, 64)), "main.deep /src/main.go:51 50");
        kiln_gopcln_close(pcln);
        kiln_elf_close(elf);
    }
}

TEST(gopcln, of_too_many_inlined_functions_the_outermost_stays)
{
    struct kiln_elf *elf = open_made(IN_SECTION, 0x401000);
    struct kiln_gopcln *pcln;

    CHECK_OK(kiln_gopcln_open(elf, &pcln));
    CHECK_STR(kiln_str_of(frames_at(pcln, 0x401068, 2)),
              "main.main /src/main.go:13 12; main.deep /src/main.go:51 50");
    CHECK_STR(kiln_str_of(frames_at(pcln, 0x401068, 1)), "main.deep /src/main.go:51 50");
    kiln_gopcln_close(pcln);
    kiln_elf_close(elf);
}

TEST(gopcln, a_tree_that_goes_in_circles_or_leads_elsewhere_ends)
{
    static const uint32_t wrong[][4] = {
        {0, LEAF_NAME, 0x04, 30},   /* called from itself */
        {0, 0x7fffffff, 0x18, 30},  /* no such name */
        {0, LEAF_NAME, 0x2000, 30}, /* called from another function */
    };

    for (size_t i = 0; i < KILN_ARRAY_LEN(wrong); i++) {
        struct kiln_elf *elf = open_made(IN_SECTION, 0x401000);
        uint64_t at = elf->segments[elf->n_segments - 1].offset + TREE;
        struct kiln_go_frame frames[4];
        struct kiln_gopcln *pcln;
        struct kiln_go_func func;

        CHECK_EQ(memcmp(maker.data + at, tree, sizeof(tree)), 0);
        memcpy(maker.data + at, wrong[i], CALL);
        CHECK_OK(kiln_gopcln_open(elf, &pcln));
        CHECK_OK(kiln_gopcln_func(pcln, 2, &func));
        CHECK_EQ(kiln_gopcln_frames(pcln, &func, 0x401062, frames, 4), i == 0 ? 4 : 1);
        kiln_gopcln_close(pcln);
        kiln_elf_close(elf);
    }
}
