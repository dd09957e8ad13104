/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Go's compiler writes no frames for the linker's table, but it knows the size of the frame at each
 * address (pcsp): the CFA is that and 8 above the stack pointer.  A function that has a frame keeps
 * the caller's rbp right below its return address.
 *
 * Where stacks change: a goroutine's code runs on the stack of its thread through systemstack and
 * asmcgocall, which leave rbp pointing into the goroutine's stack: it leads back there.  Before Go
 * 1.21 these have no frame themselves, and rbp is their caller's, which is then passed over.
 * mcall and morestack never return to whom they left, and nobody called goexit, mstart, rt0_go and
 * the entry point.
 * cgocallback, the way back from C, makes the goroutine's stack look as if it had been called from
 * there.
 */
#include "symbol/cfi_int.h"

static const char *const outermost[] = {
    "runtime.goexit", "runtime.mstart", "runtime.rt0_go", "runtime.mcall", "runtime.morestack",
};
static const char *const switches[] = {"runtime.systemstack", "runtime.asmcgocall"};
/* Marked as outermost or as switching stacks, but what is said of their frames holds. */
static const char *const ordinary[] = {"runtime.sigtramp", "runtime.cgocallback"};

static bool is_one_of(struct kiln_str name, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (kiln_str_eq(name, kiln_str_of(names[i])))
            return true;
    }
    return false;
}

/* NONE: by the size of its frame. */
static enum kiln_rule rule_of(struct kiln_gopcln *go, const struct kiln_go_func *func)
{
    bool has_flags = kiln_gopcln_has_flags(go);
    struct kiln_str name;

    if (has_flags && !(func->flags & (KILN_GO_TOP_FRAME | KILN_GO_SP_WRITE)))
        return KILN_RULE_NONE;
    name = kiln_gopcln_name(go, func->name);
    if (is_one_of(name, ordinary, KILN_ARRAY_LEN(ordinary)))
        return KILN_RULE_NONE;
    if (is_one_of(name, outermost, KILN_ARRAY_LEN(outermost)) || (func->flags & KILN_GO_TOP_FRAME))
        return KILN_RULE_END;
    if (is_one_of(name, switches, KILN_ARRAY_LEN(switches)) || has_flags)
        return KILN_RULE_FRAME;
    return KILN_RULE_NONE;
}

/* A switch of stacks without a frame, as it was before Go 1.21. */
static bool is_bare_switch(struct kiln_gopcln *go, const struct kiln_go_func *func,
                           struct cfi_out *out)
{
    struct kiln_go_values values;

    if (!is_one_of(kiln_gopcln_name(go, func->name), switches, KILN_ARRAY_LEN(switches)))
        return false;
    kiln_go_values_init(&values, go, func, func->pcsp);
    while (cfi_burn(out, 1) && kiln_go_values_next(&values)) {
        if (values.value != 0)
            return false;
    }
    return true;
}

static void push_frame(struct cfi_out *out, uint64_t address, int32_t frame, enum kiln_rule rule)
{
    struct kiln_cfi_row row = {
        .address = address, .rule = KILN_RULE_REG, .reg = CFI_RSP, .ra_reg = 0xff};

    if (frame < 0 || frame > INT32_MAX - 8) {
        cfi_push_rule(out, address, KILN_RULE_NONE);
    } else if (rule == KILN_RULE_FRAME && frame > 0) {
        cfi_push_rule(out, address, KILN_RULE_FRAME);
    } else {
        row.cfa_off = frame + 8;
        if (frame >= 8) {
            row.fp = KILN_SAVED_CFA;
            row.fp_off = -16;
        }
        cfi_push(out, &row);
    }
}

/* Rows of a function in [begin, end), which lies within it. */
static void fill_func(const struct kiln_cfi *cfi, const struct kiln_go_func *func, uint64_t begin,
                      uint64_t end, struct cfi_out *out)
{
    struct kiln_gopcln *go = cfi->go;
    enum kiln_rule rule = func->entry == cfi->elf->entry ? KILN_RULE_END : rule_of(go, func);
    struct kiln_go_values values;

    if (rule == KILN_RULE_END || (rule == KILN_RULE_FRAME && is_bare_switch(go, func, out))) {
        cfi_push_rule(out, begin, rule);
        return;
    }
    kiln_go_values_init(&values, go, func, func->pcsp);
    while (begin < end && cfi_burn(out, 1) && kiln_go_values_next(&values)) {
        if (values.end <= begin)
            continue;
        push_frame(out, begin, values.value, rule);
        begin = values.end;
    }
    if (begin < end)
        cfi_push_rule(out, begin, KILN_RULE_NONE);
}

void cfi_go_fill(struct kiln_cfi *cfi, uint64_t begin, uint64_t end, struct cfi_out *out)
{
    struct kiln_go_func func;
    uint32_t i;

    if (kiln_gopcln_find(cfi->go, begin, &i) < 0) {
        /* Before the first function, or behind the last. */
        bool is_before = kiln_gopcln_func(cfi->go, 0, &func) == 0 && func.entry > begin;

        i = is_before ? 0 : kiln_gopcln_count(cfi->go);
    }
    for (; begin < end && cfi_burn(out, 16) && kiln_gopcln_func(cfi->go, i, &func) == 0; i++) {
        uint64_t from = func.entry > begin ? func.entry : begin;
        uint64_t to = func.end < end ? func.end : end;

        if (func.entry >= end)
            break;
        if (from >= to)
            continue;
        if (from > begin)
            cfi_fill(cfi, CFI_GO + 1, begin, from, out);
        fill_func(cfi, &func, from, to, out);
        begin = to;
    }
    if (begin < end)
        cfi_fill(cfi, CFI_GO + 1, begin, end, out);
}
