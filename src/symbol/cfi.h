/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cfi - call frame information: what .eh_frame, .debug_frame and Go's tables say of how to find the
 * caller at each address, as rows.
 *
 * Only four columns are followed: the canonical frame address, the frame pointer, the return
 * address, and rbx as far as it is pushed.  Rows for a range are made when asked for, through
 * .eh_frame_hdr's search table where there is one, so that a large file costs what is looked at;
 * without, the frames are indexed once.
 *
 * Threads: one owner at a time.
 */
#ifndef KILN_SYMBOL_CFI_H
#define KILN_SYMBOL_CFI_H

#include "symbol/elf.h"

enum kiln_rule {
    KILN_RULE_NONE,   /* nothing covers this address, or it says what we do not follow */
    KILN_RULE_END,    /* the return address is undefined: outermost */
    KILN_RULE_REG,    /* CFA = register + offset */
    KILN_RULE_DEREF,  /* CFA = *(register + offset) + more */
    KILN_RULE_PLT,    /* the expression that linkers write for .plt */
    KILN_RULE_SIGNAL, /* a signal's trampoline */
    KILN_RULE_FRAME,  /* code that is known to keep frame pointers */
};

enum kiln_saved {
    KILN_SAVED_SAME, /* the caller has what the register has */
    KILN_SAVED_CFA,  /* at CFA + offset */
    KILN_SAVED_FP,   /* at frame pointer + offset */
    KILN_SAVED_LOST, /* not known */
};

/* From `address` on, to the address of the next row. */
struct kiln_cfi_row {
    uint64_t address;
    uint8_t rule;   /* enum kiln_rule */
    uint8_t reg;    /* REG, DEREF: DWARF's number */
    uint8_t fp;     /* enum kiln_saved */
    uint8_t ra_reg; /* 0xff: the return address is at CFA - 8; else the register that has it */
    uint8_t bx;     /* rbx: 0 the same, n: at CFA - 8 * (n + 1), KILN_CFI_BX_LOST */
    int32_t cfa_off, more, fp_off;
};

enum { KILN_CFI_BX_LOST = 15 };

struct kiln_cfi;

/* `elf` is borrowed.  -ENOENT: it has no such tables. */
KILN_CHECK int kiln_cfi_open(const struct kiln_elf *elf, struct kiln_cfi **ret_cfi);
void kiln_cfi_close(struct kiln_cfi *cfi);

/*
 * Rows of [begin, end), at most `max`, sorted; the first is at `begin`, equal neighbours are one,
 * and gaps between functions are rows of KILN_RULE_NONE.  What cannot be read is KILN_RULE_NONE
 * too. Returns how many; KILN_E_LIMIT: more than `max`.
 */
KILN_CHECK int kiln_cfi_rows(struct kiln_cfi *cfi, uint64_t begin, uint64_t end,
                             struct kiln_cfi_row *rows, uint32_t max);

/*
 * The function that an address is in, as far as .eh_frame or .debug_frame know: also files without
 * symbols tell where their functions begin and end.  The part of a function that a compiler moved
 * elsewhere (".cold") is one of its own, all stubs of a linker's table are one together.  -ENOENT:
 * none covers it.
 */
KILN_CHECK int kiln_cfi_function(struct kiln_cfi *cfi, uint64_t address, uint64_t *ret_begin,
                                 uint64_t *ret_end);

/* Memory that it holds. */
size_t kiln_cfi_bytes(const struct kiln_cfi *cfi);

#endif /* KILN_SYMBOL_CFI_H */
