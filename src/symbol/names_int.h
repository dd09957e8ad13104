/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names_int - the readers behind names.h.  Each fills a table of symbols and leaves finishing it to
 * kiln_names_open().
 *
 * All return 0, -ENOMEM, KILN_E_LIMIT, or what is wrong with the file; what was added before an
 * error stays, and is true.
 * Threads: one owner at a time.
 */
#ifndef KILN_SYMBOL_NAMES_INT_H
#define KILN_SYMBOL_NAMES_INT_H

#include "symbol/names.h"
#include "symbol/symtab.h"

/* .symtab and .dynsym. */
KILN_CHECK int kiln_names_read_elf(struct kiln_symtab *table, const struct kiln_elf *elf);
/* The stubs of procedure linkage tables, by the slots that they jump through. */
KILN_CHECK int kiln_names_read_plt(struct kiln_symtab *table, const struct kiln_elf *elf);
/* .gnu_debugdata: an ELF file, packed by xz, whose .symtab has what the outer file lacks. */
KILN_CHECK int kiln_names_read_packed(struct kiln_symtab *table, const struct kiln_elf *elf);
/* /proc/kallsyms.  -EACCES: all its addresses are hidden. */
KILN_CHECK int kiln_names_read_kernel(struct kiln_symtab *table, const struct kiln_bytes *bytes);
KILN_CHECK int kiln_names_read_perf_map(struct kiln_symtab *table, const struct kiln_bytes *bytes);

/*
 * Reads lines, each without its end, until the end or an error of `each`.  Of a line that is longer
 * than can be of use only the beginning is shown.
 */
KILN_CHECK int kiln_names_each_line(const struct kiln_bytes *bytes,
                                    int (*each)(void *context, struct kiln_str line),
                                    void *context);

#endif /* KILN_SYMBOL_NAMES_INT_H */
