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

/* The frames of an answer on their way, with their texts cleaned. */
enum { KILN_FRAMES_TEXT = 56 << 10 }; /* with its heads, less than KILN_WIRE_PACKET */

struct kiln_frames {
    uint32_t n;
    uint32_t n_text;
    uint32_t last; /* where the texts of the last frame begin */
    struct kiln_name_frame frames[KILN_NAME_FRAMES_MAX];
    char text[KILN_FRAMES_TEXT];
};

void kiln_frames_clear(struct kiln_frames *frames);
/*
 * Adds the next frame further out; an empty function adds nothing, a system name that is the same
 * is left out.  Texts are copied.  `suffix` is added to both names.  What is too much takes the
 * place of the frame before: the innermost stay, and the outermost.
 */
void kiln_frames_add(struct kiln_frames *frames, const struct kiln_name_frame *frame,
                     struct kiln_str suffix);

/*
 * Reads what a name by V8 says (symbol/v8_name.h) into a frame that has a function alone.  The
 * function may come to lie in `buffer`, of KILN_SYMTAB_NAME_MAX bytes.
 */
void kiln_frame_read_v8(struct kiln_name_frame *frame, char *buffer);

/* Adds the functions that an address of a Go program is in.  False: none. */
struct kiln_gopcln;
bool kiln_names_find_go(struct kiln_gopcln *go, uint64_t address, struct kiln_frames *frames);

enum { KILN_NAMES_READ_MAX = 256 << 20, KILN_MAP_TAIL = 64 };

/* How far a file that grows was read, and what was there. */
struct kiln_map_end {
    uint64_t offset; /* behind the last complete line, or record */
    uint8_t tail[KILN_MAP_TAIL];
    uint32_t n_tail;
};
/* Remembers what is before `offset`. */
void kiln_map_end_mark(struct kiln_map_end *end, const struct kiln_bytes *bytes);
/* True: the file goes on where it ended before. */
bool kiln_map_end_goes_on(const struct kiln_map_end *end, const struct kiln_bytes *bytes);

/* Leaves of each piece what no later one hides: the higher its name, the later it was told. */
KILN_CHECK int kiln_names_flatten(struct kiln_symtab *table);

KILN_CHECK int kiln_names_read_map(struct kiln_symtab *table, const struct kiln_bytes *bytes,
                                   struct kiln_map_end *end);
/* The same file, with more at its end.  KILN_E_UNSUPPORTED: it is another; nothing has changed. */
KILN_CHECK int kiln_names_grow_map(struct kiln_symtab *table, const struct kiln_bytes *bytes,
                                   struct kiln_map_end *end);

/*
 * A jitdump: names of code that is made at run time, with lines.  The table has its pieces, with
 * the places of their records for names: it is asked by kiln_jitdump_find() alone.  `bytes` are
 * copied, the file behind them is borrowed.
 */
struct kiln_jitdump;
KILN_CHECK int kiln_jitdump_open(struct kiln_symtab *table, const struct kiln_bytes *bytes,
                                 struct kiln_jitdump **ret_dump);
void kiln_jitdump_close(struct kiln_jitdump *dump);
/* As kiln_names_grow_map(). */
KILN_CHECK int kiln_jitdump_grow(struct kiln_jitdump *dump, const struct kiln_bytes *bytes);
bool kiln_jitdump_find(struct kiln_jitdump *dump, uint64_t address, struct kiln_frames *frames);

struct kiln_names_line {
    struct kiln_str text; /* without its end */
    uint64_t offset;
    bool complete; /* it has an end */
};

/*
 * Shows the lines from an offset on, until the end of the file or an error of `each`.  Of a line
 * that is longer than can be of use only the beginning is shown.
 */
KILN_CHECK int kiln_names_each_line(const struct kiln_bytes *bytes, uint64_t from,
                                    int (*each)(void *context, const struct kiln_names_line *line),
                                    void *context);

#endif /* KILN_SYMBOL_NAMES_INT_H */
