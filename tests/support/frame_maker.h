/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frame_maker - sections of call frame information, entry by entry, for tests.
 *
 *   struct frame_maker frames = {.address = 0x5000};
 *   size_t cie = frame_maker_cie(&frames, &(struct frame_cie){.letters = "zR", .encoding = 0x1b});
 *   frame_maker_fde(&frames, cie, 0x1000, 0x20, FRAME_PROGRAM("\x41\x0e\x10"));
 *
 * A CIE has code alignment 1, data alignment -8, and says, unless it has a program of its own, what
 * compilers say: the CFA is rsp + 8, the return address at CFA - 8.
 */
#ifndef KILN_TESTS_FRAME_MAKER_H
#define KILN_TESTS_FRAME_MAKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FRAME_MADE_MAX = 16384, FRAME_PAIRS_MAX = 256 };

struct frame_maker {
    uint64_t address; /* of the section */
    bool is_debug;    /* .debug_frame */
    bool is_long;     /* lengths of 64 bits */
    size_t n;
    uint8_t data[FRAME_MADE_MAX];
    uint32_t n_pairs;
    struct {
        uint64_t begin, at;
    } pairs[FRAME_PAIRS_MAX];
};

struct frame_cie {
    const char *letters; /* NULL: "zR", or "" in .debug_frame */
    uint8_t encoding;    /* of 'R' */
    uint8_t version;     /* 0: 1 */
    const char *program;
    size_t n_program;
};

#define FRAME_PROGRAM(text) (text), sizeof(text) - 1

/* Returns where it is in the section. */
size_t frame_maker_cie(struct frame_maker *maker, const struct frame_cie *cie);
/* `cie` is what frame_maker_cie() returned; the encoding is that of the last CIE. */
void frame_maker_fde(struct frame_maker *maker, size_t cie, uint64_t begin, uint64_t size,
                     const char *program, size_t n_program);
/* The table of .eh_frame_hdr at an address, in the order of the entries; returns its size. */
size_t frame_maker_header(const struct frame_maker *maker, uint64_t address, uint8_t to[4096]);

#endif /* KILN_TESTS_FRAME_MAKER_H */
