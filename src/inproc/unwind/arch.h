/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arch - all that a walk knows of the processor: registers by DWARF's numbers, how they are taken
 * here and from a signal's frame.
 *
 * x86-64 walks by tables.  aarch64 walks by frame pointers, which all of its code keeps: a frame
 * record is the same there, the caller's frame pointer and beside it the return address.
 *
 * Threads: plain data.
 */
#ifndef KILN_INPROC_UNWIND_ARCH_H
#define KILN_INPROC_UNWIND_ARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <ucontext.h>

#if defined(__x86_64__)

enum {
    KILN_IN_BX = 3,
    KILN_IN_FP = 6,
    KILN_IN_SP = 7,
    KILN_IN_REGISTERS = 16,
    KILN_IN_HAS_TABLES = 1,
    /* of a signal's frame, from the stack pointer that the handler leaves: where registers are */
    KILN_IN_SIGNAL_AT = offsetof(ucontext_t, uc_mcontext.gregs),
    KILN_IN_SIGNAL_WORDS = 17,
};

struct kiln_in_registers {
    uint64_t r[KILN_IN_REGISTERS];
    uint64_t pc;
};

/* Words of a signal's frame: r8-r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip. */
static inline void kiln_in_arch_saved(const uint64_t saved[KILN_IN_SIGNAL_WORDS],
                                      struct kiln_in_registers *to)
{
    static const uint8_t number[] = {8, 9, 10, 11, 12, 13, 14, 15, 5, 4, 6, 3, 1, 0, 2, 7};

    for (unsigned i = 0; i < sizeof(number); i++)
        to->r[number[i]] = saved[i];
    to->pc = saved[16];
}

static inline const uint64_t *kiln_in_arch_context(const ucontext_t *context)
{
    return (const uint64_t *)context->uc_mcontext.gregs;
}

/*
 * Registers of the calling function.  What a walk does not ask of a leaf that is no signal's is
 * left as it is.  True: pc is in the caller; false: it is the caller's return address.
 */
static inline __attribute__((always_inline)) bool kiln_in_arch_here(struct kiln_in_registers *to)
{
    __asm__ volatile("lea 0f(%%rip), %%rax\n"
                     "0: mov %%rax, %0\n"
                     "mov %%rsp, %1\n"
                     "mov %%rbp, %2\n"
                     "mov %%rbx, %3\n"
                     : "=m"(to->pc), "=m"(to->r[KILN_IN_SP]), "=m"(to->r[KILN_IN_FP]),
                       "=m"(to->r[KILN_IN_BX])
                     :
                     : "rax");
    return true;
}

static inline uint64_t kiln_in_arch_thread_pointer(void)
{
    uint64_t at;

    __asm__("mov %%fs:0, %0" : "=r"(at));
    return at;
}

static inline uint64_t kiln_in_arch_return(uint64_t pc)
{
    return pc;
}

/* Whether the bytes before a return address end in a call: of a distance, a register or memory. */
static inline bool kiln_in_arch_is_call(const uint8_t before[8])
{
    static const uint8_t lengths[] = {2, 3, 4, 6, 7};

    if (before[3] == 0xe8)
        return true;
    for (unsigned i = 0; i < sizeof(lengths); i++) {
        if (before[8 - lengths[i]] == 0xff && (before[9 - lengths[i]] >> 3 & 7) == 2)
            return true;
    }
    return false;
}

/* Code that a handler returns to: mov $15, %rax; syscall. */
static const uint8_t kiln_in_arch_trampoline[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};

#elif defined(__aarch64__)

enum {
    KILN_IN_BX = 19,
    KILN_IN_FP = 29,
    KILN_IN_SP = 31,
    KILN_IN_REGISTERS = 32,
    KILN_IN_HAS_TABLES = 0,
    KILN_IN_SIGNAL_AT = 128 + offsetof(ucontext_t, uc_mcontext.regs), /* behind siginfo_t */
    KILN_IN_SIGNAL_WORDS = 33,
};

struct kiln_in_registers {
    uint64_t r[KILN_IN_REGISTERS];
    uint64_t pc;
};

static inline void kiln_in_arch_saved(const uint64_t saved[KILN_IN_SIGNAL_WORDS],
                                      struct kiln_in_registers *to)
{
    for (unsigned i = 0; i < KILN_IN_REGISTERS; i++)
        to->r[i] = saved[i];
    to->pc = saved[KILN_IN_REGISTERS];
}

static inline const uint64_t *kiln_in_arch_context(const ucontext_t *context)
{
    return (const uint64_t *)context->uc_mcontext.regs;
}

static inline uint64_t kiln_in_arch_return(uint64_t pc)
{
    return pc & 0xffffffffffff; /* without the signature that some processors put above */
}

static inline __attribute__((always_inline)) bool kiln_in_arch_here(struct kiln_in_registers *to)
{
    const uint64_t *frame = __builtin_frame_address(0);

    to->pc = kiln_in_arch_return(frame[1]);
    to->r[KILN_IN_SP] = (uint64_t)(uintptr_t)(frame + 2);
    to->r[KILN_IN_FP] = frame[0];
    return false;
}

/* Of glibc the pointer is where the thread's own block ends, which lies above its stack. */
static inline uint64_t kiln_in_arch_thread_pointer(void)
{
    uint64_t at;

    __asm__("mrs %0, tpidr_el0" : "=r"(at));
    return at;
}

/* bl, blr */
static inline bool kiln_in_arch_is_call(const uint8_t before[8])
{
    uint32_t code = before[4] | (uint32_t)before[5] << 8 | (uint32_t)before[6] << 16 |
                    (uint32_t)before[7] << 24;

    return (code & 0xfc000000) == 0x94000000 || (code & 0xfffffc1f) == 0xd63f0000;
}

/* mov x8, #139; svc #0 */
static const uint8_t kiln_in_arch_trampoline[] = {0x68, 0x11, 0x80, 0xd2, 0x01, 0, 0, 0xd4};

#endif

#endif /* KILN_INPROC_UNWIND_ARCH_H */
