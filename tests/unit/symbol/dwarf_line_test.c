/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/err.h"
#include "symbol/dwarf_line.h"
#include "test.h"

/* ---- tables, byte by byte ---- */

static struct table {
    uint8_t data[4096];
    size_t n;
    int version;
    bool is_long;
    uint8_t min_instruction, max_operations, opcode_base;
    size_t length_at, header_at;
} table;

static void put(uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        table.data[table.n++] = (uint8_t)(value >> 8 * i);
}

static void put_offset(uint64_t value)
{
    put(value, table.is_long ? 8 : 4);
}

static void uleb(uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        put(value | 0x80, 1);
    put(value, 1);
}

static void sleb(int64_t value)
{
    for (; value < -64 || value > 63; value >>= 7)
        put((uint64_t)value | 0x80, 1);
    put((uint64_t)value & 0x7f, 1);
}

static void text(const char *s)
{
    memcpy(table.data + table.n, s, strlen(s) + 1);
    table.n += strlen(s) + 1;
}

static void patch(size_t at, uint64_t value)
{
    size_t n = table.n;

    table.n = at;
    put_offset(value);
    table.n = n;
}

/* Up to the tables of directories and files; lines go from -5 to 8 in special opcodes. */
static void begin(int version)
{
    static const uint8_t lengths[] = {0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1, 2, 3, 0, 1, 0, 0, 0};

    table.n = 0;
    table.version = version;
    if (table.is_long)
        put(UINT32_MAX, 4);
    table.length_at = table.n;
    put_offset(0);
    put((uint64_t)version, 2);
    if (version == 5)
        put(0x0008, 2);
    table.header_at = table.n;
    put_offset(0);
    put(table.min_instruction ? table.min_instruction : 1, 1);
    if (version >= 4)
        put(table.max_operations ? table.max_operations : 1, 1);
    put(1, 1);
    put((uint64_t)-5, 1);
    put(14, 1);
    if (!table.opcode_base)
        table.opcode_base = 13;
    put(table.opcode_base, 1);
    for (int i = 1; i < table.opcode_base; i++)
        put(lengths[i - 1], 1);
}

static void begin_program(void)
{
    size_t size = table.is_long ? 8 : 4;

    patch(table.header_at, table.n - table.header_at - size);
}

static void end_program(void)
{
    patch(table.length_at, table.n - table.length_at - (table.is_long ? 8 : 4));
}

static void set_address(uint64_t address)
{
    put(0, 1);
    uleb(9);
    put(2, 1);
    put(address, 8);
}

static void end_sequence(void)
{
    put(0x010100, 3);
}

/* A special opcode: so many operations and lines further, and a row. */
static void row(int operations, int lines)
{
    put((uint64_t)(operations * 14 + lines + 5 + table.opcode_base), 1);
}

/* From here `address`, on line `line`, of as many bytes: one row. */
static void sequence(uint64_t address, int line, int bytes)
{
    set_address(address);
    put(3, 1);
    sleb(line - 1);
    put(1, 1);
    put(2, 1);
    uleb((uint64_t)bytes);
    end_sequence();
}

static void old_files(void)
{
    text("include");
    text("/usr/include");
    put(0, 1);
    text("main.c");
    put(0, 3);
    text("own.h");
    put(1, 1);
    uleb(1000000);
    uleb(300);
    text("stdio.h");
    put(2, 3);
    text("/abs/gen.c");
    put(1, 3);
    put(0, 1);
}

/* ---- reading them ---- */

static const char line_str[] = "/build\0src\0a.c\0b.c\0int main(void) {}\n\0";
static struct kiln_budget budget;
static struct kiln_section line_section, line_str_section, str_section;
static struct kiln_dwarf_lines *lines;

static struct kiln_section section_of(const void *data, size_t n)
{
    return (struct kiln_section){.bytes = kiln_bytes_memory(data, n), .size = n};
}

static struct kiln_dwarf_line_ctx context(void)
{
    line_section = section_of(table.data, table.n);
    line_str_section = section_of(line_str, sizeof(line_str));
    str_section = section_of("\0x.c", 5);
    return (struct kiln_dwarf_line_ctx){.line = &line_section,
                                        .line_str = &line_str_section,
                                        .str = &str_section,
                                        .comp_dir = table.version == 5 ? KILN_STR("/build")
                                                                       : KILN_STR("/made"),
                                        .lowest = 0x1000};
}

static void load(void)
{
    struct kiln_dwarf_line_ctx ctx = context();

    budget = (struct kiln_budget){.limit = 1 << 20};
    CHECK_OK(kiln_dwarf_lines_load(&ctx, 0, &budget, &lines));
}

static void unload(void)
{
    kiln_dwarf_lines_free(lines);
    CHECK_EQ(budget.used, 0);
    table.is_long = false;
    table.min_instruction = 0;
    table.max_operations = 0;
    table.opcode_base = 0;
}

/* "FILE:LINE:COLUMN", or "-". */
static const char *at(uint64_t address)
{
    static char said[600];
    uint32_t file, line, column;
    struct kiln_buf name;

    if (!kiln_dwarf_lines_find(lines, address, &file, &line, &column))
        return "-";
    kiln_buf_init(&name, 500);
    if (kiln_dwarf_lines_file(lines, file, &name) < 0)
        kiln_buf_puts(&name, "?");
    snprintf(said, sizeof(said), "%.*s:%u:%u", (int)name.len, name.ptr, line, column);
    kiln_buf_done(&name);
    return said;
}

TEST(dwarf_line, rows_cover_addresses_up_to_the_next_one)
{
    for (int version = 2; version <= 4; version++) {
        begin(version);
        old_files();
        begin_program();
        set_address(0x2000);
        row(0, 4);
        put(5, 1);
        uleb(300);
        row(3, 2);
        row(4, -5);
        put(2, 1);
        uleb(10);
        end_sequence();
        end_program();
        load();
        CHECK_TEXT(at(0x1fff), "-");
        CHECK_TEXT(at(0x2000), "/made/main.c:5:0");
        CHECK_TEXT(at(0x2002), "/made/main.c:5:0");
        CHECK_TEXT(at(0x2003), "/made/main.c:7:300");
        CHECK_TEXT(at(0x2007), "/made/main.c:2:300");
        CHECK_TEXT(at(0x2010), "/made/main.c:2:300");
        CHECK_TEXT(at(0x2011), "-");
        unload();
    }
}

TEST(dwarf_line, files_are_named_behind_their_directories)
{
    begin(4);
    old_files();
    begin_program();
    set_address(0x2000);
    for (uint64_t file = 0; file <= 5; file++) {
        put(4, 1);
        uleb(file);
        row(0, 0);
        put(2, 1);
        uleb(1);
    }
    end_sequence();
    end_program();
    load();
    CHECK_TEXT(at(0x2000), "?:1:0");
    CHECK_TEXT(at(0x2001), "/made/main.c:1:0");
    CHECK_TEXT(at(0x2002), "/made/include/own.h:1:0");
    CHECK_TEXT(at(0x2003), "/usr/include/stdio.h:1:0");
    CHECK_TEXT(at(0x2004), "/abs/gen.c:1:0");
    CHECK_TEXT(at(0x2005), "?:1:0");
    unload();
}

/* Directories /build and src; files src/a.c, with a digest and perhaps a source, and b.c. */
static void new_files(bool with_source)
{
    put(1, 1);
    uleb(1);
    uleb(0x1f);
    uleb(2);
    put_offset(0);
    put_offset(7);
    put(with_source ? 4 : 3, 1);
    uleb(1);
    uleb(0x1f);
    uleb(2);
    uleb(0x0b);
    uleb(5);
    uleb(0x1e);
    if (with_source) {
        uleb(0x2001);
        uleb(0x1f);
    }
    uleb(2);
    for (int i = 0; i < 2; i++) {
        put_offset(i ? 15 : 11);
        put(i ? 0 : 1, 1);
        put(0, 8);
        put(0, 8);
        if (with_source)
            put_offset(i ? 37 : 19);
    }
}

TEST(dwarf_line, version_5_counts_files_from_0_and_has_names_elsewhere)
{
    for (int is_long = 0; is_long < 2; is_long++) {
        table.is_long = is_long;
        begin(5);
        new_files(false);
        begin_program();
        set_address(0x2000);
        put(0x0004, 2);
        row(0, 7);
        put(0x0104, 2);
        row(5, 0);
        put(2, 1);
        uleb(1);
        end_sequence();
        end_program();
        load();
        CHECK_TEXT(at(0x2004), "/build/src/a.c:8:0");
        CHECK_TEXT(at(0x2005), "/build/b.c:8:0");
        unload();
    }
}

TEST(dwarf_line, in_version_5_a_relative_directory_0_counts_twice)
{
    struct kiln_dwarf_line_ctx ctx;

    begin(5);
    put(1, 1);
    uleb(1);
    uleb(0x1f);
    uleb(1);
    put_offset(7);
    put(1, 1);
    uleb(1);
    uleb(0x1f);
    uleb(1);
    put_offset(15);
    begin_program();
    set_address(0x2000);
    put(0x0004, 2);
    row(0, 7);
    row(5, 0);
    end_sequence();
    end_program();
    ctx = context();
    ctx.comp_dir = KILN_STR("src");
    budget = (struct kiln_budget){.limit = 1 << 20};
    CHECK_OK(kiln_dwarf_lines_load(&ctx, 0, &budget, &lines));
    CHECK_TEXT(at(0x2004), "src/src/b.c:8:0");
    unload();
}

TEST(dwarf_line, an_embedded_source_is_found_by_its_file)
{
    struct kiln_buf source;

    begin(5);
    new_files(true);
    begin_program();
    end_program();
    load();
    kiln_buf_init(&source, 1000);
    CHECK_OK(kiln_dwarf_lines_source(lines, KILN_STR("/build/src/a.c"), &source));
    CHECK_STR(kiln_buf_str(&source), "int main(void) {}\n");
    CHECK_EQ(kiln_dwarf_lines_source(lines, KILN_STR("/build/b.c"), &source), -ENOENT);
    CHECK_EQ(kiln_dwarf_lines_source(lines, KILN_STR("a.c"), &source), -ENOENT);
    CHECK_STR(kiln_buf_str(&source), "int main(void) {}\n");
    kiln_buf_done(&source);
    unload();
}

TEST(dwarf_line, an_embedded_source_is_found_in_any_table)
{
    struct kiln_dwarf_line_ctx ctx;
    struct kiln_buf source;
    uint64_t from = 0;
    uint8_t first[512];
    size_t n_first;
    int asked = 0, r = -EAGAIN;

    begin(4);
    old_files();
    begin_program();
    sequence(0x2000, 5, 10);
    end_program();
    n_first = table.n;
    memcpy(first, table.data, n_first);
    begin(5);
    new_files(true);
    begin_program();
    end_program();
    memmove(table.data + n_first, table.data, table.n);
    memcpy(table.data, first, n_first);
    table.n += n_first;
    ctx = context();
    budget = (struct kiln_budget){.limit = 1 << 20};
    kiln_buf_init(&source, 1000);
    for (; r == -EAGAIN && asked < 10; asked++)
        r = kiln_dwarf_lines_search(&ctx, KILN_STR("/build/src/a.c"), 1, &from, &budget, &source);
    CHECK_OK(r);
    CHECK_EQ(asked, 2);
    CHECK_EQ(from, n_first);
    CHECK_STR(kiln_buf_str(&source), "int main(void) {}\n");
    from = 0;
    CHECK_EQ(kiln_dwarf_lines_search(&ctx, KILN_STR("a.c"), 0, &from, &budget, &source), -ENOENT);
    CHECK_EQ(from, table.n);
    CHECK_EQ(budget.used, 0);
    kiln_buf_done(&source);
}

TEST(dwarf_line, a_file_without_rows_is_read_for_its_names_alone)
{
    struct kiln_dwarf_line_ctx ctx;

    begin(4);
    old_files();
    begin_program();
    sequence(0x2000, 5, 10);
    end_program();
    ctx = context();
    ctx.only_files = true;
    budget = (struct kiln_budget){.limit = 1 << 20};
    CHECK_OK(kiln_dwarf_lines_load(&ctx, 0, &budget, &lines));
    CHECK_TEXT(at(0x2000), "-");
    CHECK_EQ(kiln_dwarf_lines_bytes(lines), budget.used);
    unload();
}

TEST(dwarf_line, every_standard_opcode_does_what_it_says)
{
    begin(4);
    old_files();
    begin_program();
    set_address(0x2000);
    put(3, 1); /* line */
    sleb(99);
    put(4, 1); /* file */
    uleb(2);
    put(5, 1); /* column */
    uleb(7);
    put(6, 1);
    put(7, 1);
    put(10, 1);
    put(11, 1);
    put(12, 1); /* isa */
    uleb(500);
    put(1, 1);
    put(8, 1); /* as opcode 255: (255 - 13) / 14 */
    put(3, 1);
    sleb(-200);
    put(3, 1);
    sleb(150);
    put(1, 1);
    put(9, 1); /* two bytes */
    put(0x100, 2);
    put(1, 1);
    put(2, 1);
    uleb(0x1000);
    end_sequence();
    end_program();
    load();
    CHECK_TEXT(at(0x2000), "/made/include/own.h:100:7");
    CHECK_TEXT(at(0x2010), "/made/include/own.h:100:7");
    CHECK_TEXT(at(0x2011), "/made/include/own.h:50:7");
    CHECK_TEXT(at(0x2111), "/made/include/own.h:50:7");
    CHECK_TEXT(at(0x3110), "/made/include/own.h:50:7");
    CHECK_TEXT(at(0x3111), "-");
    unload();
}

TEST(dwarf_line, opcodes_that_nobody_knows_are_stepped_over)
{
    table.opcode_base = 17;
    begin(4);
    old_files();
    begin_program();
    set_address(0x2000);
    put(13, 1); /* two numbers */
    uleb(300);
    uleb(1);
    put(14, 1); /* three */
    uleb(1);
    uleb(1);
    uleb(1000);
    put(15, 1); /* none */
    put(0, 1);  /* extended */
    uleb(4);
    put(0x80, 1);
    put(0x010100, 3);
    put(0, 1); /* discriminator */
    uleb(2);
    put(4, 1);
    uleb(9);
    row(0, 3);
    row(2, 3);
    end_sequence();
    end_program();
    load();
    CHECK_TEXT(at(0x2001), "/made/main.c:4:0");
    unload();
}

TEST(dwarf_line, with_fewer_standard_opcodes_the_others_are_special)
{
    table.opcode_base = 10;
    begin(2);
    old_files();
    begin_program();
    set_address(0x2000);
    put(10 + 5 + 2, 1); /* two lines, no bytes: 12 and above are special too */
    put(12, 1);         /* -3 lines, no bytes */
    put(2, 1);
    uleb(1);
    end_sequence();
    end_program();
    load();
    CHECK_TEXT(at(0x2000), "/made/main.c:0:0");
    unload();
}

TEST(dwarf_line, addresses_advance_by_instructions)
{
    table.min_instruction = 4;
    begin(3);
    old_files();
    begin_program();
    set_address(0x2000);
    row(0, 1);
    row(2, 1);
    put(9, 1);
    put(2, 2); /* bytes, whatever an instruction has */
    row(0, 1);
    put(2, 1);
    uleb(1);
    end_sequence();
    end_program();
    load();
    CHECK_TEXT(at(0x2007), "/made/main.c:2:0");
    CHECK_TEXT(at(0x2008), "/made/main.c:3:0");
    CHECK_TEXT(at(0x200a), "/made/main.c:4:0");
    CHECK_TEXT(at(0x200d), "/made/main.c:4:0");
    CHECK_TEXT(at(0x200e), "-");
    unload();
}

TEST(dwarf_line, several_operations_share_an_instruction)
{
    table.min_instruction = 16;
    table.max_operations = 3;
    begin(4);
    old_files();
    begin_program();
    set_address(0x2000);
    row(0, 1);
    row(2, 1); /* the third of the first */
    row(1, 1); /* the first of the next */
    row(4, 1); /* the second of the one after */
    put(2, 1);
    uleb(2);
    end_sequence();
    end_program();
    load();
    CHECK_TEXT(at(0x2000), "/made/main.c:3:0");
    CHECK_TEXT(at(0x2010), "/made/main.c:4:0");
    CHECK_TEXT(at(0x202f), "/made/main.c:5:0");
    CHECK_TEXT(at(0x2030), "-");
    unload();
}

TEST(dwarf_line, a_program_defines_files_of_its_own)
{
    begin(3);
    old_files();
    begin_program();
    set_address(0x2000);
    put(0, 1);
    uleb(1 + 7 + 3);
    put(3, 1);
    text("late.c");
    put(2, 3);
    put(4, 1);
    uleb(5);
    row(0, 0);
    row(1, 0);
    end_sequence();
    end_program();
    load();
    CHECK_TEXT(at(0x2000), "/usr/include/late.c:1:0");
    unload();
}

TEST(dwarf_line, sequences_in_any_order_are_sorted)
{
    begin(4);
    old_files();
    begin_program();
    sequence(0x5000, 50, 0x100);
    sequence(0x2000, 20, 0x100);
    sequence(0x4000, 40, 0x100);
    sequence(0x3000, 30, 0x1000);
    end_program();
    load();
    CHECK_TEXT(at(0x2000), "/made/main.c:20:0");
    CHECK_TEXT(at(0x20ff), "/made/main.c:20:0");
    CHECK_TEXT(at(0x2100), "-");
    CHECK_TEXT(at(0x3fff), "/made/main.c:30:0");
    CHECK_TEXT(at(0x4000), "/made/main.c:40:0");
    CHECK_TEXT(at(0x4100), "-");
    CHECK_TEXT(at(0x50ff), "/made/main.c:50:0");
    unload();
}

TEST(dwarf_line, of_sequences_that_overlap_the_row_that_comes_last_counts)
{
    begin(4);
    old_files();
    begin_program();
    sequence(0x2000, 20, 0x100);
    sequence(0x2080, 30, 0x10);
    sequence(0x2080, 40, 0x10);
    end_program();
    load();
    CHECK_TEXT(at(0x207f), "/made/main.c:20:0");
    CHECK_TEXT(at(0x2080), "/made/main.c:40:0");
    CHECK_TEXT(at(0x2090), "-");
    unload();
}

TEST(dwarf_line, what_the_linker_discarded_covers_nothing)
{
    begin(4);
    old_files();
    begin_program();
    sequence(0, 10, 0x8000);
    sequence(0x2000, 20, 0x100);
    sequence(UINT64_MAX, 30, 0x100);
    sequence(UINT64_MAX - 1, 30, 0x100);
    sequence(1, 10, 0x8000);
    end_program();
    load();
    CHECK_TEXT(at(0x1500), "-");
    CHECK_TEXT(at(0x2050), "/made/main.c:20:0");
    CHECK_TEXT(at(0x2100), "-");
    CHECK_TEXT(at(UINT64_MAX), "-");
    CHECK_TEXT(at(1), "-");
    unload();
}

TEST(dwarf_line, without_an_end_the_highest_row_is_one)
{
    begin(4);
    old_files();
    begin_program();
    set_address(0x2000);
    row(0, 1);
    row(8, 1);
    end_program();
    load();
    CHECK_TEXT(at(0x2007), "/made/main.c:2:0");
    CHECK_TEXT(at(0x2008), "-");
    unload();
}

TEST(dwarf_line, a_table_that_breaks_the_rules_is_refused)
{
    struct kiln_dwarf_line_ctx ctx;

    budget = (struct kiln_budget){.limit = 1 << 20};
    begin(6);
    end_program();
    ctx = context();
    CHECK_EQ(kiln_dwarf_lines_load(&ctx, 0, &budget, &lines), KILN_E_UNSUPPORTED);
    CHECK(kiln_dwarf_lines_load(&ctx, 5000, &budget, &lines) < 0);
    CHECK(kiln_dwarf_lines_load(&ctx, UINT64_MAX - 1, &budget, &lines) < 0);
    begin(4); /* a line range of 0 */
    table.data[table.n - 14] = 0;
    old_files();
    begin_program();
    end_program();
    ctx = context();
    CHECK_EQ(kiln_dwarf_lines_load(&ctx, 0, &budget, &lines), KILN_E_MALFORMED);
    begin(5); /* no formats, but two billion directories */
    put(0, 1);
    uleb(2000000000);
    begin_program();
    end_program();
    ctx = context();
    CHECK_EQ(kiln_dwarf_lines_load(&ctx, 0, &budget, &lines), KILN_E_MALFORMED);
    CHECK_EQ(budget.used, 0);
}

TEST(dwarf_line, a_table_cut_anywhere_or_too_large_for_the_budget_is_an_error)
{
    struct kiln_dwarf_line_ctx ctx;

    begin(4);
    old_files();
    begin_program();
    for (int i = 0; i < 20; i++)
        sequence(0x5000 - (uint64_t)i * 0x100, 50, 0x100);
    end_program();
    for (size_t n = 0; n < table.n; n++) {
        ctx = context();
        line_section = section_of(table.data, n);
        budget = (struct kiln_budget){.limit = 1 << 20};
        CHECK(kiln_dwarf_lines_load(&ctx, 0, &budget, &lines) < 0);
        CHECK_EQ(budget.used, 0);
    }
    ctx = context();
    for (size_t limit = 0; limit < 3000; limit += 100) {
        budget = (struct kiln_budget){.limit = limit};
        if (kiln_dwarf_lines_load(&ctx, 0, &budget, &lines) == 0)
            kiln_dwarf_lines_free(lines);
        CHECK_EQ(budget.used, 0);
        CHECK(budget.peak <= limit);
    }
}

TEST(dwarf_line, no_memory_at_any_point_is_an_error_and_leaks_nothing)
{
    int64_t live = kiln_mem_live();
    struct kiln_dwarf_line_ctx ctx;
    bool has_failed = true;

    begin(4);
    old_files();
    begin_program();
    sequence(0x5000, 50, 0x100);
    sequence(0x2000, 20, 0x100);
    end_program();
    ctx = context();
    for (uint64_t fail = 1; has_failed; fail++) {
        budget = (struct kiln_budget){.limit = 1 << 20};
        kiln_mem_fail_at(fail);
        if (kiln_dwarf_lines_load(&ctx, 0, &budget, &lines) == 0)
            kiln_dwarf_lines_free(lines);
        has_failed = kiln_mem_failed();
        kiln_mem_fail_at(0);
        CHECK_EQ(budget.used, 0);
        CHECK_EQ(kiln_mem_live(), live);
    }
}
