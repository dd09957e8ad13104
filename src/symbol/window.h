/* SPDX-License-Identifier: Apache-2.0 */
/*
 * window - looks at a large file through a few pieces of it, so that tables of many megabytes are
 * searched without loading them.
 *
 * Threads: one owner at a time.
 */
#ifndef KILN_SYMBOL_WINDOW_H
#define KILN_SYMBOL_WINDOW_H

#include "symbol/elf.h"

enum {
    KILN_WINDOW_MAX = 4096, /* bytes that can be seen at once */
    KILN_WINDOW_PIECES = 6,
};

struct kiln_window {
    const struct kiln_bytes *bytes; /* borrowed */
    uint8_t *memory;                /* of the pieces; NULL: none is held */
    uint64_t clock;
    struct kiln_window_piece {
        uint64_t offset, used;
        uint32_t n; /* 0: empty */
    } pieces[KILN_WINDOW_PIECES];
};

void kiln_window_init(struct kiln_window *window, const struct kiln_bytes *bytes);
/* Gives the memory back; the next look takes it again. */
void kiln_window_drop(struct kiln_window *window);

/*
 * The bytes at an offset: at least `need` and at most `want` <= KILN_WINDOW_MAX of them, *ret_n in
 * number, until the next call.  NULL: the file has not so many, cannot be read, or there is no
 * memory.
 */
const uint8_t *kiln_window_see(struct kiln_window *window, uint64_t offset, size_t need,
                               size_t want, size_t *ret_n);

#endif /* KILN_SYMBOL_WINDOW_H */
