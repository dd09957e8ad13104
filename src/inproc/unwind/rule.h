/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rule - how to get from a frame to its caller, as one word.
 *
 *   bits 0-4 kind, 5-6 where the caller's frame pointer is, 7 eight more, 8-11 where its rbx is,
 *   26-41 offset of the frame pointer, 42-63 of the canonical frame address
 *
 * The return address is at CFA - 8, and the caller's stack pointer is the CFA.
 *
 * Threads: plain data.
 */
#ifndef KILN_INPROC_UNWIND_RULE_H
#define KILN_INPROC_UNWIND_RULE_H

#include <stdbool.h>
#include <stdint.h>

enum kiln_in_rule_kind {
    KILN_IN_RULE_UNKNOWN,  /* no rule at all */
    KILN_IN_RULE_CROSS,    /* code of a file that has no table for it: by the frame pointer */
    KILN_IN_RULE_MADE,     /* code that was made at run time: the same, more strictly */
    KILN_IN_RULE_END,      /* nobody called it */
    KILN_IN_RULE_SP,       /* CFA = sp + offset */
    KILN_IN_RULE_FP,       /* fp + offset */
    KILN_IN_RULE_SP_DEREF, /* *(sp + offset), and eight more */
    KILN_IN_RULE_FP_DEREF, /* *(fp + offset), and eight more */
    KILN_IN_RULE_PLT,      /* sp + 8, and 8 more from the 11th byte of each 16 on */
    KILN_IN_RULE_SIGNAL,   /* a signal's trampoline: the registers are in the frame at sp */
    KILN_IN_RULE_REG = 16, /* + DWARF's number of a register: register + offset */
};

enum kiln_in_rule_fp {
    KILN_IN_FP_SAME,
    KILN_IN_FP_AT_CFA, /* *(CFA + offset) */
    KILN_IN_FP_AT_FP,  /* *(fp + offset) */
    KILN_IN_FP_RA_REG, /* the same; and the return address is in register `offset` */
};

/* rbx: 0 the same, n: at CFA - 8 * (n + 1), or lost. */
enum { KILN_IN_BX_LOST = 15 };

static inline uint32_t kiln_in_rule_kind(uint64_t rule)
{
    return (uint32_t)rule & 31;
}
static inline uint32_t kiln_in_rule_fp(uint64_t rule)
{
    return (uint32_t)(rule >> 5) & 3;
}
static inline uint32_t kiln_in_rule_bx(uint64_t rule)
{
    return (uint32_t)(rule >> 8) & 15;
}
static inline uint64_t kiln_in_rule_more(uint64_t rule)
{
    return rule >> 4 & 8;
}
static inline uint64_t kiln_in_rule_cfa_off(uint64_t rule)
{
    return (uint64_t)((int64_t)rule >> 42);
}
static inline uint64_t kiln_in_rule_fp_off(uint64_t rule)
{
    return (uint64_t)((int64_t)(rule << 22) >> 48);
}

/* CFA = sp or fp + offset, and fp is the same or at the CFA: nearly all there are. */
static inline bool kiln_in_rule_is_plain(uint64_t rule)
{
    const uint64_t either = (KILN_IN_RULE_SP ^ KILN_IN_RULE_FP) | KILN_IN_FP_AT_CFA << 5;

    return (rule & 127 & ~either) == KILN_IN_RULE_SP;
}

struct kiln_cfi_row;
/* CROSS where the bits cannot say it. */
uint64_t kiln_in_rule_of(const struct kiln_cfi_row *row);

#endif /* KILN_INPROC_UNWIND_RULE_H */
