/* SPDX-License-Identifier: Apache-2.0 */
/*
 * embedded - source text that a compiler put into the debug information of an ELF file (clang's
 * -gembed-source), by the name that its line tables give to the file.
 *
 * Threads: one owner at a time.
 */
#ifndef KILN_SYMBOL_EMBEDDED_H
#define KILN_SYMBOL_EMBEDDED_H

#include "base/buf.h"
#include "symbol/section.h"

struct kiln_embedded_opts {
    struct kiln_section_room room; /* budget, scratch, deadline */
    uint64_t deadline_ns;          /* monotonic; 0: none */
};

/*
 * Adds the text to `out`.  -ENOENT: the file has no such; -EAGAIN: the deadline has passed;
 * KILN_E_LIMIT: it is larger than `out` may be.
 */
KILN_CHECK int kiln_embedded_read(const struct kiln_elf *elf, struct kiln_str file,
                                  const struct kiln_embedded_opts *opts, struct kiln_buf *out);

#endif /* KILN_SYMBOL_EMBEDDED_H */
