/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol/names.h"

#include <errno.h>
#include <fcntl.h>
#include <lzma.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "elf_maker.h"
#include "frame_maker.h"
#include "test.h"

enum { TEXT = 0x1000, TEXT_SIZE = 0x1000, OTHER = 0x4000, OTHER_SIZE = 0x100 };

/* A line of a symbol table; sections do not matter, addresses do. */
struct row {
    const char *name;
    uint64_t start, size;
    unsigned char type, bind;
};

/* Both tables of a file, made of rows. */
struct tables {
    Elf64_Sym symbols[64];
    char text[8192];
    size_t n_symbols, n_text;
};

static struct elf_maker maker;
static uint8_t code[TEXT_SIZE];

static void add_rows(struct tables *tables, const struct row *rows, size_t n)
{
    memset(tables, 0, sizeof(*tables));
    tables->n_symbols = 1;
    tables->n_text = 1;
    for (size_t i = 0; i < n; i++) {
        size_t len = strlen(rows[i].name) + 1;

        tables->symbols[tables->n_symbols++] = (Elf64_Sym){
            .st_name = (uint32_t)tables->n_text,
            .st_info = (unsigned char)(rows[i].bind << 4 | rows[i].type),
            .st_shndx = 1,
            .st_value = rows[i].start,
            .st_size = rows[i].size,
        };
        memcpy(tables->text + tables->n_text, rows[i].name, len);
        tables->n_text += len;
    }
}

static void add_code(void)
{
    memset(&maker, 0, sizeof(maker));
    maker.type = ET_DYN;
    elf_maker_add(&maker, (struct elf_part){.name = ".text",
                                            .flags = SHF_ALLOC | SHF_EXECINSTR,
                                            .address = TEXT,
                                            .data = code,
                                            .n = TEXT_SIZE});
    elf_maker_add(&maker, (struct elf_part){.name = ".text.hot",
                                            .flags = SHF_ALLOC | SHF_EXECINSTR,
                                            .address = OTHER,
                                            .data = code,
                                            .n = OTHER_SIZE});
}

static void add_tables(const char *name, uint32_t type, const struct tables *tables)
{
    elf_maker_add(&maker, (struct elf_part){.name = ".strings",
                                            .type = SHT_STRTAB,
                                            .data = tables->text,
                                            .n = tables->n_text});
    elf_maker_add(&maker, (struct elf_part){.name = name,
                                            .type = type,
                                            .data = tables->symbols,
                                            .n = tables->n_symbols * sizeof(Elf64_Sym),
                                            .link = maker.n_parts,
                                            .entry_size = sizeof(Elf64_Sym)});
}

static struct kiln_names *open_elf(void)
{
    struct kiln_bytes bytes = elf_maker_bytes(&maker);
    struct kiln_names *names = NULL;

    CHECK_OK(kiln_names_open(KILN_SOURCE_ELF, &bytes, NULL, &names));
    return names;
}

static struct kiln_names *open_rows(uint32_t type, const struct row *rows, size_t n)
{
    static struct tables tables;

    add_rows(&tables, rows, n);
    add_code();
    add_tables(type == SHT_SYMTAB ? ".symtab" : ".dynsym", type, &tables);
    return open_elf();
}
#define OPEN(type, ...)                                                                            \
    open_rows((type), (const struct row[]){__VA_ARGS__},                                           \
              sizeof((const struct row[]){__VA_ARGS__}) / sizeof(struct row))

static struct kiln_names *open_text(enum kiln_source_kind kind, const char *text)
{
    struct kiln_bytes bytes = kiln_bytes_memory(text, strlen(text));
    struct kiln_names *names = NULL;

    CHECK_OK(kiln_names_open(kind, &bytes, NULL, &names));
    return names;
}

/* "" for no name. */
static void check_name(struct kiln_names *names, uint64_t address, const char *wanted)
{
    struct kiln_name name = {0};

    CHECK_EQ(kiln_names_find(names, address, &name), wanted[0] != '\0');
    CHECK_STR(kiln_name_function(&name), wanted);
}

TEST(names, a_function_covers_its_size_and_no_more)
{
    struct kiln_names *names = OPEN(SHT_SYMTAB, {"one", 0x1000, 0x10, STT_FUNC, STB_GLOBAL},
                                    {"two", 0x1040, 0x10, STT_FUNC, STB_LOCAL});

    check_name(names, 0xfff, "");
    check_name(names, 0x1000, "one");
    check_name(names, 0x100f, "one");
    check_name(names, 0x1010, "");
    check_name(names, 0x103f, "");
    check_name(names, 0x104f, "two");
    check_name(names, 0x1050, "");
    kiln_names_close(names);
}

enum { STUBS = 0x4800, FRAMES = 0x5000 };

/* A function of 16 bytes that has a name, one of 32 that has none, and the linker's stubs. */
static struct kiln_names *open_stripped(void)
{
    static struct frame_maker frames;
    static struct tables tables;
    size_t cie;

    frames = (struct frame_maker){.address = FRAMES};
    cie = frame_maker_cie(&frames, &(struct frame_cie){.encoding = 0x1b});
    frame_maker_fde(&frames, cie, TEXT, 0x10, FRAME_PROGRAM(""));
    frame_maker_fde(&frames, cie, TEXT + 0x10, 0x20, FRAME_PROGRAM(""));
    frame_maker_fde(&frames, cie, STUBS, 0x20, FRAME_PROGRAM(""));
    add_rows(&tables, (const struct row[]){{"one", TEXT, 0x10, STT_FUNC, STB_GLOBAL}}, 1);
    add_code();
    add_tables(".dynsym", SHT_DYNSYM, &tables);
    elf_maker_add(&maker, (struct elf_part){.name = ".plt.sec",
                                            .flags = SHF_ALLOC | SHF_EXECINSTR,
                                            .address = STUBS,
                                            .data = code,
                                            .n = 0x20});
    elf_maker_add(&maker, (struct elf_part){.name = ".eh_frame",
                                            .flags = SHF_ALLOC,
                                            .address = FRAMES,
                                            .data = frames.data,
                                            .n = frames.n});
    return open_elf();
}

static uint64_t begin_of(struct kiln_names *names, uint64_t address)
{
    struct kiln_name name = {.begin = 1};

    CHECK(!kiln_names_find(names, address, &name));
    CHECK_EQ(name.n, 0);
    return name.begin;
}

TEST(names, without_a_name_it_is_told_where_the_function_begins)
{
    struct kiln_names *names = open_stripped();
    size_t before = kiln_names_bytes(names);
    struct kiln_name name = {.begin = 1};

    CHECK(kiln_names_find(names, TEXT + 0xf, &name));
    CHECK_STR(kiln_name_function(&name), "one");
    CHECK_EQ(name.begin, 0);
    CHECK_EQ(kiln_names_bytes(names), before);
    CHECK_EQ(begin_of(names, TEXT + 0x10), TEXT + 0x10);
    CHECK_EQ(begin_of(names, TEXT + 0x2f), TEXT + 0x10);
    CHECK_EQ(begin_of(names, TEXT + 0x30), 0);
    CHECK(kiln_names_bytes(names) > before);
    kiln_names_close(names);
}

TEST(names, stubs_of_a_linker_are_not_one_function)
{
    struct kiln_names *names = open_stripped();

    CHECK_EQ(begin_of(names, STUBS + 0x18), 0);
    kiln_names_close(names);
}

TEST(names, without_memory_there_is_no_beginning_and_nothing_leaks)
{
    int64_t before = kiln_mem_live();
    bool found = false;

    for (uint64_t n = 1; !found; n++) {
        struct kiln_names *names = open_stripped();
        uint64_t begin;

        kiln_mem_fail_at(n);
        begin = begin_of(names, TEXT + 0x18);
        kiln_mem_fail_at(0);
        CHECK(begin == 0 || begin == TEXT + 0x10);
        found = begin != 0;
        kiln_names_close(names);
        CHECK_EQ(kiln_mem_live(), before);
    }
}

TEST(names, the_innermost_function_is_meant)
{
    struct kiln_names *names = OPEN(SHT_SYMTAB, {"outer", 0x1000, 0x100, STT_FUNC, STB_GLOBAL},
                                    {"inner", 0x1040, 0x10, STT_FUNC, STB_LOCAL});

    check_name(names, 0x103f, "outer");
    check_name(names, 0x1040, "inner");
    check_name(names, 0x1050, "outer");
    kiln_names_close(names);
}

TEST(names, an_outer_function_is_found_behind_many_inner_ones)
{
    static struct row rows[60];
    struct kiln_names *names;

    rows[0] = (struct row){"outer", 0x1000, 0x800, STT_FUNC, STB_GLOBAL};
    for (uint64_t i = 1; i < 60; i++)
        rows[i] = (struct row){"inner", 0x1000 + i * 16, 8, STT_FUNC, STB_GLOBAL};
    names = open_rows(SHT_SYMTAB, rows, 60);
    check_name(names, 0x1000 + 59 * 16 + 7, "inner");
    check_name(names, 0x1000 + 59 * 16 + 8, "outer");
    check_name(names, 0x17ff, "outer");
    check_name(names, 0x1800, "");
    kiln_names_close(names);
}

TEST(names, of_aliases_the_plainest_is_taken)
{
    struct kiln_names *names = OPEN(
        SHT_SYMTAB, {"__libc_read", 0x1000, 16, STT_FUNC, STB_GLOBAL},
        {"r", 0x1000, 16, STT_FUNC, STB_LOCAL}, {"read", 0x1000, 16, STT_FUNC, STB_WEAK},
        {"__read", 0x1000, 16, STT_FUNC, STB_GLOBAL}, {"reae", 0x1000, 16, STT_FUNC, STB_GLOBAL});

    check_name(names, 0x1008, "read");
    kiln_names_close(names);
}

TEST(names, a_function_without_a_size_reaches_to_the_next)
{
    struct kiln_names *names = OPEN(SHT_SYMTAB, {"_init", 0x1000, 0, STT_FUNC, STB_LOCAL},
                                    {"sized", 0x1100, 0x10, STT_FUNC, STB_GLOBAL},
                                    {"last", 0x1800, 0, STT_FUNC, STB_LOCAL});

    check_name(names, 0x10ff, "_init");
    check_name(names, 0x1100, "sized");
    check_name(names, 0x1110, "");
    check_name(names, 0x1fff, "last");
    check_name(names, 0x4000, "");
    kiln_names_close(names);
}

TEST(names, labels_of_assembly_are_used_where_no_function_covers)
{
    struct kiln_names *names = OPEN(SHT_SYMTAB, {"function", 0x1000, 0x100, STT_FUNC, STB_GLOBAL},
                                    {"in_it", 0x1010, 0, STT_NOTYPE, STB_LOCAL},
                                    {"sized_label", 0x1200, 0x20, STT_NOTYPE, STB_GLOBAL},
                                    {"label", 0x1300, 0, STT_NOTYPE, STB_GLOBAL});

    check_name(names, 0x1020, "function");
    check_name(names, 0x1210, "sized_label");
    check_name(names, 0x1220, "");
    check_name(names, 0x1340, "label");
    kiln_names_close(names);
}

TEST(names, labels_of_what_is_not_loaded_are_no_names)
{
    static const struct row rows[] = {{"function", 0x1000, 0x100, STT_FUNC, STB_GLOBAL},
                                      {"shop.c.6b640d0b", 0x1200, 0, STT_NOTYPE, STB_WEAK}};
    static struct tables tables;
    struct kiln_names *names;

    add_rows(&tables, rows, KILN_ARRAY_LEN(rows));
    add_code();
    tables.symbols[2].st_shndx = 3; /* .strings, which comes behind the code */
    add_tables(".symtab", SHT_SYMTAB, &tables);
    names = open_elf();
    check_name(names, 0x1010, "function");
    check_name(names, 0x1210, "");
    kiln_names_close(names);
}

TEST(names, what_compilers_note_is_no_name)
{
    struct kiln_names *names =
        OPEN(SHT_SYMTAB, {"real", 0x1000, 0, STT_FUNC, STB_GLOBAL},
             {".annobin_x", 0x1010, 0, STT_NOTYPE, STB_LOCAL},
             {"$x", 0x1020, 0, STT_NOTYPE, STB_LOCAL}, {".L42", 0x1030, 0, STT_NOTYPE, STB_LOCAL});

    check_name(names, 0x1040, "real");
    kiln_names_close(names);
}

TEST(names, an_exported_label_does_not_reach_far)
{
    static struct tables tables;
    const struct row rows[] = {{"entry", 0x1000, 0, STT_NOTYPE, STB_GLOBAL}};
    static uint8_t long_code[0x4000];
    struct kiln_names *names;

    add_rows(&tables, rows, 1);
    memset(&maker, 0, sizeof(maker));
    maker.type = ET_DYN;
    elf_maker_add(&maker, (struct elf_part){.name = ".text",
                                            .flags = SHF_ALLOC | SHF_EXECINSTR,
                                            .address = TEXT,
                                            .data = long_code,
                                            .n = sizeof(long_code)});
    add_tables(".dynsym", SHT_DYNSYM, &tables);
    names = open_elf();
    check_name(names, 0x1100, "entry");
    check_name(names, 0x3000, "");
    kiln_names_close(names);
}

TEST(names, symbols_of_data_are_no_names_of_code)
{
    struct kiln_names *names = OPEN(SHT_SYMTAB, {"object", 0x1000, 16, STT_OBJECT, STB_GLOBAL},
                                    {"elsewhere", 0x9000, 16, STT_FUNC, STB_GLOBAL},
                                    {"chosen", 0x1020, 16, STT_GNU_IFUNC, STB_GLOBAL});

    check_name(names, 0x1000, "");
    check_name(names, 0x9000, "");
    check_name(names, 0x1020, "chosen");
    kiln_names_close(names);
}

TEST(names, both_tables_of_a_file_are_read)
{
    static struct tables all;
    static struct tables exported;
    const struct row in_all[] = {{"inside", 0x1000, 16, STT_FUNC, STB_LOCAL}};
    const struct row in_exported[] = {{"outside", 0x1010, 16, STT_FUNC, STB_GLOBAL}};
    struct kiln_names *names;

    add_rows(&all, in_all, 1);
    add_rows(&exported, in_exported, 1);
    add_code();
    add_tables(".dynsym", SHT_DYNSYM, &exported);
    add_tables(".symtab", SHT_SYMTAB, &all);
    names = open_elf();
    check_name(names, 0x1000, "inside");
    check_name(names, 0x1010, "outside");
    kiln_names_close(names);
}

TEST(names, a_mangled_name_keeps_what_the_linker_calls_it)
{
    struct kiln_names *names =
        OPEN(SHT_SYMTAB, {"_ZN4kiln3sumEi.cold", 0x1000, 16, STT_FUNC, STB_LOCAL},
             {"plain.isra.0", 0x1010, 16, STT_FUNC, STB_LOCAL});
    struct kiln_name name;

    CHECK(kiln_names_find(names, 0x1000, &name));
    CHECK_STR(kiln_name_function(&name), "kiln::sum");
    CHECK_STR(name.frames[0].system_name, "_ZN4kiln3sumEi.cold");
    CHECK(kiln_names_find(names, 0x1010, &name));
    CHECK_STR(kiln_name_function(&name), "plain");
    CHECK_STR(name.frames[0].system_name, "plain.isra.0");
    kiln_names_close(names);
}

TEST(names, hostile_names_are_cleaned_and_cut)
{
    static char long_name[5001];
    struct kiln_names *names;
    struct kiln_name name;

    memset(long_name, 'x', sizeof(long_name) - 1);
    names = OPEN(SHT_SYMTAB, {"a\x1b[31m\nb\xff", 0x1000, 16, STT_FUNC, STB_GLOBAL},
                 {long_name, 0x1010, 16, STT_FUNC, STB_GLOBAL});
    check_name(names, 0x1000,
               "a\xef\xbf\xbd[31m\xef\xbf\xbd"
               "b\xef\xbf\xbd");
    CHECK(kiln_names_find(names, 0x1010, &name));
    CHECK_EQ(kiln_name_function(&name).len, 4096);
    kiln_names_close(names);
}

TEST(names, a_table_without_end_is_not_read)
{
    static struct tables tables;
    const struct row rows[] = {{"one", 0x1000, 16, STT_FUNC, STB_GLOBAL}};
    const struct kiln_names_limits limits = {.symbols = 1};
    struct kiln_bytes bytes;
    struct kiln_names *names = NULL;

    add_rows(&tables, rows, 1);
    tables.n_symbols = 64;
    add_code();
    add_tables(".symtab", SHT_SYMTAB, &tables);
    bytes = elf_maker_bytes(&maker);
    CHECK_OK(kiln_names_open(KILN_SOURCE_ELF, &bytes, &limits, &names));
    check_name(names, 0x1000, "");
    kiln_names_close(names);
}

/* ---- packed symbols ---- */

static struct kiln_names *open_packed(const void *plain, size_t n)
{
    static uint8_t packed[1 << 16];
    size_t n_packed = 0;

    CHECK_EQ(lzma_easy_buffer_encode(6, LZMA_CHECK_CRC32, NULL, plain, n, packed, &n_packed,
                                     sizeof(packed)),
             LZMA_OK);
    add_code();
    elf_maker_add(&maker,
                  (struct elf_part){.name = ".gnu_debugdata", .data = packed, .n = n_packed});
    return open_elf();
}

TEST(names, packed_symbols_are_read)
{
    static uint8_t inner[ELF_MADE_MAX];
    static struct tables tables;
    const struct row rows[] = {{"hidden", 0x1000, 16, STT_FUNC, STB_LOCAL}};
    struct kiln_names *names;

    add_rows(&tables, rows, 1);
    add_code();
    add_tables(".symtab", SHT_SYMTAB, &tables);
    (void)elf_maker_bytes(&maker);
    memcpy(inner, maker.data, maker.n);
    names = open_packed(inner, maker.n);
    check_name(names, 0x1008, "hidden");
    kiln_names_close(names);
}

TEST(names, what_unpacks_without_end_is_given_up)
{
    size_t n = 80 << 20;
    uint8_t *zeros = calloc(1, n);
    struct kiln_names *names = open_packed(zeros, n);

    check_name(names, 0x1008, "");
    CHECK(kiln_names_bytes(names) < 1 << 20);
    kiln_names_close(names);
    free(zeros);
}

/* ---- lines ---- */

TEST(names, a_perf_map_is_read_with_or_without_0x)
{
    struct kiln_names *names =
        open_text(KILN_SOURCE_PERF_MAP, "7f0000001000 40 LazyCompile:~render /app/view.js:10\n"
                                        "0x7f0000002000 0x10 second\n"
                                        "garbage\n\n7f 0 empty\nzz 10 bad\n"
                                        "7f0000003000 10 without an end");

    check_name(names, 0x7f000000103f, "JS:~render /app/view.js:10");
    check_name(names, 0x7f0000001040, "");
    check_name(names, 0x7f000000200f, "second");
    check_name(names, 0x7f, "");
    check_name(names, 0x7f0000003000, "without an end");
    kiln_names_close(names);
}

TEST(names, of_pieces_that_overlap_the_last_told_is_there)
{
    struct kiln_names *names = open_text(KILN_SOURCE_PERF_MAP, "1000 100 old\n"
                                                               "1040 20 new\n"
                                                               "1050 100 newest\n"
                                                               "1000 10 first\n");

    check_name(names, 0x1000, "first");
    check_name(names, 0x1010, "old");
    check_name(names, 0x103f, "old");
    check_name(names, 0x1040, "new");
    check_name(names, 0x1050, "newest");
    check_name(names, 0x114f, "newest");
    check_name(names, 0x1150, "");
    kiln_names_close(names);
}

/* Random pieces, each byte held against an array that was painted in order. */
TEST(names, overlapping_pieces_are_as_if_painted_one_after_another)
{
    enum { SIZE = 256, N = 40 };
    uint32_t seed = 7;

    for (int round = 0; round < 200; round++) {
        char text[N * 24 + 1];
        int painted[SIZE + 64];
        size_t len = 0;
        struct kiln_names *names;

        memset(painted, 0xff, sizeof(painted));
        for (int i = 0; i < N; i++) {
            seed = seed * 1664525 + 1013904223;
            uint32_t start = seed >> 8 & (SIZE - 1);
            uint32_t size = (seed >> 20 & 31) + 1;

            len += (size_t)snprintf(text + len, sizeof(text) - len, "%x %x p%d\n", start, size, i);
            for (uint32_t at = start; at < start + size; at++)
                painted[at] = i;
        }
        names = open_text(KILN_SOURCE_PERF_MAP, text);
        for (uint32_t at = 0; at < SIZE + 64; at++) {
            char wanted[16] = "";

            if (painted[at] >= 0)
                (void)snprintf(wanted, sizeof(wanted), "p%d", painted[at]);
            check_name(names, at, wanted);
        }
        kiln_names_close(names);
    }
}

/* Random pieces once more, told bit by bit: the same as all at once. */
TEST(names, a_perf_map_that_grows_is_as_if_it_were_read_whole)
{
    enum { N = 60 };
    static char text[N * 24 + 1];
    struct kiln_names *grown = NULL;
    struct kiln_bytes bytes;
    size_t len = 0;
    size_t known = 0;
    uint32_t seed = 11;

    for (int i = 0; i < N; i++) {
        seed = seed * 1664525 + 1013904223;
        len += (size_t)snprintf(text + len, sizeof(text) - len, "%x %x p%d\n", seed >> 8 & 255,
                                (seed >> 20 & 31) + 1, i);
    }
    bytes = kiln_bytes_memory(text, 0);
    CHECK_OK(kiln_names_open(KILN_SOURCE_PERF_MAP, &bytes, NULL, &grown));
    while (known < len) {
        struct kiln_names *whole = NULL;

        known += 1 + seed % 40; /* also in the middle of a line */
        known = known < len ? known : len;
        seed = seed * 1664525 + 1013904223;
        bytes = kiln_bytes_memory(text, known);
        CHECK_OK(kiln_names_grow(grown, &bytes));
        CHECK_OK(kiln_names_open(KILN_SOURCE_PERF_MAP, &bytes, NULL, &whole));
        for (uint32_t at = 0; at < 320; at++) {
            struct kiln_name name = {0};
            char wanted[32] = "";

            if (kiln_names_find(whole, at, &name))
                (void)snprintf(wanted, sizeof(wanted), "%.*s",
                               KILN_STR_ARG(kiln_name_function(&name)));
            check_name(grown, at, wanted);
        }
        kiln_names_close(whole);
    }
    kiln_names_close(grown);
}

TEST(names, a_perf_map_that_was_replaced_does_not_grow)
{
    struct kiln_names *names = open_text(KILN_SOURCE_PERF_MAP, "1000 10 one\n");
    struct kiln_bytes other = kiln_bytes_memory("1000 10 two\n2000 10 three\n", 26);
    struct kiln_bytes shorter = kiln_bytes_memory("1000 1", 6);

    CHECK_EQ(kiln_names_grow(names, &other), KILN_E_UNSUPPORTED);
    CHECK_EQ(kiln_names_grow(names, &shorter), KILN_E_UNSUPPORTED);
    kiln_names_close(names);
}

TEST(names, hostile_sizes_of_a_perf_map_do_no_harm)
{
    struct kiln_names *names =
        open_text(KILN_SOURCE_PERF_MAP, "fffffffffffffff0 ffffffffffffffff end\n"
                                        "0 ffffffffffffffff all\n"
                                        "11111111111111111111 10 too long a number\n");

    check_name(names, 0xfffffffffffffff8, "end");
    check_name(names, 0x10, "all");
    kiln_names_close(names);
}

TEST(names, a_long_line_of_a_perf_map_is_cut_and_the_next_is_read)
{
    size_t n = 300000;
    char *text = malloc(n + 64);
    size_t len = (size_t)snprintf(text, 64, "1000 10 ");
    struct kiln_names *names;
    struct kiln_name name;

    memset(text + len, 'x', n - len);
    (void)snprintf(text + n, 64, "\n2000 10 next\n");
    names = open_text(KILN_SOURCE_PERF_MAP, text);
    check_name(names, 0x2000, "next");
    CHECK(kiln_names_find(names, 0x1000, &name));
    CHECK_EQ(kiln_name_function(&name).len, 4096);
    kiln_names_close(names);
    free(text);
}

TEST(names, a_name_may_end_with_the_file)
{
    char text[8 + 400 + 1] = "1000 10 ";

    for (size_t n = 1; n <= 400; n++) {
        struct kiln_bytes bytes = kiln_bytes_memory(text, 8 + n);
        struct kiln_names *names = NULL;
        struct kiln_name name = {0};

        text[8 + n - 1] = 'x';
        CHECK_OK(kiln_names_open(KILN_SOURCE_PERF_MAP, &bytes, NULL, &names));
        CHECK(kiln_names_find(names, 0x1000, &name));
        CHECK_EQ(kiln_name_function(&name).len, n);
        kiln_names_close(names);
    }
}

TEST(names, a_file_that_shrinks_while_it_is_open_does_no_harm)
{
    static struct tables tables;
    const struct row rows[] = {{"one", 0x1000, 16, STT_FUNC, STB_GLOBAL}};
    int fd = memfd_create("shrinks", MFD_CLOEXEC);
    struct kiln_names *names = NULL;
    struct kiln_bytes bytes;

    add_rows(&tables, rows, 1);
    add_code();
    add_tables(".symtab", SHT_SYMTAB, &tables);
    (void)elf_maker_bytes(&maker);
    CHECK_EQ(write(fd, maker.data, maker.n), (ssize_t)maker.n);
    CHECK_OK(kiln_bytes_file(fd, &bytes));
    CHECK_OK(kiln_names_open(KILN_SOURCE_ELF, &bytes, NULL, &names));
    check_name(names, 0x1000, "one");
    CHECK_OK(ftruncate(fd, 100));
    check_name(names, 0x1000, "");
    kiln_names_close(names);

    CHECK_OK(kiln_bytes_file(fd, &bytes));
    CHECK_OK(ftruncate(fd, 0));
    CHECK_OK(kiln_names_open(KILN_SOURCE_PERF_MAP, &bytes, NULL, &names));
    check_name(names, 0x1000, "");
    kiln_names_close(names);
    close(fd);
}

TEST(names, a_kernel_without_addresses_is_an_error)
{
    struct kiln_bytes bytes = kiln_bytes_memory("0000000000000000 T _text\n", 25);
    struct kiln_names *names = NULL;

    CHECK_EQ(kiln_names_open(KILN_SOURCE_KERNEL, &bytes, NULL, &names), -EACCES);
}

TEST(names, a_function_of_the_kernel_ends_where_the_next_symbol_begins)
{
    struct kiln_names *names =
        open_text(KILN_SOURCE_KERNEL, "ffffffff81000200 D data\n"
                                      "ffffffff81000100 t second\n"
                                      "ffffffff81000000 T first\n"
                                      "ffffffffc0000000 t bpf_prog_0123456789abcdef_x\t[bpf]\n"
                                      "ffffffffc0000040 t lonely\t[m]\n");
    struct kiln_name name;

    check_name(names, 0xffffffff810000ff, "first");
    check_name(names, 0xffffffff810001ff, "second");
    check_name(names, 0xffffffff81000200, "");
    CHECK(kiln_names_find(names, 0xffffffffc0000001, &name));
    CHECK_STR(kiln_name_function(&name), "bpf_prog_0123456789abcdef_x");
    CHECK_STR(name.module, "bpf");
    check_name(names, 0xffffffffc0010000, "lonely");
    check_name(names, 0xffffffffd0000000, "");
    kiln_names_close(names);
}
