/* SPDX-License-Identifier: Apache-2.0 */
/*
 * go_maker - a small table of Go functions (pclntab of Go 1.20 and newer), for tests.
 *
 * The functions follow each other from `text` on; each has a name, a size, flags, and its tables of
 * frame sizes (pcsp), files and lines as bytes of the format, or "" for none; one into which others
 * were inlined has the table of its calls, too, and where its tree is.
 */
#ifndef KILN_TESTS_GO_MAKER_H
#define KILN_TESTS_GO_MAKER_H

#include <stddef.h>
#include <stdint.h>

struct go_made_func {
    const char *name;
    uint32_t size;
    uint8_t flags;
    uint32_t start_line;
    const char *pcsp, *pcfile, *pcln; /* end with the NUL that ends a table */
    const char *calls;                /* NULL: nothing was inlined */
    uint32_t tree;
};

/* Writes the table to `to` and returns its size.  `files` are the file names of the one unit. */
size_t go_maker_make(uint8_t to[4096], uint64_t text, const struct go_made_func *funcs, uint32_t n,
                     const char *const *files, uint32_t n_files);

#endif /* KILN_TESTS_GO_MAKER_H */
