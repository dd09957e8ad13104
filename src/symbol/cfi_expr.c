/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Of DWARF's expressions compilers write few: a register and an offset, what memory holds there,
 * and a number more; and linkers write one, for the stubs of .plt:
 *
 *   breg7 8; breg16 0; lit15; and; litN; ge; lit3; shl; plus    rsp + 8 + (rip & 15 >= N) * 8
 *
 * A value on the stack is one of these forms, or the expression is not followed.
 */
#include "symbol/cfi_int.h"

enum {
    OP_DEREF = 0x06,
    OP_CONST1U = 0x08,
    OP_CONST1S = 0x09,
    OP_CONST2U = 0x0a,
    OP_CONST2S = 0x0b,
    OP_CONST4U = 0x0c,
    OP_CONST4S = 0x0d,
    OP_CONSTU = 0x10,
    OP_CONSTS = 0x11,
    OP_MINUS = 0x1c,
    OP_PLUS = 0x22,
    OP_PLUS_UCONST = 0x23,
    OP_LIT0 = 0x30,
    OP_LIT31 = 0x4f,
    OP_BREG0 = 0x70,
    OP_BREG31 = 0x8f,
    OP_BREGX = 0x92,
    DEPTH = 4,
};

enum form { NUMBER, REGISTER, MEMORY, UNKNOWN };

/* NUMBER: more; REGISTER: reg + more; MEMORY: *(reg + off) + more. */
struct value {
    enum form form;
    uint64_t reg;
    uint64_t off, more;
};

static struct value unknown(void)
{
    return (struct value){.form = UNKNOWN};
}

static struct value number(uint64_t n)
{
    return (struct value){.form = NUMBER, .more = n};
}

static struct value sum(struct value a, struct value b)
{
    if (a.form == NUMBER) {
        b.more += a.more;
        return b;
    }
    if (b.form != NUMBER)
        return unknown();
    a.more += b.more;
    return a;
}

static struct value dereferenced(struct value v)
{
    if (v.form != REGISTER)
        return unknown();
    return (struct value){.form = MEMORY, .reg = v.reg, .off = v.more};
}

/* What an operation pushes that takes nothing. */
static struct value pushed(uint8_t op, struct kiln_cursor *c)
{
    uint64_t reg;

    if (op >= OP_LIT0 && op <= OP_LIT31)
        return number(op - OP_LIT0);
    if ((op >= OP_BREG0 && op <= OP_BREG31) || op == OP_BREGX) {
        reg = op == OP_BREGX ? kiln_cursor_uleb(c) : (uint64_t)(op - OP_BREG0);
        return (struct value){.form = REGISTER, .reg = reg, .more = (uint64_t)kiln_cursor_sleb(c)};
    }
    switch (op) {
    case OP_CONST1U:
        return number(kiln_cursor_8(c));
    case OP_CONST1S:
        return number((uint64_t)(int8_t)kiln_cursor_8(c));
    case OP_CONST2U:
        return number(kiln_cursor_16(c));
    case OP_CONST2S:
        return number((uint64_t)(int16_t)kiln_cursor_16(c));
    case OP_CONST4U:
        return number(kiln_cursor_32(c));
    case OP_CONST4S:
        return number((uint64_t)(int32_t)kiln_cursor_32(c));
    case OP_CONSTU:
        return number(kiln_cursor_uleb(c));
    case OP_CONSTS:
        return number((uint64_t)kiln_cursor_sleb(c));
    default:
        return unknown();
    }
}

/* One operation; false: it is not followed. */
static bool step(struct kiln_cursor *c, struct value *stack, uint32_t *depth)
{
    uint8_t op = kiln_cursor_8(c);
    struct value *top = *depth ? &stack[*depth - 1] : NULL;

    if (op == OP_DEREF && top) {
        *top = dereferenced(*top);
    } else if (op == OP_PLUS_UCONST && top) {
        *top = sum(*top, number(kiln_cursor_uleb(c)));
    } else if ((op == OP_PLUS || op == OP_MINUS) && *depth >= 2) {
        if (op == OP_MINUS)
            *top = top->form == NUMBER ? number(-top->more) : unknown();
        top[-1] = sum(top[-1], *top);
        top = &stack[--*depth - 1];
    } else if (*depth < DEPTH) {
        top = &stack[(*depth)++];
        *top = pushed(op, c);
    } else {
        return false;
    }
    return top->form != UNKNOWN && !c->bad;
}

static struct value evaluate(const uint8_t *at, size_t n)
{
    struct kiln_cursor c = {at, at + n, false};
    struct value stack[DEPTH];
    uint32_t depth = 0;

    while (c.at < c.end) {
        if (!step(&c, stack, &depth))
            return unknown();
    }
    return depth ? stack[depth - 1] : unknown();
}

/* From which byte of 16 on there is more; 0: it is another expression. */
static uint8_t plt_of(const uint8_t *at, size_t n)
{
    static const uint8_t head[] = {0x77, 0x08, 0x80, 0x00, 0x3f, 0x1a};
    static const uint8_t tail[] = {0x2a, 0x33, 0x24, 0x22};

    if (n != sizeof(head) + 1 + sizeof(tail) || memcmp(at, head, sizeof(head)) != 0 ||
        memcmp(at + sizeof(head) + 1, tail, sizeof(tail)) != 0)
        return 0;
    at += sizeof(head);
    return *at > OP_LIT0 && *at <= OP_LIT0 + 15 ? *at - OP_LIT0 : 0;
}

struct cfi_cfa cfi_expr_cfa(const uint8_t *at, size_t n)
{
    uint8_t plt_at = plt_of(at, n);
    struct value v;

    if (plt_at)
        return (struct cfi_cfa){.rule = KILN_RULE_PLT, .plt_at = plt_at};
    v = evaluate(at, n);
    if (v.reg > 15)
        return (struct cfi_cfa){.rule = KILN_RULE_NONE};
    if (v.form == REGISTER)
        return (struct cfi_cfa){
            .rule = KILN_RULE_REG, .reg = (uint8_t)v.reg, .off = (int64_t)v.more};
    if (v.form == MEMORY)
        return (struct cfi_cfa){.rule = KILN_RULE_DEREF,
                                .reg = (uint8_t)v.reg,
                                .off = (int64_t)v.off,
                                .more = (int64_t)v.more};
    return (struct cfi_cfa){.rule = KILN_RULE_NONE};
}

struct cfi_saved cfi_expr_saved(const uint8_t *at, size_t n)
{
    struct value v = evaluate(at, n);

    if (v.form != REGISTER || (v.reg != CFI_RBP && v.reg != CFI_RSP))
        return (struct cfi_saved){.where = CFI_OTHER};
    return (struct cfi_saved){.where = v.reg == CFI_RBP ? CFI_AT_FP : CFI_AT_SP,
                              .off = (int64_t)v.more};
}
