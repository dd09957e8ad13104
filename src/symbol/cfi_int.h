/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cfi_int - what the files of cfi share.
 *
 *   cfi.c        rows of a range, layer by layer: each fills the gaps that the one before leaves
 *   cfi_entry.c  one entry of frames, in memory
 *   cfi_frame.c  a section of frames: its entries
 *   cfi_index.c  which entry is for an address
 *   cfi_run.c    an entry's program, as rows
 *   cfi_expr.c   the few expressions that are followed
 *   cfi_go.c     rows out of Go's table of functions
 *   cfi_code.c   rows that code itself gives away: signal trampolines, the entry point
 */
#ifndef KILN_SYMBOL_CFI_INT_H
#define KILN_SYMBOL_CFI_INT_H

#include "base/mem.h"
#include "symbol/cfi.h"
#include "symbol/cfi_entry.h"
#include "symbol/cursor.h"
#include "symbol/gopcln.h"
#include "symbol/window.h"

enum { CFI_RBX = 3, CFI_RBP = 6, CFI_RSP = 7, CFI_RIP = 16 };

/* Where rows go: sorted, equal neighbours are one. */
struct cfi_out {
    struct kiln_cfi_row *rows;
    uint32_t n, max;
    bool full;
    uint32_t fuel; /* what this may still cost: hostile files make programs without end */
};
void cfi_push(struct cfi_out *out, const struct kiln_cfi_row *row);
void cfi_push_rule(struct cfi_out *out, uint64_t address, enum kiln_rule rule);
/* False: there is nothing left. */
bool cfi_burn(struct cfi_out *out, uint32_t fuel);

/* ---- state of a program ---- */

enum cfi_where {
    CFI_UNSET,     /* nothing was said: the caller has what the register has */
    CFI_UNDEFINED, /* lost */
    CFI_AT_CFA,    /* saved at CFA + off */
    CFI_AT_FP,     /* saved at rbp + off */
    CFI_AT_SP,     /* saved at rsp + off */
    CFI_IN_REG,    /* in register `off` */
    CFI_OTHER,     /* what is not followed */
};

struct cfi_saved {
    uint8_t where; /* enum cfi_where */
    int64_t off;
};

struct cfi_cfa {
    uint8_t rule;   /* NONE, REG, DEREF, PLT */
    uint8_t plt_at; /* from which byte of 16 on 8 more are pushed */
    uint8_t reg;
    int64_t off, more;
};

struct cfi_state {
    struct cfi_cfa cfa;
    struct cfi_saved fp, ra, bx;
};

enum { CFI_REMEMBER_MAX = 32 };

/* An expression that gives the CFA; what is not followed gives NONE. */
struct cfi_cfa cfi_expr_cfa(const uint8_t *at, size_t n);
/* One that gives where a register is saved. */
struct cfi_saved cfi_expr_saved(const uint8_t *at, size_t n);

/* ---- sections of frames ---- */

struct cfi_cie {
    bool valid;
    uint64_t at; /* in the section */
    uint64_t code_align;
    int64_t data_align;
    uint8_t encoding; /* of addresses */
    uint8_t version;
    bool has_data;  /* 'z': entries have augmentation data */
    bool is_signal; /* 'S' */
    uint64_t ra;    /* column of the return address */
    struct cfi_state initial;
};

struct cfi_fde {
    uint64_t begin, end; /* addresses */
    const struct cfi_cie *cie;
    const uint8_t *program; /* until the next look through the window */
    size_t n_program;
    uint64_t program_at; /* its address, for what is relative to it */
    void *copy;          /* of an entry too large for the window; freed by cfi_fde_done() */
};

struct cfi_index_entry {
    uint64_t begin, at;
};

enum { CFI_CIES = 4 };

struct cfi_frames {
    const struct kiln_elf *elf;
    struct kiln_bytes memory; /* of a section that was compressed */
    void *loaded;
    struct kiln_window window;
    uint64_t offset, size, address;
    uint64_t text_base, data_base;
    bool is_debug; /* .debug_frame */
    bool is_open;
    /* .eh_frame_hdr's table of pairs of 32 bits, from its own address on */
    uint64_t table_offset, table_base;
    uint32_t n_table; /* 0: none */
    struct cfi_index_entry *index;
    uint32_t n_index, cap_index;
    bool is_indexed;
    struct kiln_budget budget; /* of the index */
    struct cfi_cie cies[CFI_CIES];
    uint32_t next_cie;
};

KILN_CHECK int cfi_frames_open_eh(struct cfi_frames *frames, const struct kiln_elf *elf);
KILN_CHECK int cfi_frames_open_debug(struct cfi_frames *frames, const struct kiln_elf *elf);
void cfi_frames_close(struct cfi_frames *frames);

KILN_CHECK int cfi_head_read(struct cfi_frames *frames, uint64_t at,
                             struct kiln_cfi_head *ret_head);
KILN_CHECK int cfi_fde_read(struct cfi_frames *frames, uint64_t at, struct cfi_fde *ret_fde);
void cfi_fde_done(struct cfi_fde *fde);

/*
 * Reads a pointer.  `address` is that of the cursor; false: an encoding that is not followed, or no
 * pointer at all.
 */
struct cfi_bases {
    uint64_t address, text, data;
};
bool cfi_pointer(struct kiln_cursor *c, uint8_t encoding, const struct cfi_bases *bases,
                 uint64_t *ret_value);
/* The body of a CIE, its program included; `address` is that of c->at. */
KILN_CHECK int cfi_cie_take(struct kiln_cursor *c, uint64_t address, struct cfi_cie *cie);
/* The body of an FDE whose CIE is known; bases->address is that of c->at. */
KILN_CHECK int cfi_fde_take(struct kiln_cursor *c, const struct cfi_bases *bases,
                            struct cfi_fde *fde);

/* Number of the last entry that begins at an address or below; 0 where none does. */
uint32_t cfi_index_find(struct cfi_frames *frames, uint64_t address);
uint32_t cfi_index_count(const struct cfi_frames *frames);
/* False: it cannot be read.  `at` is in the section. */
bool cfi_index_get(struct cfi_frames *frames, uint32_t number, uint64_t *ret_begin,
                   uint64_t *ret_at);
void cfi_index_open_table(struct cfi_frames *frames, uint64_t hdr_address, uint64_t hdr_offset);
/* Reads the whole section instead of the file's own table. */
KILN_CHECK int cfi_index_make(struct cfi_frames *frames);
/* The entry that covers an address, up to where the next begins.  -ENOENT: none; KILN_E_MALFORMED:
 * the file's own table is wrong. */
KILN_CHECK int cfi_index_cover(struct cfi_frames *frames, uint64_t address, uint64_t *ret_begin,
                               uint64_t *ret_end);

/* Rows of an FDE in [begin, end), which lies within it; `remember` has room for states. */
void cfi_run(struct cfi_state remember[CFI_REMEMBER_MAX], const struct cfi_bases *bases,
             const struct cfi_fde *fde, uint64_t begin, uint64_t end, struct cfi_out *out);
/* What a CIE's own program leaves. */
void cfi_run_initial(struct cfi_cie *cie, const uint8_t *program, size_t n);

/* ---- the other layers ---- */

struct kiln_cfi {
    const struct kiln_elf *elf;
    struct cfi_frames eh, debug;
    struct kiln_gopcln *go;
    bool is_entry_outermost;            /* whatever frames say of the entry point */
    bool is_entry_known, is_entry_bare; /* nothing is said of it */
};

enum cfi_layer { CFI_EH, CFI_GO, CFI_DEBUG, CFI_ENTRY, CFI_NOTHING };
void cfi_fill(struct kiln_cfi *cfi, enum cfi_layer layer, uint64_t begin, uint64_t end,
              struct cfi_out *out);

void cfi_go_fill(struct kiln_cfi *cfi, uint64_t begin, uint64_t end, struct cfi_out *out);
void cfi_entry_fill(const struct kiln_cfi *cfi, uint64_t begin, uint64_t end, struct cfi_out *out);
bool cfi_entry_is_outermost(const struct kiln_elf *elf);

enum { CFI_TRAMPOLINES_MAX = 8, CFI_TRAMPOLINE = 9 /* bytes */ };
/* Addresses of signal trampolines that touch [begin, end), sorted. */
uint32_t cfi_trampolines(const struct kiln_elf *elf, uint64_t begin, uint64_t end,
                         uint64_t found[CFI_TRAMPOLINES_MAX]);

#endif /* KILN_SYMBOL_CFI_INT_H */
