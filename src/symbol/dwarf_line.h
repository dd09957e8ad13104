/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dwarf_line - which file and line an address was compiled from: line programs of DWARF 2 to 5.
 *
 * A table is read once, into rows sorted by address; file names and embedded sources are read when
 * asked for.  Where sequences of rows overlap, and how names are put together, is as eu-addr2line
 * has it.
 *
 * Threads: one owner at a time.
 */
#ifndef KILN_SYMBOL_DWARF_LINE_H
#define KILN_SYMBOL_DWARF_LINE_H

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include "symbol/section.h"

/* Where a table is and what its forms point into.  Sections may be NULL, but for `line`; they are
 * borrowed as long as the lines live. */
struct kiln_dwarf_line_ctx {
    const struct kiln_section *line, *line_str, *str, *alternate_str, *str_offsets;
    uint64_t str_offsets_base;
    struct kiln_str comp_dir; /* of the unit: where it was compiled; copied */
    uint64_t lowest;          /* no code is below: what begins there was discarded by the linker */
    bool only_files;          /* no rows are wanted: the header alone is read */
};

struct kiln_dwarf_lines;

/*
 * The table at an offset of `line`.  KILN_E_LIMIT: more than 64 MiB, 65,534 files or directories,
 * or the budget; -EAGAIN: see symbol/section.h.
 */
KILN_CHECK int kiln_dwarf_lines_load(const struct kiln_dwarf_line_ctx *ctx, uint64_t stmt_list,
                                     struct kiln_budget *budget,
                                     struct kiln_dwarf_lines **ret_lines);
void kiln_dwarf_lines_free(struct kiln_dwarf_lines *lines);
/* Memory that it holds; all of it is charged to the budget. */
size_t kiln_dwarf_lines_bytes(const struct kiln_dwarf_lines *lines);

/* False: no row covers the address.  A line of 0 is the compiler's: code of no line. */
bool kiln_dwarf_lines_find(const struct kiln_dwarf_lines *lines, uint64_t address,
                           uint32_t *ret_file, uint32_t *ret_line, uint32_t *ret_column);

/*
 * Adds the name of a file, by its number in rows or in DW_AT_call_file, behind its directory, and
 * that behind comp_dir, as far as they are relative (DWARF 5 has comp_dir among the directories).
 * -ENOENT: there is no such file.  On failure `out` is as it was.
 */
KILN_CHECK int kiln_dwarf_lines_file(const struct kiln_dwarf_lines *lines, uint32_t file,
                                     struct kiln_buf *out);
/* Adds the embedded source of the file of that name.  -ENOENT: it is not there. */
KILN_CHECK int kiln_dwarf_lines_source(const struct kiln_dwarf_lines *lines, struct kiln_str file,
                                       struct kiln_buf *out);

/*
 * The same of all tables, from *at on, which is 0 at first; where units were compiled is what their
 * tables say.  -EAGAIN: the deadline (monotonic; 0: none) has passed: asked again with the same
 * *at it goes on.
 */
KILN_CHECK int kiln_dwarf_lines_search(const struct kiln_dwarf_line_ctx *ctx, struct kiln_str file,
                                       uint64_t deadline_ns, uint64_t *at,
                                       struct kiln_budget *budget, struct kiln_buf *out);

#endif /* KILN_SYMBOL_DWARF_LINE_H */
