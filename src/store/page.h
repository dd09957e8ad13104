/* SPDX-License-Identifier: Apache-2.0 */
/*
 * page - the unit that a block is written, checked and read in: a few columns of numbers or bytes,
 * each packed (store/pack.h) and compressed on its own, under one checksum.
 *
 *   u32   CRC-32C of all that follows
 *   u32   bytes of all that follows
 *   one column after the other:
 *     u8      how it is packed (enum kiln_pack); + 0x80: and compressed with zstd
 *     varint  numbers in it (or bytes)
 *     varint  bytes before compression
 *     varint  bytes here; only if compressed
 *     bytes
 *
 * Numbers of more than one byte are little-endian everywhere.
 *
 * Threads: one owner at a time each.
 */
#ifndef KILN_STORE_PAGE_H
#define KILN_STORE_PAGE_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "store/io.h"
#include "store/pack.h"

enum {
    KILN_PAGE_HEAD = 8,
    KILN_PAGE_COLUMNS = 32, /* columns of a page at most, for remembering how each packs best */
};

/* Numbers that grow, charged to a budget. */
struct kiln_column {
    uint64_t *v;
    uint32_t n, cap;
};
KILN_CHECK int kiln_column_grow(struct kiln_column *column, struct kiln_budget *budget,
                                uint64_t need);
void kiln_column_done(struct kiln_column *column, struct kiln_budget *budget);

/* ---- writing ---- */

/* Which packing was best for a column of some kind of page, and for how many pages to trust it. */
struct kiln_page_habit {
    uint8_t best[KILN_PAGE_COLUMNS];
    uint8_t trusted[KILN_PAGE_COLUMNS];
};

struct kiln_page_out {
    struct kiln_buf page;            /* head and columns so far */
    struct kiln_buf packed, pressed; /* scratch */
    struct kiln_buf best;            /* scratch: the smallest try */
    struct kiln_page_habit *habit;   /* of the page at hand */
    uint32_t n_columns;              /* so far */
    bool quick; /* what is written will soon be written anew: rather quick than small */
    void *zstd;
};

KILN_CHECK int kiln_page_out_init(struct kiln_page_out *out, size_t max_bytes);
void kiln_page_out_done(struct kiln_page_out *out);

void kiln_page_begin(struct kiln_page_out *out, struct kiln_page_habit *habit);
void kiln_page_add(struct kiln_page_out *out, const uint64_t *numbers, uint32_t n);
void kiln_page_add_bytes(struct kiln_page_out *out, struct kiln_str bytes);
/* The finished page, valid until the next begins.  Returns 0, -ENOMEM or KILN_E_LIMIT. */
KILN_CHECK int kiln_page_finish(struct kiln_page_out *out, struct kiln_str *ret_page);

/* ---- reading ---- */

struct kiln_page_in {
    struct kiln_budget *budget; /* borrowed */
    char *page;                 /* as on disk */
    char *plain;                /* one column, uncompressed */
    uint32_t cap_page, cap_plain;
    const unsigned char *at, *end; /* what is left of the page */
    void *zstd;
};

/* What is wrong with a page, besides the codes of I/O and memory: a sentence without the place. */
KILN_CHECK int kiln_page_in_init(struct kiln_page_in *in, struct kiln_budget *budget);
void kiln_page_in_done(struct kiln_page_in *in);

/* Reads and checks the page of `size` bytes at `offset`. */
KILN_CHECK int kiln_page_load(struct kiln_page_in *in, struct kiln_io *io, int fd, uint64_t offset,
                              uint64_t size, struct kiln_err *err);
/* The next column, of at most `max` numbers. */
KILN_CHECK int kiln_page_get(struct kiln_page_in *in, struct kiln_column *column, uint64_t max,
                             struct kiln_err *err);
/* Passes over the next column, which is not unpacked: how many numbers or bytes it has. */
KILN_CHECK int kiln_page_skip(struct kiln_page_in *in, uint32_t *ret_n, struct kiln_err *err);
/* The next column, of at most `max` bytes; valid until the next column. */
KILN_CHECK int kiln_page_get_bytes(struct kiln_page_in *in, uint64_t max, struct kiln_str *ret,
                                   struct kiln_err *err);
static inline bool kiln_page_is_read(const struct kiln_page_in *in)
{
    return in->at == in->end;
}

/* For fuzzing alone: takes pages whose checksum is wrong, to look behind it. */
extern bool kiln_page_trusts_all;

#endif /* KILN_STORE_PAGE_H */
