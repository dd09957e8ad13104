/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dwarf_line_int - what the files of the reader of line tables share.
 *
 *   dwarf_line.c       a table from its bytes to rows that can be searched
 *   dwarf_line_head.c  its header, with the tables of directories and files
 *   dwarf_line_run.c   its program
 *   dwarf_line_text.c  names and sources of files
 */
#ifndef KILN_SYMBOL_DWARF_LINE_INT_H
#define KILN_SYMBOL_DWARF_LINE_INT_H

#include "symbol/cursor.h"
#include "symbol/dwarf_line.h"

enum {
    LINE_FILES_MAX = 65534,
    LINE_ROWS_MAX = 1 << 26,
    LINE_END = 0xffff,     /* as a row's file: here a sequence ends */
    LINE_NO_FILE = 0xfffe, /* its number is beyond the limit */
};

/* From here on, up to the next row, code is of this line. */
struct line_row {
    uint64_t address;
    uint32_t line;
    uint16_t file, column;
};

enum line_place {
    LINE_TEXT_NONE,
    LINE_TEXT_INLINE, /* in the header */
    LINE_TEXT_LINE_STR,
    LINE_TEXT_STR,
    LINE_TEXT_ALTERNATE,
    LINE_TEXT_INDEX, /* by .debug_str_offsets */
};

/* Where a text is. */
struct line_text {
    uint64_t at : 56, place : 8;
};

struct line_file {
    struct line_text name, source;
    uint32_t directory;
};

struct line_head {
    uint8_t version, offset_size, address_size;
    uint8_t min_instruction, max_operations, line_range, opcode_base;
    int8_t line_base;
    const uint8_t *lengths; /* of standard opcodes, from 1 on */
    const uint8_t *program;
};

struct kiln_dwarf_lines {
    struct kiln_dwarf_line_ctx ctx; /* comp_dir is our own */
    struct kiln_budget *budget;
    uint8_t *data; /* the header, where names are in it */
    size_t n_data;
    struct line_head head;
    struct line_text *directories;
    struct line_file *files;
    struct line_row *rows;
    uint32_t n_directories, cap_directories, n_files, cap_files, n_rows, cap_rows;
    bool has_inline;  /* a name is in the header */
    bool has_sources; /* perhaps */
};

/* How large a table is, with its length; and that alone. */
struct line_extent {
    uint64_t size, front;
};
KILN_CHECK int line_extent(const struct kiln_section *section, uint64_t at,
                           struct line_extent *ret_extent);

/* Reads lines->data.  On success head.program is where the program begins. */
KILN_CHECK int line_head_read(struct kiln_dwarf_lines *lines);
/* A file as the tables of DWARF 2 to 4 have it. */
KILN_CHECK int line_file_read(struct kiln_dwarf_lines *lines, struct kiln_cursor *c);
/* Runs the program, which ends where the data does: rows as it gives them. */
KILN_CHECK int line_run(struct kiln_dwarf_lines *lines);

#endif /* KILN_SYMBOL_DWARF_LINE_INT_H */
