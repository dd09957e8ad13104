/* SPDX-License-Identifier: Apache-2.0 */
/* gopcln_int - what gopcln.c (reading), gopcln_find.c (finding) and gopcln_inline.c share. */
#ifndef KILN_SYMBOL_GOPCLN_INT_H
#define KILN_SYMBOL_GOPCLN_INT_H

#include "symbol/gopcln.h"
#include "symbol/window.h"

enum {
    KILN_GO_TEXT_START = 24, /* in the header */
};

#define KILN_GO_1_16 0xfffffffau
#define KILN_GO_1_18 0xfffffff0u
#define KILN_GO_1_20 0xfffffff1u

struct kiln_gopcln {
    const struct kiln_elf *elf;
    struct kiln_window window;
    uint64_t address, offset, size; /* of the table */
    uint32_t magic;
    uint8_t quantum;                             /* of addresses */
    uint32_t n_funcs;                            /* and one more entry: the end */
    uint64_t text;                               /* what entries count from */
    uint64_t names, units, files, values, funcs; /* parts, from the table's beginning */
    bool asked_trees;
    uint64_t trees, trees_end; /* in the file: what trees of inlined calls count from; 0: none */
};

/* `need` bytes of the table, and up to `want`; NULL: it has not so many. */
const uint8_t *kiln_gopcln_see(struct kiln_gopcln *pcln, uint64_t at, size_t need, size_t want,
                               size_t *ret_n);
bool kiln_gopcln_has_1_18(const struct kiln_gopcln *pcln);

bool kiln_gopcln_is_magic(const uint8_t *head);
/* Sets address, offset and size. */
KILN_CHECK int kiln_gopcln_locate(struct kiln_gopcln *pcln);
/* Where code begins; 0: not found. */
uint64_t kiln_gopcln_text(struct kiln_gopcln *pcln, uint64_t in_header);
/* Sets trees and trees_end. */
void kiln_gopcln_find_trees(struct kiln_gopcln *pcln);

#endif /* KILN_SYMBOL_GOPCLN_INT_H */
