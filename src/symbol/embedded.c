/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each table of lines lists its files, with their texts where there are any (DW_LNCT_LLVM_source):
 * they are looked through one after the other, headers alone, since nothing says which unit a file
 * belongs to.
 */
#include "symbol/embedded.h"

#include <errno.h>

#include "symbol/dwarf_line.h"

enum { LINE, LINE_STR, STR, STR_OFFSETS, SECTIONS };

static const char *const names[SECTIONS] = {".debug_line", ".debug_line_str", ".debug_str",
                                            ".debug_str_offsets"};

static int search(const struct kiln_section *sections, struct kiln_str file,
                  const struct kiln_embedded_opts *opts, struct kiln_buf *out)
{
    const struct kiln_dwarf_line_ctx ctx = {
        .line = &sections[LINE],
        .line_str = &sections[LINE_STR],
        .str = &sections[STR],
        .str_offsets = &sections[STR_OFFSETS],
        .only_files = true,
    };
    uint64_t at = 0;

    return kiln_dwarf_lines_search(&ctx, file, opts->deadline_ns, &at, opts->room.budget, out);
}

int kiln_embedded_read(const struct kiln_elf *elf, struct kiln_str file,
                       const struct kiln_embedded_opts *opts, struct kiln_buf *out)
{
    struct kiln_section sections[SECTIONS] = {0};
    size_t before = out->len;
    int r = 0;

    for (int i = 0; r == 0 && i < SECTIONS; i++) {
        r = kiln_section_open(elf, names[i], &opts->room, &sections[i]);
        if (r == -ENOENT && i != LINE)
            r = 0;
    }
    if (r == 0)
        r = search(sections, file, opts, out);
    for (int i = 0; i < SECTIONS; i++)
        kiln_section_done(&sections[i]);
    if (r < 0)
        out->len = before;
    return r;
}
