/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gopcln - Go's table of functions (pclntab): names, files, lines, and how large the frame is at
 * each address.  It is in every Go program (1.16 and newer), stripped or not.
 *
 * The table is searched through a window (symbol/window.h); nothing of it is loaded.
 *
 * Threads: one owner at a time.
 */
#ifndef KILN_SYMBOL_GOPCLN_H
#define KILN_SYMBOL_GOPCLN_H

#include "base/str.h"
#include "symbol/elf.h"

struct kiln_gopcln;

/* Flags of a function, since Go 1.17. */
enum {
    KILN_GO_TOP_FRAME = 1, /* nobody called it: goexit, mstart, rt0_go; but also sigtramp */
    KILN_GO_SP_WRITE = 2,  /* switches stacks */
    KILN_GO_ASSEMBLY = 4,
};

struct kiln_go_func {
    uint64_t entry, end;         /* addresses of the file's own */
    uint32_t name;               /* for kiln_gopcln_name() */
    uint32_t pcsp, pcfile, pcln; /* tables of values: kiln_go_values_init() */
    uint32_t cu;                 /* unit of compilation: where its files are counted from */
    uint32_t start_line;         /* 0: not known (before Go 1.20) */
    uint8_t flags;               /* KILN_GO_* */
    uint8_t n_funcdata;
    uint32_t n_pcdata;
    uint64_t tables; /* where its lists of pcdata and funcdata are */
};

/* `elf` is borrowed.  -ENOENT: no such table; KILN_E_UNSUPPORTED: older than Go 1.16. */
KILN_CHECK int kiln_gopcln_open(const struct kiln_elf *elf, struct kiln_gopcln **ret_pcln);
void kiln_gopcln_close(struct kiln_gopcln *pcln);
/* Gives memory back that the next question takes again. */
void kiln_gopcln_rest(struct kiln_gopcln *pcln);

/* Since Go 1.17, or later for sure. */
bool kiln_gopcln_has_flags(const struct kiln_gopcln *pcln);

/* Functions, sorted by entry. */
uint32_t kiln_gopcln_count(const struct kiln_gopcln *pcln);
KILN_CHECK int kiln_gopcln_func(struct kiln_gopcln *pcln, uint32_t index,
                                struct kiln_go_func *ret_func);
/* The function that an address is in.  -ENOENT: none. */
KILN_CHECK int kiln_gopcln_find(struct kiln_gopcln *pcln, uint64_t address, uint32_t *ret_index);

/* Texts live until the next call; empty: it cannot be read. */
struct kiln_str kiln_gopcln_name(struct kiln_gopcln *pcln, uint32_t name);
/* `file`: what the table `pcfile` has at an address. */
struct kiln_str kiln_gopcln_file(struct kiln_gopcln *pcln, const struct kiln_go_func *func,
                                 int32_t file);

/* The values of a table from a function's entry on: each holds for [start, end). */
struct kiln_go_values {
    struct kiln_gopcln *pcln;
    uint64_t at; /* in the file */
    uint64_t start, end;
    int32_t value;
    bool is_first;
};
void kiln_go_values_init(struct kiln_go_values *values, struct kiln_gopcln *pcln,
                         const struct kiln_go_func *func, uint32_t table);
bool kiln_go_values_next(struct kiln_go_values *values);
/* The value at one address; -1: none. */
int32_t kiln_gopcln_value(struct kiln_gopcln *pcln, const struct kiln_go_func *func, uint32_t table,
                          uint64_t address);

/* One of the functions that an address is in. */
struct kiln_go_frame {
    uint32_t name; /* for kiln_gopcln_name() */
    int32_t file;  /* for kiln_gopcln_file(); -1: none */
    uint32_t line; /* 0: not known */
    uint32_t start_line;
};

/*
 * The functions that an address of `func` is in, innermost first: those that the compiler put into
 * it, and at the end itself.  Returns how many, from 1 to `max`; where there are more, those before
 * the last are left out.  Before Go 1.18, or where the tables cannot be found: only itself.
 */
uint32_t kiln_gopcln_frames(struct kiln_gopcln *pcln, const struct kiln_go_func *func,
                            uint64_t address, struct kiln_go_frame *frames, uint32_t max);

#endif /* KILN_SYMBOL_GOPCLN_H */
