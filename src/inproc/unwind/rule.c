/* SPDX-License-Identifier: Apache-2.0 */
#include "inproc/unwind/rule.h"

#include "inproc/unwind/arch.h"
#include "symbol/cfi.h"

enum { CFA_BITS = 22, FP_BITS = 16 };

_Static_assert((int)KILN_CFI_BX_LOST == (int)KILN_IN_BX_LOST, "rows say it in the same way");

static bool fits(int32_t n, int bits)
{
    return n >= -(1 << (bits - 1)) && n < 1 << (bits - 1);
}

static uint64_t bits_of(int32_t n, int bits)
{
    return (uint32_t)n & ((1u << bits) - 1);
}

static enum kiln_in_rule_kind kind_of(const struct kiln_cfi_row *row)
{
    bool is_sp = row->reg == KILN_IN_SP, is_fp = row->reg == KILN_IN_FP;

    switch (row->rule) {
    case KILN_RULE_END:
        return KILN_IN_RULE_END;
    case KILN_RULE_PLT:
        return KILN_IN_RULE_PLT;
    case KILN_RULE_SIGNAL:
        return KILN_IN_RULE_SIGNAL;
    case KILN_RULE_REG:
        return is_sp   ? KILN_IN_RULE_SP
               : is_fp ? KILN_IN_RULE_FP
                       : (enum kiln_in_rule_kind)(KILN_IN_RULE_REG + (row->reg & 15));
    case KILN_RULE_DEREF:
        if ((row->more != 0 && row->more != 8) || (!is_sp && !is_fp))
            return KILN_IN_RULE_CROSS;
        return is_sp ? KILN_IN_RULE_SP_DEREF : KILN_IN_RULE_FP_DEREF;
    default:
        return KILN_IN_RULE_CROSS;
    }
}

uint64_t kiln_in_rule_of(const struct kiln_cfi_row *row)
{
    enum kiln_in_rule_kind kind = kind_of(row);
    uint32_t fp = KILN_IN_FP_SAME;
    int32_t fp_off = row->fp_off;

    if (kind < KILN_IN_RULE_SP || kind == KILN_IN_RULE_PLT || kind == KILN_IN_RULE_SIGNAL)
        return kind;
    if (row->fp == KILN_SAVED_CFA)
        fp = KILN_IN_FP_AT_CFA;
    else if (row->fp == KILN_SAVED_FP)
        fp = KILN_IN_FP_AT_FP;
    if (row->ra_reg != 0xff) {
        if (fp != KILN_IN_FP_SAME)
            return KILN_IN_RULE_CROSS;
        fp = KILN_IN_FP_RA_REG;
        fp_off = row->ra_reg;
    }
    if (!fits(row->cfa_off, CFA_BITS) || !fits(fp_off, FP_BITS))
        return KILN_IN_RULE_CROSS;
    return kind | fp << 5 | (row->more ? 1u << 7 : 0) | (uint64_t)(row->bx & 15) << 8 |
           bits_of(fp_off, FP_BITS) << 26 | bits_of(row->cfa_off, CFA_BITS) << 42;
}
