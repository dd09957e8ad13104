/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a line table, which are all sections it refers to as well: rows are looked up around
 * the addresses that occur, and every file's name and source is asked for.
 */
#include "fuzz.h"
#include "symbol/cursor.h"
#include "symbol/dwarf_line.h"

enum { BUDGET = 8 << 20 };

static void look(const struct kiln_dwarf_lines *lines, uint64_t address)
{
    uint32_t file, line, column;

    for (uint64_t i = 0; i < 8; i++)
        (void)kiln_dwarf_lines_find(lines, address + i * i * i, &file, &line, &column);
}

static void name_all(const struct kiln_dwarf_lines *lines)
{
    struct kiln_buf name, source;

    kiln_buf_init(&name, 16384);
    kiln_buf_init(&source, 16384);
    for (uint32_t file = 0; file < 64; file++) {
        kiln_buf_clear(&name);
        kiln_buf_clear(&source);
        if (kiln_dwarf_lines_file(lines, file, &name) < 0)
            FUZZ_CHECK(name.len == 0);
        else if (kiln_dwarf_lines_source(lines, kiln_buf_str(&name), &source) < 0)
            FUZZ_CHECK(source.len == 0);
    }
    kiln_buf_done(&name);
    kiln_buf_done(&source);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kiln_section all = {.bytes = kiln_bytes_memory(data, size), .size = size};
    struct kiln_dwarf_line_ctx ctx = {
        .line = &all,
        .line_str = &all,
        .str = &all,
        .alternate_str = &all,
        .str_offsets = &all,
        .comp_dir = KILN_STR("/build"),
        .lowest = size & 1 ? 0x1000 : 0,
    };
    struct kiln_budget budget = {.limit = BUDGET};
    struct kiln_dwarf_lines *lines;
    struct kiln_buf source;
    uint64_t from = 0;

    if (kiln_dwarf_lines_load(&ctx, 0, &budget, &lines) == 0) {
        FUZZ_CHECK(kiln_dwarf_lines_bytes(lines) == budget.used);
        look(lines, 0);
        look(lines, UINT64_MAX - 400);
        for (size_t at = 0; at + 8 <= size && at < 4096; at++)
            look(lines, kiln_get_64(data + at));
        name_all(lines);
        kiln_dwarf_lines_free(lines);
    }
    kiln_buf_init(&source, 16384);
    (void)!kiln_dwarf_lines_search(&ctx, KILN_STR("a.c"), 0, &from, &budget, &source);
    kiln_buf_done(&source);
    FUZZ_CHECK(budget.used == 0);
    return 0;
}
