/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dwarf - debug information (DWARF 2 to 5): which function, file and line an address belongs to,
 * and which functions the compiler put one into another there.
 *
 * The file is read in pieces as questions need them and never mapped: units are found by address,
 * a unit's functions are indexed when one of its addresses is asked for first, and of a function
 * only the scopes around the address are read.  What was learned of the last units stays within
 * the budget.  Files are strangers': each loop is bounded, and long work stops at a deadline and
 * goes on with the next question.
 *
 * Threads: one owner at a time.
 */
#ifndef KILN_SYMBOL_DWARF_H
#define KILN_SYMBOL_DWARF_H

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include "symbol/elf.h"
#include "symbol/wanted.h"

struct kiln_dwarf;
struct kiln_scratch;

enum { KILN_DWARF_FRAMES = 64 };

/* A text is empty and a number 0 where the file does not say. */
struct kiln_dwarf_frame {
    struct kiln_str name;      /* as in the source, without its scopes */
    struct kiln_str linkage;   /* as the linker has it, mangled */
    struct kiln_str qualified; /* with its scopes, where there is no linkage name but scopes */
    struct kiln_str file;
    uint32_t line, column;
    uint32_t start_line; /* where the function is declared */
};

struct kiln_dwarf_opts {
    struct kiln_budget *budget; /* for what it keeps; NULL: 48 MiB of its own */
    /* For what is inflated and too large for memory, shared with others; borrowed; NULL: none. */
    struct kiln_scratch *scratch;
    uint64_t deadline_ns; /* monotonic clock; 0: none */
    uint32_t units;       /* at most; 0: 256 Ki */
    uint32_t dwos;        /* split files at once; 0: 1,024 */
};

/* `elf` is borrowed.  -ENOENT: no debug information; KILN_E_UNSUPPORTED: it is not linked. */
KILN_CHECK int kiln_dwarf_open(const struct kiln_elf *elf, const struct kiln_dwarf_opts *opts,
                               struct kiln_dwarf **ret_dwarf);
void kiln_dwarf_close(struct kiln_dwarf *dwarf);

/* A new deadline, for the questions to come. */
void kiln_dwarf_deadline(struct kiln_dwarf *dwarf, uint64_t deadline_ns);
/* Memory that it holds. */
size_t kiln_dwarf_bytes(const struct kiln_dwarf *dwarf);

/*
 * The next file that it lacks; texts until the next call.  Each is named once: what is not attached
 * then counts as not to be had.  Split units are known to be lacking once an address of theirs was
 * asked for.
 */
bool kiln_dwarf_wants(struct kiln_dwarf *dwarf, struct kiln_wanted *ret_wanted);
/*
 * Such a file, borrowed until kiln_dwarf_close().  KILN_E_NOMATCH: it is another, by its build id
 * or dwo id; KILN_E_LIMIT: too many split files.
 */
KILN_CHECK int kiln_dwarf_attach(struct kiln_dwarf *dwarf, enum kiln_wanted_kind kind,
                                 const struct kiln_elf *other);

/*
 * The functions at an address of the file's own, innermost first, at most KILN_DWARF_FRAMES: of
 * deeper ones the outermost and the innermost stay.  0 of them: nothing is known.  A frame may have
 * a line without a name: code in assembler, or a split unit that is not there.  Texts live until
 * the next call.  -EAGAIN: the deadline has passed; asked again, it goes on where it was.
 */
KILN_CHECK int kiln_dwarf_find(struct kiln_dwarf *dwarf, uint64_t address,
                               const struct kiln_dwarf_frame **ret_frames, uint32_t *ret_n);

/* The source of a file as the debug information has it embedded.  -ENOENT. */
KILN_CHECK int kiln_dwarf_source(struct kiln_dwarf *dwarf, struct kiln_str file,
                                 struct kiln_buf *out);

#endif /* KILN_SYMBOL_DWARF_H */
