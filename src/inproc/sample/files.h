/* SPDX-License-Identifier: Apache-2.0 */
/*
 * files - whether reading or writing a descriptor may sleep, and what it would wait for: asked of
 * the kernel once, and believed for about a second, or until the descriptor is closed.
 *
 * What is read from a disk is not timed: almost all of it is in memory.
 *
 * Threads: from anywhere, without a lock.  kiln_in_files_age() is the keeper's.
 */
#ifndef KILN_INPROC_SAMPLE_FILES_H
#define KILN_INPROC_SAMPLE_FILES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    KILN_IN_FILES = 4096, /* descriptors above this are not timed */
    KILN_IN_FILE_BITS = 4 /* of an entry: enum kiln_in_reason; the rest is its age */
};

extern _Atomic uint8_t kiln_in_files[KILN_IN_FILES];
extern _Atomic uint8_t kiln_in_files_now; /* age << KILN_IN_FILE_BITS, never 0 */

int kiln_in_file_learn(int fd);

/* enum kiln_in_reason; -1: it does not sleep.  errno is kept. */
static inline int kiln_in_file_reason(int fd)
{
    uint8_t entry, now;

    if ((unsigned)fd >= KILN_IN_FILES)
        return -1;
    entry = atomic_load_explicit(&kiln_in_files[fd], memory_order_relaxed);
    now = atomic_load_explicit(&kiln_in_files_now, memory_order_relaxed);
    if ((entry ^ now) >> KILN_IN_FILE_BITS)
        return kiln_in_file_learn(fd);
    return (entry & ((1 << KILN_IN_FILE_BITS) - 1)) - 1;
}

/* Whether it is known not to sleep, which is asked without a call. */
static inline bool kiln_in_file_is_quick(int fd)
{
    return (unsigned)fd < KILN_IN_FILES &&
           atomic_load_explicit(&kiln_in_files[fd], memory_order_relaxed) ==
               atomic_load_explicit(&kiln_in_files_now, memory_order_relaxed);
}

/* It is about to be closed. */
static inline void kiln_in_file_forget(int fd)
{
    if ((unsigned)fd < KILN_IN_FILES)
        atomic_store_explicit(&kiln_in_files[fd], 0, memory_order_relaxed);
}

/* Another second. */
void kiln_in_files_age(void);

#endif /* KILN_INPROC_SAMPLE_FILES_H */
