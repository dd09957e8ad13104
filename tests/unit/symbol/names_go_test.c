/* SPDX-License-Identifier: Apache-2.0 */
#include "elf_maker.h"
#include "go_maker.h"
#include "symbol/names.h"
#include "test.h"

enum { TEXT = 0x401000, TABLE = 0x500000, MODULE = 0x600000, TREES = 0x700000 };

static const char *const files[] = {"/src/main.go"};
static const struct go_made_func funcs[] = {
    {"main.sum[go.shape.[]int,go.shape.int].func1", 0x10, 0, 5, "", "\2\x10", "\x0e\x10", NULL, 0},
    {"type:.eq.[4]string", 0x10, 0, 0, "", "", "", NULL, 0},
    {"main.main", 0x20, 0, 20, "", "\2\x20", "\x0c\x10\x1e\x10", "\2\x10\1\x10", 0},
};
/* main.main begins with the first function, inlined: id, name, address of the call, first line. */
static const uint32_t tree[] = {0, 0, 0x10, 5};

static struct elf_maker maker;
static uint8_t table[4096];
static uint64_t module[48];

static struct kiln_names *open_names(void)
{
    size_t n = go_maker_make(table, TEXT, funcs, KILN_ARRAY_LEN(funcs), files, 1);
    const struct elf_part parts[] = {
        {.name = ".gopclntab", .flags = SHF_ALLOC, .address = TABLE, .data = table, .n = n},
        {.name = ".go.module",
         .flags = SHF_ALLOC,
         .address = MODULE,
         .data = module,
         .n = sizeof(module)},
        {.name = ".rodata", .flags = SHF_ALLOC, .address = TREES, .data = tree, .n = sizeof(tree)},
    };
    struct kiln_names *names;
    struct kiln_bytes bytes;

    module[40] = TREES;
    maker = (struct elf_maker){.type = ET_EXEC};
    for (size_t i = 0; i < KILN_ARRAY_LEN(parts); i++)
        elf_maker_add(&maker, parts[i]);
    bytes = elf_maker_bytes(&maker);
    CHECK_OK(kiln_names_open(KILN_SOURCE_ELF, &bytes, NULL, &names));
    return names;
}

TEST(names_go, type_arguments_are_left_out_for_people)
{
    struct kiln_names *names = open_names();
    struct kiln_name name;

    CHECK(kiln_names_find(names, TEXT + 4, &name));
    CHECK_EQ(name.n, 1);
    CHECK_STR(name.frames[0].function, "main.sum[...].func1");
    CHECK_STR(name.frames[0].system_name, "main.sum[go.shape.[]int,go.shape.int].func1");
    kiln_names_close(names);
}

TEST(names_go, a_function_for_a_type_keeps_its_brackets)
{
    struct kiln_names *names = open_names();
    struct kiln_name name;

    CHECK(kiln_names_find(names, TEXT + 0x14, &name));
    CHECK_STR(name.frames[0].function, "type:.eq.[4]string");
    CHECK_EQ(name.frames[0].system_name.len, 0);
    CHECK_EQ(name.frames[0].line, 0);
    kiln_names_close(names);
}

TEST(names_go, inlined_functions_are_frames)
{
    struct kiln_names *names = open_names();
    struct kiln_name name;

    CHECK(kiln_names_find(names, TEXT + 0x28, &name));
    CHECK_EQ(name.n, 2);
    CHECK_STR(name.frames[0].function, "main.sum[...].func1");
    CHECK_STR(name.frames[0].file, "/src/main.go");
    CHECK_EQ(name.frames[0].line, 5);
    CHECK_EQ(name.frames[0].start_line, 5);
    CHECK_STR(name.frames[1].function, "main.main");
    CHECK_STR(name.frames[1].file, "/src/main.go");
    CHECK_EQ(name.frames[1].line, 20);
    CHECK_EQ(name.frames[1].start_line, 20);
    CHECK(kiln_names_find(names, TEXT + 0x38, &name));
    CHECK_EQ(name.n, 1);
    kiln_names_close(names);
}
