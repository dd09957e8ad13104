/* SPDX-License-Identifier: Apache-2.0 */
/* gopcln_int - what gopcln.c (reading) and gopcln_find.c (finding) share. */
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
};

bool kiln_gopcln_is_magic(const uint8_t *head);
/* Sets address, offset and size. */
KILN_CHECK int kiln_gopcln_locate(struct kiln_gopcln *pcln);
/* Where code begins; 0: not found. */
uint64_t kiln_gopcln_text(struct kiln_gopcln *pcln, uint64_t in_header);

#endif /* KILN_SYMBOL_GOPCLN_INT_H */
