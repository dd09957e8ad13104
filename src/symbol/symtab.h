/* SPDX-License-Identifier: Apache-2.0 */
/*
 * symtab - a compact table of where functions are: 16 bytes for each, sorted by address.
 *
 * Texts are not copied: a symbol knows where its name begins in one of a few texts (a file's string
 * table, a block of memory), and the name is read when somebody asks for it.  Symbols at one
 * address (aliases) all stay; which of them names it is decided on finding, when there are names to
 * compare.
 *
 * Filled, then finished, then asked.  Everything is charged to a budget.
 * Threads: one owner at a time.
 */
#ifndef KILN_SYMBOL_SYMTAB_H
#define KILN_SYMBOL_SYMTAB_H

#include "base/buf.h"
#include "base/mem.h"
#include "symbol/elf.h"

enum {
    KILN_SYMTAB_NAME_MAX = 4096,
    KILN_SYMTAB_TEXTS = 4,
    KILN_SYMTAB_SIZE_MAX = (1 << 29) - 1,
    KILN_SYMTAB_REACH_MAX = 1 << 20, /* of a symbol without a size */
    KILN_SYMTAB_STRETCHES = 2048,    /* of wanted addresses: where each begins is noted */
};

enum kiln_symtab_kind {
    KILN_SYMTAB_FUNCTION,
    KILN_SYMTAB_LABEL, /* of assembly: names what no function covers */
    KILN_SYMTAB_PLT,   /* the stub that calls the function of this name */
    KILN_SYMTAB_BOUND, /* only says that whatever is before ends here */
};

struct kiln_symtab_entry {
    uint64_t address;
    uint32_t name; /* counted through all texts */
    uint32_t info; /* size << 3 | local << 2 | kind; a size of 0 is not known */
};

/* Names, somewhere. */
struct kiln_symtab_text {
    struct kiln_bytes bytes;
    uint64_t offset;
    uint32_t first, size; /* the names' numbers: [first, first + size) */
    char end;             /* of a name: NUL, or a line's end */
    void *own;            /* memory to be freed with it; NULL: none */
};

struct kiln_symtab_range {
    uint64_t begin, end;
};

struct kiln_symtab {
    struct kiln_budget budget;
    uint32_t max; /* symbols */
    struct kiln_symtab_entry *symbols;
    uint32_t n, cap;
    uint64_t *ends; /* where the last of each sixteen symbols ends */
    uint32_t n_ends, cap_ends;
    struct kiln_symtab_range *code; /* where code is: a symbol without a size ends there */
    uint32_t n_code, cap_code;
    uint64_t reach;         /* how far one without a size reaches at most; 0: that is not known */
    const uint64_t *wanted; /* NULL: all are */
    uint32_t n_wanted, stretch_bits;
    bool near;    /* those are kept that begin near a wanted address; else that cover one */
    bool unsized; /* one without a size was left out that may reach a wanted address */
    struct kiln_symtab_text texts[KILN_SYMTAB_TEXTS];
    uint32_t n_texts;
    /* What follows is written before it is read, and not cleared. */
    uint32_t stretches[KILN_SYMTAB_STRETCHES + 1];
    char name[KILN_SYMTAB_NAME_MAX + 1]; /* the best alias so far, and the one it is compared to */
    char other[KILN_SYMTAB_NAME_MAX + 1];
};

static inline uint32_t kiln_symtab_info(uint64_t size, bool local, enum kiln_symtab_kind kind)
{
    if (size > KILN_SYMTAB_SIZE_MAX)
        size = KILN_SYMTAB_SIZE_MAX;
    return (uint32_t)size << 3 | (uint32_t)local << 2 | (uint32_t)kind;
}

static inline uint32_t kiln_symtab_size(const struct kiln_symtab_entry *symbol)
{
    return symbol->info >> 3;
}

static inline enum kiln_symtab_kind kiln_symtab_kind(const struct kiln_symtab_entry *symbol)
{
    return (enum kiln_symtab_kind)(symbol->info & 3);
}

/* Where it ends, as far as its size is known. */
static inline uint64_t kiln_symtab_end(const struct kiln_symtab_entry *symbol)
{
    uint64_t end;

    return __builtin_add_overflow(symbol->address, kiln_symtab_size(symbol), &end) ? UINT64_MAX
                                                                                   : end;
}

void kiln_symtab_init(struct kiln_symtab *table, size_t memory_bytes, uint32_t max);
void kiln_symtab_done(struct kiln_symtab *table);

/*
 * From now on only those are kept that one of these addresses, which are sorted and borrowed, is
 * covered by; or, with `near`, those that kiln_symtab_find() looks at where nothing covers it.
 */
void kiln_symtab_want(struct kiln_symtab *table, const uint64_t *addresses, uint32_t n, bool near);

/* Where addresses are wanted, for a loop over many symbols that has it in registers. */
struct kiln_symtab_wish {
    uint64_t low, span; /* a span of 0: anywhere */
    const uint32_t *stretches;
    uint32_t bits;
};

static inline struct kiln_symtab_wish kiln_symtab_wish(const struct kiln_symtab *table)
{
    if (!table->n_wanted || table->near)
        return (struct kiln_symtab_wish){0};
    return (struct kiln_symtab_wish){
        .low = table->wanted[0],
        .span = (uint64_t)KILN_SYMTAB_STRETCHES << table->stretch_bits,
        .stretches = table->stretches,
        .bits = table->stretch_bits,
    };
}

/* Whether nothing that is wanted is even near, which is quickly said of most symbols; not of those
 * without a size.  What begins before all that is wanted is far behind it, by wrapping; and where
 * its end has wrapped as well it reaches into it. */
static inline bool kiln_symtab_is_far(struct kiln_symtab_wish wish, uint64_t address, uint64_t size)
{
    uint64_t begin = address - wish.low, end = begin + size;

    if (size == 0 || wish.span == 0)
        return false;
    if (begin >= wish.span)
        return end >= begin;
    if (end >= wish.span || end < begin)
        end = wish.span - 1;
    return wish.stretches[begin >> wish.bits] == wish.stretches[(end >> wish.bits) + 1];
}

/* Whether it is to be kept. */
bool kiln_symtab_wants(struct kiln_symtab *table, const struct kiln_symtab_entry *symbol);

/* 0, -ENOMEM or KILN_E_LIMIT. */
KILN_CHECK int kiln_symtab_add(struct kiln_symtab *table, struct kiln_symtab_entry symbol);
KILN_CHECK int kiln_symtab_add_code(struct kiln_symtab *table, uint64_t begin, uint64_t end);
/* The number of the text's first name. */
KILN_CHECK int kiln_symtab_add_text(struct kiln_symtab *table, const struct kiln_bytes *bytes,
                                    uint64_t offset, uint64_t size, uint32_t *ret_first);
/* Copies a text that will go away.  Where that fails, its symbols have no names. */
KILN_CHECK int kiln_symtab_own_text(struct kiln_symtab *table, uint32_t i);
/* A text in a buffer, which is moved out of it. */
KILN_CHECK int kiln_symtab_take_text(struct kiln_symtab *table, struct kiln_buf *buf);

/* By address, in place. */
void kiln_symtab_sort(struct kiln_symtab_entry *symbols, uint32_t n);
/* Sorts, and makes ready to be asked.  Once more after something was added. */
KILN_CHECK int kiln_symtab_finish(struct kiln_symtab *table);

/* What an address is called by: its symbol and the name, which lives until the next call.  False:
 * nothing. */
bool kiln_symtab_find(struct kiln_symtab *table, uint64_t address,
                      const struct kiln_symtab_entry **ret_symbol, struct kiln_str *ret_name);

#endif /* KILN_SYMBOL_SYMTAB_H */
