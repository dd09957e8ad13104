/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * walk - the unwinder: one step is one frame of a user stack, by the tables of host/bpf/record.h.
 *
 * One source for the programs in the kernel and for user space.  Whoever includes it first defines
 * `struct kiln_walk_env` and these, all of them static:
 *
 *   int      kiln_walk_read(env, address, to, size)   user memory; 0, or else it cannot be read
 *   int      kiln_walk_find(env, key, ret_entry)      the directory; 0, or else it is not there
 *   __u64    kiln_walk_word(env, index)               a word of table memory; 0 outside
 *   void     kiln_walk_stamp(env, index, tick)        writes the high half of a word
 *   void     kiln_walk_frame(env, n, address)         keeps the frame number n
 *
 * Then: kiln_walk_begin(), and kiln_walk_step() until it returns something other than 0: `end` says
 * what.  A frame is kept once its mapping and its row are known, so that a miss (`end` NEW_PROCESS,
 * NEW_MAP, NEW_PAGE, with the address `miss`) leaves the state as it was before the step: with the
 * tables loaded the same step can be done again, by kiln_walk_again(); where they cannot be
 * had because there is no such thing, kiln_walk_without() makes the step go on without.
 *
 * How it ends well: at a row KILN_CFA_END; at a return address 0, which is what the first code of a
 * thread finds where nobody called it; and in code without tables, where the frame pointer
 * is 0: the ABI marks the outermost frame so; and where a thread or a program has just begun.  In
 * code made at run time, which may use the register for anything, a 0 counts only if it came from a
 * chain of frame pointers.
 *
 * Code without tables (JIT, V8's builtins, assembler) is crossed by the frame pointer, if that is
 * aligned, not below the stack pointer nor far above it, and the return address beside it lies in
 * an executable mapping.  In a leaf of a file it may also be that nothing was pushed yet: then the
 * return address is at the stack pointer.
 *
 * The stack pointer rises from frame to frame, except where the stack changes: by a signal's frame
 * (alternate stacks) and by frame pointers (Go's system stack).  Such falls are few; they
 * are counted, so that a stack that bites its tail ends.
 *
 * Threads: a walk belongs to one.
 */
#ifndef KILN_HOST_WALK_H
#define KILN_HOST_WALK_H

#include "host/bpf/arch.h"
#include "host/bpf/record.h"

enum {
    KILN_WALK_FALLS_MAX = 16,
    KILN_WALK_ARGS_MAX = 1 << 16,  /* of a program that has just begun */
    KILN_WALK_FRAME_MAX = 1 << 20, /* bytes from the stack pointer to a frame pointer */
    KILN_WALK_MAP_STEPS = 18,      /* of a search among 2^17 mappings */
    KILN_WALK_ROW_STEPS = KILN_PAGE_BITS + 1,
};

struct kiln_walk {
    __u64 pc, sp, fp;
    struct kiln_registers leaf_regs; /* valid while `leaf`; without the three above */
    struct kiln_table_map map;       /* where the walk is; end 0: not known yet */
    struct kiln_dir_key page;        /* whose rows were looked at last; file 0: none */
    struct kiln_dir_entry rows;      /* of that page: callers are often near by */
    __u64 era;
    __u64 miss;      /* the address whose table is wanted */
    __u64 absent[2]; /* addresses that no mapping has: the walk goes on without */
    __u64 bare;      /* the address of a mapping for which there are no rows */
    __u64 bx_at;     /* where rbx is; 0: in leaf_regs, 1: it is lost */
    __u64 saved[KILN_ARCH_SIGNAL_REGS];
    __u32 pid;
    __u32 maps, n_maps; /* slot of the process' mappings; 0: not looked for yet */
    __u32 generation;   /* of that slot */
    __u32 tick;         /* what slots are stamped with */
    __u32 n;            /* frames kept */
    __u8 leaf;          /* nothing was called here: pc is exact, and all registers are known */
    __u8 by_fp;         /* the last step was done by the frame pointer */
    __u8 falls;
    __u8 end; /* enum kiln_end, once a step returned 1 */
};

struct kiln_walk_env;

#define KILN_WALK static inline __attribute__((always_inline))

KILN_WALK int kiln_walk_end(struct kiln_walk *walk, __u8 end)
{
    walk->end = end;
    return 1;
}

KILN_WALK int kiln_walk_missing(struct kiln_walk *walk, __u8 end, __u64 address)
{
    walk->miss = address;
    return kiln_walk_end(walk, end);
}

KILN_WALK int kiln_walk_is_absent(const struct kiln_walk *walk, __u64 address)
{
    return address == walk->absent[0] || address == walk->absent[1];
}

/* After reading a slot: whether it was this one all the time.  Marks it as used. */
KILN_WALK int kiln_walk_is_whole(struct kiln_walk_env *env, const struct kiln_walk *walk,
                                 __u32 slot, __u32 generation)
{
    __u64 header = kiln_walk_word(env, slot);
    if ((__u32)header != generation)
        return 0;
    if ((__u32)(header >> 32) != walk->tick)
        kiln_walk_stamp(env, slot, walk->tick);
    return 1;
}

/* 0: `walk->maps` is the slot of the process' mappings. */
KILN_WALK int kiln_walk_find_process(struct kiln_walk_env *env, struct kiln_walk *walk)
{
    struct kiln_dir_key key = {.file = 0, .page = walk->pid};
    struct kiln_dir_entry entry;
    if (kiln_walk_find(env, &key, &entry) || entry.era != walk->era)
        return kiln_walk_missing(walk, KILN_END_NEW_PROCESS, walk->pc);
    walk->maps = entry.slot;
    walk->n_maps = entry.n;
    walk->generation = entry.generation;
    return 0;
}

/*
 * The verifier of Linux 6.1 refuses loops that are entered in their middle, which is how compilers
 * like to lay out a `for`: hence the searches count down in `do`.
 */

/* How many of the process' mappings begin at the address or below. */
KILN_WALK __u32 kiln_walk_search_maps(struct kiln_walk_env *env, const struct kiln_walk *walk,
                                      __u64 address)
{
    __u32 low = 0, n = walk->n_maps;
    int steps = KILN_WALK_MAP_STEPS;
    do {
        __u32 half = n / 2;
        __u64 start = kiln_walk_word(env, walk->maps + 1 + (low + half) * KILN_MAP_WORDS);
        if (n && start <= address) {
            low += half + 1;
            n -= half + 1;
        } else {
            n = half;
        }
    } while (n && --steps);
    return low;
}

/*
 * 0: `walk->map` is the mapping that holds the address.  1: a miss.  -1: there is none, which is
 * sure.
 */
KILN_WALK int kiln_walk_find_map(struct kiln_walk_env *env, struct kiln_walk *walk, __u64 address)
{
    if (address >= walk->map.start && address < walk->map.end)
        return 0;
    if (address < 4096 || address >> 56 || kiln_walk_is_absent(walk, address))
        return -1;
    if (!walk->maps && kiln_walk_find_process(env, walk))
        return 1;
    __u32 found = kiln_walk_search_maps(env, walk, address);
    __u32 at = walk->maps + 1 + (found - 1) * KILN_MAP_WORDS;
    struct kiln_table_map map = {0};
    if (found) {
        map.start = kiln_walk_word(env, at);
        map.end = kiln_walk_word(env, at + 1);
        map.bias = kiln_walk_word(env, at + 2);
        __u64 last = kiln_walk_word(env, at + 3);
        map.file = (__u32)last;
        map.flags = (__u32)(last >> 32);
    }
    if (!kiln_walk_is_whole(env, walk, walk->maps, walk->generation)) {
        walk->maps = 0;
        return kiln_walk_missing(walk, KILN_END_NEW_PROCESS, address);
    }
    if (address < map.start || address >= map.end)
        return kiln_walk_missing(walk, KILN_END_NEW_MAP, address);
    walk->map = map;
    return 0;
}

/* The last row of a page whose address is not above. */
KILN_WALK __u64 kiln_walk_search_rows(struct kiln_walk_env *env, const struct kiln_dir_entry *entry,
                                      __u32 address)
{
    __u32 low = entry->slot + 1, n = entry->n;
    __u64 row = 0; /* KILN_CFA_NONE */
    int steps = KILN_WALK_ROW_STEPS;
    do {
        __u32 half = n / 2;
        __u64 word = kiln_walk_word(env, low + half);
        if (n && kiln_row_address(word) <= address) {
            row = word;
            low += half + 1;
            n -= half + 1;
        } else {
            n = half;
        }
    } while (n && --steps);
    return row;
}

/* 0: `walk->rows` are those of the page; else they are not in the tables. */
KILN_WALK int kiln_walk_find_page(struct kiln_walk_env *env, struct kiln_walk *walk,
                                  const struct kiln_dir_key *key)
{
    if (key->file == walk->page.file && key->page == walk->page.page)
        return 0;
    walk->page.file = 0;
    if (kiln_walk_find(env, key, &walk->rows))
        return 1;
    walk->page = *key;
    return 0;
}

/* The rule at an address of walk->map; 0, or 1: a miss. */
KILN_WALK int kiln_walk_find_row(struct kiln_walk_env *env, struct kiln_walk *walk, __u64 address,
                                 __u64 *ret_row)
{
    __u64 own = address - walk->map.bias;
    struct kiln_dir_key key = {.file = walk->map.file, .page = (__u32)(own >> KILN_PAGE_BITS)};
    if ((walk->map.flags & KILN_MAP_JIT) || !key.file || address == walk->bare) {
        *ret_row = 0;
        return 0;
    }
    if (kiln_walk_find_page(env, walk, &key))
        return kiln_walk_missing(walk, KILN_END_NEW_PAGE, address);
    *ret_row = kiln_walk_search_rows(env, &walk->rows, (__u32)own & ((1 << KILN_PAGE_BITS) - 1));
    if (!kiln_walk_is_whole(env, walk, walk->rows.slot, walk->rows.generation)) {
        walk->page.file = 0;
        return kiln_walk_missing(walk, KILN_END_NEW_PAGE, address);
    }
    return 0;
}

/* Goes to the caller.  A return address 0: there is none. */
KILN_WALK int kiln_walk_go(struct kiln_walk *walk, __u64 pc, __u64 sp, __u64 fp)
{
    walk->pc = pc;
    walk->sp = sp;
    walk->fp = fp;
    walk->leaf = 0;
    return pc ? 0 : kiln_walk_end(walk, KILN_END_COMPLETE);
}

/* The stack pointer fell: on to another stack, or in a circle. */
KILN_WALK int kiln_walk_fall(struct kiln_walk *walk)
{
    return ++walk->falls > KILN_WALK_FALLS_MAX ? kiln_walk_end(walk, KILN_END_STUCK) : 0;
}

/* A signal's frame: all registers are in the ucontext at sp, and what it interrupted is a leaf. */
KILN_WALK int kiln_walk_signal(struct kiln_walk_env *env, struct kiln_walk *walk)
{
    struct kiln_registers *regs = &walk->leaf_regs;
    if (kiln_walk_read(env, walk->sp + KILN_ARCH_SIGNAL_AT, walk->saved, sizeof(walk->saved)))
        return kiln_walk_end(walk, KILN_END_READ);
    kiln_arch_signal(walk->saved, regs);
    if (regs->r[KILN_ARCH_SP] <= walk->sp && kiln_walk_fall(walk))
        return 1;
    if (kiln_walk_go(walk, regs->pc, regs->r[KILN_ARCH_SP], regs->r[KILN_ARCH_FP]))
        return 1;
    walk->leaf = 1;
    walk->bx_at = 0;
    return 0;
}

/* Code that is known to keep frame pointers. */
KILN_WALK int kiln_walk_by_frame(struct kiln_walk_env *env, struct kiln_walk *walk)
{
    __u64 saved[2]; /* frame pointer, return address */
    walk->by_fp = 1;
    walk->bx_at = 1;
    if (!walk->fp)
        return kiln_walk_end(walk, KILN_END_COMPLETE);
    if (walk->fp & 7)
        return kiln_walk_end(walk, KILN_END_STUCK);
    if (walk->fp < walk->sp && kiln_walk_fall(walk))
        return 1;
    if (kiln_walk_read(env, walk->fp, saved, sizeof(saved)))
        return kiln_walk_end(walk, KILN_END_READ);
    return kiln_walk_go(walk, saved[1], walk->fp + 16, saved[0]);
}

/*
 * Code of which nothing is known; `address` is the frame's.  The frame is kept here, once no miss
 * can come.
 */
KILN_WALK int kiln_walk_cross(struct kiln_walk_env *env, struct kiln_walk *walk, __u64 address)
{
    __u8 is_jit = !walk->map.file || (walk->map.flags & KILN_MAP_JIT);
    __u8 end = is_jit ? KILN_END_JIT : KILN_END_NO_TABLE;
    __u64 saved[2] = {0, 0}, fp = walk->fp;
    int found = -1;
    if (!fp && (walk->by_fp || (!is_jit && !walk->leaf)))
        end = KILN_END_COMPLETE;
    if (fp && !(fp & 7) && fp >= walk->sp && fp - walk->sp < KILN_WALK_FRAME_MAX &&
        !kiln_walk_read(env, fp, saved, sizeof(saved))) {
        if (!saved[0] && !saved[1])
            end = KILN_END_COMPLETE;
        else
            found = kiln_walk_find_map(env, walk, saved[1]);
    }
    if (found < 0 && walk->leaf && !is_jit && !kiln_walk_read(env, walk->sp, &saved[1], 8)) {
        saved[0] = fp;
        fp = walk->sp - 8;
        found = kiln_walk_find_map(env, walk, saved[1]);
    }
    if (found > 0)
        return 1;
    kiln_walk_frame(env, walk->n++, address);
    walk->by_fp = 1;
    walk->bx_at = 1;
    return found ? kiln_walk_end(walk, end) : kiln_walk_go(walk, saved[1], fp + 16, saved[0]);
}

/* What rbx had; 0, or else it is not known. */
KILN_WALK int kiln_walk_bx(struct kiln_walk_env *env, const struct kiln_walk *walk, __u64 *ret_bx)
{
    if (walk->bx_at == 1)
        return 1;
    *ret_bx = walk->leaf_regs.r[KILN_ARCH_BX];
    return walk->bx_at ? kiln_walk_read(env, walk->bx_at, ret_bx, 8) : 0;
}

/* Where a row says that rbx was saved: it is read when somebody asks, which is seldom. */
KILN_WALK void kiln_walk_follow_bx(struct kiln_walk *walk, __u64 row, __u64 cfa)
{
    __u32 saved = kiln_row_bx(row);
    __u64 at = cfa - 8 * (saved + 1);
    if (saved == KILN_BX_LOST)
        walk->bx_at = 1;
    else if (saved && at >= walk->sp)
        walk->bx_at = at;
}

/* The canonical frame address by a row; 0, or 1: the walk ends. */
KILN_WALK int kiln_walk_cfa(struct kiln_walk_env *env, struct kiln_walk *walk, __u64 row,
                            __u64 *ret_cfa)
{
    __u32 kind = kiln_row_cfa(row);
    __u64 base = kind == KILN_CFA_FP || kind == KILN_CFA_FP_DEREF || kind == KILN_CFA_FP_DEREF8
                     ? walk->fp
                     : walk->sp;
    if (kind >= KILN_CFA_REG) {
        base = walk->leaf_regs.r[kind & 15];
        if (!walk->leaf && (kind != KILN_CFA_REG + KILN_ARCH_BX || kiln_walk_bx(env, walk, &base)))
            return kiln_walk_end(walk, KILN_END_RULE);
    }
    base += (__u64)kiln_row_cfa_off(row);
    if (kind == KILN_CFA_PLT)
        base = walk->sp + ((walk->pc & 15) >= 11 ? 16 : 8);
    if (kind >= KILN_CFA_SP_DEREF && kind <= KILN_CFA_FP_DEREF8) {
        if (kiln_walk_read(env, base, &base, 8))
            return kiln_walk_end(walk, KILN_END_READ);
        if (kind == KILN_CFA_SP_DEREF8 || kind == KILN_CFA_FP_DEREF8)
            base += 8;
    }
    *ret_cfa = base;
    return 0;
}

/* The caller's frame pointer and return address, once the CFA is known. */
KILN_WALK int kiln_walk_caller(struct kiln_walk_env *env, struct kiln_walk *walk, __u64 row,
                               __u64 cfa)
{
    __u64 saved[2] = {walk->fp, 0};
    __u32 kind = kiln_row_fp(row);
    __s64 offset = kiln_row_fp_off(row);
    int failed = 0;
    kiln_walk_follow_bx(walk, row, cfa);
    /* Below the stack pointer nothing is kept: it was popped, though the tables do not say so. */
    if (kind == KILN_FP_AT_CFA && cfa + (__u64)offset < walk->sp)
        kind = KILN_FP_SAME;
    if (kind == KILN_FP_RA_REG) {
        if (!walk->leaf)
            return kiln_walk_end(walk, KILN_END_RULE);
        saved[1] = walk->leaf_regs.r[offset & 15];
    } else if (kind == KILN_FP_AT_CFA && offset == -16) {
        failed = kiln_walk_read(env, cfa - 16, saved, sizeof(saved)); /* both: push %rbp */
    } else {
        failed = kiln_walk_read(env, cfa - 8, &saved[1], 8);
        if (!failed && kind != KILN_FP_SAME)
            failed = kiln_walk_read(env, (kind == KILN_FP_AT_CFA ? cfa : walk->fp) + (__u64)offset,
                                    &saved[0], 8);
    }
    if (failed)
        return kiln_walk_end(walk, KILN_END_READ);
    return kiln_walk_go(walk, saved[1], cfa, saved[0]);
}

KILN_WALK int kiln_walk_by_row(struct kiln_walk_env *env, struct kiln_walk *walk, __u64 row)
{
    __u64 cfa = 0;
    walk->by_fp = 0;
    if (kiln_walk_cfa(env, walk, row, &cfa))
        return 1;
    /* A leaf that took its return address off the stack has CFA == sp. */
    if ((cfa & 7) || cfa < walk->sp || (cfa == walk->sp && !walk->leaf))
        return kiln_walk_end(walk, KILN_END_STUCK);
    return kiln_walk_caller(env, walk, row, cfa);
}

/*
 * A leaf that nobody called: a thread just behind the system call that made it, which gave it 0
 * (its stack is new, and what tables say of the caller is true of its maker alone), or the first
 * code of a program, which finds argc and argv where it is.
 */
KILN_WALK int kiln_walk_is_first(struct kiln_walk_env *env, const struct kiln_walk *walk)
{
    const struct kiln_registers *regs = &walk->leaf_regs;
    __u64 sp = regs->r[KILN_ARCH_SP], word = 0;
    __u16 code = 0;
    if (!regs->r[KILN_ARCH_RESULT] &&
        !kiln_walk_read(env, regs->pc - sizeof(code), &code, sizeof(code)) &&
        code == KILN_ARCH_SYSCALL)
        return 1;
    return !regs->r[KILN_ARCH_FP] && !kiln_walk_read(env, sp, &word, 8) &&
           word < KILN_WALK_ARGS_MAX && !kiln_walk_read(env, sp + 8 + word * 8, &word, 8) && !word;
}

/* One frame by what is known of it. */
KILN_WALK int kiln_walk_one(struct kiln_walk_env *env, struct kiln_walk *walk)
{
    __u64 at = walk->leaf ? walk->pc : walk->pc - 1;
    __u64 row;
    if (walk->n >= KILN_USER_FRAMES_MAX)
        return kiln_walk_end(walk, KILN_END_DEPTH);
    int found = kiln_walk_find_map(env, walk, at);
    if (found)
        return found > 0 ? 1 : kiln_walk_end(walk, KILN_END_UNMAPPED);
    if (kiln_walk_find_row(env, walk, at, &row))
        return 1;
    __u32 kind = kiln_row_cfa(row);
    if (kind == KILN_CFA_NONE)
        return kiln_walk_cross(env, walk, at);
    /* A handler returns to the first byte of a trampoline: the byte before is another function. */
    kiln_walk_frame(env, walk->n++, kind == KILN_CFA_SIGNAL ? walk->pc : at);
    if (kind == KILN_CFA_END)
        return kiln_walk_end(walk, KILN_END_COMPLETE);
    if (kind == KILN_CFA_SIGNAL)
        return kiln_walk_signal(env, walk);
    if (kind == KILN_CFA_FRAME)
        return kiln_walk_by_frame(env, walk);
    return kiln_walk_by_row(env, walk, row);
}

/* One frame.  0: go on; 1: the walk ends, or misses something, as `end` says. */
KILN_WALK int kiln_walk_step(struct kiln_walk_env *env, struct kiln_walk *walk)
{
    if (!kiln_walk_one(env, walk))
        return 0;
    if (walk->n == 1 &&
        (walk->end == KILN_END_NO_TABLE || walk->end == KILN_END_UNMAPPED ||
         walk->end == KILN_END_READ) &&
        kiln_walk_is_first(env, walk))
        walk->end = KILN_END_COMPLETE;
    return 1;
}

/*
 * At the registers of a leaf, or of a caller (`leaf` 0: pc is a return address).  pid, era and tick
 * are the caller's to set.
 */
KILN_WALK void kiln_walk_begin(struct kiln_walk *walk, const struct kiln_registers *registers,
                               __u8 leaf)
{
    walk->leaf_regs = *registers;
    walk->pc = registers->pc;
    walk->sp = registers->r[KILN_ARCH_SP];
    walk->fp = registers->r[KILN_ARCH_FP];
    walk->map.start = walk->map.end = 0;
    walk->page.file = 0;
    walk->miss = walk->absent[0] = walk->absent[1] = walk->bare = 0;
    walk->maps = walk->n_maps = walk->generation = walk->n = 0;
    walk->leaf = leaf;
    walk->bx_at = 0;
    walk->by_fp = walk->falls = walk->end = 0;
}

/* What kiln_walk_begin() can go on from. */
KILN_WALK void kiln_walk_registers(struct kiln_walk_env *env, const struct kiln_walk *walk,
                                   struct kiln_registers *to)
{
    __u64 bx = 0;
    *to = walk->leaf_regs;
    to->pc = walk->pc;
    to->r[KILN_ARCH_SP] = walk->sp;
    to->r[KILN_ARCH_FP] = walk->fp;
    to->r[KILN_ARCH_BX] = kiln_walk_bx(env, walk, &bx) ? 0 : bx;
}

/* After a miss whose tables were loaded meanwhile: what is known of mappings is looked up anew. */
KILN_WALK void kiln_walk_again(struct kiln_walk *walk)
{
    walk->map.start = walk->map.end = 0;
    walk->page.file = 0;
    walk->maps = 0;
}

/* After a miss of something that does not exist.  One step asks for two such addresses at most. */
KILN_WALK void kiln_walk_without(struct kiln_walk *walk)
{
    kiln_walk_again(walk);
    if (walk->end == KILN_END_NEW_PAGE) {
        walk->bare = walk->miss;
        return;
    }
    walk->absent[1] = walk->absent[0];
    walk->absent[0] = walk->miss;
}

#endif /* KILN_HOST_WALK_H */
