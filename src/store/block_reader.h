/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block_reader - the inside of a block reader: the block's dictionary as it was read, what of it
 * the builder has already, and the page of rows at hand.
 *
 * Threads: one owner at a time.
 */
#ifndef KILN_STORE_BLOCK_READER_H
#define KILN_STORE_BLOCK_READER_H

#include "core/remap.h"
#include "store/block_int.h"
#include "store/block_rows.h"

struct kiln_reader_list {
    uint64_t first;
    uint32_t n, depth;
};

/* Numbers of a table that are damaged or refer to damage; a bit each. */
struct kiln_reader_marks {
    uint64_t *bits;
    uint32_t cap;
};
#define KILN_READER_BAD UINT32_MAX /* a stack, or a location in r->path, that is marked */

struct kiln_block_reader {
    struct kiln_block *block; /* a reference */
    struct kiln_budget budget;
    struct kiln_block_read_opts opts;
    struct kiln_page_in in;
    struct kiln_column columns[KILN_COLUMNS_MAX]; /* of the page at hand */
    struct kiln_buf bytes[2];                     /* its columns of bytes */

    /* the block's dictionary, by its own numbers */
    struct kiln_builder *own;
    struct kiln_reader_list *lists;
    struct kiln_line *lines;     /* scratch: of a location */
    struct kiln_origin *origins; /* strings and sets by number */
    struct kiln_moment *moments;
    uint32_t n_lists, n_origins, n_moments;
    uint32_t cap_lists, cap_lines, cap_origins, cap_moments;

    /* what is brought over */
    struct kiln_builder *b; /* borrowed; NULL: everything is checked, nothing brought over */
    struct kiln_remap *remap;
    uint32_t service;   /* whose stacks are; UINT32_MAX: none yet */
    uint32_t *stack_of; /* by number - 1: its index in the builder */
    uint32_t *sorted;   /* by rank: likewise */
    uint32_t *path;     /* scratch: a stack from the root, as indexes of the builder */
    uint32_t n_stacks, cap_stack_of, cap_sorted, cap_path, n_path;

    /* rows */
    uint32_t next_page, end_page; /* of rows */
    bool has_page;
    struct kiln_rows_tables tables;
    struct kiln_ticks ticks;
    uint16_t *cpus; /* by number of a set */
    uint32_t cap_cpus;
    struct kiln_rows_cursor cursor;
    struct kiln_sample *samples;
    int64_t *observations;
    struct kiln_keyed *keyed, *keyed_scratch; /* rows of one shape, by identity */
    uint32_t cap_samples, cap_observations, cap_keyed, cap_keyed_scratch;

    struct kiln_reader_marks marks[KILN_N_SECTIONS]; /* only with opts.lost: block_fill.c */
    bool has_marks;
    bool profile_is_lost; /* scratch: the profile at hand refers to something marked */

    uint64_t last; /* scratch: an integer before, across pages of one section */
    uint32_t next; /* scratch: entries shown, likewise */
    uint32_t before[2];
};

#define READER_ROOM(r, array, cap, need)                                                           \
    kiln_grow(&(r)->budget, (void **)&(array), &(cap), (need), sizeof(*(array)), UINT32_MAX)

/* Reads a page's columns. */
KILN_CHECK int kiln_reader_page(struct kiln_block_reader *r, uint32_t kind, uint32_t page,
                                struct kiln_err *err);
/* Gives each page of a section to `take`. */
typedef int kiln_reader_take(struct kiln_block_reader *r, uint32_t n_entries, struct kiln_err *err);
KILN_CHECK int kiln_reader_section(struct kiln_block_reader *r, const struct kiln_section *section,
                                   kiln_reader_take *take, struct kiln_err *err);

/* Of damaged sections: block_fill.c.  Whether a page is read without those before it. */
bool kiln_reader_stands_alone(uint32_t kind);
/* Puts marked placeholders into a section's table until it has the first `n` entries of it. */
KILN_CHECK int kiln_reader_fill(struct kiln_block_reader *r, uint32_t kind, uint64_t n);
KILN_CHECK int kiln_reader_mark(struct kiln_block_reader *r, uint32_t kind, uint32_t number);
bool kiln_reader_is_marked(const struct kiln_block_reader *r, uint32_t kind, uint64_t number);
/* Marks what refers to something marked, when the dictionary is loaded. */
KILN_CHECK int kiln_reader_spread(struct kiln_block_reader *r);
void kiln_reader_marks_done(struct kiln_block_reader *r);

/*
 * Makes the next page of rows that may have something the page at hand, with the stacks of its
 * service.  Returns 1, 0 at the end, or an error.
 */
KILN_CHECK int kiln_reader_next_page(struct kiln_block_reader *r, struct kiln_err *err);
/* The profiles of this page of rows are next, and then none. */
static inline void kiln_reader_choose_page(struct kiln_block_reader *r, uint32_t page)
{
    r->next_page = page;
    r->end_page = page + 1;
    r->has_page = false;
}
/* The id and payload of a profile, if it has them; false if they are not there. */
bool kiln_reader_get_bytes(const struct kiln_block_reader *r, const struct kiln_rows_profile *p,
                           struct kiln_profile *head);

/* Gives back what only reading needs; the dictionary stays, and the block is let go. */
void kiln_reader_trim(struct kiln_block_reader *r);

/* Whether the first `columns` columns have `n` numbers each. */
static inline bool kiln_reader_fits(const struct kiln_block_reader *r, uint32_t columns, uint32_t n)
{
    for (uint32_t i = 0; i < columns; i++) {
        if (r->columns[i].n != n)
            return false;
    }
    return true;
}

/* The dictionary but for stacks: block_load.c, block_load_code.c. */
KILN_CHECK int kiln_reader_load_dict(struct kiln_block_reader *r, struct kiln_err *err);
KILN_CHECK int kiln_reader_load_code(struct kiln_block_reader *r, struct kiln_err *err);
KILN_CHECK int kiln_reader_load_strings(struct kiln_block_reader *r, struct kiln_err *err);
/* The stacks of a service, into the builder: block_load_stacks.c. */
KILN_CHECK int kiln_reader_load_stacks(struct kiln_block_reader *r, uint32_t service,
                                       struct kiln_err *err);

static inline int kiln_reader_damaged(struct kiln_err *err, const char *what)
{
    return kiln_err_set(err, KILN_E_CORRUPT, NULL, "%s", what);
}

/* An entry did not get the number it has in the file: it is there twice, or memory ran out. */
int kiln_reader_twice(const struct kiln_block_reader *r, struct kiln_err *err, const char *what);

#endif /* KILN_STORE_BLOCK_READER_H */
