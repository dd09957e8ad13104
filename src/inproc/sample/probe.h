/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probe - places where others may look in (USDT): a `nop`, and a note in the file that says where
 * it is, whose it is, and where its arguments are.
 *
 *   KILN_IN_PROBE_SEMAPHORE(shop, sold);          once, at file level
 *   if (KILN_IN_PROBE_ENABLED(shop, sold))        somebody looks: the kernel counts them there
 *       KILN_IN_PROBE1(shop, sold, price);
 *
 * The note is of type 3 and of the owner "stapsdt":
 *
 *   8 bytes  address of the nop
 *   8 bytes  address of the section .stapsdt.base as linked, so that readers find by how much the
 *            file was moved after that (prelink); that section is one byte
 *   8 bytes  address of the semaphore
 *   texts    provider, name, arguments; each with a zero behind it
 *
 * An argument is its size, negative where signed, '@', and an operand as assemblers write it.  All
 * ours are words of eight bytes in registers.
 *
 * Threads: from anywhere.
 */
#ifndef KILN_INPROC_SAMPLE_PROBE_H
#define KILN_INPROC_SAMPLE_PROBE_H

#include <stdint.h>

/* Readers, the kernel among them, find it by its address: it need not have a name that is seen. */
#define KILN_IN_PROBE_SEMAPHORE(provider, name)                                                    \
    __attribute__((section(".probes"), used, visibility("hidden")))                                \
    uint16_t provider##_##name##_semaphore

#define KILN_IN_PROBE_ENABLED(provider, name)                                                      \
    __builtin_expect(*(volatile uint16_t *)&provider##_##name##_semaphore != 0, 0)

#define KILN_IN_PROBE_NOTE(provider, name, arguments)                                              \
    "990: nop\n"                                                                                   \
    ".pushsection .note.stapsdt,\"\",\"note\"\n"                                                   \
    ".balign 4\n"                                                                                  \
    ".4byte 992f-991f, 994f-993f, 3\n"                                                             \
    "991: .asciz \"stapsdt\"\n"                                                                    \
    "992: .balign 4\n"                                                                             \
    "993: .8byte 990b, _.stapsdt.base, " #provider "_" #name "_semaphore\n"                        \
    ".asciz \"" #provider "\"\n"                                                                   \
    ".asciz \"" #name "\"\n"                                                                       \
    ".asciz \"" arguments "\"\n"                                                                   \
    "994: .balign 4\n"                                                                             \
    ".popsection\n"                                                                                \
    ".ifndef _.stapsdt.base\n"                                                                     \
    ".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n"                        \
    ".weak _.stapsdt.base\n"                                                                       \
    ".hidden _.stapsdt.base\n"                                                                     \
    "_.stapsdt.base: .space 1\n"                                                                   \
    ".size _.stapsdt.base, 1\n"                                                                    \
    ".popsection\n"                                                                                \
    ".endif\n"

#define KILN_IN_PROBE1(provider, name, a)                                                          \
    __asm__ volatile(KILN_IN_PROBE_NOTE(provider, name, "8@%0")::"r"((uint64_t)(uintptr_t)(a)))

#define KILN_IN_PROBE3(provider, name, a, b, c)                                                    \
    __asm__ volatile(                                                                              \
        KILN_IN_PROBE_NOTE(provider, name, "8@%0 8@%1 8@%2")::"r"((uint64_t)(uintptr_t)(a)),       \
        "r"((uint64_t)(b)), "r"((uint64_t)(c)))

#endif /* KILN_INPROC_SAMPLE_PROBE_H */
