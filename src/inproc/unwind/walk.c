/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames are kept as the address behind that of the instruction, be it a return address or where a
 * signal came; the first one as the instruction's own.
 *
 * glide() does the plain steps with all its state in registers; step() does every kind of them.
 */
#include "inproc/unwind/walk.h"

#include "inproc/thread/thread.h"
#include "inproc/unwind/bounds.h"
#include "inproc/unwind/cache.h"
#include "inproc/unwind/objects.h"
#include "inproc/unwind/peek.h"
#include "inproc/unwind/room.h"
#include "inproc/unwind/rule.h"
#include "inproc/unwind/table.h"

enum {
    FALLS_MAX = 16,
    FRAME_MAX = 1 << 20, /* bytes from the stack pointer to a frame pointer */
    WORD = 8,
    BX_LOST = 1,
    STEPS_MAX = 4096, /* of frames that are not kept, too */
};

#define PLAIN __attribute__((no_sanitize("address", "thread", "undefined")))

PLAIN static inline __attribute__((always_inline)) uint64_t word_at(uint64_t at)
{
    return *(const volatile uint64_t *)(uintptr_t)at; /* NOLINT(performance-no-int-to-ptr) */
}

static struct kiln_in_room *room_of(struct kiln_in_walk *walk)
{
    if (!walk->room)
        walk->room = kiln_in_room_take();
    return walk->room;
}

/* From a stack that is not the thread's own: a piece of it is copied at once. */
static bool load_far(struct kiln_in_walk *walk, uint64_t at, uint64_t *ret_word)
{
    struct kiln_in_room *room = room_of(walk);

    if (!room)
        return false;
    if (at - room->stack_at > room->stack_bytes - WORD || room->stack_bytes < WORD) {
        room->stack_at = at;
        room->stack_bytes = kiln_in_peek(at, room->stack, sizeof(room->stack));
        if (room->stack_bytes < WORD)
            return false;
    }
    *ret_word = room->stack[(at - room->stack_at) / WORD];
    return true;
}

PLAIN static bool load(struct kiln_in_walk *walk, uint64_t at, uint64_t *ret_word)
{
    if (at & (WORD - 1))
        return false;
    if (at < walk->low || at >= walk->high)
        return load_far(walk, at, ret_word);
    *ret_word = word_at(at);
    return true;
}

static inline uint64_t at_of(const struct kiln_in_walk *walk)
{
    return walk->pc - !walk->leaf;
}

static inline bool is_own(uint64_t pc)
{
    return pc - kiln_in_object_own_low < kiln_in_object_own_size;
}

static void keep(struct kiln_in_walk *walk)
{
    if (walk->skip)
        walk->skip--;
    else if (!is_own(walk->pc))
        walk->pcs[walk->n++] = at_of(walk) + 1;
}

/* All that follow return true: the walk goes on; false: it has ended. */

static bool finish(struct kiln_in_walk *walk)
{
    walk->is_whole = true;
    return false;
}

static bool go(struct kiln_in_walk *walk, uint64_t pc, uint64_t sp, uint64_t fp)
{
    walk->pc = kiln_in_arch_return(pc);
    walk->sp = sp;
    walk->fp = fp;
    walk->leaf = false;
    return true;
}

/* The stack of another thread may go away at any time: nothing of it is read as it is. */
static void find_bounds(struct kiln_in_walk *walk)
{
    walk->low = walk->high = 0;
    if (walk->thread)
        kiln_in_bounds(walk->thread, walk->sp, &walk->low, &walk->high);
}

/* What a signal interrupted; its handler may have had a stack of its own. */
static bool step_signal(struct kiln_in_walk *walk)
{
    uint64_t saved[KILN_IN_SIGNAL_WORDS];

    for (unsigned i = 0; i < KILN_IN_SIGNAL_WORDS; i++) {
        if (!load(walk, walk->sp + KILN_IN_SIGNAL_AT + i * WORD, &saved[i]))
            return false;
    }
    kiln_in_arch_saved(saved, &walk->regs);
    if (walk->regs.r[KILN_IN_SP] <= walk->sp && ++walk->falls > FALLS_MAX)
        return false;
    go(walk, walk->regs.pc, walk->regs.r[KILN_IN_SP], walk->regs.r[KILN_IN_FP]);
    walk->leaf = true;
    walk->bx_at = 0;
    find_bounds(walk);
    return true;
}

/* Code of which nothing is known: if it keeps frame pointers, they lead to code. */
static bool step_across(struct kiln_in_walk *walk, bool is_made)
{
    uint64_t fp = walk->fp, caller_fp, pc;
    bool is_end = !fp && (walk->by_fp || (!is_made && !walk->leaf));

    walk->by_fp = true;
    walk->bx_at = BX_LOST;
    if (is_end)
        return finish(walk);
    if (fp >= walk->sp && fp - walk->sp < FRAME_MAX && load(walk, fp, &caller_fp) &&
        load(walk, fp + WORD, &pc)) {
        pc = kiln_in_arch_return(pc);
        if (!caller_fp && !pc)
            return finish(walk);
        if (kiln_in_table_is_code(pc - 1))
            return go(walk, pc, fp + 2 * WORD, caller_fp);
    }
    /* A function that has pushed nothing yet. */
    if (walk->leaf && !is_made && load(walk, walk->sp, &pc) && kiln_in_table_is_code(pc - 1))
        return go(walk, pc, walk->sp + WORD, walk->fp);
    return false;
}

static bool load_bx(struct kiln_in_walk *walk, uint64_t *ret_bx)
{
    if (walk->bx_at == BX_LOST)
        return false;
    *ret_bx = walk->regs.r[KILN_IN_BX];
    return !walk->bx_at || load(walk, walk->bx_at, ret_bx);
}

/* False: it cannot be known. */
static bool load_cfa(struct kiln_in_walk *walk, uint64_t rule, uint64_t *ret_cfa)
{
    uint32_t kind = kiln_in_rule_kind(rule);
    uint64_t base = kind == KILN_IN_RULE_FP || kind == KILN_IN_RULE_FP_DEREF ? walk->fp : walk->sp;

    if (kind >= KILN_IN_RULE_REG) {
        base = walk->regs.r[kind - KILN_IN_RULE_REG];
        if (!walk->leaf && (kind != KILN_IN_RULE_REG + KILN_IN_BX || !load_bx(walk, &base)))
            return false;
    }
    base += kiln_in_rule_cfa_off(rule);
    if (kind == KILN_IN_RULE_PLT)
        base = walk->sp + ((walk->pc & 15) >= 11 ? 16 : 8);
    if (kind == KILN_IN_RULE_SP_DEREF || kind == KILN_IN_RULE_FP_DEREF) {
        if (!load(walk, base, &base))
            return false;
        base += kiln_in_rule_more(rule);
    }
    *ret_cfa = base;
    return true;
}

static void follow_bx(struct kiln_in_walk *walk, uint64_t rule, uint64_t cfa)
{
    uint32_t saved = kiln_in_rule_bx(rule);

    if (saved)
        walk->bx_at = saved == KILN_IN_BX_LOST ? BX_LOST : cfa - WORD * (saved + 1);
}

static bool step_by_rule(struct kiln_in_walk *walk, uint64_t rule)
{
    uint32_t where = kiln_in_rule_fp(rule);
    uint64_t off = kiln_in_rule_fp_off(rule), cfa, pc, fp = walk->fp;

    walk->by_fp = false;
    if (!load_cfa(walk, rule, &cfa))
        return false;
    /* A leaf that took its return address off the stack has CFA == sp. */
    if (cfa < walk->sp || (cfa == walk->sp && !walk->leaf))
        return false;
    follow_bx(walk, rule, cfa);
    if (where == KILN_IN_FP_RA_REG) {
        if (!walk->leaf)
            return false;
        return go(walk, walk->regs.r[off & (KILN_IN_REGISTERS - 1)], cfa, fp);
    }
    /* Below the stack pointer nothing is kept: it was popped, though the tables do not say so. */
    if (where == KILN_IN_FP_AT_CFA && cfa + off >= walk->sp && !load(walk, cfa + off, &fp))
        return false;
    if (where == KILN_IN_FP_AT_FP && !load(walk, walk->fp + off, &fp))
        return false;
    return load(walk, cfa - WORD, &pc) && go(walk, pc, cfa, fp);
}

static uint64_t find_rule(struct kiln_in_walk *walk)
{
    uint64_t rule = kiln_in_cache_find(at_of(walk) + 1, walk->era);

    if (!rule && room_of(walk))
        rule = kiln_in_table_find(walk->room, at_of(walk), !walk->leaf);
    /* Where a thread is, there is code, known or not. */
    return !rule && walk->leaf ? (uint64_t)KILN_IN_RULE_MADE : rule;
}

static bool step(struct kiln_in_walk *walk)
{
    uint64_t rule;

    if (!walk->pc)
        return finish(walk);
    rule = find_rule(walk);
    if (!rule)
        return false;
    /* A handler returns to the first byte of a trampoline: the byte before is another function. */
    if (kiln_in_rule_kind(rule) == KILN_IN_RULE_SIGNAL)
        walk->pc += !walk->leaf;
    keep(walk);
    switch (kiln_in_rule_kind(rule)) {
    case KILN_IN_RULE_END:
        return finish(walk);
    case KILN_IN_RULE_CROSS:
        return step_across(walk, false);
    case KILN_IN_RULE_MADE:
        return step_across(walk, true);
    case KILN_IN_RULE_SIGNAL:
        return step_signal(walk);
    default:
        return step_by_rule(walk, rule);
    }
}

/* Two ways to a value stay two ways: processors guess which, and need not wait for what decides. */
static inline __attribute__((always_inline)) uint64_t apart(uint64_t value)
{
    __asm__ volatile("" : "+r"(value));
    return value;
}

/* Steps that need nothing but this stack and the cache.  Returns before the first that is not. */
PLAIN static __attribute__((noinline)) void glide(struct kiln_in_walk *walk)
{
    const uint64_t high = walk->high, era = walk->era;
    uint64_t *const pcs = walk->pcs;
    const unsigned depth = walk->depth;
    uint64_t pc = walk->pc, sp = walk->sp, fp = walk->fp, bx_rule = 0, bx_cfa = 0;
    unsigned n = walk->n;

    while (n < depth) {
        uint64_t rule = kiln_in_cache_find(pc, era), cfa = kiln_in_rule_cfa_off(rule), slot;

        if (!kiln_in_rule_is_plain(rule))
            break;
        if (kiln_in_rule_kind(rule) == KILN_IN_RULE_SP)
            cfa = apart(cfa + sp);
        else
            cfa = apart(cfa + fp);
        if (cfa <= sp || cfa > high)
            break;
        if (kiln_in_rule_fp(rule) != KILN_IN_FP_SAME) {
            slot = cfa + kiln_in_rule_fp_off(rule);
            if (slot < sp || slot > cfa - 2 * WORD)
                break;
            fp = word_at(slot);
        }
        if (kiln_in_rule_bx(rule)) {
            bx_rule = rule;
            bx_cfa = cfa;
        }
        pcs[n] = pc;
        n += !is_own(pc);
        pc = word_at(cfa - WORD);
        sp = cfa;
    }
    if (sp != walk->sp)
        walk->by_fp = false;
    walk->pc = pc;
    walk->sp = sp;
    walk->fp = fp;
    walk->n = n;
    follow_bx(walk, bx_rule, bx_cfa);
}

void kiln_in_walk_run(struct kiln_in_walk *walk)
{
    bool goes_on = true;

    walk->pc = walk->regs.pc;
    walk->sp = walk->regs.r[KILN_IN_SP];
    walk->fp = walk->regs.r[KILN_IN_FP];
    walk->bx_at = 0;
    walk->era = kiln_in_cache_era();
    walk->room = NULL;
    walk->n = 0;
    walk->falls = 0;
    walk->by_fp = walk->is_whole = false;
    find_bounds(walk);
    for (int i = 0; goes_on && walk->n < walk->depth && i < STEPS_MAX; i++) {
        if (!walk->leaf && !walk->skip && walk->high)
            glide(walk);
        if (walk->n < walk->depth)
            goes_on = step(walk);
    }
    if (walk->n)
        walk->pcs[0]--;
    kiln_in_room_give(walk->room);
}
