/* SPDX-License-Identifier: Apache-2.0 */
/* Embedded sources, read by a confined child. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"
#include "elf_maker.h"
#include "symbol/resolver.h"
#include "test.h"

enum { LARGE = 150000, ROOM = 5 << 20 };

static struct elf_maker maker;
static uint8_t table[LARGE + 256];
static struct kiln_resolver *resolver;
static struct kiln_buf text;
static int fd;

static void begin(void)
{
    const struct kiln_resolver_opts opts = {.program = ""};

    kiln_buf_init(&text, ROOM);
    CHECK_OK(kiln_resolver_new(&opts, &resolver, NULL));
}

static void end(void)
{
    kiln_resolver_free(resolver);
    kiln_buf_done(&text);
    close(fd);
}

/* A line table of DWARF 5 with one file, /build/a.c, and its source. */
static size_t make_table(const char *source, size_t n)
{
    static const uint8_t head[] = {
        5, 0, 8, 0,    0,    0,    0,    0, /* version, sizes, length of the header */
        1, 1, 1, 0xfb, 14,   13,            /* how rows are made; there are none */
        0, 1, 1, 1,    1,    0,    0,    0,   1,   0,   0,   1,         /* operands */
        1, 1, 8, 1,    '/',  'b',  'u',  'i', 'l', 'd', 0,              /* a directory */
        3, 1, 8, 2,    0x0b, 0x81, 0x40, 8,   1,   'a', '.', 'c', 0, 0, /* a file, and its source */
    };
    uint32_t length = (uint32_t)(sizeof(head) + n + 1), header = length - 8;

    memcpy(table, &length, 4);
    memcpy(table + 4, head, sizeof(head));
    memcpy(table + 8, &header, 4);
    memcpy(table + 4 + sizeof(head), source, n);
    table[4 + sizeof(head) + n] = 0;
    return 4 + length;
}

static void make_file(const void *data, size_t n)
{
    fd = memfd_create("resolver-text-test", MFD_CLOEXEC);
    CHECK_OK(kiln_fd_write(fd, (struct kiln_str){data, n}));
}

static void make_elf(const char *source, size_t n)
{
    struct kiln_bytes bytes;

    maker = (struct elf_maker){.type = ET_DYN};
    elf_maker_add(&maker, (struct elf_part){
                              .name = ".debug_line", .data = table, .n = make_table(source, n)});
    bytes = elf_maker_bytes(&maker);
    make_file(bytes.data, bytes.size);
}

static int ask(const char *file)
{
    const struct kiln_source source = {
        .kind = KILN_SOURCE_ELF, .fd = fd, .id = 1, .key = KILN_STR("0123")};

    return kiln_resolver_text(resolver, &source, kiln_str_of(file), &text);
}

TEST(resolver_text, the_source_of_a_file_is_found_by_its_name)
{
    begin();
    make_elf("int main(void)\n{\n}\n", 19);
    CHECK_OK(ask("/build/a.c"));
    CHECK_STR(kiln_buf_str(&text), "int main(void)\n{\n}\n");
    CHECK_OK(ask("/build/a.c"));
    CHECK_EQ(text.len, 2 * 19);
    end();
}

TEST(resolver_text, a_long_source_comes_in_pieces)
{
    char *source = malloc(LARGE);

    for (size_t i = 0; i < LARGE; i++)
        source[i] = i % 50 == 49 ? '\n' : (char)('a' + i % 23);
    begin();
    make_elf(source, LARGE);
    CHECK_OK(ask("/build/a.c"));
    CHECK_EQ(text.len, LARGE);
    CHECK_EQ(memcmp(text.ptr, source, LARGE), 0);
    end();
    free(source);
}

TEST(resolver_text, what_is_not_there_is_not_found_and_the_child_lives_on)
{
    static char long_name[8192];

    memset(long_name, 'x', sizeof(long_name) - 1);
    begin();
    make_elf("int x;\n", 7);
    CHECK_EQ(ask("a.c"), -ENOENT);
    CHECK_EQ(ask(""), -ENOENT);
    CHECK_EQ(ask(long_name), -ENOENT);
    CHECK_OK(ask("/build/a.c"));
    CHECK_STR(kiln_buf_str(&text), "int x;\n");
    end();
}

TEST(resolver_text, what_is_no_elf_file_has_no_sources)
{
    begin();
    make_file("#!/bin/sh\n", 10);
    CHECK_EQ(ask("/build/a.c"), -ENOENT);
    CHECK_EQ(text.len, 0);
    end();
}

TEST(resolver_text, names_and_sources_are_asked_for_in_turns)
{
    const uint64_t address = 0x1000;
    struct kiln_name name;
    struct kiln_source source;

    begin();
    make_elf("int x;\n", 7);
    source = (struct kiln_source){.kind = KILN_SOURCE_ELF, .fd = fd, .id = 1};
    for (int i = 0; i < 3; i++) {
        CHECK_OK(kiln_resolver_ask(resolver, &source, &address, 1, &name));
        CHECK_EQ(name.n, 0);
        CHECK_OK(ask("/build/a.c"));
    }
    CHECK_STR(kiln_buf_str(&text), "int x;\nint x;\nint x;\n");
    end();
}
