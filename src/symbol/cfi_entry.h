/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cfi_entry - what one entry of .eh_frame that lies in memory says of one address, for a walk
 * inside of a process: nothing here takes memory, reads files or locks, and little is on the stack.
 *
 * Threads: from anywhere, handlers of signals included.
 */
#ifndef KILN_SYMBOL_CFI_ENTRY_H
#define KILN_SYMBOL_CFI_ENTRY_H

#include "symbol/cfi.h"

/* What begins an entry; positions are in the section, or addresses: as `at` was. */
struct kiln_cfi_head {
    uint64_t at, end; /* end 0: a terminator */
    uint64_t id_at;   /* where the id is */
    uint64_t body;
    uint64_t cie; /* of an FDE: where its CIE is */
    bool is_cie;
};

enum { KILN_CFI_HEAD_MAX = 24 };

/*
 * Of `n` bytes, KILN_CFI_HEAD_MAX where there are as many; `where` has `at`, and as `end` that of
 * the section, which no entry may pass.
 */
KILN_CHECK int kiln_cfi_head_take(const uint8_t *seen, size_t n, bool is_debug,
                                  const struct kiln_cfi_head *where,
                                  struct kiln_cfi_head *ret_head);

/* The bodies of an FDE and of its CIE, and their addresses. */
struct kiln_cfi_entry {
    const uint8_t *fde, *cie;
    size_t n_fde, n_cie;
    uint64_t fde_at, cie_at;
};

/* What programs remember: too much for small stacks, so it is the caller's. */
struct kiln_cfi_room {
    uint64_t words[32 * 9];
};

/*
 * The row of an address, and where its function begins.  -ENOENT: the entry is of other code.
 */
KILN_CHECK int kiln_cfi_entry_row(const struct kiln_cfi_entry *entry, uint64_t address,
                                  struct kiln_cfi_room *room, uint64_t *ret_begin,
                                  struct kiln_cfi_row *ret_row);

#endif /* KILN_SYMBOL_CFI_ENTRY_H */
