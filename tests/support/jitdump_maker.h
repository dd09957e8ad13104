/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jitdump_maker - small jitdump files for tests, record by record, in memory.
 *
 *   struct jitdump_maker maker;
 *   jitdump_maker_begin(&maker, 0);
 *   jitdump_maker_lines(&maker, 0x1000, (struct jitdump_line[]){{0x1000, 7, "a.js"}}, 1);
 *   jitdump_maker_load(&maker, 0x1000, 0x40, "render");
 */
#ifndef KILN_TESTS_JITDUMP_MAKER_H
#define KILN_TESTS_JITDUMP_MAKER_H

#include <stddef.h>
#include <stdint.h>

enum { JITDUMP_MADE_MAX = 64 << 10 };
#define JITDUMP_V8 0xdeadbeefu

struct jitdump_maker {
    uint64_t loads; /* so far: they are numbered from 1 on */
    size_t n;
    uint8_t data[JITDUMP_MADE_MAX];
};

struct jitdump_line {
    uint64_t address;
    uint32_t line;
    const char *file; /* NULL: that of the line before */
};

/* `unused`: the word of the header by which V8 is known. */
void jitdump_maker_begin(struct jitdump_maker *maker, uint32_t unused);
void jitdump_maker_load(struct jitdump_maker *maker, uint64_t address, uint64_t size,
                        const char *name);
void jitdump_maker_move(struct jitdump_maker *maker, uint64_t number, uint64_t to, uint64_t size);
void jitdump_maker_lines(struct jitdump_maker *maker, uint64_t address,
                         const struct jitdump_line *lines, uint32_t n);
/* Any other record. */
void jitdump_maker_record(struct jitdump_maker *maker, uint32_t kind, const void *data, size_t n);

#endif /* KILN_TESTS_JITDUMP_MAKER_H */
