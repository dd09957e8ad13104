/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block_int - what the files block_*.c share: sections and their columns, the footer in memory, and
 * small codes.  docs/formats/block.md has the bytes.
 *
 * Threads: as store/block.h.
 */
#ifndef KILN_STORE_BLOCK_INT_H
#define KILN_STORE_BLOCK_INT_H

#include "base/arena.h"
#include "store/block.h"
#include "store/page.h"

#define KILN_BLOCK_MAGIC      "KILNBLK\n"
#define KILN_BLOCK_HEAD       16u /* magic, version, checksum of both */
#define KILN_BLOCK_TAIL       20u /* length of the footer, version, checksum, magic */

/* Entries of a page at most, but for a page with one profile, which has as many rows as that. */
#define KILN_BLOCK_PAGE_ROWS  16384u
#define KILN_BLOCK_PAGE_BYTES 65536u

/* On disk: never change a number.  From OPTIONAL on a reader skips what it does not know. */
enum kiln_section_kind {
    KILN_SECTION_ROWS = 1,
    KILN_SECTION_STRINGS,
    KILN_SECTION_LISTS,
    KILN_SECTION_ATTRS,
    KILN_SECTION_SETS,
    KILN_SECTION_LINKS,
    KILN_SECTION_MAPPINGS,
    KILN_SECTION_FUNCTIONS,
    KILN_SECTION_LOCATIONS,
    KILN_SECTION_RESOURCES,
    KILN_SECTION_SCOPES,
    KILN_SECTION_ORIGINS,
    KILN_SECTION_MOMENTS,
    KILN_SECTION_STACKS, /* one for each service, its number is the owner */
    KILN_SECTION_RANKS,  /* likewise */
    KILN_N_SECTIONS,
    KILN_SECTION_OPTIONAL = 64,
    KILN_SECTION_ROLLUP = 64, /* a group of a service, which is the owner, also of the next three */
    KILN_SECTION_ROLLUP_NAMES,
    KILN_SECTION_ROLLUP_FUNCTIONS,
    KILN_SECTION_ROLLUP_NODES,
    KILN_SECTION_ROLLUP_END,
};

/* How many columns of numbers a page of each kind has, and how many of bytes after them. */
struct kiln_section_shape {
    const char *name;
    uint8_t numbers, bytes;
};
extern const struct kiln_section_shape kiln_section_shapes[];

/* Those of optional sections that are known here have a place behind them. */
enum { KILN_N_SHAPES = KILN_N_SECTIONS + KILN_SECTION_ROLLUP_END - KILN_SECTION_ROLLUP };
static inline uint32_t kiln_section_place(uint32_t kind)
{
    return kind < KILN_N_SECTIONS ? kind : KILN_N_SECTIONS + kind - KILN_SECTION_ROLLUP;
}

/* Columns of a page of rows. */
enum kiln_rows_column {
    KILN_ROWS_HEAD, /* enum kiln_rows_head */
    KILN_ROWS_SERIES,
    KILN_ROWS_ORIGIN,
    KILN_ROWS_MOMENT,
    KILN_ROWS_SHAPE,
    KILN_ROWS_COUNT,
    KILN_ROWS_EXTRA,
    KILN_ROWS_STACK,
    KILN_ROWS_ATTRS,
    KILN_ROWS_LINK,
    KILN_ROWS_VALUE,
    KILN_ROWS_TIME,
    KILN_ROWS_TICK,
    KILN_ROWS_OFF,
    KILN_N_ROWS_COLUMNS, /* then the bytes: ids, payloads */
};
enum { KILN_COLUMNS_MAX = KILN_N_ROWS_COLUMNS };

/* The column KILN_ROWS_HEAD. */
enum kiln_rows_head {
    KILN_HEAD_STACKS, /* entries that pages before it have shown: of the service, of the block */
    KILN_HEAD_SETS,
    KILN_HEAD_LINKS,
    KILN_HEAD_ORIGINS,
    KILN_HEAD_MOMENTS,
    KILN_HEAD_STACK_WAY, /* enum kiln_stack_way */
    KILN_HEAD_TIME_WAY,  /* enum kiln_time_way */
    KILN_HEAD_DIVISOR,   /* of values; 0: all are 0 */
    KILN_HEAD_SIGNED,    /* 1: values are zigzag */
    KILN_HEAD_PERIOD,    /* of ticks */
    KILN_N_HEAD,
};

enum kiln_stack_way {
    KILN_STACKS_BY_NUMBER, /* 0: the next new one; else its number */
    KILN_STACKS_ASCENDING, /* the difference to the row before in the profile */
};
enum kiln_time_way {
    KILN_TIMES_PLAIN, /* the difference to the row before in the profile, or to the profile's */
    KILN_TIMES_TICKS, /* which tick of the clock, and how far from it */
};

/* The column KILN_ROWS_SHAPE: bits 0 and 1 are has_values and has_times of all samples, or 0 where
 * the column EXTRA has the number of rows of each of the three shapes. */
enum {
    KILN_SHAPE_MASK = 3,
    KILN_SHAPE_HAS_ID = 4,
    KILN_SHAPE_HAS_PAYLOAD = 8,
    KILN_SHAPE_LIMIT = 16,
};

/* What many profiles share; on disk a row of the section of origins. */
struct kiln_origin {
    uint32_t resource, scope;
    struct kiln_value_type sample_type, period_type;
    uint32_t attrs, dropped_attrs, payload_format, flags;
    int64_t period;
};

struct kiln_moment {
    uint64_t time_ns, duration_ns;
};

/* ---- the footer in memory ---- */

struct kiln_section {
    uint32_t kind, owner;
    uint32_t first_page, n_pages;
    uint64_t n_entries;
};

struct kiln_page_ref {
    uint64_t offset, size;
    uint64_t n_entries; /* of rows: profiles */
};

/* One for each page of rows, in their order. */
struct kiln_rows_ref {
    uint32_t first_series, last_series;
    uint64_t min_ns, max_ns;
};

struct kiln_footer {
    struct kiln_block_info info;
    struct kiln_section *sections;
    struct kiln_page_ref *pages;
    struct kiln_rows_ref *rows;
    struct kiln_block_series *series;
    uint32_t *services; /* of each series */
    uint32_t *stacks;   /* of each service, as read: which section has its stacks, */
    uint32_t *ranks;    /* and which their ranks */
    uint32_t n_sections, n_pages, n_rows, n_services;
    uint64_t n_shared; /* series whose keys are references (store/shared_keys.h); 0: of a writer */
    uint32_t cap_sections, cap_pages, cap_rows, cap_series, cap_services, cap_stacks, cap_ranks;
    struct kiln_budget *budget; /* borrowed */
    struct kiln_arena arena;    /* tenant, ids */
};

void kiln_footer_init(struct kiln_footer *footer, struct kiln_budget *budget);
void kiln_footer_done(struct kiln_footer *footer);
KILN_CHECK int kiln_footer_encode(const struct kiln_footer *footer, struct kiln_page_out *out,
                                  struct kiln_str *ret_page);
/* `in` has the footer's page loaded; `file_bytes` is where the footer begins. */
KILN_CHECK int kiln_footer_decode(struct kiln_footer *footer, struct kiln_page_in *in,
                                  uint64_t file_bytes, struct kiln_err *err);
/* The one section of this kind, or NULL. */
const struct kiln_section *kiln_footer_section(const struct kiln_footer *footer, uint32_t kind);
/* The service in a series key. */
struct kiln_str kiln_block_service(struct kiln_str key);

/* The name of a section for a sentence, also of one that is not known. */
const char *kiln_section_name(uint32_t kind);

/* ---- an open block ---- */

struct kiln_block_names;                                    /* store/census.c */
void kiln_block_names_free(struct kiln_block_names *names); /* may be NULL */

struct kiln_block {
    _Atomic uint32_t refs;
    struct kiln_block_names *names; /* the census's; NULL: nobody looked yet */
    struct kiln_seen_block *seen;   /* store/seen_block.h, under its tenant's lock; or NULL */
    struct kiln_io *io;
    int fd;
    bool lenient; /* it may begin or end with damage */
    char *path;
    struct kiln_budget budget;
    struct kiln_footer footer;
    uint64_t rests_until_ns; /* kiln_block_rest() */
};

/* Puts the path before the place that `err` names, unless it is there; returns the code. */
int kiln_block_fail(const struct kiln_block *block, struct kiln_err *err, int code);

/* ---- small codes ---- */

/*
 * A number of a table that is filled as it is used: `next` entries were shown before.  Numbers
 * begin with 1; 0 is the zero value.
 *
 *   0           the zero value
 *   1           the next new one
 *   2 ... 64    1 to 63 before the next new one
 *   65 ...      its number and 64
 */
#define KILN_RECENT 63u

static inline uint64_t kiln_recent_encode(uint32_t number, uint32_t *next)
{
    uint32_t back = *next + 1 - number;

    if (number == 0)
        return 0;
    if (back == 0)
        (*next)++;
    return back <= KILN_RECENT ? 1 + back : 64 + (uint64_t)number;
}

/* False if no such number was shown. */
static inline bool kiln_recent_decode(uint64_t code, uint32_t *next, uint32_t *ret)
{
    if (code == 0) {
        *ret = 0;
        return true;
    }
    if (code == 1) {
        *ret = ++*next;
        return *next != 0;
    }
    if (code <= 1 + KILN_RECENT) {
        *ret = *next + 2 - (uint32_t)code;
        return code - 1 <= *next;
    }
    *ret = (uint32_t)(code - 64);
    return code - 64 <= *next;
}

#endif /* KILN_STORE_BLOCK_INT_H */
