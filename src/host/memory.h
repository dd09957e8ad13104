/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory - table memory as whoever fills it sees it: words, and a directory.
 *
 * In the kernel's (host/kernel.h) the words are a mapped BPF array and the directory a BPF hash;
 * kiln_table_memory_plain() is ordinary memory with a directory that keeps nothing, for walking in
 * user space alone (tests, core files).  host/bpf/record.h says what is in it.
 *
 * Threads: one writer at a time.
 */
#ifndef KILN_HOST_MEMORY_H
#define KILN_HOST_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "host/bpf/record.h"

struct kiln_table_memory {
    uint64_t *words; /* read and stamped by the kernel meanwhile */
    uint32_t n_words;
    uint32_t n_entries; /* that the directory holds at most */
    /* Both return 0 or a negative errno. */
    int (*put)(struct kiln_table_memory *memory, const struct kiln_dir_key *key,
               const struct kiln_dir_entry *entry);
    int (*drop)(struct kiln_table_memory *memory, const struct kiln_dir_key *key);
};

KILN_CHECK int kiln_table_memory_plain(size_t bytes, struct kiln_table_memory **ret_memory);
void kiln_table_memory_plain_free(struct kiln_table_memory *memory);

#endif /* KILN_HOST_MEMORY_H */
