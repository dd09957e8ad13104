/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * arch - all that is known of the processor: how the kernel lays out registers, and how calls leave
 * their marks on the stack.  x86-64.
 *
 * Compiled for BPF and for user space.
 *
 * Threads: plain data.
 */
#ifndef KILN_HOST_BPF_ARCH_H
#define KILN_HOST_BPF_ARCH_H

#include "host/bpf/record.h"

enum {
    KILN_ARCH_BX = 3,
    KILN_ARCH_FP = 6, /* numbers of registers, DWARF's */
    KILN_ARCH_SP = 7,
    KILN_ARCH_RESULT = 0,       /* of a system call */
    KILN_ARCH_SYSCALL = 0x050f, /* the instruction, little-endian */
    KILN_ARCH_USER_CS = 0x33,   /* code segment of 64-bit programs; others are 32-bit */
    KILN_ARCH_EXECVE = 59,      /* numbers of system calls */
    KILN_ARCH_EXECVEAT = 322,
    KILN_ARCH_SIGNAL_AT = 40,   /* of the saved registers in a signal's frame, from sp */
    KILN_ARCH_SIGNAL_REGS = 17, /* of them */
    KILN_ARCH_BLOCKS_AT = 8,    /* of a thread's vector of blocks, from the thread pointer */
};

/* Registers as the kernel's entry code pushes them (struct pt_regs of the UAPI). */
struct kiln_arch_regs {
    __u64 r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax;
    __u64 ip, cs, flags, sp, ss;
};

static inline __attribute__((always_inline)) void
kiln_arch_registers(const struct kiln_arch_regs *from, struct kiln_registers *to)
{
    to->r[0] = from->ax;
    to->r[1] = from->dx;
    to->r[2] = from->cx;
    to->r[3] = from->bx;
    to->r[4] = from->si;
    to->r[5] = from->di;
    to->r[6] = from->bp;
    to->r[7] = from->sp;
    to->r[8] = from->r8;
    to->r[9] = from->r9;
    to->r[10] = from->r10;
    to->r[11] = from->r11;
    to->r[12] = from->r12;
    to->r[13] = from->r13;
    to->r[14] = from->r14;
    to->r[15] = from->r15;
    to->pc = from->ip;
}

/* Registers as a signal's frame has them: r8-r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip. */
static inline __attribute__((always_inline)) void
kiln_arch_signal(const __u64 saved[KILN_ARCH_SIGNAL_REGS], struct kiln_registers *to)
{
    for (int i = 0; i < 8; i++)
        to->r[8 + i] = saved[i];
    to->r[5] = saved[8];
    to->r[4] = saved[9];
    to->r[6] = saved[10];
    to->r[3] = saved[11];
    to->r[1] = saved[12];
    to->r[0] = saved[13];
    to->r[2] = saved[14];
    to->r[7] = saved[15];
    to->pc = saved[16];
}

#endif /* KILN_HOST_BPF_ARCH_H */
