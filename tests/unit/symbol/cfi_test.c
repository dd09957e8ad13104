/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "elf_maker.h"
#include "frame_maker.h"
#include "go_maker.h"
#include "symbol/cfi.h"
#include "symbol/gopcln.h"
#include "test.h"

enum { TEXT = 0x10000, TEXT_SIZE = 0x8000, FRAMES = 0x30000, HEADER = 0x40000 };

static struct elf_maker maker;
static struct frame_maker eh, debug;
static uint8_t code[TEXT_SIZE], header[4096], go[4096];
static size_t n_header, n_go;

/* Rows as text: "10000 sp+8; 10001 sp+16 fp:c-16; 10020 none". */
static const char *drawn(struct kiln_cfi *cfi, uint64_t begin, uint64_t end)
{
    static const char *const rules[] = {"none", "end", "", "", "plt", "signal", "frame"};
    static const char *const names[] = {"ax", "dx", "cx", "bx", "si",  "di",  "fp",  "sp",
                                        "r8", "r9", "10", "11", "r12", "r13", "r14", "r15"};
    static struct kiln_cfi_row rows[20000];
    static char text[4096];
    int n = kiln_cfi_rows(cfi, begin, end, rows, KILN_ARRAY_LEN(rows)), at = 0;

    CHECK(n > 0);
    CHECK_EQ(rows[0].address, begin);
    for (int i = 0; i < n && at < 4000; i++) {
        const struct kiln_cfi_row *row = &rows[i];

        CHECK(i == 0 || row->address > row[-1].address);
        at += snprintf(text + at, 4096 - at, "%s%llx %s", i ? "; " : "",
                       (unsigned long long)row->address, rules[row->rule]);
        if (row->rule == KILN_RULE_REG)
            at += snprintf(text + at, 4096 - at, "%s%+d", names[row->reg], row->cfa_off);
        else if (row->rule == KILN_RULE_DEREF)
            at += snprintf(text + at, 4096 - at, "*(%s%+d)%+d", names[row->reg], row->cfa_off,
                           row->more);
        if (row->fp != KILN_SAVED_SAME)
            at += snprintf(text + at, 4096 - at, " fp:%c%+d", "?cf?"[row->fp], row -> fp_off);
        if (row->ra_reg != 0xff)
            at += snprintf(text + at, 4096 - at, " ra:%s", names[row->ra_reg]);
    }
    return text;
}

static void begin(void)
{
    memset(code, 0x90, sizeof(code));
    eh = (struct frame_maker){.address = FRAMES};
    debug = (struct frame_maker){.is_debug = true};
    n_header = n_go = 0;
    maker = (struct elf_maker){.type = ET_DYN};
}

static void add(const char *name, uint64_t flags, uint64_t address, const void *data, size_t n)
{
    if (n)
        elf_maker_add(
            &maker,
            (struct elf_part){.name = name,
                              .flags = flags,
                              .address = address,
                              .segment = strcmp(name, ".eh_frame_hdr") == 0 ? PT_GNU_EH_FRAME : 0,
                              .data = data,
                              .n = n});
}

/* The file with what was made since begin(); closed by done(). */
static struct kiln_elf *elf;
static struct kiln_cfi *open_made(void)
{
    struct kiln_bytes bytes;
    struct kiln_cfi *cfi;

    add(".text", SHF_ALLOC | SHF_EXECINSTR, TEXT, code, sizeof(code));
    add(".eh_frame", SHF_ALLOC, FRAMES, eh.data, eh.n);
    add(".eh_frame_hdr", SHF_ALLOC, HEADER, header, n_header);
    add(".debug_frame", 0, 0, debug.data, debug.n);
    add(".gopclntab", SHF_ALLOC, 0x50000, go, n_go);
    bytes = elf_maker_bytes(&maker);
    CHECK_OK(kiln_elf_open(&bytes, &elf));
    CHECK_OK(kiln_cfi_open(elf, &cfi));
    return cfi;
}

static void done(struct kiln_cfi *cfi)
{
    kiln_cfi_close(cfi);
    kiln_elf_close(elf);
}

/* Opens, draws [TEXT, TEXT + size), closes. */
static const char *rows_of_made(uint64_t size)
{
    struct kiln_cfi *cfi = open_made();
    const char *text = drawn(cfi, TEXT, TEXT + size);

    done(cfi);
    return text;
}

static size_t usual_cie(void)
{
    return frame_maker_cie(&eh, &(struct frame_cie){.encoding = 0x1b});
}

/* push %rbp; mov %rsp, %rbp; ... leave at byte 0x1e of 0x20. */
#define PUSH_RBP "\x41\x0e\x10\x86\x02\x43\x0d\x06\x5a\x0c\x07\x08"

TEST(cfi, a_function_is_rows_and_what_lies_between_functions_is_nothing)
{
    size_t cie;

    begin();
    cie = usual_cie();
    frame_maker_fde(&eh, cie, TEXT, 0x20, FRAME_PROGRAM(PUSH_RBP));
    frame_maker_fde(&eh, cie, TEXT + 0x30, 0x10, FRAME_PROGRAM("\x44\x0e\x20\x44\x0e\x08"));
    frame_maker_fde(&eh, cie, TEXT + 0x40, 0x10, FRAME_PROGRAM(""));
    CHECK_TEXT(rows_of_made(0x100),
               "10000 sp+8; 10001 sp+16 fp:c-16; 10004 fp+16 fp:c-16; 1001e sp+8 fp:c-16; "
               "10020 none; 10030 sp+8; 10034 sp+32; 10038 sp+8; 10050 none");
}

TEST(cfi, a_range_begins_in_the_middle_of_a_function_and_ends_there)
{
    struct kiln_cfi *cfi;
    struct kiln_cfi_row rows[2];

    begin();
    frame_maker_fde(&eh, usual_cie(), TEXT, 0x20, FRAME_PROGRAM(PUSH_RBP));
    cfi = open_made();
    CHECK_TEXT(drawn(cfi, TEXT + 2, TEXT + 5), "10002 sp+16 fp:c-16; 10004 fp+16 fp:c-16");
    CHECK_TEXT(drawn(cfi, TEXT - 16, TEXT), "fff0 none");
    CHECK_TEXT(drawn(cfi, TEXT + 0x1f, TEXT + 0x7000), "1001f sp+8 fp:c-16; 10020 none");
    CHECK_EQ(kiln_cfi_rows(cfi, TEXT, TEXT + 0x20, rows, 2), KILN_E_LIMIT);
    CHECK_EQ(kiln_cfi_rows(cfi, TEXT, TEXT, rows, 2), 0);
    done(cfi);
}

/* Forty functions of 16 bytes, each with another frame. */
static void add_forty(size_t cie)
{
    for (uint32_t i = 0; i < 40; i++) {
        char program[] = {0x44, 0x0e, (char)(16 + 2 * i)};

        frame_maker_fde(&eh, cie, TEXT + 16 * i, 16, program, 3);
    }
}

enum table { NO_TABLE, GOOD, UNSORTED, WRONG, POINTS_NOWHERE, OTHER_ENCODING };

static void make_table(enum table table)
{
    int32_t number = 0x7fffff00;

    if (table == UNSORTED || table == WRONG) {
        uint64_t begin_0 = eh.pairs[0].begin;

        eh.pairs[0].begin = table == WRONG ? begin_0 : eh.pairs[39].begin;
        eh.pairs[39].begin = table == WRONG ? eh.pairs[39].begin : begin_0;
        eh.pairs[5].begin += table == WRONG ? 3 : 0;
    }
    n_header = table == NO_TABLE ? 0 : frame_maker_header(&eh, HEADER, header);
    if (table == POINTS_NOWHERE)
        memcpy(header + 12 + 8 * 7 + 4, &number, 4);
    if (table == OTHER_ENCODING)
        header[3] = 0x1b;
}

TEST(cfi, rows_are_the_same_with_a_table_without_one_and_with_a_wrong_one)
{
    char *expected = NULL;

    for (int table = NO_TABLE; table <= OTHER_ENCODING; table++) {
        const char *text;

        begin();
        add_forty(usual_cie());
        make_table(table);
        text = rows_of_made(0x300);
        if (!expected)
            expected = strdup(text);
        CHECK(strstr(text, "10014 sp+18; 10020 sp+8"));
        CHECK(strstr(text, "10274 sp+94; 10280 none"));
        CHECK_TEXT(text, expected);
    }
    free(expected);
}

/* "10010-10020", or "none". */
static const char *function_at(struct kiln_cfi *cfi, uint64_t address)
{
    static char text[64];
    uint64_t first, end;

    if (kiln_cfi_function(cfi, address, &first, &end) < 0)
        return "none";
    snprintf(text, sizeof(text), "%llx-%llx", (unsigned long long)first, (unsigned long long)end);
    return text;
}

TEST(cfi, functions_are_found_with_a_table_without_one_and_with_a_wrong_one)
{
    for (int table = NO_TABLE; table <= OTHER_ENCODING; table++) {
        struct kiln_cfi *cfi;

        begin();
        add_forty(usual_cie());
        make_table(table);
        cfi = open_made();
        /* That a table is wrong shows where it is. */
        CHECK_TEXT(function_at(cfi, TEXT + 0x58), "10050-10060");
        for (uint64_t at = TEXT; at < TEXT + 0x280; at++) {
            char expected[64];

            snprintf(expected, sizeof(expected), "%llx-%llx", (unsigned long long)(at & ~15ull),
                     (unsigned long long)(at | 15) + 1);
            CHECK_TEXT(function_at(cfi, at), expected);
        }
        CHECK_TEXT(function_at(cfi, TEXT - 1), "none");
        CHECK_TEXT(function_at(cfi, TEXT + 0x280), "none");
        CHECK_TEXT(function_at(cfi, 0), "none");
        CHECK_TEXT(function_at(cfi, UINT64_MAX), "none");
        CHECK(kiln_cfi_bytes(cfi) > 0);
        done(cfi);
    }
}

TEST(cfi, a_function_ends_where_the_next_begins_and_debug_frame_has_others)
{
    struct kiln_cfi *cfi;
    size_t cie;

    begin();
    cie = usual_cie();
    frame_maker_fde(&eh, cie, TEXT + 0x10, 0x40, FRAME_PROGRAM(""));
    frame_maker_fde(&eh, cie, TEXT + 0x30, 0x10, FRAME_PROGRAM(""));
    frame_maker_fde(&debug, frame_maker_cie(&debug, &(struct frame_cie){0}), TEXT + 0x80, 0x10,
                    FRAME_PROGRAM(""));
    cfi = open_made();
    CHECK_TEXT(function_at(cfi, TEXT), "none");
    CHECK_TEXT(function_at(cfi, TEXT + 0x2f), "10010-10030");
    CHECK_TEXT(function_at(cfi, TEXT + 0x30), "10030-10040");
    CHECK_TEXT(function_at(cfi, TEXT + 0x45), "none");
    CHECK_TEXT(function_at(cfi, TEXT + 0x88), "10080-10090");
    done(cfi);
}

TEST(cfi, frames_are_found_without_section_headers)
{
    begin();
    add_forty(usual_cie());
    make_table(GOOD);
    maker.no_sections = true;
    CHECK(strstr(rows_of_made(0x300), "10274 sp+94; 10280 none"));
}

TEST(cfi, states_are_remembered_and_restored)
{
    begin();
    frame_maker_fde(&eh, usual_cie(), TEXT, 0x20,
                    FRAME_PROGRAM("\x41\x0e\x10\x86\x02\x0a\x41\x0e\x08\xc6\x41\x0b\x42\x0e\x20"));
    CHECK_TEXT(rows_of_made(0x20), "10000 sp+8; 10001 sp+16 fp:c-16; 10002 sp+8; "
                                   "10003 sp+16 fp:c-16; 10005 sp+32 fp:c-16");
}

TEST(cfi, a_frame_that_was_realigned_is_found_through_memory)
{
    /* lea 8(%rsp), %r10; ...; CFA = *(rbp - 8), rbp saved at rbp + 0; CFA = r10 at the end */
    begin();
    frame_maker_fde(&eh, usual_cie(), TEXT, 0x40,
                    FRAME_PROGRAM("\x45\x0c\x0a\x00\x44\x10\x06\x02\x76\x00\x44\x0f\x03\x76\x78\x06"
                                  "\x44\x0f\x05\x77\x08\x06\x23\x08"));
    CHECK_TEXT(rows_of_made(0x40),
               "10000 sp+8; 10005 10+0; 10009 10+0 fp:f+0; 1000d *(fp-8)+0 fp:f+0; "
               "10011 *(sp+8)+8 fp:f+0");
}

TEST(cfi, stubs_of_a_linker_have_their_own_rule)
{
    static char plt[] = "\x0f\x0b\x77\x08\x80\x00\x3f\x1a\x3b\x2a\x33\x24\x22";

    begin();
    frame_maker_fde(&eh, usual_cie(), TEXT, 0x30, plt, 13);
    CHECK_TEXT(rows_of_made(0x30), "10000 plt");
    plt[8] = 0x39; /* from the 10th byte on */
    begin();
    frame_maker_fde(&eh, usual_cie(), TEXT, 0x20, plt, 13);
    CHECK_TEXT(rows_of_made(0x20), "10000 sp+8; 10009 sp+16; 10010 sp+8; 10019 sp+16");
}

TEST(cfi, a_return_address_may_be_undefined_in_a_register_or_out_of_reach)
{
    begin();
    frame_maker_fde(&eh, usual_cie(), TEXT, 0x20,
                    FRAME_PROGRAM("\x07\x10\x44\x0e\x08\x09\x10\x05\x44\xd0\x44\x90\x03\x44"
                                  "\x10\x10\x02\x77\x00"));
    CHECK_TEXT(rows_of_made(0x20),
               "10000 end; 10004 sp+8 ra:di; 10008 sp+8; 1000c none; 10010 sp+8");
}

TEST(cfi, what_is_not_followed_is_nothing_until_it_is_said_otherwise)
{
    begin();
    frame_maker_fde(&eh, usual_cie(), TEXT, 0x20,
                    FRAME_PROGRAM("\x44\x0f\x01\x9c\x44\x0c\x07\x10\x44\x0c\x11\x00\x44\x0c\x07\x20"
                                  "\x44\x3f\x44\x0e\x08"));
    CHECK_TEXT(rows_of_made(0x20),
               "10000 sp+8; 10004 none; 10008 sp+16; 1000c none; 10010 sp+32; 10014 none");
}

TEST(cfi, every_encoding_of_addresses_and_every_version_is_read)
{
    static const uint8_t encodings[] = {0x00, 0x03, 0x04, 0x0b, 0x0c, 0x1b, 0x1c, 0x14};
    static const uint8_t versions[] = {1, 3, 4};

    for (size_t i = 0; i < KILN_ARRAY_LEN(encodings); i++) {
        for (size_t j = 0; j < KILN_ARRAY_LEN(versions); j++) {
            struct frame_cie cie = {
                .letters = "zPLR", .encoding = encodings[i], .version = versions[j]};

            begin();
            eh.is_long = i & 1;
            frame_maker_fde(&eh, frame_maker_cie(&eh, &cie), TEXT, 0x10,
                            FRAME_PROGRAM("\x44\x0e\x10"));
            CHECK_TEXT(rows_of_made(0x20), "10000 sp+8; 10004 sp+16; 10010 none");
        }
    }
}

TEST(cfi, debug_frame_says_what_eh_frame_does_not)
{
    size_t cie;

    for (int is_long = 0; is_long < 2; is_long++) {
        begin();
        debug.is_long = is_long;
        cie = frame_maker_cie(&debug, &(struct frame_cie){.version = 3});
        frame_maker_fde(&debug, cie, TEXT, 0x40, FRAME_PROGRAM("\x44\x0e\x30"));
        CHECK_TEXT(rows_of_made(0x50), "10000 sp+8; 10004 sp+48; 10040 none");
        maker.n_parts = 0;
        frame_maker_fde(&eh, usual_cie(), TEXT + 0x10, 0x10, FRAME_PROGRAM(""));
        CHECK_TEXT(rows_of_made(0x50),
                   "10000 sp+8; 10004 sp+48; 10010 sp+8; 10020 sp+48; 10040 none");
    }
}

TEST(cfi, a_signals_frame_holds_one_byte_before_it_too)
{
    struct frame_cie signal = {.letters = "zRS", .encoding = 0x1b};
    struct kiln_cfi *cfi;
    size_t cie;

    begin();
    cie = usual_cie();
    frame_maker_fde(&eh, cie, TEXT, 0x1f, FRAME_PROGRAM(""));
    cie = frame_maker_cie(&eh, &signal);
    frame_maker_fde(&eh, cie, TEXT + 0x4000, 9, FRAME_PROGRAM(""));
    frame_maker_fde(&eh, cie, TEXT + 0x4020, 9, FRAME_PROGRAM(""));
    cfi = open_made();
    CHECK_TEXT(drawn(cfi, TEXT, TEXT + 0x4000), "10000 sp+8; 1001f none; 13fff signal");
    CHECK_TEXT(drawn(cfi, TEXT + 0x4000, TEXT + 0x4040),
               "14000 signal; 14009 none; 1401f signal; 14029 none");
    done(cfi);
}

TEST(cfi, a_trampoline_is_known_by_its_code)
{
    static const char trampoline[] = "\x48\xc7\xc0\x0f\0\0\0\x0f\x05";
    struct kiln_cfi *cfi;

    begin();
    memcpy(code + 0x20, trampoline, 9);
    memcpy(code + 0x4000, trampoline, 9);
    memcpy(code + 0x400e, trampoline, 9); /* across what is read at once */
    frame_maker_fde(&eh, usual_cie(), TEXT, 0x20, FRAME_PROGRAM(""));
    cfi = open_made();
    CHECK_TEXT(drawn(cfi, TEXT, TEXT + 0x4000),
               "10000 sp+8; 1001f signal; 10029 none; 13fff signal");
    CHECK_TEXT(drawn(cfi, TEXT + 0x30, TEXT + 0x8000),
               "10030 none; 13fff signal; 14009 none; 1400d signal; 14017 none");
    CHECK_TEXT(drawn(cfi, TEXT + 0x4004, TEXT + 0x4009), "14004 signal");
    done(cfi);
}

TEST(cfi, the_entry_point_is_the_outermost_frame)
{
    struct kiln_cfi *cfi;

    begin();
    maker.entry = TEXT + 0x10;
    frame_maker_fde(&eh, usual_cie(), TEXT + 0x100, 0x20, FRAME_PROGRAM(""));
    cfi = open_made();
    CHECK_TEXT(drawn(cfi, TEXT, TEXT + 0x200),
               "10000 none; 10010 end; 10050 none; 10100 sp+8; 10120 none");
    CHECK_TEXT(drawn(cfi, TEXT + 0x20, TEXT + 0x40), "10020 end");
    done(cfi);
    begin();
    maker.entry = TEXT + 0x10;
    frame_maker_fde(&eh, usual_cie(), TEXT + 0x20, 0x20, FRAME_PROGRAM(""));
    CHECK_TEXT(rows_of_made(0x30), "10000 none; 10010 end; 10020 sp+8");
}

TEST(cfi, frames_of_the_entry_point_are_not_believed_unless_it_is_a_shared_object)
{
    for (int clears = 0; clears < 2; clears++) {
        begin();
        maker.entry = TEXT;
        frame_maker_fde(&eh, usual_cie(), TEXT, 0x20, FRAME_PROGRAM(""));
        memcpy(code, clears ? "\xf3\x0f\x1e\xfa\x31\xed" : "\xf3\x0f\x1e\xfa\x31\xff", 6);
        CHECK_TEXT(rows_of_made(0x30), clears ? "10000 end; 10020 none" : "10000 sp+8; 10020 none");
    }
    maker.n_parts = 0;
    maker.type = ET_EXEC;
    CHECK_TEXT(rows_of_made(0x30), "10000 end; 10020 none");
}

TEST(cfi, go_functions_have_the_frames_of_their_table)
{
    static const struct go_made_func funcs[] = {
        {"main.main", 0x40, 0, 1, "\2\4\20\1\100\72\117\1", "", "", NULL, 0},
        {"runtime.goexit", 0x20, KILN_GO_TOP_FRAME, 1, "\2\x20", "", "", NULL, 0},
        {"runtime.sigtramp", 0x20, KILN_GO_TOP_FRAME, 1, "\2\4\x60\x1c", "", "", NULL, 0},
        {"runtime.systemstack", 0x20, KILN_GO_SP_WRITE, 1, "\2\1\x10\x1f", "", "", NULL, 0},
        {"runtime.mcall", 0x20, KILN_GO_SP_WRITE, 1, "\2\1\x10\x1f", "", "", NULL, 0},
        {"runtime.asmcgocall", 0x20, KILN_GO_SP_WRITE, 1, "\2\x20", "", "", NULL, 0},
        {"runtime.bare", 0x20, 0, 1, "", "", "", NULL, 0},
    };
    struct kiln_cfi *cfi;

    begin();
    n_go = go_maker_make(go, TEXT + 0x100, funcs, KILN_ARRAY_LEN(funcs), NULL, 0);
    frame_maker_fde(&eh, usual_cie(), TEXT, 0x20, FRAME_PROGRAM(""));
    cfi = open_made();
    CHECK_TEXT(drawn(cfi, TEXT, TEXT + 0x1000),
               "10000 sp+8; 10020 none; "
               "10100 sp+8; 10104 sp+16 fp:c-16; 10105 sp+48 fp:c-16; 1013f sp+8; "
               "10140 end; 10160 sp+8; 10164 sp+56 fp:c-16; "
               "10180 sp+8; 10181 frame; 101a0 end; 101c0 frame; 101e0 none");
    CHECK_TEXT(drawn(cfi, TEXT + 0x106, TEXT + 0x108), "10106 sp+48 fp:c-16");
    done(cfi);
}

TEST(cfi, a_file_with_nothing_to_say_has_no_tables)
{
    struct kiln_bytes bytes;
    struct kiln_cfi *cfi;

    begin();
    add(".text", SHF_ALLOC | SHF_EXECINSTR, TEXT, code, sizeof(code));
    bytes = elf_maker_bytes(&maker);
    CHECK_OK(kiln_elf_open(&bytes, &elf));
    CHECK_EQ(kiln_cfi_open(elf, &cfi), -ENOENT);
    kiln_elf_close(elf);
}

TEST(cfi, bytes_changed_at_random_make_rows_all_the_same)
{
    static struct kiln_cfi_row rows[TEXT_SIZE];
    uint32_t seed = 1;

    begin();
    add_forty(usual_cie());
    make_table(GOOD);
    for (int i = 0; i < 3000; i++) {
        struct kiln_cfi *cfi;

        seed = seed * 1664525 + 1013904223;
        maker.n_parts = 0;
        eh.data[(seed >> 8) % eh.n] ^= (uint8_t)(seed >> 24);
        if (i % 50 == 0)
            header[(seed >> 9) % n_header] ^= (uint8_t)(seed >> 16);
        cfi = open_made();
        CHECK(kiln_cfi_rows(cfi, TEXT, TEXT + 0x1000, rows, TEXT_SIZE) > 0);
        done(cfi);
    }
}

TEST(cfi, no_memory_makes_fewer_rows_and_never_a_fault)
{
    int64_t before;
    int r = -1;

    begin();
    add_forty(usual_cie());
    add(".text", SHF_ALLOC | SHF_EXECINSTR, TEXT, code, sizeof(code));
    add(".eh_frame", SHF_ALLOC, FRAMES, eh.data, eh.n);
    before = kiln_mem_live();
    for (uint64_t n = 1; r < 0; n++) {
        struct kiln_bytes bytes = elf_maker_bytes(&maker);
        static struct kiln_cfi_row rows[1000];
        struct kiln_cfi *cfi = NULL;

        CHECK_OK(kiln_elf_open(&bytes, &elf));
        kiln_mem_fail_at(n);
        r = kiln_cfi_open(elf, &cfi);
        if (r == 0 && kiln_cfi_rows(cfi, TEXT, TEXT + 0x1000, rows, 1000) < 80)
            r = -ENOMEM;
        if (kiln_mem_failed())
            CHECK(r < 0 || cfi);
        kiln_mem_fail_at(0);
        kiln_cfi_close(cfi);
        kiln_elf_close(elf);
        CHECK_EQ(kiln_mem_live(), before);
        CHECK(n < 100);
    }
}

TEST(cfi, every_function_of_this_program_has_rows)
{
    static struct kiln_cfi_row rows[16384];
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    const struct kiln_elf_section *text;
    uint64_t covered = 0;
    struct kiln_bytes bytes;
    struct kiln_cfi *cfi;

    CHECK_OK(kiln_bytes_file(fd, &bytes));
    CHECK_OK(kiln_elf_open(&bytes, &elf));
    CHECK_OK(kiln_cfi_open(elf, &cfi));
    text = kiln_elf_section(elf, ".text");
    for (uint64_t at = text->address; at < text->address + text->size; at += 16384) {
        uint64_t to =
            at + 16384 < text->address + text->size ? at + 16384 : text->address + text->size;
        int n = kiln_cfi_rows(cfi, at, to, rows, 16384);

        CHECK(n > 0);
        for (int i = 0; i < n; i++)
            covered += rows[i].rule == KILN_RULE_NONE
                           ? 0
                           : (i + 1 < n ? rows[i + 1].address : to) - rows[i].address;
    }
    CHECK(covered > text->size * 9 / 10);
    done(cfi);
    close(fd);
}
