/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sources that compilers embed (clang -gembed-source) are in the line tables.  The tables of units
 * that are at hand come first; then all tables of the file, by their headers alone, until one has
 * the source: that may take several questions.
 */
#include <errno.h>

#include "base/hash.h"
#include "symbol/dwarf_int.h"

static const struct kiln_section *section_of(struct dw_file *file, enum dw_section section)
{
    struct dw_view *view = dw_file_view(file, section);

    return view ? &view->section : NULL;
}

static int search(struct kiln_dwarf *dwarf, struct kiln_str file, struct kiln_buf *out)
{
    struct kiln_dwarf_line_ctx ctx = {
        .line = section_of(&dwarf->main, DW_LINE),
        .line_str = section_of(&dwarf->main, DW_LINE_STR),
        .str = section_of(&dwarf->main, DW_STR),
        .alternate_str = section_of(&dwarf->alternate, DW_STR),
    };
    uint64_t of = kiln_hash(file.ptr, file.len);
    int r;

    if (!ctx.line)
        return -ENOENT;
    if (dwarf->source_of != of)
        dwarf->source_at = 0;
    dwarf->source_of = of;
    r = kiln_dwarf_lines_search(&ctx, file, dwarf->deadline_ns, &dwarf->source_at, dwarf->budget,
                                out);
    if (r != -EAGAIN)
        dwarf->source_at = 0;
    return r;
}

int kiln_dwarf_source(struct kiln_dwarf *dwarf, struct kiln_str file, struct kiln_buf *out)
{
    for (uint32_t i = 0; i < DW_BUCKETS; i++) {
        for (struct dw_unit *unit = dwarf->units[i]; unit; unit = unit->next) {
            int r = unit->lines ? kiln_dwarf_lines_source(unit->lines, file, out) : -ENOENT;

            if (r != -ENOENT)
                return r;
        }
    }
    return search(dwarf, file, out);
}
