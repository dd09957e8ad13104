/* SPDX-License-Identifier: Apache-2.0 */
/*
 * numbers - what is in a folder, and in those of the kernel whose entries are numbers: threads,
 * descriptors.  The C library's functions for folders allocate, and what helpers allocate there is
 * the program's.
 *
 * Threads: from any.
 */
#ifndef KILN_INPROC_THREAD_NUMBERS_H
#define KILN_INPROC_THREAD_NUMBERS_H

#include <stdbool.h>
#include <stdint.h>

/* False: that is enough.  `folder` is open. */
typedef bool kiln_in_entry_fn(int folder, const char *name, void *arg);
typedef bool kiln_in_number_fn(int folder, int32_t number, void *arg);

/* 0, or a negative errno: the folder cannot be read. */
int kiln_in_entries_each(const char *path, kiln_in_entry_fn *look, void *arg);
int kiln_in_numbers_each(const char *path, kiln_in_number_fn *look, void *arg);

#endif /* KILN_INPROC_THREAD_NUMBERS_H */
