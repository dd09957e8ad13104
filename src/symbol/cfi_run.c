/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The byte code of call frame information.  A program begins with the state that its CIE's program
 * left; each advance of the location makes a row of the state so far.  Only four columns are kept:
 * the CFA, rbp, rbx, and the return address.
 *
 * What is said in a way that is not followed makes rows of KILN_RULE_NONE; an operation that is not
 * known, or that is cut off, ends the program there.
 */
#include "symbol/cfi_int.h"

enum {
    CFA_NOP = 0x00,
    CFA_SET_LOC = 0x01,
    CFA_ADVANCE_LOC1 = 0x02,
    CFA_ADVANCE_LOC2 = 0x03,
    CFA_ADVANCE_LOC4 = 0x04,
    CFA_OFFSET_EXTENDED = 0x05,
    CFA_RESTORE_EXTENDED = 0x06,
    CFA_UNDEFINED = 0x07,
    CFA_SAME_VALUE = 0x08,
    CFA_REGISTER = 0x09,
    CFA_REMEMBER_STATE = 0x0a,
    CFA_RESTORE_STATE = 0x0b,
    CFA_DEF_CFA = 0x0c,
    CFA_DEF_CFA_REGISTER = 0x0d,
    CFA_DEF_CFA_OFFSET = 0x0e,
    CFA_DEF_CFA_EXPRESSION = 0x0f,
    CFA_EXPRESSION = 0x10,
    CFA_OFFSET_EXTENDED_SF = 0x11,
    CFA_DEF_CFA_SF = 0x12,
    CFA_DEF_CFA_OFFSET_SF = 0x13,
    CFA_VAL_OFFSET = 0x14,
    CFA_VAL_OFFSET_SF = 0x15,
    CFA_VAL_EXPRESSION = 0x16,
    CFA_GNU_ARGS_SIZE = 0x2e,
    CFA_GNU_NEGATIVE_OFFSET_EXTENDED = 0x2f,
    CFA_ADVANCE_LOC = 0x40, /* with the number in the low six bits, as the next two */
    CFA_OFFSET = 0x80,
    CFA_RESTORE = 0xc0,
};

static bool is_equal(const struct kiln_cfi_row *a, const struct kiln_cfi_row *b)
{
    return a->rule == b->rule && a->reg == b->reg && a->fp == b->fp && a->ra_reg == b->ra_reg &&
           a->bx == b->bx && a->cfa_off == b->cfa_off && a->more == b->more &&
           a->fp_off == b->fp_off;
}

void cfi_push(struct cfi_out *out, const struct kiln_cfi_row *row)
{
    if (out->n && out->rows[out->n - 1].address == row->address)
        out->n--;
    if (out->n && is_equal(&out->rows[out->n - 1], row))
        return;
    if (out->n == out->max) {
        out->full = true;
        return;
    }
    out->rows[out->n++] = *row;
}

void cfi_push_rule(struct cfi_out *out, uint64_t address, enum kiln_rule rule)
{
    cfi_push(out,
             &(struct kiln_cfi_row){.address = address, .rule = (uint8_t)rule, .ra_reg = 0xff});
}

bool cfi_burn(struct cfi_out *out, uint32_t fuel)
{
    if (out->fuel < fuel || out->full) {
        out->fuel = 0;
        return false;
    }
    out->fuel -= fuel;
    return true;
}

struct machine {
    const struct cfi_cie *cie;
    struct kiln_cursor c;
    const uint8_t *begin;
    struct cfi_bases bases; /* of the program's beginning */
    uint64_t location;
    struct cfi_state state;
    struct cfi_state *stack; /* NULL: there is nothing to remember in */
    uint32_t depth;
    const struct cfi_state *initial; /* NULL: this is the CIE's program */
};

static struct cfi_saved *column(struct machine *m, uint64_t reg)
{
    if (reg == CFI_RBP)
        return &m->state.fp;
    if (reg == CFI_RBX)
        return &m->state.bx;
    return reg == m->cie->ra ? &m->state.ra : NULL;
}

static void save(struct machine *m, uint64_t reg, enum cfi_where where, uint64_t off)
{
    struct cfi_saved *saved = column(m, reg);

    if (saved)
        *saved = (struct cfi_saved){.where = (uint8_t)where, .off = (int64_t)off};
}

static void restore(struct machine *m, uint64_t reg)
{
    static const struct cfi_state nothing;
    const struct cfi_state *initial = m->initial ? m->initial : &nothing;
    struct cfi_saved *saved = column(m, reg);

    if (saved)
        *saved = reg == CFI_RBP ? initial->fp : reg == CFI_RBX ? initial->bx : initial->ra;
}

static void define_cfa(struct machine *m, uint64_t reg, uint64_t off)
{
    m->state.cfa = (struct cfi_cfa){.rule = reg < 16 ? KILN_RULE_REG : KILN_RULE_NONE,
                                    .reg = (uint8_t)reg,
                                    .off = (int64_t)off};
}

static const uint8_t *block(struct machine *m, size_t *ret_n)
{
    uint64_t n = kiln_cursor_uleb(&m->c);

    *ret_n = n;
    return kiln_cursor_skip(&m->c, n);
}

static uint64_t scaled(struct machine *m, uint64_t n)
{
    return n * (uint64_t)m->cie->data_align;
}

/* Operations on the CFA; false: it is another one. */
static bool step_cfa(struct machine *m, uint8_t op)
{
    struct cfi_cfa *cfa = &m->state.cfa;
    const uint8_t *at;
    uint64_t reg;
    size_t n;

    switch (op) {
    case CFA_DEF_CFA:
        reg = kiln_cursor_uleb(&m->c);
        define_cfa(m, reg, kiln_cursor_uleb(&m->c));
        return true;
    case CFA_DEF_CFA_SF:
        reg = kiln_cursor_uleb(&m->c);
        define_cfa(m, reg, scaled(m, (uint64_t)kiln_cursor_sleb(&m->c)));
        return true;
    case CFA_DEF_CFA_REGISTER:
        define_cfa(m, kiln_cursor_uleb(&m->c), (uint64_t)cfa->off);
        return true;
    case CFA_DEF_CFA_OFFSET:
    case CFA_DEF_CFA_OFFSET_SF:
        cfa->off = op == CFA_DEF_CFA_OFFSET ? (int64_t)kiln_cursor_uleb(&m->c)
                                            : (int64_t)scaled(m, (uint64_t)kiln_cursor_sleb(&m->c));
        if (cfa->rule != KILN_RULE_REG)
            cfa->rule = KILN_RULE_NONE;
        return true;
    case CFA_DEF_CFA_EXPRESSION:
        at = block(m, &n);
        if (at)
            *cfa = cfi_expr_cfa(at, n);
        return true;
    default:
        return false;
    }
}

static void step_expression(struct machine *m)
{
    uint64_t reg = kiln_cursor_uleb(&m->c);
    struct cfi_saved *saved = column(m, reg);
    size_t n;
    const uint8_t *at = block(m, &n);

    if (at && saved)
        *saved = cfi_expr_saved(at, n);
}

/* Operations on registers; false: it is another one. */
static bool step_register(struct machine *m, uint8_t op)
{
    uint64_t reg;
    size_t n;

    switch (op) {
    case CFA_OFFSET_EXTENDED:
        reg = kiln_cursor_uleb(&m->c);
        save(m, reg, CFI_AT_CFA, scaled(m, kiln_cursor_uleb(&m->c)));
        return true;
    case CFA_OFFSET_EXTENDED_SF:
        reg = kiln_cursor_uleb(&m->c);
        save(m, reg, CFI_AT_CFA, scaled(m, (uint64_t)kiln_cursor_sleb(&m->c)));
        return true;
    case CFA_GNU_NEGATIVE_OFFSET_EXTENDED:
        reg = kiln_cursor_uleb(&m->c);
        save(m, reg, CFI_AT_CFA, -scaled(m, kiln_cursor_uleb(&m->c)));
        return true;
    case CFA_RESTORE_EXTENDED:
        restore(m, kiln_cursor_uleb(&m->c));
        return true;
    case CFA_UNDEFINED:
        save(m, kiln_cursor_uleb(&m->c), CFI_UNDEFINED, 0);
        return true;
    case CFA_SAME_VALUE:
        save(m, kiln_cursor_uleb(&m->c), CFI_UNSET, 0);
        return true;
    case CFA_REGISTER:
        reg = kiln_cursor_uleb(&m->c);
        save(m, reg, CFI_IN_REG, kiln_cursor_uleb(&m->c));
        return true;
    case CFA_EXPRESSION:
        step_expression(m);
        return true;
    case CFA_VAL_OFFSET:
    case CFA_VAL_OFFSET_SF:
        save(m, kiln_cursor_uleb(&m->c), CFI_OTHER, 0);
        kiln_cursor_uleb(&m->c);
        return true;
    case CFA_VAL_EXPRESSION:
        save(m, kiln_cursor_uleb(&m->c), CFI_OTHER, 0);
        block(m, &n);
        return true;
    default:
        return false;
    }
}

/* Remembering, and what does nothing; false: it is not known, or there is nothing to restore. */
static bool step_other(struct machine *m, uint8_t op)
{
    switch (op) {
    case CFA_NOP:
        return true;
    case CFA_GNU_ARGS_SIZE:
        kiln_cursor_uleb(&m->c);
        return true;
    case CFA_REMEMBER_STATE:
        if (!m->stack || m->depth == CFI_REMEMBER_MAX)
            return false;
        m->stack[m->depth++] = m->state;
        return true;
    case CFA_RESTORE_STATE:
        if (m->depth == 0)
            return false;
        m->state = m->stack[--m->depth];
        return true;
    default:
        return false;
    }
}

/* An absolute location; one that cannot be read ends the program. */
static uint64_t set_location(struct machine *m)
{
    struct cfi_bases bases = m->bases;
    uint64_t location = m->location;

    bases.address += (uint64_t)(m->c.at - m->begin);
    if (!cfi_pointer(&m->c, m->cie->encoding, &bases, &location))
        m->c.bad = true;
    return location;
}

/* Where the next row begins; false: the operation is no advance. */
static bool advance(struct machine *m, uint8_t op, uint64_t *ret_location)
{
    uint64_t n;

    if ((op & 0xc0) == CFA_ADVANCE_LOC) {
        n = op & 0x3f;
    } else if (op == CFA_ADVANCE_LOC1) {
        n = kiln_cursor_8(&m->c);
    } else if (op == CFA_ADVANCE_LOC2) {
        n = kiln_cursor_16(&m->c);
    } else if (op == CFA_ADVANCE_LOC4) {
        n = kiln_cursor_32(&m->c);
    } else if (op == CFA_SET_LOC) {
        *ret_location = set_location(m);
        return true;
    } else {
        return false;
    }
    *ret_location = m->location + n * m->cie->code_align;
    return true;
}

/* One operation that is no advance; false: the program ends here. */
static bool step(struct machine *m, uint8_t op)
{
    if ((op & 0xc0) == CFA_OFFSET)
        save(m, op & 0x3f, CFI_AT_CFA, scaled(m, kiln_cursor_uleb(&m->c)));
    else if ((op & 0xc0) == CFA_RESTORE)
        restore(m, op & 0x3f);
    else if (!step_cfa(m, op) && !step_register(m, op) && !step_other(m, op))
        return false;
    return !m->c.bad;
}

void cfi_run_initial(struct cfi_cie *cie, const uint8_t *program, size_t n)
{
    struct machine m = {.cie = cie, .c = {program, program + n, false}, .begin = program};
    uint64_t unused;
    uint8_t op;

    while (m.c.at < m.c.end) {
        op = kiln_cursor_8(&m.c);
        if (!advance(&m, op, &unused) && !step(&m, op)) {
            m.state.cfa.rule = KILN_RULE_NONE;
            break;
        }
    }
    cie->initial = m.state;
}

static bool fits(int64_t n)
{
    return n >= INT32_MIN && n <= INT32_MAX;
}

static void take_fp(const struct cfi_state *state, struct kiln_cfi_row *row)
{
    struct cfi_saved fp = state->fp;

    if (fp.where == CFI_AT_SP && row->rule == KILN_RULE_REG && row->reg == CFI_RSP)
        fp = (struct cfi_saved){CFI_AT_CFA, fp.off - row->cfa_off};
    row->fp = fp.where == CFI_UNSET    ? KILN_SAVED_SAME
              : fp.where == CFI_AT_CFA ? KILN_SAVED_CFA
              : fp.where == CFI_AT_FP  ? KILN_SAVED_FP
                                       : KILN_SAVED_LOST;
    if (!fits(fp.off))
        row->fp = KILN_SAVED_LOST;
    row->fp_off = row->fp == KILN_SAVED_CFA || row->fp == KILN_SAVED_FP ? (int32_t)fp.off : 0;
}

static void take_bx(const struct cfi_state *state, struct kiln_cfi_row *row)
{
    const struct cfi_saved *bx = &state->bx;

    row->bx = bx->where == CFI_UNSET ? 0 : KILN_CFI_BX_LOST;
    if (bx->where == CFI_AT_CFA && bx->off % 8 == 0 && bx->off <= -16 &&
        bx->off > -8 * (KILN_CFI_BX_LOST + 1))
        row->bx = (uint8_t)(-bx->off / 8 - 1);
}

/* The return address is at CFA - 8, or in a register, or it is not followed. */
static bool take_ra(const struct cfi_state *state, struct kiln_cfi_row *row)
{
    const struct cfi_saved *ra = &state->ra;

    row->ra_reg = 0xff;
    if (ra->where == CFI_AT_CFA)
        return ra->off == -8;
    if (ra->where == CFI_AT_SP)
        return row->rule == KILN_RULE_REG && row->reg == CFI_RSP && ra->off == row->cfa_off - 8;
    if (ra->where != CFI_IN_REG || ra->off < 0 || ra->off > 15)
        return false;
    row->ra_reg = (uint8_t)ra->off;
    return true;
}

static struct kiln_cfi_row row_of(const struct cfi_state *state, uint64_t address)
{
    const struct cfi_cfa *cfa = &state->cfa;
    struct kiln_cfi_row none = {.address = address, .rule = KILN_RULE_NONE, .ra_reg = 0xff};
    struct kiln_cfi_row row = none;

    if (state->ra.where == CFI_UNDEFINED) {
        row.rule = KILN_RULE_END;
        return row;
    }
    if (cfa->rule == KILN_RULE_NONE || !fits(cfa->off) || !fits(cfa->more))
        return none;
    row.rule = cfa->rule;
    row.reg = cfa->reg;
    row.cfa_off = (int32_t)cfa->off;
    row.more = (int32_t)cfa->more;
    if (!take_ra(state, &row))
        return none;
    take_fp(state, &row);
    take_bx(state, &row);
    return row;
}

/* Stubs of other linkers than those that KILN_RULE_PLT is for: two rows for each of them. */
static void push_stubs(const struct cfi_cfa *cfa, uint64_t begin, uint64_t end, struct cfi_out *out)
{
    struct kiln_cfi_row row = {.rule = KILN_RULE_REG, .reg = CFI_RSP, .ra_reg = 0xff};
    uint64_t next;

    for (uint64_t at = begin; at < end && cfi_burn(out, 1); at = next) {
        bool is_pushed = (at & 15) >= cfa->plt_at;

        next = (at & ~(uint64_t)15) + (is_pushed ? 16 : cfa->plt_at);
        row.address = at;
        row.cfa_off = is_pushed ? 16 : 8;
        cfi_push(out, &row);
        if (next < at)
            break;
    }
}

/* The row of [from, to), as far as it is asked for. */
static void emit(const struct machine *m, uint64_t to, uint64_t begin, uint64_t end,
                 struct cfi_out *out)
{
    uint64_t from = m->location > begin ? m->location : begin;
    const struct cfi_cfa *cfa = &m->state.cfa;
    struct kiln_cfi_row row;

    if (to > end)
        to = end;
    if (from >= to)
        return;
    if (cfa->rule == KILN_RULE_PLT && cfa->plt_at != 11) {
        push_stubs(cfa, from, to, out);
        return;
    }
    row = row_of(&m->state, from);
    cfi_push(out, &row);
}

void cfi_run(struct cfi_state remember[CFI_REMEMBER_MAX], const struct cfi_bases *bases,
             const struct cfi_fde *fde, uint64_t begin, uint64_t end, struct cfi_out *out)
{
    struct machine m = {
        .cie = fde->cie,
        .c = {fde->program, fde->program + fde->n_program, false},
        .begin = fde->program,
        .bases = {fde->program_at, bases->text, bases->data},
        .location = fde->begin,
        .state = fde->cie->initial,
        .stack = remember,
        .initial = &fde->cie->initial,
    };
    uint64_t next;

    if (fde->cie->is_signal) {
        cfi_push_rule(out, begin, KILN_RULE_SIGNAL);
        return;
    }
    while (m.c.at < m.c.end && m.location < end) {
        uint8_t op = kiln_cursor_8(&m.c);
        bool is_advance = advance(&m, op, &next);

        if (is_advance && !m.c.bad && next >= m.location) {
            emit(&m, next, begin, end, out);
            m.location = next;
        } else if (is_advance || !step(&m, op) || !cfi_burn(out, 1)) {
            m.state.cfa.rule = KILN_RULE_NONE;
            m.state.ra.where = CFI_UNSET;
            break;
        }
    }
    emit(&m, end, begin, end, out);
}
